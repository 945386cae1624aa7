// Chapter 10: a queue without an end.
//
//   k6 run k6/chapter10.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=650 -e THINK=1 k6/chapter10.js
//   k6 run -e CALM_AFTER=10 -e CALM_SHARE=0.3 k6/chapter10.js      fewer users after ten seconds
//
// The same script ends with exit code 99 on the problem and 0 on the solution.

import { ask, load } from './common.js';

const chapter = {
  users: 650,
  think: 1,
  path: '/quote',
  answer: '{"cents":4200}',
  callSeconds: 0.02,
  // After so many seconds a user closes its connection.
  giveUp: 0.25,
  quarterMs: 250,
  // Quotes per second: eight calls at a time, of 20 ms and the timer's rounding.
  capacity: 350,
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}
