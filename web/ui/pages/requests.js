// Requests: what is in flight and in which phase, what waits and why, what has
// ended and how. Each opens the explanation of where it went.
import * as actions from '../actions.js';
import { get } from '../api.js';
import { h } from '../dom.js';
import { DASH, clean, count, integer, number, seconds, when } from '../format.js';
import { badge, empty, lasting, moment, workerName } from '../parts.js';
import { link, parse, setQuery } from '../route.js';
import { store } from '../store.js';
import { Table } from '../table.js';
import * as explain from './explain.js';

export const title = 'Requests';
const EVERY = 3000; // ended ones are asked for that often while they are looked at
const tabs = { flight: 'In flight', waiting: 'Waiting', ended: 'Ended' };

export const wants = (route) => (route.rest[0] === 'explain' ? {} : { requests: 'all' });

const tabOf = () => parse(location.hash).query.get('tab') ?? 'flight';

const phases = { queued: 'waiting', sent: 'computing', streaming: 'generating', parked: 'parked' };
const tones = { queued: 'changing', sent: 'changing', streaming: 'ready', parked: 'parked' };

const speed = (r) => (r.state === 'streaming' ? number(r.tokens_per_second) : DASH);
const id = {
  key: 'id',
  name: 'request',
  value: (r) => r.id,
  cell: (r) => h('a.mono', { href: link('requests', 'explain', r.id), title: r.id }, r.id),
};
const model = {
  key: 'model',
  name: 'model, key',
  value: (r) => `${r.model} ${r.key ?? ''}`,
  cell: (r) => h('div', null, r.model || DASH, r.key ? h('span.why', null, r.key) : null),
};
const priority = { key: 'priority', name: 'priority', value: (r) => r.priority, cell: (r) => r.priority };

const flight = [
  id,
  {
    key: 'phase',
    name: 'phase',
    value: (r) => r.state,
    cell: (r) =>
      h(
        'span.badge',
        { class: `tone-${tones[r.state] === 'ready' ? 'well' : tones[r.state] === 'parked' ? 'risk' : 'changing'}` },
        phases[r.state] ?? r.state,
      ),
  },
  { key: 'since', name: 'for', big: true, value: (r) => -when(r.since), cell: (r) => lasting(r.since) },
  { key: 'speed', name: 'tokens/s', class: 'n', value: (r) => r.tokens_per_second, cell: speed },
  { key: 'out', name: 'generated', class: 'n', big: true, value: (r) => r.generated_tokens, cell: (r) => integer(r.generated_tokens) },
  { key: 'prompt', name: 'prompt', class: 'n', big: true, value: (r) => r.prompt_tokens, cell: (r) => integer(r.prompt_tokens) },
  { key: 'worker', name: 'worker', value: (r) => r.worker, cell: (r) => workerName(r.worker) },
  model,
  priority,
  {
    key: 'resumes',
    name: 'resumed',
    class: 'n',
    big: true,
    value: (r) => r.resumes,
    cell: (r) => (r.resumes ? count(r.resumes, 'time') : DASH),
  },
  {
    key: 'does',
    name: 'action',
    cell: (r) => actions.button('Cancel', () => actions.cancel(r), { label: `Cancel ${r.id}`, class: '.small-button' }),
  },
];
const queue = [
  id,
  { key: 'position', name: 'position', class: 'n', value: (r) => r.position ?? Infinity, cell: (r) => integer(r.position) },
  {
    key: 'why',
    name: 'why it waits',
    class: 'wide-cell',
    value: (r) => r.waits_for ?? '',
    cell: (r) => clean(r.waits_for ?? 'for its turn'),
  },
  { key: 'since', name: 'for', big: true, value: (r) => -when(r.since), cell: (r) => lasting(r.since) },
  priority,
  { key: 'pool', name: 'pool', value: (r) => r.pool, cell: (r) => r.pool },
  model,
  { key: 'prompt', name: 'prompt', class: 'n', big: true, value: (r) => r.prompt_tokens, cell: (r) => integer(r.prompt_tokens) },
  flight.at(-1),
];
const past = [
  id,
  { key: 'ended', name: 'ended', value: (r) => -when(r.ended), cell: (r) => moment(r.ended) },
  {
    key: 'outcome',
    name: 'outcome',
    value: (r) => r.outcome,
    cell: (r) =>
      h('div', null, badge(r.outcome), r.outcome === 'ok' ? null : h('span.why', null, [r.status, r.reason].filter(Boolean).map(clean).join(' '))),
  },
  { key: 'worker', name: 'worker', value: (r) => r.worker, cell: (r) => workerName(r.worker) },
  model,
  { key: 'queue', name: 'waited', class: 'n', big: true, value: (r) => r.queue_seconds, cell: (r) => seconds(r.queue_seconds) },
  { key: 'ttft', name: 'first token', class: 'n', big: true, value: (r) => r.ttft_seconds, cell: (r) => seconds(r.ttft_seconds) },
  { key: 'seconds', name: 'took', class: 'n', big: true, value: (r) => r.seconds, cell: (r) => seconds(r.seconds) },
  {
    key: 'prompt',
    name: 'prompt',
    class: 'n',
    big: true,
    value: (r) => r.prompt_tokens,
    cell: (r) => [integer(r.prompt_tokens), r.cached_tokens ? h('span.muted.small', null, ` ${integer(r.cached_tokens)} cached`) : null],
  },
  { key: 'out', name: 'generated', class: 'n', big: true, value: (r) => r.generated_tokens, cell: (r) => integer(r.generated_tokens) },
  { key: 'speed', name: 'tokens/s', class: 'n', value: rate, cell: (r) => number(rate(r)) },
  {
    key: 'resumes',
    name: 'resumed',
    class: 'n',
    big: true,
    value: (r) => r.resumes,
    cell: (r) => (r.resumes ? count(r.resumes, 'time') : DASH),
  },
];

