// Chapter 2: an RwLock whose guard lives too long.
//
//   k6 run k6/chapter2.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=400 -e THINK=0.5 -e WRITE_SHARE=0.05 k6/chapter2.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution. With
// WRITE_SHARE=0 it passes on both: that is the lesson.

import { ask, load } from './common.js';

const chapter = {
  users: 400,
  think: 0.5,
  path: '/read',
  answer: '6',
  write: { path: '/subscribe', body: '87-89-34 snakes', answer: 'subscribed' },
  writeShare: 0.05,
  // The database call that no read can do without takes 50 ms.
  callSeconds: 0.05,
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}
