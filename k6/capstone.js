// The capstone's ticket shop: users who look around, buy, look at their orders and organise, with the same journeys as
// `cargo workshop capstone bench`, but of a fixed number.
//
//   k6 run k6/capstone.js
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=20 -e WARM_UP=5 -e DURATION=60 k6/capstone.js
//
// Ends with exit code 99 when a route misses its objective or a journey breaks. `worth` divided by DURATION is the
// score with so many users. k6's own limit: it takes several times the CPU time of `bench` for a request
// (docs/generator.md), so give it CPUs of its own (`taskset`) and believe no latency while they are busy.

import encoding from 'k6/encoding';
import exec from 'k6/execution';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';

const HOST = __ENV.HOST || 'http://127.0.0.1:8080';
const USERS = Number(__ENV.USERS || 20);
const WARM_UP = Number(__ENV.WARM_UP || 5);
const DURATION = Number(__ENV.DURATION || 60);

const PASSWORD = 'correct horse';
const [CUSTOMERS, ORGANISERS, EVENTS_OF_EACH] = [4800, 200, 10];
// After so many journeys somebody else comes; of those who log in, one in so many signs up first.
const [JOURNEYS, SIGN_UPS] = [10, 4];
// The payment service declines users whose number is a multiple of this.
const DECLINED = 100;
// Seconds between an answer and the next request, half of it to three halves.
const THINK = 0.1;
const POSTER = 100_000;
const CATEGORIES = ['comedy', 'concert', 'dance', 'reading', 'theatre'];
const WORDS = [
  'blue', 'electric', 'garden', 'golden', 'harbour', 'lanterns', 'lost', 'monday', 'northern', 'silver', 'velvet', 'wild',
];

// What is in time, how frequent each journey is, and what it is worth.
const table = open('../crates/shop-bench/objectives.toml');
const objectives = [...table.matchAll(/^(\w+) = (\d+)$/gm)].map(([, route, ms]) => [route, Number(ms)]);
const kinds = [...table.matchAll(/^(\w+) = \{ share = (\d+), worth = (\d+) \}$/gm)]
  .map(([, name, share, worth]) => ({ name, share: Number(share), worth: Number(worth) }));
const within = Object.fromEntries(objectives);

const latency = Object.fromEntries(objectives.map(([route]) => [route, new Trend(`route_${route}`, true)]));
const inTime = new Counter('journeys_in_time');
const late = new Counter('journeys_late');
const broken = new Counter('journeys_broken');
const worth = new Counter('worth');

export const options = {
  scenarios: {
    users: {
      executor: 'constant-vus',
      vus: USERS,
      duration: `${WARM_UP + DURATION}s`,
      gracefulStop: '0s',
    },
  },
  thresholds: {
    journeys_broken: ['count==0'],
    journeys_in_time: ['count>0'],
    ...Object.fromEntries(objectives.map(([route, ms]) => [`route_${route}`, [`p(99)<=${ms}`]])),
  },
  summaryTrendStats: ['med', 'p(99)', 'max', 'count'],
  // A user is the same for some journeys.
  noCookiesReset: true,
};

// Each kind has its share of any few journeys: the one that has waited longest for it is next.
const turns = (() => {
  const all = kinds.reduce((sum, kind) => sum + kind.share, 0);
  const credit = kinds.map(() => 0);
  return Array.from({ length: all }, () => {
    kinds.forEach((kind, at) => { credit[at] += kind.share; });
    const next = credit.indexOf(Math.max(...credit));
    credit[next] -= all;
    return kinds[next];
  });
})();

// That somebody else was faster is a right answer, too.
http.setResponseCallback(http.expectedStatuses(200, 201, 204, 409));

class Broken extends Error {}

// The account's number is there while the user is logged in.
const user = { journeys: 0, account: undefined, inTime: true };

export default function () {
  if (user.journeys === JOURNEYS) {
    comeAnew();
  }
  user.journeys += 1;
  user.inTime = true;
  let kind = turns[exec.scenario.iterationInTest % turns.length];
  try {
    const became = ({ browse, buy, look_up: lookUp, organise })[kind.name]();
    kind = kinds.find(({ name }) => name === became) ?? kind;
  } catch (error) {
    if (!(error instanceof Broken)) {
      throw error;
    }
    broken.add(1);
    if (exec.vu.idInTest === 1) {
      console.error(`${kind.name}: ${error.message}`);
    }
    comeAnew();
    think();
    return;
  }
  if (counts()) {
    (user.inTime ? inTime : late).add(1);
    worth.add(user.inTime ? kind.worth : 0);
  }
}

function comeAnew() {
  http.cookieJar().clear(HOST);
  Object.assign(user, { journeys: 0, account: undefined });
}

function browse() {
  const home = ask('home', '/');
  check(home.body.includes('id="next"'), 'home: lists nothing');
  think();
  const list = ask('list', `/events?category=${choose(CATEGORIES)}&page=${below(5)}`);
  const event = eventOf('list', list);
  think();
  lookAt(event);
  think();
  const found = search();
  think();
  lookAt(found);
}