// rate is the speed of the stream after its first token.
function rate(r) {
  const took = r.seconds - r.queue_seconds - (r.ttft_seconds ?? 0);
  return r.ttft_seconds === null || !(r.generated_tokens > 1) || took <= 0.01 ? null : (r.generated_tokens - 1) / took;
}

let repaint = () => {};
let flightTable, queueTable, pastTable, theirTable;
const ended = { list: null, error: '', asked: 0, outcome: '', busy: false };

export function wire(paint) {
  repaint = paint;
  const words = (r) => [r.id, r.model, r.worker, r.key, r.priority, r.pool, r.state, r.outcome, r.reason, r.status].join(' ');
  flightTable = new Table('flight', flight, paint, { sort: 'since', down: true, words });
  theirTable = new Table(
    'theirs',
    flight.filter((c) => c.key !== 'worker'),
    paint,
    { sort: 'since', down: true, words },
  );
  queueTable = new Table('queue', queue, paint, { sort: 'position', words });
  pastTable = new Table('ended', past, paint, { sort: 'ended', words });
  explain.wire(paint);
}

export function enter(route) {
  if (route.rest[0] === 'explain') explain.enter(route.rest[1]);
}

// inFlightTable is also what a worker's page shows of its own.
export const inFlightTable = (rows, caption) => (rows.length ? theirTable.view(rows, caption) : h('p.muted', null, 'None in flight.'));

export function view(route) {
  if (route.rest[0] === 'explain') return explain.view(route.rest[1]);
  const live = store.requests;
  const waiting = live?.requests.filter((r) => r.state === 'queued' || r.state === 'parked') ?? [];
  const flying = live?.requests.filter((r) => r.state !== 'queued') ?? [];
  const tab = tabOf();
  const counts = { flight: live ? live.total - live.waiting : null, waiting: live?.waiting };
  const table = { flight: flightTable, waiting: queueTable, ended: pastTable }[tab] ?? flightTable;
  return [
    h(
      'div.page-head',
      null,
      h('h1', null, 'Requests'),
      h('div.filters', null, tab === 'ended' ? outcomes() : null, table.filterBox('Filter requests')),
    ),
    h(
      'div.tabs',
      { role: 'tablist', 'aria-label': 'Requests', onkeydown: arrows },
      Object.entries(tabs).map(([k, name]) =>
        h(
          'button',
          {
            role: 'tab',
            key: k,
            id: `tab-${k}`,
            'aria-selected': String(tab === k),
            tabindex: tab === k ? 0 : -1,
            'aria-controls': 'tab-panel',
            onclick: () => {
              setQuery({ tab: k });
              repaint();
            },
          },
          name,
          counts[k] === null || counts[k] === undefined ? null : h('span.count', null, integer(counts[k])),
        ),
      ),
    ),
    h(
      'div',
      { role: 'tabpanel', id: 'tab-panel', key: `panel-${tab}`, 'aria-labelledby': `tab-${tab}` },
      tab === 'ended'
        ? endedView()
        : tab === 'waiting'
          ? list(
              live,
              waiting,
              queueTable,
              'Nobody waits',
              'Requests wait at the door when no worker has room for them, or when their key is at its limit.',
            )
          : list(live, flying, flightTable, 'Nobody asks', 'Requests appear here while a worker computes them.'),
    ),
  ];
}

function arrows(e) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!by) return;
  const names = Object.keys(tabs);
  const to = names[(names.indexOf(tabOf()) + by + names.length) % names.length];
  setQuery({ tab: to });
  repaint();
  requestAnimationFrame(() => document.getElementById(`tab-${to}`)?.focus());
}

function list(live, rows, table, none, why) {
  if (!live) return h('p.muted', null, 'Asking…');
  return [
    rows.length === 0 ? empty(none, h('p', null, why)) : table.view(rows, none === 'Nobody waits' ? 'Requests that wait' : 'Requests in flight'),
    live.total > live.requests.length
      ? h('p.muted', null, `The oldest ${integer(live.requests.length)} of ${integer(live.total)} are listed.`)
      : null,
  ];
}

function outcomes() {
  return h(
    'select',
    {
      'aria-label': 'Outcome',
      value: ended.outcome,
      onchange: (e) => {
        Object.assign(ended, { outcome: e.target.value, asked: 0, list: null });
        repaint();
      },
    },
    [
      ['', 'all outcomes'],
      ['failed,refused', 'failed or refused'],
      ['failed', 'failed'],
      ['refused', 'refused'],
      ['client_error', 'client errors'],
      ['cancelled', 'cancelled'],
      ['ok', 'ok'],
    ].map(([value, name]) => h('option', { value, key: value }, name)),
  );
}

function endedView() {
  if (!ended.busy && performance.now() - ended.asked > EVERY && store.link === 'open') askEnded();
  if (!ended.list) return ended.error ? h('p.refused', null, ended.error) : h('p.muted', null, 'Asking…');
  return ended.list.length === 0
    ? empty(
        ended.outcome ? 'None has ended so' : 'No request has ended yet',
        h('p', null, 'The last 2 048 are kept, and 512 more that did not end well. No text is kept.'),
      )
    : pastTable.view(ended.list, 'Requests that have ended');
}

async function askEnded() {
  Object.assign(ended, { busy: true, asked: performance.now() });
  const outcome = ended.outcome;
  try {
    const answer = await get(`/api/requests?ended=1&limit=500${outcome ? `&outcome=${outcome}` : ''}`);
    if (outcome === ended.outcome) Object.assign(ended, { list: answer.ended, error: '' });
  } catch (error) {
    ended.error = error.message;
  }
  ended.busy = false;
  repaint();
}
