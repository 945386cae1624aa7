// What the chapters' k6 scripts share: users who think, a check of every answer, a measurement
// that begins once the users are there and warm, and thresholds that decide the exit code.
//
// All options come from the outside, in seconds where they are times:
//   -e HOST=http://127.0.0.1:8080 -e USERS=200 -e THINK=0.5 -e WARM_UP=2 -e DURATION=28 -e TIME_OUT=60
// and, in chapters that write, -e WRITE_SHARE=0.05, and in those with a second, paced request,
// -e BYSTANDERS_PER_SECOND=100, where 0 leaves it out. Users, think time and share of writes are the
// chapter's unless they are given. Chapters that have so many users for each CPU take
// -e PROCESSORS=2, because k6 cannot count them. In chapters whose users give up, -e GIVE_UP=0.25 says after how long, and
// -e CALM_AFTER=10 -e CALM_SHARE=0.5 leave half of the users after ten seconds of measurement.

import exec from 'k6/execution';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';

const HOST = __ENV.HOST || 'http://127.0.0.1:8080';
const WARM_UP = number('WARM_UP', 2);
const DURATION = number('DURATION', 28);
const TIME_OUT = number('TIME_OUT', 60);
const ALONE_MS = number('ALONE_MS', 0);

// Only what was answered in the steady state.
const rightAnswers = new Counter('right_answers');
const answerLatency = new Trend('answer_latency', true);
// Of bystanders: the second, paced request of chapters that have one.
const bystanderLatency = new Trend('bystander_latency', true);
// Latency of a right answer, divided by what it takes with nobody else there.
const timesAlone = new Trend('times_alone');
// In chapters whose users give up, these are no faults: requests that were closed before an answer came, and answers 503.
const givenUp = new Counter('given_up');
const refused = new Counter('refused');
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

// The load of a chapter with what was given from the outside.
function scenarioOf(chapter) {
  const users = number('USERS', chapter.users || chapter.usersPerCpu * number('PROCESSORS', 2));
  const think = number('THINK', chapter.think);
  // Users come evenly over a think time, and not faster than k6 can start them.
  const ramp = Math.max(think, users / 2000);
  const steadyMs = (ramp + WARM_UP) * 1000;
  return {
    users,
    think,
    ramp,
    steadyMs,
    endMs: steadyMs + DURATION * 1000,
    bystandersPerSecond: chapter.bystander ? number('BYSTANDERS_PER_SECOND', chapter.bystander.perSecond) : 0,
    writeShare: chapter.write ? number('WRITE_SHARE', chapter.writeShare || 0) : 0,
    giveUp: number('GIVE_UP', chapter.giveUp || 0),
    calmAfter: number('CALM_AFTER', Infinity),
    calmShare: number('CALM_SHARE', 0.5),
  };
}

