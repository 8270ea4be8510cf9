// Health: what is found, what ails the service and which setting mends it, how door,
// supervisor and workers do, and the bounds by which all is judged.
import { get } from '../api.js';
import { sparkline } from '../chart.js';
import { h } from '../dom.js';
import { DASH, clean, clockTime, compact, count, integer, percent, seconds } from '../format.js';
import { badge, empty, facts, lasting, plain, tone, word, workerName } from '../parts.js';
import { now, stale, store, workersOf } from '../store.js';
import { finding } from './now.js';

export const title = 'Health';

let repaint = () => {};
let bounds = { list: null, error: '' };
let ailments = { report: null, error: '', asked: 0 };
const AGAIN = 30_000; // the supervisor looks as often
export function wire(paint) {
  repaint = paint;
}

// ask has the diagnosis come anew while the page is looked at.
async function ask() {
  if (stale() || performance.now() < ailments.asked) return;
  ailments.asked = performance.now() + AGAIN;
  try {
    ailments.report = await get('/api/diagnosis');
    ailments.error = '';
  } catch (error) {
    ailments.error = error.message;
    ailments.asked = performance.now() + 3000;
  }
  repaint();
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
  if (store.hello?.supervisor !== false) ask();
  return [
    h('h1', null, 'Health'),
    h(
      'section.findings',
      { 'aria-label': 'Findings' },
      v.findings.length
        ? h('ul', null, v.findings.map(finding))
        : empty('No finding', h('p', null, 'Nothing is wrong, and nothing was, for ', lasting(v.since), '.')),
    ),
    diagnosis(),
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
    plain(
      'Thresholds',
      ['now', 'figure', 'bound', 'for', 'verdict', 'diagnosis', 'alert'],
      bounds.list.map((t) =>
        h(
          'tr',
          { key: t.code },
          h('td', null, met.has(t.code) ? h('span.badge', { class: tone(t.level) }, 'met') : h('span.muted', null, t.level ? 'no' : '')),
          h('th', { scope: 'row' }, clean(t.text)),
          h('td', null, t.value === null ? '' : `${t.below ? 'under' : 'over'} ${value(t)}`),
          h('td', null, t.for_seconds ? seconds(t.for_seconds) : 'at once'),
          h('td', null, t.level ? word(t.level) : ''),
          h('td', null, t.rule ?? ''),
          h('td.small', null, t.alert ?? ''),
        ),
      ),
    ),
  );
}

// diagnosis is the supervisor's own report: what ails the service, by which figures,
// and the setting that mends it.
function diagnosis() {
  const { report: r, error } = ailments;
  if (store.hello?.supervisor === false)
    return h(
      'section.panel',
      { key: 'ails' },
      h('h2', null, 'Diagnosis'),
      h('p.muted', null, 'A door alone has none; ', h('code', null, 'roundhouse diagnose'), ' looks at its metrics.'),
    );
  if (!r) return h('p.muted', { key: 'ails' }, error ? `No diagnosis: ${error}` : 'Asking for the diagnosis…');
  const looked = r.samples ? `${count(r.samples, 'sample')} since ${clockTime(r.from)}` : 'no sample yet';
  return h(
    'section.panel',
    { key: 'ails' },
    h('div.panel-head', null, h('h2', null, 'Diagnosis'), h('span.muted.small', null, looked)),
    error ? h('p.refused', null, `It could not be asked again: ${error}`) : null,
    r.findings.length ? h('ol.ailments', null, r.findings.map(ailment)) : h('p', null, 'No rule finds anything.'),
    r.unjudged.length
      ? h(
          'details.small.muted',
          null,
          h('summary', null, `${count(r.unjudged.length, 'rule')} could not look`),
          facts(r.unjudged.map((u) => [u.rule, clean(u.why)])),
        )
      : null,
  );
}

function ailment(f) {
  return h(
    'li.ailment',
    { key: `${f.rule} ${f.object}`, class: tone(f.severity) },
    h(
      'p.ailment-head',
      null,
      badge(f.severity),
      h('b', null, f.rule),
      f.object.includes('/') ? workerName(f.object) : clean(f.object),
      h('span.muted.small', null, 'for ', lasting(f.since), f.confidence === 'high' ? null : '; not all of it is in the metrics'),
    ),
    h('p', null, clean(f.says)),
    h(
      'div.evidence',
      null,
      f.evidence.map((e) =>
        h(
          'div',
          { key: e.name },
          h('span.muted.small', null, clean(e.name)),
          h('b', null, clean(e.text)),
          e.values?.length > 1 ? sparkline(e.values.map((v, i) => [i, v])) : null,
        ),
      ),
    ),
    facts([['Cause', clean(f.cause)], f.caused_by ? ['Part of', clean(f.caused_by)] : null]),
    f.change ? setting(f.change) : null,
    facts([f.command ? ['Run', h('pre.line', { tabindex: 0 }, clean(f.command))] : null, f.helped ? ['It helped if', clean(f.helped)] : null]),
  );
}

// setting is a change as it stands in the configuration: now, and as proposed.
const setting = (change) =>
  h(
    'div.setting',
    null,
    h('div', null, h('span.muted.small', null, 'now'), h('pre.line', { tabindex: 0 }, clean(change.now) || DASH)),
    h('div', null, h('span.muted.small', null, 'proposed'), h('pre.line.proposed', { tabindex: 0 }, clean(change.proposed))),
    change.vllm ? h('p.muted.small', null, 'vLLM: ', h('code', null, clean(change.vllm))) : null,
  );
