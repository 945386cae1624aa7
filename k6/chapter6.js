// Chapter 6: CPUs that the runtime does not see.
//
//   k6 run -e PROCESSORS=2 k6/chapter6.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=6 -e THINK=0 k6/chapter6.js
//
// The same script ends with exit code 99 on the problem and 0 on the solution. How long a scan
// takes depends on the machine, so it is found out first, by asking with no other users.

import { alone, ask, load } from './common.js';

const chapter = {
  path: '/check',
  // Longer than a text of the data set, so that each of them is looked at, and none matches.
  body: 'None of the forbidden texts begins as this letter does. '.repeat(12),
  answer: 'false',
  usersPerCpu: 3,
  think: 0,
  answersAtLeast: 1,
  // Where every CPU serves its three users, an answer takes three scans, which take up to half
  // as long again where CPUs share a memory and a core: 4.5. Where one CPU of two serves
  // all six users, it takes six. Between the two lies the root of 4.5 * 6.
  timesAlone: 5.2,
};

export const options = load(chapter);

export function setup() {
  return alone(chapter);
}

export default function (aloneMs) {
  ask(chapter, aloneMs);
}
