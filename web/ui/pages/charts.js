// Charts: the same stretch of time in every panel, one cursor through all of them,
// and marks where something happened. A hole in the data stays a hole.
import { chart } from '../chart.js';
import { h } from '../dom.js';
import { clockTime, compact, number, percent, seconds } from '../format.js';
import * as history from '../history.js';
import { empty } from '../parts.js';
import { parse, setQuery } from '../route.js';
import { now, poolsOf, store } from '../store.js';

export const title = 'Charts';
const ranges = {
  '15m': [900, '15 min'],
  '1h': [3600, '1 h'],
  '6h': [21_600, '6 h'],
  '24h': [86_400, '24 h'],
  '7d': [604_800, '7 d'],
  '30d': [2_592_000, '30 d'],
};

let repaint = () => {};
let cursor = null;
const opened = new Set();
export function wire(paint) {
  repaint = paint;
}

const panels = [
  [
    'First token',
    's',
    [
      ['p50', 'ttft_p50_seconds'],
      ['p95', 'ttft_p95_seconds'],
    ],
    seconds,
  ],
  [
    'Tokens',
    '/s',
    [
      ['generated', 'tokens_per_second'],
      ['prompt', 'prompt_tokens_per_second'],
    ],
    compact,
  ],
  [
    'Requests',
    '/s',
    [
      ['ended', 'requests_per_second'],
      ['failed', 'failed_per_second'],
      ['refused', 'refused_per_second'],
    ],
    number,
  ],
  [
    'In flight and waiting',
    'requests',
    [
      ['in flight', 'in_flight'],
      ['waiting at the door', 'waiting'],
    ],
    number,
  ],
  ['KV promised', 'share', [['of all workers', 'kv_usage']], percent, 1],
  ['Ready', 'workers', [['ready', 'ready']], number, undefined, true],
];

export function view() {
  const { query } = parse(location.hash);
  const range = ranges[query.get('range')] ? query.get('range') : '15m';
  const pool = poolsOf(query.get('pool') ?? '').length && query.get('pool') ? query.get('pool') : null;
  const asked = history.of(`range=${range}&points=${range === '15m' ? 180 : 360}${pool ? `&pool=${encodeURIComponent(pool)}` : ''}`);
  return [
    h(
      'div.page-head',
      null,
      h('h1', null, 'Charts'),
      begun(asked.data, ranges[range]),
      h(
        'div.filters',
        null,
        pools(pool),
        h(
          'div.choices',
          { role: 'group', 'aria-label': 'Range' },
          Object.entries(ranges).map(([key, [, name]]) =>
            h(
              'button',
              {
                key,
                'aria-pressed': String(key === range),
                onclick: () => {
                  setQuery({ range: key });
                  repaint();
                },
              },
              name,
            ),
          ),
        ),
      ),
    ),
    asked.error ? h('p.refused', null, `No history: ${asked.error}`) : null,
    !asked.data
      ? h('p.muted', null, asked.error ? '' : 'Asking…')
      : asked.data.series.length === 0
        ? empty('No history yet', h('p', null, 'A point comes every 5 s.'))
        : drawn(asked.data, pool, ranges[range][0]),
  ];
}

function begun(data, [length]) {
  if (!data) return null;
  const since = (now() - Date.parse(data.begins)) / 1000;
  return since < length ? h('span.muted', null, `since the start, ${seconds(Math.round(since))}`) : null;
}

function pools(pool) {
  const all = poolsOf();
  if (all.length < 2) return null;
  return h(
    'select',
    {
      'aria-label': 'Pool',
      value: pool ?? '',
      onchange: (e) => {
        setQuery({ pool: e.target.value });
        repaint();
      },
    },
    h('option', { value: '' }, 'all pools together'),
    all.map((p) => h('option', { key: p.name, value: p.name }, p.name)),
  );
}

function drawn(data, pool, length) {
  const to = Math.max(now(), Date.parse(data.from) + 1000 * data.step_seconds * (data.series[0]?.values.length ?? 0));
  const marks = (data.marks ?? []).map((m) => ({
    at: Date.parse(m.at),
    kind: ['failed', 'crashed', 'quarantined', 'halted', 'rolled_back', 'lost'].includes(m.kind) ? 'bad' : 'fair',
    words: `${m.kind} ${m.worker ?? m.pool ?? ''}: ${m.text}`,
  }));
  return [
    h('p.cursor-time.muted.small', { 'aria-hidden': 'true' }, cursor ? clockTime(cursor) : 'Point at a chart to read all of them at one moment.'),
    h(
      'div.charts',
      null,
      panels.map(([name, unit, series, format, top, counts]) =>
        chart({
          title: name,
          unit,
          format,
          top,
          counts,
          marks,
          cursor,
          from: to - length * 1000,
          to,
          step: data.step_seconds * 1000,
          series: series.map(([words, key]) => ({ name: words, points: history.points(data, key, pool) })),
          point: (t) => {
            cursor = t;
            repaint();
          },
          opened: opened.has(name),
          open: (t, on) => {
            if (on !== opened.has(t)) {
              opened[on ? 'add' : 'delete'](t);
              repaint();
            }
          },
        }),
      ),
    ),
    store.hello?.supervisor === false
      ? null
      : h(
          'p.muted.small',
          null,
          'Triangles mark events: rotations, deaths, commands. Kept in memory: 24 h at 5 s, 30 days at 1 min; a supervisor begins anew.',
        ),
  ];
}
