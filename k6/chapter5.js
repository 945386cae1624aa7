// Chapter 5: CPU work on the reactor thread.
//
//   k6 run k6/chapter5.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=64 -e THINK=0 k6/chapter5.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution. Users of /data
// cannot tell the two apart. What does is the ping, which is sent on a schedule beside them.

import { ask, askBystander, load } from './common.js';

const chapter = {
  path: '/data',
  answer: '4',
  users: 64,
  think: 0,
  // 64 users whose answers take 4 ms each of one CPU get theirs every 256 ms. Twice that leaves
  // room for a CPU that others use, too: what is told apart here are the pings.
  callSeconds: 0.512,
  // Who asks for nothing that takes work must not wait for the others: a quarter of their 256 ms.
  bystander: { path: '/ping', answer: 'pong', perSecond: 100, quarterMs: 64 },
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}

export function bystander() {
  askBystander(chapter);
}
