'use strict';
// Shows what the endpoints answer. All of it is put in as text, never as HTML.

const EVERY = 3000; // milliseconds between two polls
const KEPT = 100; // points of a plot: five minutes
const KEY = 'debug-token';
// Before `/debug`, if the endpoints are below another path.
const ROOT = location.pathname.replace(/\/?(debug\/?)?$/, '');
const BASE = `${ROOT}/debug/`;

const at = (id) => document.getElementById(id);

function make(name, text, properties) {
  const element = document.createElement(name);
  element.textContent = text ?? '';
  return Object.assign(element, properties);
}

// --- Requests, with the token in a header -------------------------------------------------------------------------

let token = sessionStorage.getItem(KEY);

class Locked extends Error {}

/** Returns the answer of an endpoint. Shows the door, and throws, if the token is missing or wrong. */
async function ask(path, accept = '*/*') {
  const headers = { Accept: accept };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, { headers, credentials: 'omit', cache: 'no-store', redirect: 'error' });
  if (answer.status === 401) {
    lock(token ? 'That is not the token. It is the one that the service was started with.' : '');
    throw new Locked();
  }
  return answer;
}

function lock(why) {
  token = null;
  sessionStorage.removeItem(KEY);
  at('inside').hidden = true;
  at('door').hidden = false;
  at('token-error').textContent = why;
  at('state').textContent = 'Locked.';
  at('token').focus();
}

at('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const given = at('token').value.trim();
  at('token').value = '';
  if (!/^[ -~]+$/.test(given)) {
    at('token-error').textContent = 'A token has only letters, digits and signs of ASCII.';
    return;
  }
  token = given;
  sessionStorage.setItem(KEY, token);
  enter().then(() => at('look').focus());
});

/** Makes a link to an endpoint. A link cannot send the token, so with one the answer is shown on this page. */
function link(path, text) {
  const made = make('a', text, { href: ROOT + path });
  made.addEventListener('click', (event) => {
    if (!token) return;
    event.preventDefault();
    showAnswer(path);
  });
  return made;
}

async function showAnswer(path) {
  at('answer').hidden = false;
  at('answer-title').focus();
  const body = at('answer-body');
  body.replaceChildren(make('p', `Asking for ${path}`));
  try {
    const answer = await ask(ROOT + path);
    const kind = answer.headers.get('Content-Type') ?? '';
    const file = new Blob([await answer.arrayBuffer()], { type: kind });
    body.replaceChildren(make('p', `${path}: ${answer.status}`));
    if (kind.includes('text/') || kind.includes('json')) {
      body.append(make('pre', await file.text()));
      return;
    }
    const named = /filename="([^"]+)"/.exec(answer.headers.get('Content-Disposition') ?? '');
    const href = URL.createObjectURL(file);
    if (kind.includes('svg')) body.append(make('img', '', { src: href, alt: `Flamegraph of ${path}` }));
    body.append(make('a', 'Save it', { href, download: named ? named[1] : 'flamegraph.svg' }));
  } catch (error) {
    if (!(error instanceof Locked)) body.replaceChildren(make('p', `No answer: ${error.message}`));
  }
}

// --- Look now -----------------------------------------------------------------------------------------------------

let looking = false;

async function look() {
  const seconds = Number(at('seconds').value);
  const [button, progress, result] = [at('look'), at('look-progress'), at('look-result')];
  looking = true;
  button.disabled = true;
  result.replaceChildren(make('p', `Looking for ${seconds} seconds.`));
  // Each instrument is used by one at a time: the poll's heartbeat ends first.
  await polling;
  const began = performance.now();
  Object.assign(progress, { hidden: false, max: seconds, value: 0 });
  const ticks = setInterval(() => {
    progress.value = (performance.now() - began) / 1000;
    button.textContent = `Looking: ${Math.min(seconds, Math.round(progress.value))} of ${seconds} s`;
  }, 250);
  try {
    const answer = await ask(`${BASE}look?seconds=${seconds}`, 'text/plain');
    result.replaceChildren();
    for (const block of blocksOf(await answer.text())) result.append(block);
    loadPictures();
  } catch (error) {
    if (!(error instanceof Locked)) result.replaceChildren(make('p', `No answer: ${error.message}`, { className: 'bad' }));
  } finally {
    clearInterval(ticks);
    Object.assign(button, { disabled: false, textContent: 'Look again' });
    progress.hidden = true;
    looking = false;
  }
}

/** Makes a paragraph of each line, and a card of each finding: a line with labelled lines below it. */
function blocksOf(text) {
  const blocks = [];
  for (const line of text.split('\n')) {
    const labelled = /^ {3}([^:]+): (.*)$/.exec(line);
    if (!labelled) {
      if (line) blocks.push(make('p', line));
      continue;
    }
    let card = blocks.at(-1);
    if (card.tagName === 'P') {
      card = make('div', '', { className: 'card' });
      card.append(make('h3', blocks.pop().textContent), make('dl'));
      blocks.push(card);
    }
    const [words, path] = labelled[2].split(/ \[(\/debug\/\w+)\]$/);
    const told = make('dd', words);
    if (path) told.append(' ', link(`${path}?seconds=10`, path));
    card.lastChild.append(make('dt', labelled[1]), told);
  }
  return blocks;
}

