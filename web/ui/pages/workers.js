// Workers: all of them in one table; tick several, act once. With a worker's name
// in the address it is that worker's page.
import * as actions from '../actions.js';
import { h, memo } from '../dom.js';
import { bytes, count, integer, number, percent, seconds } from '../format.js';
import { badge, empty, kvBar, lasting, workerName } from '../parts.js';
import { parse, setQuery } from '../route.js';
import { poolsOf, store, workersOf } from '../store.js';
import { Table } from '../table.js';
import * as one from './worker.js';

export const title = 'Workers';
export const wants = (route) => (route.rest.length ? one.wants(idOf(route)) : {});
const idOf = (route) => route.rest.join('/');

const order = {
  failed: 0,
  quarantined: 0,
  ejected: 1,
  unreachable: 1,
  draining: 2,
  starting: 3,
  warming: 3,
  drained: 4,
  stopped: 5,
  ready: 6,
};

const cells = new Map();
// fresh keeps a cell's description while the worker is the same object.
const fresh = (key, make) => (w) => memo(cells, `${key} ${w.id}`, [w], () => make(w));

const columns = [
  { key: 'id', name: 'worker', value: (w) => w.id, cell: fresh('id', (w) => workerName(w.id)) },
  {
    key: 'state',
    name: 'state',
    value: (w) => order[w.state] ?? 6,
    cell: fresh('state', (w) =>
      h('div', null, badge(w.state), w.reason || w.last_error ? h('span.why', { title: w.last_error ?? w.reason }, w.reason ?? w.last_error) : null),
    ),
  },
  { key: 'since', name: 'for', value: (w) => -Date.parse(w.since), cell: (w) => lasting(w.since) },
  {
    key: 'kv',
    name: 'KV cache',
    class: 'wide-cell',
    big: true,
    value: (w) => w.kv.usage,
    cell: (w) => h('div.kv-cell', null, kvBar(w), h('span.small', { 'aria-hidden': 'true' }, w.kv.usage === null ? '–' : percent(w.kv.usage))),
  },
  {
    key: 'in_flight',
    name: 'in flight',
    class: 'n',
    big: true,
    value: (w) => w.requests.in_flight,
    cell: fresh('if', (w) => integer(w.requests.in_flight)),
  },
  {
    key: 'waiting',
    name: 'waiting',
    class: 'n',
    big: true,
    title: 'in the worker’s own queue',
    value: (w) => w.requests.waiting,
    cell: fresh('wa', (w) => integer(w.requests.waiting)),
  },
  {
    key: 'ttft',
    name: 'first token',
    class: 'n',
    big: true,
    value: (w) => w.traffic.ttft_seconds,
    cell: fresh('tt', (w) => seconds(w.traffic.ttft_seconds)),
  },
  {
    key: 'speed',
    name: 'tokens/s',
    class: 'n',
    title: 'of one stream',
    value: (w) => w.traffic.tokens_per_second,
    cell: fresh('sp', (w) => number(w.traffic.tokens_per_second)),
  },
  {
    key: 'hits',
    name: 'prefix hits',
    class: 'n',
    big: true,
    value: (w) => w.traffic.prefix_hits,
    cell: fresh('hi', (w) => percent(w.traffic.prefix_hits)),
  },
  {
    key: 'failed',
    name: 'failed',
    class: 'n',
    big: true,
    value: (w) => w.traffic.failed,
    cell: fresh('fa', (w) => integer(w.traffic.failed)),
  },
  { key: 'restarts', name: 'restarts', class: 'n', big: true, value: (w) => w.restarts, cell: fresh('re', (w) => integer(w.restarts)) },
  {
    key: 'memory',
    name: 'memory',
    class: 'n',
    big: true,
    value: (w) => w.device.memory_used_bytes ?? w.device.host_memory_bytes,
    cell: fresh('me', (w) => bytes(w.device.memory_used_bytes ?? w.device.host_memory_bytes)),
  },
];

export const painted = one.painted;

let repaint = () => {};
let table = null;
export function wire(paint) {
  repaint = paint;
  table = new Table('workers', columns, paint, {
    sort: 'state',
    pick: true,
    words: (w) => `${w.id} ${w.state} ${w.reason ?? ''} ${w.models.join(' ')} ${w.driver} ${w.place.node ?? ''}`,
  });
  one.wire(paint);
}

export function enter(route) {
  if (!route.rest.length) table.filter = route.query.get('q') ?? table.filter;
  else one.enter(idOf(route));
}

export function view(route) {
  if (route.rest.length) return one.view(idOf(route));
  const pool = parse(location.hash).query.get('pool') ?? '';
  const rows = workersOf(pool);
  if (cells.size > 20 * Math.max(100, rows.length)) cells.clear();
  for (const id of table.ticked) if (!store.workers.has(id)) table.ticked.delete(id);
  return [
    h(
      'div.page-head',
      null,
      h('h1', null, 'Workers'),
      h('span.muted', null, count(rows.length, 'worker')),
      h('div.filters', null, pools(pool), table.filterBox('Filter workers')),
    ),
    bar(pool),
    store.workers.size === 0
      ? empty('No worker is configured', h('p', null, 'Add workers to a pool of the configuration and reload it.'))
      : table.view(rows, 'All workers'),
  ];
}

function pools(pool) {
  const all = poolsOf();
  if (all.length < 2) return null;
  return h(
    'select',
    {
      'aria-label': 'Pool',
      value: pool,
      onchange: (e) => {
        setQuery({ pool: e.target.value });
        repaint();
      },
    },
    h('option', { value: '' }, 'all pools'),
    all.map((p) => h('option', { value: p.name, key: p.name }, p.name)),
  );
}

// bar holds the commands for those that are ticked.
function bar(pool) {
  const ids = table.order.filter((id) => table.ticked.has(id));
  const why = ids.length === 0 ? 'Tick workers first' : store.hello?.supervisor === false ? 'A door alone starts and stops nothing' : '';
  const does = (words, verb, except) => actions.button(words, () => actions.onWorkers(verb, ids), { why: why && !(except && ids.length) ? why : '' });
  return h(
    'div.does',
    { 'data-actions': true, role: 'group', 'aria-label': 'For the workers that are ticked' },
    h('span.muted', null, ids.length ? `${count(ids.length, 'worker')} ticked` : 'Tick workers to act on them'),
    does('Drain', 'drain', true),
    does('Undrain', 'undrain', true),
    does('Rotate', 'rotate'),
    does('Start', 'start'),
    does('Stop', 'stop'),
    pool && store.hello?.supervisor
      ? [
          h('span.spacer'),
          actions.button(`Rotate all of ${pool}`, () => actions.rotatePool(pool)),
          actions.button(`Scale ${pool}`, () => actions.scale(pool)),
        ]
      : null,
  );
}
