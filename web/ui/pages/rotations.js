// Rotations: where each pool's stands, the new version beside the others while it
// is tried, and when the next one is due.
import * as actions from '../actions.js';
import { h } from '../dom.js';
import { DASH, clean, count, median, number, percent, seconds, when } from '../format.js';
import { badge, empty, eventLine, facts, lasting, moment, plain, workerName } from '../parts.js';
import { store, workersOf } from '../store.js';

export const title = 'Rotations';
const kinds = new Set([
  'rotate',
  'rotated',
  'rotation',
  'halted',
  'rolled_back',
  'continue',
  'abort',
  'schedule',
  'missed',
  'turn',
  'canary',
  'promoted',
  'begun',
  'done',
]);

export function view() {
  if (store.hello?.supervisor === false)
    return [
      h('h1', null, 'Rotations'),
      empty('A door alone rotates nothing', h('p', null, 'Rotations need the supervisor: ', h('code', null, 'roundhouse up'), '.')),
      trials(),
    ];
  const told = store.events
    .filter((e) => kinds.has(e.kind))
    .slice(-20)
    .reverse();
  return [
    h('h1', null, 'Rotations'),
    store.state.pools.length === 0 ? empty('No pool is configured') : null,
    store.state.pools.map(pool),
    trials(),
    h(
      'section.panel',
      null,
      h('h2', null, 'What was told of them'),
      told.length ? h('ol.events', null, told.map(eventLine)) : h('p.muted', null, 'Nothing among the last events.'),
    ),
  ];
}

// trials are the models that routes have on trial.
function trials() {
  const all = store.state.canaries ?? [];
  if (all.length === 0) return null;
  return h(
    'section.panel',
    { key: 'trials' },
    h('h2', null, 'Models on trial'),
    plain(
      'Models on trial',
      ['Route', 'Model', 'State', 'Share', 'Judged', 'Why'],
      all.map((c) =>
        h(
          'tr',
          { key: c.route },
          h('th', { scope: 'row' }, clean(c.route)),
          h('td', null, clean(c.model)),
          h('td', null, badge(c.state)),
          h('td', null, percent(c.share)),
          h('td', null, `${c.trial.requests} of ${c.min_requests}`),
          h('td', null, clean(c.reason ?? DASH)),
        ),
      ),
    ),
  );
}

function pool(p) {
  const r = store.state.rotations.find((x) => x.pool === p.name);
  const s = store.state.schedules.find((x) => x.pool === p.name);
  const now = r && ['running', 'halted'].includes(r.state);
  return h(
    'section.panel',
    { key: p.name },
    h(
      'div.panel-head',
      null,
      h('h2', null, p.name),
      r ? badge(r.state) : h('span.muted', null, 'never rotated'),
      h(
        'div.does.right',
        { 'data-actions': true, role: 'group', 'aria-label': `Rotation of ${p.name}` },
        now ? null : actions.button('Rotate', () => actions.rotatePool(p.name), { label: `Rotate ${p.name}` }),
        r?.state === 'halted' ? actions.button('Continue', () => actions.goOn(p.name), { label: `Continue the rotation of ${p.name}` }) : null,
        now ? actions.button('Abort', () => actions.abort(p.name), { label: `Abort the rotation of ${p.name}` }) : null,
        s?.schedule
          ? actions.button(s.off ? 'Schedule on' : 'Schedule off', () => actions.schedule(p.name, !s.off), {
              label: `${s.off ? 'Schedule on' : 'Schedule off'} for ${p.name}`,
            })
          : null,
      ),
    ),
    r ? run(r, now) : null,
    r?.canary && now ? canary(p, r) : null,
    next(s),
  );
}

