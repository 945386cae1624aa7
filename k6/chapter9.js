// Chapter 9: a pool connection held across an await.
//
//   k6 run k6/chapter9.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=200 -e THINK=0.5 k6/chapter9.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution.

import { ask, load } from './common.js';

const chapter = {
  users: 200,
  think: 0.5,
  path: '/order',
  body: '{"product":1,"quantity":2}',
  answer: '{"product":1,"quantity":2,"cents":2194}',
  // The pricing service that no order can do without takes 50 ms.
  callSeconds: 0.05,
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}
