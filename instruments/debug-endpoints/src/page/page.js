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
const things = (number, one) => `${whole(number)} ${one}${number === 1 ? '' : 's'}`;
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

function svg(name, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function figureOf(plot) {
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

// --- Where requests are -------------------------------------------------------------------------------------------

const OTHERS = 7; // class of the band that stands for all other places
const HIGHEST = 94; // height of the most requests, below the marks of incidents

async function loadWaits() {
  const answer = await ask(`${BASE}await/recent`);
  if (answer.ok) showWaits(await answer.json());
}

function showWaits(recent) {
  const { bands, step, samples, open } = recent;
  const intervals = bands.length ? bands[0].requests.length : 0;
  const tops = new Array(intervals).fill(0);
  for (const band of bands) band.requests.forEach((requests, at) => { tops[at] += requests; });
  const most = Math.max(0, ...tops);
  const picture = svg('svg', { viewBox: `0 0 ${intervals || 1} 100`, preserveAspectRatio: 'none', role: 'img' });
  const says = bands.map((band) => `${nameOf(band)}: ${digits(band.now)}`).join('; ');
  picture.setAttribute('aria-label', `Requests by place over ${recent.seconds / 60} minutes. Now: ${says || 'none'}`);
  const from = new Array(intervals).fill(0);
  bands.forEach((band, at) => {
    let path = '';
    band.requests.forEach((requests, interval) => {
      if (requests <= 0) return;
      const height = (HIGHEST * requests) / most;
      // A little wider than an interval: no line of the background between two of them.
      path += `M${interval} ${100 - from[interval]}v${-height}h1.01v${height}z`;
      from[interval] += height;
    });
    picture.append(svg('path', { d: path, class: classOf(band, at) }));
  });
  for (const incident of incidents) picture.append(markOf(incident, recent, intervals));
  const counted = Math.min(recent.counted_for, recent.seconds);
  at('waits-most').textContent = `at most ${digits(most)} in flight, mean of ${step} seconds`;
  at('waits-count').textContent = `${things(samples, 'sample')} in ${time(Math.round(counted))}` +
    (open ? `, ${whole(open)} still without a place` : '');
  at('waits-incidents').hidden = incidents.length === 0;
  at('waits-picture').replaceChildren(picture);
  at('waits-body').replaceChildren(...bands.map(rowOf));
  at('waits').hidden = bands.length === 0 && open === 0 && counted < step;
}

/** Makes the mark of an incident: as long as it was, and a twelfth of an interval at least. */
function markOf(incident, recent, intervals) {
  const from = intervals - (Date.now() - beganAt(incident)) / 1000 / recent.step;
  const width = Math.max(incident.seconds / recent.step, 1 / 12);
  return svg('rect', { x: from, y: 0, width: Math.min(width, intervals - from), height: 4, class: 'incident' });
}

function classOf(band, at) {
  return `band-${band.route === null ? OTHERS : at}`;
}

function nameOf(band) {
  if (band.route === null) return 'all other places';
  return `${band.place ?? band.wait} (${band.route})`;
}

function rowOf(band, at) {
  const key = svg('svg', { viewBox: '0 0 1 1', class: 'key', 'aria-hidden': 'true' });
  key.append(svg('rect', { width: 1, height: 1, class: classOf(band, at) }));
  const place = make('th', '', { scope: 'row' });
  place.append(key, band.route === null ? 'all other places' : band.place ?? `(${band.wait})`);
  const row = make('tr');
  row.append(place, make('td', digits(band.now), { className: 'number' }));
  row.append(make('td', whole(band.samples_now), { className: 'number' }));
  row.append(make('td', (band.wait ?? '').replace(/_/g, ' ')), make('td', band.route ?? ''));
  return row;
}

// --- Tasks that are no requests -----------------------------------------------------------------------------------

async function listTasks() {
  const [button, result] = [at('tasks'), at('tasks-result')];
  button.disabled = true;
  result.replaceChildren(make('p', 'Reading the tasks.'));
  try {
    const answer = await ask(`${BASE}tasks?format=json`);
    if (answer.ok) result.replaceChildren(...tasksOf(await answer.json()));
    else result.replaceChildren(make('p', await answer.text()));
  } catch (error) {
    if (!(error instanceof Locked)) result.replaceChildren(make('p', `No answer: ${error.message}`, { className: 'bad' }));
  } finally {
    Object.assign(button, { disabled: false, textContent: 'List them again' });
  }
}

function tasksOf(report) {
  const shown = [];
  let [number, serving, own] = [0, 0, 0];
  for (const group of report.groups) {
    if (group.of_endpoints) own += group.count;
    else if (group.serves) serving += group.count;
    else {
      number += group.count;
      shown.push(group);
    }
  }
  const when = new Date().toLocaleTimeString();
  const others = [`${whole(serving)} more accept or serve connections`];
  if (own) others.push(`${whole(own)} belong to the debug endpoints`);
  const parts = [make('p', `${things(number, 'task')} at ${when}; ${others.join(', and ')}.`)];
  for (const circle of report.circles) {
    const tasks = circle.links.map((link) => `task ${link.task.id} (${short(link.task.future)})`).join(', ');
    parts.push(make('p', `${circle.is_certain ? 'Deadlock' : 'Probable deadlock'}: ${tasks} wait for each other.`, { className: 'bad' }));
  }
  for (const group of shown) {
    const waits = group.stack.flatMap((level) => level.waits.map((wait) => wait.waits_for));
    const last = group.stack.findLast((level) => level.line)?.line;
    const card = make('details', '', { className: 'card' });
    const says = waits.length ? `waiting for ${waits.join(', and for ')}` : group.state;
    card.append(make('summary', `${whole(group.count)}: ${short(group.future)}, ${says}${last ? ` at ${last.file}:${last.line}` : ''}`));
    const levels = make('ul');
    for (const level of group.stack) {
      const line = level.line ? ` (${level.line.file}:${level.line.line})` : '';
      const holds = level.holds.map((held) => `; holds ${held.holds} (${held.variable})`).join('');
      levels.append(make('li', `${short(level.future)}${line}${holds}`));
    }
    card.append(levels);
    parts.push(card);
  }
  if (report.not_seen.length) parts.push(make('p', `Not seen: ${report.not_seen.join(' ')}`, { className: 'quiet' }));
  return parts;
}

/** Returns the beginning of a long name. */
function short(name) {
  return name.length > 120 ? `${name.slice(0, 119)}…` : name;
}

// --- Polls, while the page is visible -----------------------------------------------------------------------------

let timer = 0;
let polling = Promise.resolve();
let hasIncidents = true;
let incidents = [];

async function poll() {
  try {
    const samples = parsed(await (await ask(`${BASE}metrics`)).text());
    const now = performance.now();
    const late = looking ? null : await lateness();
    if (late !== null) samples.set('heartbeat', [{ labels: {}, value: late }]);
    for (const plot of PLOTS) addPoint(plot, samples, now);
    showRoutes(samples);
    if (hasIncidents) await loadIncidents();
    await loadWaits();
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
    const samples = things(Number(answer.headers.get('X-Samples')), 'sample');
    const caption = make('figcaption', `${picture.title}: ${samples}. `);
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
  incidents = await answer.json();
  const text = JSON.stringify(incidents);
  at('incidents').hidden = false;
  // Open stacks stay open while nothing is new.
  if (text === at('incidents').dataset.shown) return;
  at('incidents').dataset.shown = text;
  const cards = incidents.map(cardOf);
  at('incidents-list').replaceChildren(...(cards.length ? cards : [make('p', 'None since the start.')]));
}

function beganAt(incident) {
  return new Date(typeof incident.at === 'number' ? incident.at * 1000 : incident.at);
}

function cardOf(incident) {
  const began = beganAt(incident);
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
at('tasks').addEventListener('click', listTasks);
enter();