// The options of a chapter: its load, and what a fixed service keeps to.
export function load(chapter) {
  const { users, think, endMs, bystandersPerSecond, calmAfter, calmShare } = scenarioOf(chapter);
  // Half of what Little's law lets so many users ask for, or of what the service can answer.
  const most = chapter.capacity || Infinity;
  const wanted = (share) => 0.5 * Math.min((share * users) / (think + chapter.callSeconds), most);
  const busy = Math.min(DURATION, calmAfter);
  const answers = Math.floor(wanted(1) * busy + wanted(calmShare) * (DURATION - busy));
  // Four times the unavoidable: there is no queue. Other programs on the machine lengthen some answers, a fault
  // lengthens all of them, so the faster quarter tells the two apart. Chapters that do not know the unavoidable
  // beforehand have `setup` find it out, see `alone`.
  const quarterMs = chapter.quarterMs || 4 * chapter.callSeconds * 1000;
  const latency = chapter.timesAlone
    ? { times_alone: [`med<${chapter.timesAlone}`] }
    : { answer_latency: [`p(25)<${quarterMs}`] };
  const scenarios = {
    chapter: {
      executor: 'constant-vus',
      vus: users,
      duration: `${endMs}ms`,
      // A request without an answer at the end is neither right nor a fault.
      gracefulStop: '0s',
    },
  };
  if (bystandersPerSecond > 0) {
    // An open loop: it keeps its pace whatever the answers do.
    scenarios.bystander = {
      executor: 'constant-arrival-rate',
      exec: 'bystander',
      rate: bystandersPerSecond,
      timeUnit: '1s',
      duration: `${endMs}ms`,
      preAllocatedVUs: 64,
      gracefulStop: '0s',
    };
  }
  return {
    scenarios,
    thresholds: {
      right_answers: [`count>=${chapter.answersAtLeast === undefined ? answers : chapter.answersAtLeast}`],
      ...latency,
      ...(bystandersPerSecond > 0 ? { bystander_latency: [`p(25)<${chapter.bystander.quarterMs}`] } : {}),
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

// How long a request takes with nobody else there, in milliseconds: the lower quartile of some,
// because what else runs there only makes it longer; unless -e ALONE_MS says it, for when others are
// there already.
export function alone(chapter) {
  if (ALONE_MS > 0) {
    return ALONE_MS;
  }
  const taken = [];
  for (let number = 0; number < 15; number += 1) {
    const response = send(chapter);
    if (isRight(response, chapter.answer)) {
      taken.push(response.timings.duration);
    }
  }
  taken.sort((a, b) => a - b);
  return taken[Math.floor(taken.length / 4)];
}

let own;

// One request of one user, and the pause after it. `aloneMs` is what `alone` has found out.
export function ask(chapter, aloneMs) {
  if (!own) {
    own = scenarioOf(chapter);
    sleep((own.ramp * (exec.vu.idInTest - 1)) / own.users);
  }
  const { think, steadyMs, endMs, writeShare } = own;
  const calmMs = steadyMs + own.calmAfter * 1000;
  if (exec.vu.idInTest > own.calmShare * own.users && exec.scenario.progress * endMs >= calmMs) {
    // This user does not come back.
    sleep(endMs / 1000);
    return;
  }
  const isWrite = Math.random() < writeShare;
  const exchange = isWrite ? chapter.write : chapter;
  const response = send(exchange, own.giveUp);
  // Not by the clock of the day, which somebody may set meanwhile.
  const elapsed = exec.scenario.progress * endMs;
  if (isRight(response, exchange.answer, own.giveUp) && elapsed >= steadyMs && elapsed < endMs) {
    rightAnswers.add(1);
    if (!isWrite) {
      answerLatency.add(response.timings.duration);
    }
    if (aloneMs > 0) {
      timesAlone.add(response.timings.duration / aloneMs);
    }
  }
  sleep(think);
}

// One request of a bystander.
export function askBystander(chapter) {
  const { steadyMs, endMs } = scenarioOf(chapter);
  const response = send(chapter.bystander);
  const elapsed = exec.scenario.progress * endMs;
  if (isRight(response, chapter.bystander.answer) && elapsed >= steadyMs && elapsed < endMs) {
    bystanderLatency.add(response.timings.duration);
  }
}

// A `POST` where there is a body, else a `GET`.
function send({ path, body }, giveUp) {
  const parameters = { timeout: `${(giveUp || TIME_OUT) * 1000}ms` };
  if (body === undefined) {
    return http.get(HOST + path, parameters);
  }
  parameters.headers = { 'Content-Type': /^[{[]/.test(body) ? 'application/json' : 'text/plain; charset=utf-8' };
  return http.post(HOST + path, body, parameters);
}

function isRight(response, answer, giveUp) {
  if (giveUp && response.error_code === 1050) {
    givenUp.add(1);
  } else if (giveUp && response.status === 503) {
    refused.add(1);
  } else if (response.error_code === 1050) {
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
