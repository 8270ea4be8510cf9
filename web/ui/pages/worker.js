// One worker: its life of 24 hours, what it has and how fast it is, where it
// runs, what was decided for and against it, and its log as it is written.
import * as actions from '../actions.js';
import { address, get } from '../api.js';
import { chart } from '../chart.js';
import { h } from '../dom.js';
import { DASH, bytes, clean, clockTime, compact, count, integer, number, percent, seconds, when } from '../format.js';
import * as history from '../history.js';
import { badge, empty, explainLink, facts, figure, kvBar, kvWords, lasting, moment, workerName } from '../parts.js';
import { link, split } from '../route.js';
import { now, reportAge, store } from '../store.js';
import { inFlightTable } from './requests.js';

const DECISIONS = 20;

export const wants = (id) => ({ worker: id, requests: id, log: id, tail: 200 });

let repaint = () => {};
let cursor = null;
let follow = true;
const opened = new Set();
let decided = { id: '', list: null, error: '' };

export function wire(paint) {
  repaint = paint;
}

export async function enter(id) {
  decided = { id, list: null, error: '' };
  follow = true;
  const mine = decided;
  try {
    mine.list = (await get(`/api/decisions?limit=${DECISIONS}&worker=${encodeURIComponent(id)}`)).decisions;
  } catch (error) {
    mine.error = error.message;
  }
  repaint();
}

export function view(id) {
  const w = store.workers.get(id);
  if (!w) return [h('h1.hidden-words', null, id), empty(`No worker is called ${id}`, h('p', null, h('a', { href: link('workers') }, 'All workers')))];
  const failed = ['failed', 'quarantined'].includes(w.state);
  return [
    h(
      'p.crumbs',
      null,
      h('a', { href: link('workers') }, 'Workers'),
      ' / ',
      h('a', { href: `${link('workers')}?pool=${encodeURIComponent(w.pool)}` }, w.pool),
    ),
    h('div.page-head', null, h('h1', null, w.id), badge(w.state), h('span.muted', null, 'for ', lasting(w.since)), buttons(w)),
    w.reason || w.last_error
      ? h(
          'p',
          { class: failed ? 'refused' : 'muted' },
          [w.reason, w.last_error].filter(Boolean).map(clean).join(' · '),
          w.next_try ? [' · next try ', moment(w.next_try)] : null,
        )
      : null,
    w.drain
      ? h(
          'p',
          null,
          `${count(w.requests.in_flight, 'request')} left; what has not ended `,
          w.drain.deadline ? moment(w.drain.deadline) : 'by the timeout',
          ' goes on elsewhere.',
        )
      : null,
    failed ? log(id) : null,
    figures(w),
    timeline(w),
    h('div.columns', null, place(w), decisions()),
    h(
      'section.panel',
      null,
      h('h2', null, 'Its requests'),
      inFlightTable(store.requests?.requests.filter((r) => r.worker === id) ?? [], 'Requests at this worker'),
    ),
    past(id),
    failed ? null : log(id),
  ];
}

function buttons(w) {
  const able = {
    drain: w.state === 'ready' ? '' : `It is ${w.state}: only a ready worker drains`,
    undrain: ['draining', 'drained'].includes(w.state) ? '' : `It is ${w.state}: nothing to undrain`,
    start: ['stopped', 'failed', 'quarantined'].includes(w.state) ? '' : `It is ${w.state}: it runs already`,
    stop: w.state === 'stopped' ? 'It is stopped' : '',
    rotate: '',
  };
  const alone = store.hello?.supervisor === false;
  return h(
    'div.does.right',
    { 'data-actions': true },
    ['drain', 'undrain', 'rotate', 'start', 'stop'].map((verb) =>
      actions.button(verb[0].toUpperCase() + verb.slice(1), () => actions.onWorkers(verb, [w.id]), {
        why: alone && !verb.endsWith('drain') ? 'A door alone starts and stops nothing' : able[verb],
      }),
    ),
    h('a.button', { href: `${link('try')}?worker=${encodeURIComponent(w.id)}` }, 'Try'),
  );
}