// Returns another kind if it became that: a visitor who finds no seats, or whose payment is declined, has browsed.
function buy() {
  logIn();
  const event = search();
  think();
  lookAt(event);
  think();
  const order = reserve(event);
  if (order === undefined) {
    return 'browse';
  }
  think();
  const isDeclined = user.account % DECLINED === 0;
  const paid = ask('pay', `/orders/${order}/pay`, { body: 'null', expected: [isDeclined ? 409 : 200] });
  if (isDeclined) {
    return 'browse';
  }
  const { tickets } = json('pay', paid);
  check(tickets && tickets.length > 0, 'pay: answers no ticket');
  for (const { code } of tickets) {
    const png = ask('ticket', `/tickets/${code}`, { responseType: 'binary' });
    const start = encoding.b64encode(png.body.slice(0, 4));
    check(start === encoding.b64encode('\x89PNG'.split('').map((letter) => letter.charCodeAt(0))), 'ticket: is no PNG');
  }
  const orders = ask('orders', '/orders');
  check(orders.body.includes(`id="order-${order}" class="paid"`), `orders: order ${order} is not there`);
  return undefined;
}

// The order; none if nothing is left.
function reserve(event) {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const map = json('seats', ask('seats', `/events/${event}/seats`));
    const free = map.seats.filter((seat) => seat.is_free).map((seat) => seat.id);
    if (free.length === 0) {
      return undefined;
    }
    const wanted = Math.min(1 + below(2), free.length);
    const first = below(free.length - wanted + 1);
    think();
    const body = JSON.stringify({ seats: free.slice(first, first + wanted) });
    const answer = ask('reserve', `/events/${event}/reserve`, { body, expected: [201, 409] });
    if (answer.status === 201) {
      const { order } = json('reserve', answer);
      check(order !== undefined, 'reserve: no order');
      return order;
    }
    // Somebody else was faster.
    think();
  }
  return undefined;
}

function lookUp() {
  logIn();
  check(ask('orders', '/orders').body.includes('<h1>Your orders</h1>'), 'orders: is another page');
}

function organise() {
  // Another browser than the buyer's.
  comeAnew();
  const organiser = 1 + below(ORGANISERS);
  enter(`organiser${organiser}@example.com`);
  const { events } = json('report', ask('report', '/organiser/report'));
  check(events && events.length === EVENTS_OF_EACH, 'report: has other events');
  think();
  const event = organiser + ORGANISERS * below(EVENTS_OF_EACH);
  const body = new Uint8Array(POSTER).fill(below(256)).buffer;
  ask('upload', `/organiser/events/${event}/poster`, { body, type: 'image/png', expected: [204] });
  const poster = ask('poster', `/events/${event}/poster`, { responseType: 'binary' });
  comeAnew();
  check(poster.body.byteLength === POSTER, `poster: has ${poster.body.byteLength} bytes`);
}

function search() {
  return eventOf('search', ask('search', `/search?q=${choose(WORDS)}`));
}

function lookAt(event) {
  check(json('event', ask('event', `/events/${event}`)).id === event, 'event: is another one');
}

// Signs up, or logs in, unless that was done.
function logIn() {
  if (user.account !== undefined) {
    return;
  }
  let account;
  if (below(SIGN_UPS) === 0) {
    const email = `new${below(2 ** 32).toString(16)}${below(2 ** 32).toString(16)}@example.org`;
    const body = JSON.stringify({ email, name: 'Ada', password: PASSWORD });
    account = json('sign_up', ask('sign_up', '/signup', { body, expected: [201] }));
  } else {
    account = enter(`user${1 + below(CUSTOMERS)}@example.com`);
  }
  user.account = account.id;
  think();
}

function enter(email) {
  return json('log_in', ask('log_in', '/login', { body: JSON.stringify({ email, password: PASSWORD }) }));
}

// A `POST` where there is a body. Other answers than the expected break the journey.
function ask(route, path, { body, type = 'application/json', expected = [200], responseType = 'text' } = {}) {
  const parameters = { responseType, tags: { name: route }, timeout: '10s' };
  if (body !== undefined) {
    parameters.headers = { 'Content-Type': type };
  }
  const response = http.request(body === undefined ? 'GET' : 'POST', HOST + path, body, parameters);
  const ms = response.timings.duration;
  user.inTime = user.inTime && ms <= within[route];
  if (counts()) {
    latency[route].add(ms);
  }
  check(expected.includes(response.status), `${route}: ${response.status || response.error}`);
  return response;
}

// Whether the warm-up is over.
function counts() {
  return exec.scenario.progress * (WARM_UP + DURATION) >= WARM_UP;
}

function check(holds, otherwise) {
  if (!holds) {
    throw new Broken(otherwise);
  }
}

function json(route, response) {
  try {
    return response.json();
  } catch (error) {
    throw new Broken(`${route}: ${error}`);
  }
}

// One of those that are listed.
function eventOf(route, response) {
  const list = json(route, response);
  check(list.length > 0, `${route}: finds nothing`);
  return choose(list).id;
}

function think() {
  sleep(THINK * (Math.random() + 0.5));
}

function choose(list) {
  return list[below(list.length)];
}

function below(end) {
  return Math.floor(Math.random() * end);
}