// --- Plots of the metrics -----------------------------------------------------------------------------------------

const digits = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
const whole = (value) => String(Math.round(value));
const mebibytes = (value) => `${digits(value / 2 ** 20)} MiB`;
function time(seconds) {
  if (seconds >= 1) return `${digits(seconds)} s`;
  return seconds >= 1e-3 ? `${digits(seconds * 1e3)} ms` : `${Math.round(seconds * 1e6)} µs`;
}

const PLOTS = [
  { title: 'Requests in flight', names: ['requests_in_flight'], show: whole },
  { title: 'CPUs used', names: ['process_cpu_seconds', 'process_cpu_seconds_total'], isRate: true, show: digits },
  { title: 'Resident memory', names: ['process_resident_memory_bytes'], show: mebibytes },
  { title: 'Heartbeat: p99 of lateness', names: ['heartbeat'], show: time },
  { title: 'Tasks', names: ['tokio_alive_tasks'], show: whole },
  { title: 'Open file descriptors', names: ['process_open_fds'], show: whole },
];

/** Returns the samples of a text for Prometheus by their names. */
function parsed(text) {
  const samples = new Map();
  for (const line of text.split('\n')) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[name] = value.replace(/\\(.)/g, '$1');
    }
    const others = samples.get(found[1]) ?? [];
    samples.set(found[1], [...others, { labels, value: Number(found[3]) }]);
  }
  return samples;
}

/** Adds the sum of a metric over all its labels to its plot; without one, the plot is hidden. */
function addPoint(plot, samples, now) {
  const name = plot.names.find((one) => samples.has(one));
  if (!name) return;
  let value = 0;
  for (const sample of samples.get(name)) value += sample.value;
  if (plot.isRate) {
    const before = plot.before;
    plot.before = { value, now };
    if (!before) return;
    value = (value - before.value) / ((now - before.now) / 1000);
  }
  if (!Number.isFinite(value)) return;
  plot.points = [...(plot.points ?? []), value].slice(-KEPT);
  draw(plot);
}

function draw(plot) {
  plot.figure ??= figureOf(plot);
  const { points, show } = plot;
  const most = Math.max(...points);
  const text = show(points.at(-1));
  const x = (index) => 100 - points.length + 1 + index;
  const y = (value) => (most > 0 ? 38 - (36 * value) / most : 38);
  const line = points.map((value, index) => `${x(index)},${y(value)}`);
  plot.figure.querySelector('polyline').setAttribute('points', line.join(' '));
  plot.figure.querySelector('svg').setAttribute('aria-label', `${plot.title}: ${text}; at most ${show(most)}`);
  plot.figure.querySelector('output').textContent = text;
  plot.figure.querySelector('.most').textContent = `at most ${show(most)}`;
}