function figures(w) {
  const d = w.device;
  const age = reportAge(w);
  return h(
    'section.figures.tight',
    { 'aria-label': 'Figures' },
    h(
      'div.figure.broad',
      { key: 'kv' },
      h('div.figure-name', null, 'KV cache'),
      kvBar(w, true),
      h('p.small', null, kvWords(w.kv)),
      h(
        'p.key.small',
        null,
        h('span', null, h('i.swatch.charged'), `charged ${compact(w.kv.charged_tokens)}`),
        w.kv.elsewhere_tokens ? h('span', null, h('i.swatch.elsewhere'), `by other doors ${compact(w.kv.elsewhere_tokens)}`) : null,
        h('span', null, h('i.swatch.foreign'), `foreign ${compact(w.kv.foreign_tokens)}`),
        h('span', null, h('i.swatch.reported'), `it reports ${compact(w.kv.reported_tokens)}${age === null ? '' : `, ${seconds(age)} ago`}`),
      ),
    ),
    figure('In flight', integer(w.requests.in_flight), `${integer(w.requests.waiting)} wait inside`),
    figure('First token', seconds(w.traffic.ttft_seconds), 'moving average'),
    figure('Speed', number(w.traffic.tokens_per_second), 'tokens/s of a stream'),
    figure('Served', integer(w.traffic.served), `${integer(w.traffic.failed)} failed`),
    figure('Prefix hits', percent(w.traffic.prefix_hits), `${integer(w.traffic.preemptions)} preempted`),
    figure(
      'Device',
      percent(d.busy),
      [
        d.memory_used_bytes === null ? null : `${bytes(d.memory_used_bytes)} of ${bytes(d.memory_total_bytes)}`,
        d.power_watts === null ? null : `${number(d.power_watts)} W`,
        d.temperature_celsius === null ? null : `${number(d.temperature_celsius)} °C`,
      ]
        .filter(Boolean)
        .join(' · ') || 'its device tells nothing',
    ),
  );
}

// timeline is 24 hours of being in service or not, with what happened.
function timeline(w) {
  const past = history.of(`range=24h&points=288&worker=${encodeURIComponent(w.id)}&series=ready`);
  const points = history.points(past.data, 'ready', w.pool, w.id);
  if (points.length === 0) return past.error ? h('p.muted.small', { key: 'timeline' }, `No timeline: ${past.error}`) : null;
  const step = past.data.step_seconds * 1000;
  const from = points[0][0] - step / 2;
  const all = step * points.length;
  const runs = [];
  for (const [at, value] of points) {
    const kind = value === null ? 'none' : value >= 1 ? 'well' : value > 0 ? 'part' : 'out';
    const last = runs.at(-1);
    if (last?.kind === kind) last.to = at + step / 2;
    else runs.push({ kind, from: at - step / 2, to: at + step / 2 });
  }
  const known = points.filter((p) => p[1] !== null);
  const up = known.reduce((n, p) => n + p[1], 0) / (known.length || 1);
  const marks = (past.data.marks ?? []).filter((m) => m.worker === w.id);
  return h(
    'section.panel',
    { key: 'timeline' },
    h(
      'div.panel-head',
      null,
      h('h2', null, 'In service, 24 hours'),
      h('span.muted.small', null, known.length ? `${percent(up)} of ${seconds((known.length * step) / 1000)}` : 'not known yet'),
    ),
    h(
      'div.lane',
      { role: 'img', 'aria-label': `In service ${percent(up)} of the time that is known` },
      runs.map((r) =>
        h(`i.${r.kind}`, {
          title: `${clockTime(r.from)} to ${clockTime(r.to)}: ${{ none: 'not known', well: 'in service', part: 'partly in service', out: 'not in service' }[r.kind]}`,
          css: { width: `${((r.to - r.from) / all) * 100}%` },
        }),
      ),
      marks.map((m) =>
        h('b', {
          key: m.id,
          title: `${clockTime(m.at)} ${m.kind}: ${clean(m.text)}`,
          css: { left: `${((when(m.at) - from) / all) * 100}%` },
        }),
      ),
    ),
    h(
      'p.key.small',
      null,
      h('span', null, h('i.swatch.well'), 'in service'),
      h('span', null, h('i.swatch.out'), 'not in service'),
      h('span', null, h('i.swatch.none'), 'not known'),
    ),
  );
}

