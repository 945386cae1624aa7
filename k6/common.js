// What the chapters' k6 scripts share: users who think, a check of every answer, a measurement
// that begins once the users are there and warm, and thresholds that decide the exit code.
//
// All settings come from the outside, in seconds where they are times:
//   -e HOST=http://127.0.0.1:8080 -e USERS=200 -e THINK=0.5 -e WARM_UP=2 -e DURATION=28 -e TIME_OUT=60

import exec from 'k6/execution';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';

const HOST = __ENV.HOST || 'http://127.0.0.1:8080';
const USERS = number('USERS', 200);
const THINK = number('THINK', 0.5);
const WARM_UP = number('WARM_UP', 2);
const DURATION = number('DURATION', 28);
const TIME_OUT = number('TIME_OUT', 60);

// Users come evenly over a think time, and not faster than k6 can start them.
const RAMP = Math.max(THINK, USERS / 2000);
const STEADY_MS = (RAMP + WARM_UP) * 1000;
const END_MS = STEADY_MS + DURATION * 1000;

// Only what was answered in the steady state.
const rightAnswers = new Counter('right_answers');
const answerLatency = new Trend('answer_latency', true);
// Faults count from the first request on.
const wrongAnswers = new Counter('wrong_answers');
const faults = {
  connection: new Counter('failed_connection'),
  timeOut: new Counter('failed_time_out'),
  status: new Counter('failed_status'),
};

function number(name, otherwise) {
  if (__ENV[name] === undefined) {
    return otherwise;
  }
  const value = Number(__ENV[name]);
  if (!(value >= 0)) {
    throw new Error(`${name} must be a number, not '${__ENV[name]}'`);
  }
  return value;
}

// The options of a chapter: its load, and what a cured service keeps to.
export function load(chapter) {
  return {
    scenarios: {
      chapter: {
        executor: 'constant-vus',
        vus: USERS,
        duration: `${END_MS}ms`,
        // A request without an answer at the end is neither right nor a fault.
        gracefulStop: '0s',
      },
    },
    thresholds: {
      // Four fifths of what Little's law lets so many users ask for.
      right_answers: [`count>=${Math.floor((0.8 * USERS * DURATION) / (THINK + chapter.callSeconds))}`],
      // Four times the unavoidable: no queue, but room for a busy laptop.
      answer_latency: [`p(95)<${4 * chapter.callSeconds * 1000}`],
      wrong_answers: ['count==0'],
      failed_connection: ['count==0'],
      failed_time_out: ['count==0'],
      failed_status: ['count==0'],
    },
    summaryTrendStats: ['avg', 'min', 'p(25)', 'med', 'p(75)', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
    // The answer's body is checked.
    discardResponseBodies: false,
  };
}

let come = false;

// One request of one user, and the pause after it.
export function ask(chapter) {
  if (!come) {
    come = true;
    sleep((RAMP * (exec.vu.idInTest - 1)) / USERS);
  }
  const response = http.get(HOST + chapter.path, { timeout: `${TIME_OUT}s` });
  const elapsed = Date.now() - exec.scenario.startTime;
  if (isRight(response, chapter.answer) && elapsed >= STEADY_MS && elapsed < END_MS) {
    rightAnswers.add(1);
    answerLatency.add(response.timings.duration);
  }
  sleep(THINK);
}

function isRight(response, answer) {
  if (response.error_code === 1050) {
    faults.timeOut.add(1);
  } else if (response.status === 0) {
    faults.connection.add(1);
  } else if (response.status !== 200) {
    faults.status.add(1);
  } else if (response.body !== answer) {
    wrongAnswers.add(1);
    if (exec.vu.idInTest === 1) {
      console.error(`wrong answer: ${response.body.slice(0, 200)}`);
    }
  } else {
    return true;
  }
  return false;
}
