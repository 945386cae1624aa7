// Chapter 4: a client per request.
//
//   k6 run k6/chapter4.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=200 -e THINK=0.1 k6/chapter4.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution. The problem can be
// outrun by CPUs: on a machine with more than three, give it more users.

import { ask, load } from './common.js';

const chapter = {
  // They ask for more than 1,600 a second: more than two CPUs can set up clients for, and
  // little work for one that shares its client.
  users: 200,
  think: 0.1,
  path: '/io',
  answer: '{"status":200,"msg":"Good Luck!"}',
  // The upstream of this load answers after 20 ms; without --upstream-latency-ms it answers at once.
  callSeconds: 0.02,
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}
