// Chapter 1: a mutex held across an await.
//
//   k6 run k6/chapter1.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=200 -e THINK=0.5 k6/chapter1.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution.

import { ask, load } from './common.js';

const chapter = {
  users: 200,
  think: 0.5,
  path: '/read',
  answer: '6',
  // The database call that no answer can do without takes 50 ms.
  callSeconds: 0.05,
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}
