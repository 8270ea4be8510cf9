// Health: what is found, of door, supervisor and workers, and the bounds by which
// it is judged; the alerts that ship judge by the same.
import { get } from '../api.js';
import { h } from '../dom.js';
import { clean, compact, count, integer, percent, seconds } from '../format.js';
import { badge, empty, facts, lasting, tone, word } from '../parts.js';
import { now, store, workersOf } from '../store.js';
import { finding } from './now.js';

export const title = 'Health';

let repaint = () => {};
let bounds = { list: null, error: '' };
export function wire(paint) {
  repaint = paint;
}

export async function enter() {
  if (bounds.list) return;
  try {
    bounds = { list: (await get('/api/thresholds')).thresholds, error: '' };
  } catch (error) {
    bounds = { list: null, error: error.message };
  }
  repaint();
}

export function view() {
  const v = store.state.verdict;
  return [
    h('h1', null, 'Health'),
    h(
      'section.findings',
      { 'aria-label': 'Findings' },
      v.findings.length
        ? h('ul', null, v.findings.map(finding))
        : empty('No finding', h('p', null, 'Nothing is wrong, and nothing was, for ', lasting(v.since), '.')),
    ),
    h('div.columns', null, doors(), supervisor(), reports()),
    thresholds(v),
  ];
}

function doors() {
  const d = store.state.door;
  return h(
    'section.panel',
    null,
    h('div.panel-head', null, h('h2', null, 'Door'), badge(d.state)),
    facts([
      ['Listens at', d.listen],
      ['Version', d.version],
      ['Streams', integer(d.streams)],
      ['Waiting', integer(d.queued)],
    ]),
    d.faults.map((f) => h('p.refused', { key: f.what }, `${f.what}, for `, lasting(f.since), `: ${clean(f.error)}`)),
    store.state.doors.length > 1 || store.state.doors.some((x) => x.error)
      ? h(
          'ul.short-list',
          null,
          store.state.doors.map((x) =>
            h(
              'li',
              { key: x.id },
              badge(x.state),
              ` ${clean(x.id)}: ${count(x.streams, 'stream')}`,
              x.report_age_seconds === null ? null : `, ${seconds(x.report_age_seconds)} ago`,
              x.error ? h('span.bad-words', null, ` ${clean(x.error)}`) : null,
            ),
          ),
        )
      : null,
  );
}

function supervisor() {
  const s = store.state.supervisor;
  return h(
    'section.panel',
    null,
    h('div.panel-head', null, h('h2', null, 'Supervisor'), s ? badge(s.state) : null),
    s
      ? facts([
          ['Version', s.version],
          [
            'Its clock beside this one',
            Math.abs(store.skew) < 1000 ? 'alike' : `${seconds(Math.abs(store.skew) / 1000)} ${store.skew > 0 ? 'ahead' : 'behind'}`,
          ],
        ])
      : h('p.muted', null, 'None: this door runs alone.'),
  );
}

// reports tells how old the workers' words of themselves are.
function reports() {
  const ages = workersOf()
    .filter((w) => w.kv.report_age_seconds !== null)
    .map((w) => w.kv.report_age_seconds + Math.max(0, (now() - w.kvAt) / 1000));
  const none = workersOf().filter((w) => w.kv.report_age_seconds === null).length;
  return h(
    'section.panel',
    null,
    h('h2', null, 'Reports of workers'),
    facts([
      ['Oldest', ages.length ? seconds(Math.max(...ages)) : null],
      ['Without a report', count(none, 'worker')],
      ['Cache size not known', count(workersOf().filter((w) => w.kv.capacity_tokens === null).length, 'worker')],
    ]),
  );
}

const value = (t) => ({ s: seconds, share: percent })[t.unit]?.(t.value) ?? `${compact(t.value)} ${t.unit}`;

function thresholds(v) {
  if (!bounds.list) return h('p.muted', { key: 'bounds' }, bounds.error ? `No table of thresholds: ${bounds.error}` : 'Asking for the thresholds…');
  const met = new Set(v.findings.map((f) => f.code));
  return h(
    'section.panel',
    { key: 'bounds' },
    h('h2', null, 'What it is judged by'),
    h(
      'div.scroll',
      { tabindex: 0, role: 'region', 'aria-label': 'Thresholds' },
      h(
        'table.plain',
        null,
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            ['now', 'finding', 'is', 'bound', 'for', 'alert'].map((x) => h('th', { scope: 'col', key: x }, x)),
          ),
        ),
        h(
          'tbody',
          null,
          bounds.list.map((t) =>
            h(
              'tr',
              { key: t.code },
              h('td', null, met.has(t.code) ? h('span.badge', { class: tone(t.level) }, 'met') : h('span.muted', null, 'no')),
              h('th', { scope: 'row' }, clean(t.text)),
              h('td', null, word(t.level)),
              h('td', null, value(t)),
              h('td', null, t.for_seconds ? seconds(t.for_seconds) : 'at once'),
              h('td.small', null, t.alert ?? '–'),
            ),
          ),
        ),
      ),
    ),
  );
}