function place(w) {
  const p = w.place;
  return h(
    'section.panel',
    null,
    h('h2', null, 'Where it runs'),
    facts([
      ['Driver', w.driver],
      ['Address', w.url],
      ['Models', w.models.join(', ') || DASH],
      ['Version', w.version],
      p.node ? ['Machine', p.node] : null,
      ['Device', w.device.name],
      ['Host memory', bytes(w.device.host_memory_bytes)],
      ['Restarts', `${integer(w.restarts)}, generation ${w.generation}`],
      ['GPUs', p.gpus.join(', ') || 'none'],
      ['NUMA', p.numa.join(', ') || DASH],
      ['CPUs', p.cpus],
      p.container ? ['Container', p.container.slice(0, 12)] : ['Process', p.pid === null ? DASH : String(p.pid)],
      p.image ? ['Image', p.image] : null,
      ['Started', w.started ? moment(w.started) : DASH],
    ]),
  );
}

function decisions() {
  const list = decided.list;
  return h(
    'section.panel',
    null,
    h('h2', null, 'Choices for and against it'),
    decided.error
      ? h('p.refused', null, decided.error)
      : !list
        ? h('p.muted', null, 'Asking…')
        : list.length === 0
          ? h('p.muted', null, 'None is kept.')
          : h(
              'ol.short-list',
              null,
              list
                .slice(0, 10)
                .map((d) =>
                  h(
                    'li',
                    { key: d.request },
                    h('span.muted.small', null, clockTime(d.at)),
                    ' ',
                    d.chosen === decided.id ? h('b', null, 'chosen') : ['went to ', workerName(d.chosen)],
                    ` (${d.reason}) `,
                    explainLink(d.request),
                  ),
                ),
            ),
  );
}

function past(id) {
  const { data, error } = history.of(`range=15m&points=180&worker=${encodeURIComponent(id)}&series=kv_usage,in_flight,tokens_per_second`);
  if (!data) return h('p.muted', { key: 'past' }, error || 'Asking for its past…');
  const pool = split(id)[0];
  const to = now();
  const panel = (title, unit, name, format, top) =>
    chart({
      title,
      unit,
      from: to - 900_000,
      to,
      step: data.step_seconds * 1000,
      top,
      format,
      cursor,
      point: (t) => {
        cursor = t;
        repaint();
      },
      series: [{ name: 'now', points: history.points(data, name, pool, id) }],
      opened: opened.has(title),
      open: (t, on) => {
        opened[on ? 'add' : 'delete'](t);
        repaint();
      },
    });
  return h(
    'section.charts.three',
    { 'aria-label': 'Its last 15 minutes', key: 'past' },
    panel('KV promised', 'share', 'kv_usage', percent, 1),
    panel('In flight', 'requests', 'in_flight', number),
    panel('Generated', 'tokens/s', 'tokens_per_second', number),
  );
}

function log(id) {
  const lines = store.log.lines;
  return h(
    'section.panel',
    { key: 'log' },
    h(
      'div.panel-head',
      null,
      h('h2', null, 'Log'),
      h(
        'label.small',
        null,
        h('input', {
          type: 'checkbox',
          checked: follow,
          onchange: (e) => {
            follow = e.target.checked;
            repaint();
          },
        }),
        'follow',
      ),
    ),
    store.log.error ? h('p.refused', null, clean(store.log.error)) : null,
    h(
      'pre.log',
      {
        tabindex: 0,
        role: 'log',
        'aria-live': 'off',
        'aria-label': `Log of ${id}`,
        onscroll: (e) => {
          follow = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 30;
        },
      },
      lines.length === 0
        ? h('span.muted', null, store.hello?.supervisor === false ? 'A door alone keeps no logs.' : 'Nothing is written yet.')
        : lines.map((l) =>
            h(
              'span',
              { key: l.n, class: 'gap' in l ? 'gap' : undefined },
              'gap' in l ? `${l.gap ?? 'some'} lines are missing here\n` : `${clean(l.text)}\n`,
            ),
          ),
    ),
  );
}

// painted takes a log that is followed to its end; one in which somebody has
// scrolled back stays where it is.
export function painted() {
  const el = document.querySelector('.log');
  if (el && follow) el.scrollTop = el.scrollHeight;
}
