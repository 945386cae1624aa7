// Written by `duel load`. Ends with exit code 99 if an answer is wrong.
//
//   k6 run -e HOST=http://127.0.0.1:8080 -e USERS=50 THIS_FILE

import http from 'k6/http';
import { check, sleep } from 'k6';

const HOST = __ENV.HOST || "http://127.0.0.1:8080";
const USERS = Number(__ENV.USERS || 50);

export const options = {
  vus: USERS,
  duration: '10s',
  thresholds: { checks: ['rate==1'] },
};

export function setup() {
  const answer = http.request("POST", HOST + "/login", "{\"name\": \"me\"}", {
    headers: { "accept": "*/*" },
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
  const token = ["data", "token"].reduce((value, key) => value[key], answer.json());
  login.authorization = `Bearer ${token}`;
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
  sleep(0.5);
}
