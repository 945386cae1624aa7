// Chapter 3: a clone in a hot loop.
//
//   k6 run k6/chapter3.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=12 -e THINK=1 k6/chapter3.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution.

import { ask, load } from './common.js';

const chapter = {
  path: '/clients/0',
  answer: 'bide bababa, dami bababa, dodo bababa, made bababa, mimi bababa, boma bababe, dide bababe, kami bababe, kobo bababe, mema bababe',
  // So few that they seldom meet: then an answer takes as long as its work.
  users: 12,
  think: 1,
  // A sort that only reads takes about 3 ms.
  callSeconds: 0.003,
  // A CPU a third as fast keeps to this; one three times as fast does not if it clones.
  quarterMs: 10,
};

export const options = load(chapter);

export default function () {
  ask(chapter);
}