function run(r, now) {
  const stop = (id, state, more) =>
    h(
      'li.stop',
      { key: `${state} ${id}`, class: `is-${state}` },
      h('span.stop-mark', { 'aria-hidden': 'true' }),
      h('span.stop-words', null, workerName(id.includes('/') ? id : `${r.pool}/${id}`), h('span.muted.small', null, more)),
    );
  const w = r.current ? store.workers.get(r.current.includes('/') ? r.current : `${r.pool}/${r.current}`) : null;
  const all = r.done.length + r.queue.length + (r.current ? 1 : 0);
  return [
    h(
      'p',
      null,
      `Rotation ${r.id} (${clean(r.cause)}): `,
      h('b', null, `${r.done.length} of ${count(all, 'worker')}`),
      now ? [', for ', lasting(r.began)] : [', ended ', moment(r.ended)],
      r.reason ? h('span', { class: r.state === 'halted' ? 'bad-words' : 'muted' }, ` · ${clean(r.reason)}`) : null,
    ),
    r.waiting && now ? h('p.waits', null, `The next turn waits: ${clean(r.waiting)}`) : null,
    now
      ? h(
          'ol.track-line',
          { 'aria-label': `The track of rotation ${r.id}` },
          r.done.map((id) => stop(id, 'done', 'done')),
          r.current ? stop(r.current, r.state === 'halted' ? 'halted' : 'now', phase(w)) : null,
          r.queue.map((id, i) => stop(id, 'queued', i === 0 ? 'next' : 'waits')),
        )
      : null,
  ];
}

function phase(w) {
  if (!w) return 'now';
  if (w.state === 'draining')
    return ['draining, ', count(w.requests.in_flight, 'request'), ' left', w.drain?.deadline ? [', until ', moment(w.drain.deadline)] : null];
  return [w.state, ' for ', lasting(w.since)];
}

// canary sets the worker with the new version against the middle of the others.
function canary(p, r) {
  const id = r.canary.includes('/') ? r.canary : `${p.name}/${r.canary}`;
  const it = store.workers.get(id);
  const others = workersOf(p.name).filter((w) => w.id !== id && w.state === 'ready');
  if (!it) return null;
  const rows = [
    ['First token', (w) => w.traffic.ttft_seconds, seconds, -1],
    ['Tokens/s of a stream', (w) => w.traffic.tokens_per_second, number, 1],
    ['Failed', (w) => (w.traffic.served === null ? null : w.traffic.failed / Math.max(1, w.traffic.served + w.traffic.failed)), percent, -1],
    ['Served', (w) => w.traffic.served, number, 0],
  ];
  return h(
    'div.canary',
    { key: 'canary' },
    h('h3', null, 'The new version at ', workerName(id), ' beside the others'),
    plain(
      'The new version beside the others',
      ['', 'new', 'the others (median)', 'difference'],
      rows.map(([name, value, form, better]) => {
        const [a, b] = [value(it), median(others.map(value))];
        const d = a === null || b === null || !b ? null : (a - b) / b;
        return h(
          'tr',
          { key: name },
          h('th', { scope: 'row' }, name),
          h('td', null, form(a)),
          h('td', null, form(b)),
          h(
            'td',
            null,
            d === null || !better
              ? DASH
              : h(
                  'span',
                  { class: Math.abs(d) < 0.05 ? 'muted' : `strong ${d * better > 0 ? 'tone-well' : 'tone-hurt'}` },
                  Math.abs(d) < 0.05 ? 'alike' : `${d > 0 ? '+' : '−'}${percent(Math.abs(d))} ${d * better > 0 ? 'better' : 'worse'}`,
                ),
          ),
        );
      }),
    ),
  );
}

function next(s) {
  if (!s) return null;
  return facts([
    [
      'Next run',
      s.off
        ? ['off', s.off_until ? [' until ', moment(s.off_until)] : ' until it is turned on']
        : s.next
          ? moment(s.next)
          : s.schedule
            ? DASH
            : 'no schedule: by hand only',
    ],
    s.schedule ? ['Schedule', [h('code', null, s.schedule), ` ${s.timezone}`]] : null,
    s.blackout.length ? ['Not during', s.blackout.join(', ')] : null,
    ['Last run', when(s.last) === null ? 'never' : [moment(s.last), s.last_result ? [' ', badge(s.last_result)] : null]],
  ]);
}
