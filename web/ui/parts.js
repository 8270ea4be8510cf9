// What several pages show: a worker's state, its KV bar, times, empty places.
import { h } from './dom.js';
import { DASH, ago, clean, compact, fullTime, integer, percent, since, when } from './format.js';
import { icon } from './icons.js';
import { link, workerLink } from './route.js';
import { now, reportAge } from './store.js';

// The tone and the sign of each state and level; the word always stands beside.
const tones = {
  ready: 'well',
  well: 'well',
  done: 'well',
  ok: 'well',
  idle: 'off',
  starting: 'changing',
  warming: 'changing',
  draining: 'changing',
  running: 'changing',
  changing: 'changing',
  turning: 'changing',
  drained: 'off',
  stopped: 'off',
  cancelled: 'off',
  client_error: 'risk',
  ejected: 'risk',
  unreachable: 'risk',
  at_risk: 'risk',
  halted: 'risk',
  rolled_back: 'risk',
  refused: 'risk',
  parked: 'risk',
  warn: 'risk',
  critical: 'hurt',
  silent: 'hurt',
  failed: 'hurt',
  quarantined: 'hurt',
  hurting: 'hurt',
  down: 'hurt',
};
const signs = {
  ready: 'well',
  ok: 'well',
  done: 'well',
  starting: 'starting',
  warming: 'starting',
  draining: 'draining',
  running: 'changing',
  changing: 'changing',
  drained: 'stopped',
  stopped: 'stopped',
  ejected: 'risk',
  unreachable: 'risk',
  at_risk: 'risk',
  halted: 'risk',
  rolled_back: 'risk',
  refused: 'risk',
  client_error: 'risk',
  warn: 'risk',
  critical: 'hurt',
  failed: 'failed',
  quarantined: 'failed',
  hurting: 'hurt',
  down: 'failed',
  silent: 'failed',
  well: 'well',
  cancelled: 'off',
};
const words = { at_risk: 'at risk', rolled_back: 'rolled back', client_error: 'client error' };

export const tone = (state) => `tone-${tones[state] ?? 'off'}`;
export const wrong = (w) => ['hurt', 'risk'].includes(tones[w.state]);
export const word = (state) => words[state] ?? state;

export const badge = (state) => h('span.badge', { class: tone(state) }, icon(signs[state] ?? 'off', 13), word(state));
export const sign = (state, size) => icon(signs[state] ?? 'off', size);

// time shows a moment as so long ago, with the moment itself on hover and focus.
export function moment(value, form = ago) {
  if (when(value) === null) return h('span.muted', null, DASH);
  return h('time', { datetime: new Date(when(value)).toISOString(), title: fullTime(value) }, form(value, now()));
}
export const lasting = (value) => moment(value, since);

// shares are the parts of a worker's KV cache; null where its size is not known.
function shares(kv) {
  if (!kv.capacity_tokens) return null;
  const of = (n) => Math.min(1, Math.max(0, (n ?? 0) / kv.capacity_tokens));
  return {
    charged: of(kv.charged_tokens),
    elsewhere: of(kv.elsewhere_tokens),
    foreign: of(kv.foreign_tokens),
    reported: kv.reported_tokens === null ? null : of(kv.reported_tokens),
  };
}

// kvWords is the bar for those who do not see it.
export function kvWords(kv) {
  const s = shares(kv);
  if (!s) return `${integer(kv.charged_tokens)} tokens; the size of the cache is not known`;
  const foreign = s.foreign > 0 ? ` (${percent(s.foreign)} foreign)` : '';
  return `${percent(kv.usage ?? s.charged + s.elsewhere + s.foreign)} of ${integer(kv.capacity_tokens)}${foreign}`;
}

// kvBar stacks what is charged, charged by other doors, and foreign; a tick stands
// at what the worker reports, marks at 80 and 95 %.
export function kvBar(w, wide = false) {
  const s = shares(w.kv);
  const age = reportAge(w);
  const title = `${kvWords(w.kv)}; it reports ${integer(w.kv.reported_tokens)}${age === null ? '' : `, ${age.toFixed(1)} s ago`}`;
  if (!s) return h('div.bar.unknown', { title }, h('span.hidden-words', null, kvWords(w.kv)));
  const part = (name, share) => (share > 0 ? h(`i.${name}`, { css: { width: `${share * 100}%` } }) : null);
  return h(
    'div.bar',
    { title, class: (w.kv.usage ?? 0) > 0.95 ? 'full' : undefined },
    part('charged', s.charged),
    part('elsewhere', s.elsewhere),
    part('foreign', s.foreign),
    wide ? [h('b.at80'), h('b.at95')] : null,
    s.reported === null ? null : h('b.reported', { css: { left: `${s.reported * 100}%` } }),
    h('span.hidden-words', null, kvWords(w.kv)),
  );
}

export const workerName = (id) => (id ? h('a', { href: workerLink(id) }, id) : h('span.muted', null, DASH));
export const explainLink = (id, label = 'explain') =>
  h('a', { href: link('requests', 'explain', id) }, label, h('span.hidden-words', null, ` request ${id}`));

// plain is a small table of rows, in a region that scrolls where it is too wide; a
// column without a name has ''.
export const plain = (label, heads, rows) =>
  h(
    'div.scroll',
    { tabindex: 0, role: 'region', 'aria-label': label },
    h(
      'table.plain',
      null,
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          heads.map((x, i) => (x === '' ? h('td', { key: i }) : h('th', { scope: 'col', key: i }, x))),
        ),
      ),
      h('tbody', null, rows),
    ),
  );

export const empty = (title, ...more) => h('div.nothing', null, h('p', null, h('b', null, title)), more);
export const figure = (name, value, unit, more) =>
  h(
    'div.figure',
    { key: name },
    h('div.figure-name', null, name),
    h('div.figure-value', null, value, unit ? h('span.unit', null, unit) : null),
    more,
  );
export const facts = (list) =>
  h(
    'dl.facts',
    { class: list.length > 7 ? 'many' : undefined },
    list.filter(Boolean).map(([name, value]) => h('div', { key: name }, h('dt', null, name), h('dd', null, value ?? DASH))),
  );
export const short = compact;

// One line of an event.
export function eventLine(e) {
  if ('gap' in e) return h('li.event.gap', { key: `gap ${e.from}` }, `${e.gap ?? 'Some'} events are missing here`);
  return h(
    'li.event',
    { key: e.id },
    h(
      'span.event-time',
      null,
      moment(e.at, (t) => new Date(when(t)).toLocaleTimeString('en-GB', { hour12: false })),
    ),
    h('span.event-kind', null, e.kind),
    h(
      'span.event-what',
      null,
      e.worker ? [workerName(e.worker), ' '] : e.pool ? [h('b', null, e.pool), ' '] : null,
      clean(e.text),
      ' ',
      h('span.muted.small', null, `by ${clean(e.who)}`),
    ),
  );
}
