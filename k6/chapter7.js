// Chapter 7: NUMA locality.
//
//   k6 run -e PROCESSORS=2 k6/chapter7.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=6 -e THINK=0 k6/chapter7.js
//
// On a machine with one NUMA node problem and solution are equally fast, and the script ends with
// exit code 0 on both. How long a scan takes depends on the machine, so it is found out first, by
// asking with no other users.

import { alone, ask, load } from './common.js';

const chapter = {
  path: '/check',
  // Longer than a text of the data set, so that each of them is looked at, and none matches.
  body: 'None of the forbidden texts begins as this letter does. '.repeat(12),
  answer: 'false',
  usersPerCpu: 3,
  think: 0,
  answersAtLeast: 1,
  // Every CPU serves its three users, so an answer takes three scans. Memory that all of them
  // wait for makes them longer than a scan alone, by half or so; a CPU that serves twice as many
  // users would make it six. The same limit as in chapter 6, whose service this is.
  timesAlone: 5.2,
};

export const options = load(chapter);

export function setup() {
  return alone(chapter);
}

export default function (aloneMs) {
  ask(chapter, aloneMs);
}
