// Written by `duel load`. Ends with exit code 99 if an answer is wrong.
//
//   k6 run -e HOST=https://localhost:8443 -e USERS=50 THIS_FILE
//
// k6 trusts the authorities of the system, and a script cannot name another. On Linux, call it with
// SSL_CERT_FILE=certificates/ca.pem before it. Elsewhere, add that authority to the system's.

import http from 'k6/http';
import { check } from 'k6';

const HOST = __ENV.HOST || "https://localhost:8443";
const USERS = Number(__ENV.USERS || 50);

export const options = {
  vus: USERS,
  duration: '0.3s',
  thresholds: { checks: ['rate==1'] },
};

export function setup() {
  const answer = http.request("GET", HOST + "/login", null, {
    headers: {  },
    redirects: 0,
  });
  if (answer.status >= 400) {
    throw new Error(`login: status ${answer.status}`);
  }
  const login = {};
  const cookies = Object.values(answer.cookies).flat();
  if (cookies.length > 0) {
    login.cookie = cookies.map((one) => `${one.name}=${one.value}`).join('; ');
  }
  return login;
}

const pick = (values) => values[Math.floor(Math.random() * values.length)];

// How often each is sent, and what.
const requests = [
  {
    weight: 1,
    name: "GET /health",
    method: "GET",
    path: () => "/health" + ('') + "",
    body: null,
    headers: {  },
    statuses: [200],
  },
  {
    weight: 2.5,
    name: "GET /row/{5..104}?all",
    method: "GET",
    path: () => "/row/" + (5 + Math.floor(Math.random() * 100)) + "?all",
    body: null,
    headers: {  },
    statuses: [200],
  },
  {
    weight: 1,
    name: "POST /name/{names}",
    method: "POST",
    path: () => "/name/" + (pick(["a<b", "c\"d"])) + "",
    body: "{\"name\": \"me\"}\n",
    headers: { "accept": "a \"quoted\" one" },
    statuses: [201, 503],
  },
];
const weights = requests.reduce((sum, request) => sum + request.weight, 0);

export default function (login) {
  let left = Math.random() * weights;
  const request =
    requests.find((one) => (left -= one.weight) < 0) || requests[0];
  const answer = http.request(request.method, HOST + request.path(), request.body, {
    headers: Object.assign({}, request.headers, login),
    redirects: 0,
    tags: { name: request.name },
  });
  check(answer, { status: (answer) => request.statuses.includes(answer.status) });
}
