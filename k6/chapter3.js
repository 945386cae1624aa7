// Chapter 3: a clone in a hot loop.
//
//   k6 run k6/chapter3.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=12 -e THINK=1 k6/chapter3.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution.

import { ask, load } from './common.js';

const chapter = {
  path: '/cpu',
  answer: '2172347200543715621',
  // So few that they seldom meet: then an answer takes as long as its work.
  users: 12,
  think: 1,
  // A million rounds that only read take about 8 ms.
  callSeconds: 0.008,
  // A CPU half as fast keeps to this, one twice as fast does not if it clones.
  p95Ms: 30,
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}