function figureOf(plot) {
  const svg = (name, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const picture = svg('svg', { viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img' });
  picture.append(svg('line', { x1: 0, x2: 100, y1: 39, y2: 39 }), svg('polyline', {}));
  const caption = make('figcaption');
  // Its changes are not read aloud: there is one every three seconds.
  const value = make('output');
  value.setAttribute('aria-live', 'off');
  caption.append(make('span', plot.title), value);
  const figure = make('figure', '', { className: 'card' });
  figure.append(caption, picture, make('div', '', { className: 'quiet most' }));
  // Plots keep their order, whichever has its first point first.
  plot.place.replaceWith(figure);
  return figure;
}

for (const plot of PLOTS) {
  plot.place = make('i', '', { hidden: true });
  at('plots').append(plot.place);
}

function showRoutes(samples) {
  const routes = new Map();
  const add = (name, key) => {
    for (const { labels, value } of samples.get(name) ?? []) {
      const route = routes.get(labels.route) ?? {};
      routes.set(labels.route, { ...route, [key(labels)]: value });
    }
  };
  add('route_latency_seconds', (labels) => labels.quantile);
  add('route_latency_seconds_count', () => 'timed');
  const slowest = [...routes].sort(([, a], [, b]) => (b['0.99'] || 0) - (a['0.99'] || 0));
  const rows = slowest.map(([name, route]) => {
    const row = make('tr');
    row.append(make('th', name, { scope: 'row' }));
    for (const quantile of ['0.5', '0.99']) {
      const text = Number.isFinite(route[quantile]) ? time(route[quantile]) : '–';
      row.append(make('td', text, { className: 'number' }));
    }
    row.append(make('td', whole(route.timed), { className: 'number' }));
    return row;
  });
  at('routes').hidden = rows.length === 0;
  at('routes-body').replaceChildren(...rows);
}

// --- Polls, while the page is visible -----------------------------------------------------------------------------

let timer = 0;
let polling = Promise.resolve();
let hasIncidents = true;

async function poll() {
  try {
    const samples = parsed(await (await ask(`${BASE}metrics`)).text());
    const now = performance.now();
    const late = looking ? null : await lateness();
    if (late !== null) samples.set('heartbeat', [{ labels: {}, value: late }]);
    for (const plot of PLOTS) addPoint(plot, samples, now);
    showRoutes(samples);
    if (hasIncidents) await loadIncidents();
    at('state').textContent = 'Live.';
  } catch (error) {
    if (error instanceof Locked) return;
    at('state').textContent = 'No answer: the service has ended, or cannot be reached.';
  }
  if (!document.hidden) timer = setTimeout(pollAgain, EVERY);
}

function pollAgain() {
  clearTimeout(timer);
  polling = polling.then(poll);
}

/** Returns how late the runtimes are in a fifth of a second, or null if somebody else asks the same. */
async function lateness() {
  const answer = await ask(`${BASE}heartbeat?seconds=0.2`);
  if (!answer.ok) return null;
  const heartbeat = await answer.json();
  return Math.max(heartbeat.late_p99, heartbeat.unanswered);
}

document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (document.hidden) at('state').textContent = 'Stopped while the page is hidden.';
  else if (!at('inside').hidden) pollAgain();
});

// --- Pictures, incidents, links -----------------------------------------------------------------------------------

const PICTURES = [
  { title: 'What requests wait for', path: '/debug/await/last?format=svg' },
  { title: 'Where threads are blocked', path: '/debug/threads/last?format=svg' },
  { title: 'Where CPU time goes', path: '/debug/pprof/last?format=svg' },
];

async function loadPictures() {
  const figures = [];
  for (const picture of PICTURES) {
    const answer = await ask(ROOT + picture.path);
    if (!answer.ok) continue;
    if (picture.url) URL.revokeObjectURL(picture.url);
    picture.url = URL.createObjectURL(await answer.blob());
    const figure = make('figure', '', { className: 'picture' });
    const caption = make('figcaption', `${picture.title}. `);
    caption.append(link(picture.path, 'Open it to zoom'));
    figure.append(caption, make('img', '', { src: picture.url, alt: `Flamegraph: ${picture.title}` }));
    figures.push(figure);
  }
  at('pictures-none').hidden = figures.length > 0;
  at('pictures').replaceChildren(...figures);
}

async function loadIncidents() {
  const answer = await ask(`${BASE}incidents?format=json`);
  hasIncidents = answer.ok;
  if (!answer.ok) return;
  const incidents = await answer.json();
  const text = JSON.stringify(incidents);
  at('incidents').hidden = false;
  // Open stacks stay open while nothing is new.
  if (text === at('incidents').dataset.shown) return;
  at('incidents').dataset.shown = text;
  const cards = incidents.map(cardOf);
  at('incidents-list').replaceChildren(...(cards.length ? cards : [make('p', 'None since the start.')]));
}

function cardOf(incident) {
  const began = new Date(typeof incident.at === 'number' ? incident.at * 1000 : incident.at);
  const when = Number.isNaN(began.getTime()) ? String(incident.at) : began.toLocaleString();
  const card = make('div', '', { className: 'card' });
  const kind = String(incident.kind).replace(/_/g, ' ');
  card.append(make('h3', `${when}: ${kind}, ${time(incident.seconds)}${incident.ongoing ? ' until now' : ''}`));
  for (const sentence of [incident.sentences ?? []].flat()) card.append(make('p', sentence));
  for (const [name, lines] of [['Stacks of threads', incident.stacks], ['Waits of requests', incident.waits]]) {
    if (!lines?.length) continue;
    const more = make('details');
    more.append(make('summary', name), make('pre', lines.join('\n')));
    card.append(more);
  }
  return card;
}

/** Shows the list of the endpoints, whose lines are a path and what it answers. */
function showEndpoints(text) {
  const items = [];
  for (const line of text.split('\n')) {
    const found = /^(\/\S+)\s*(.*)$/.exec(line.trim());
    if (!found) continue;
    const [, path, what] = found;
    const asked = path.replace('seconds=N', 'seconds=10').replace(/format=(?:\S*\|)?(svg|[^|&]+)\S*/, 'format=$1');
    const item = make('li');
    item.append(link(asked, path), make('span', ` ${what}`, { className: 'quiet' }));
    if (/format=\S*svg/.test(what)) item.append(' ', link(`${asked}&format=svg`, 'as a picture'));
    items.push(item);
  }
  at('endpoints-list').replaceChildren(...items);
}

// --- The beginning ------------------------------------------------------------------------------------------------

async function enter() {
  try {
    const answer = await ask(BASE, 'text/plain');
    const text = await answer.text();
    if (!answer.ok) {
      at('state').textContent = text;
      return;
    }
    showEndpoints(text);
    at('token-error').textContent = '';
    at('door').hidden = true;
    at('inside').hidden = false;
    pollAgain();
    await loadPictures();
  } catch (error) {
    if (!(error instanceof Locked)) at('state').textContent = `No answer: ${error.message}`;
  }
}

at('look').addEventListener('click', look);
enter();
