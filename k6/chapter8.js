// Chapter 8: blocking strategies, and where a large body lives.
//
//   k6 run k6/chapter8.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=64 -e THINK=0 k6/chapter8.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution. Users of /summarize
// cannot tell the two apart. What does is the ping, which is sent on a schedule beside them.

import { ask, askBystander, load } from './common.js';

const chapter = {
  path: '/summarize',
  answer: '255 is the highest of 1048576 bytes',
  users: 64,
  think: 0,
  // The archive keeps 128 bodies a second: 64 users get theirs every 0.5 s, and on a slow machine later.
  callSeconds: 2,
  // A ping takes 50 ms, and must not wait for the bodies of others.
  bystander: { path: '/ping', answer: 'pong', perSecond: 100, quarterMs: 80 },
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}

export function bystander() {
  askBystander(chapter);
}
