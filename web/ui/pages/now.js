// Now: is anybody hurt, since when, which worker, what is done about it, and what
// one can do, without scrolling.
import * as actions from '../actions.js';
import { asCurl } from '../ask.js';
import { sparkline } from '../chart.js';
import { h } from '../dom.js';
import { DASH, count, number, percent, seconds } from '../format.js';
import * as history from '../history.js';
import { badge, empty, eventLine, figure, kvBar, kvWords, lasting, moment, sign, tone, word, workerName, wrong } from '../parts.js';
import { link, workerLink } from '../route.js';
import { figuresOf, poolsOf, store, workersOf } from '../store.js';

export const title = 'Now';
const EVENTS = 10;
const CELLS = 120;
const FINDINGS = 8;
const QUERY = 'range=15m&points=180&series=ttft_p95_seconds,kv_usage,waiting,tokens_per_second';

export function view() {
  const s = store.state;
  return [
    h('h1.hidden-words', null, 'Now'),
    findings(s.verdict.findings),
    figures(),
    s.pools.length === 0 ? empty('No pool is configured', h('p', null, 'Add a pool block to the configuration and reload it.')) : null,
    h('section.cards', { 'aria-label': 'Pools' }, poolsOf().map(card)),
    h(
      'section.panel',
      { 'aria-labelledby': 'last-events' },
      h('div.panel-head', null, h('h2', { id: 'last-events' }, 'Last events'), h('a', { href: link('events') }, 'All events')),
      store.events.length === 0
        ? h('p.muted', null, store.hello?.supervisor === false ? 'A door alone keeps no events.' : 'None yet.')
        : h('ol.events', null, store.events.slice(-EVENTS).reverse().map(eventLine)),
    ),
  ];
}

function findings(list) {
  if (list.length === 0) return null;
  return h(
    'section.findings',
    { 'aria-label': 'Findings' },
    h('ul', null, list.slice(0, FINDINGS).map(finding)),
    list.length > FINDINGS ? h('p', null, h('a', { href: link('health') }, `${count(list.length - FINDINGS, 'more finding')}`)) : null,
  );
}

export function finding(f) {
  return h(
    'li.finding',
    { key: [f.code, f.pool, f.worker].join(), class: tone(f.level) },
    h('span.finding-mark', null, sign(f.level, 18)),
    h(
      'div.finding-words',
      null,
      h('p', null, h('b', null, word(f.level)), ' · ', f.sentence),
      h('p.muted.small', null, 'for ', lasting(f.since), f.worker ? [' · ', workerName(f.worker)] : f.pool ? ` · pool ${f.pool}` : null),
    ),
    h(
      'div.finding-does',
      { 'data-actions': true },
      f.actions.map((verb) =>
        verb === 'log'
          ? f.worker
            ? h('a.button', { key: verb, href: workerLink(f.worker) }, 'Log', h('span.hidden-words', null, ` of ${f.worker}`))
            : null
          : actions.button(verb[0].toUpperCase() + verb.slice(1), () => actions.forFinding(verb, f), {
              label: `${verb} ${f.worker ?? f.pool ?? ''}`,
            }),
      ),
    ),
  );
}

function figures() {
  const f = figuresOf() ?? {};
  const past = history.of(QUERY).data;
  const spark = (name) => sparkline(history.points(past, name));
  const quiet = f.ttft_p95_seconds === null && f.in_flight === 0 && !(f.requests_per_second > 0);
  return [
    h(
      'section.figures',
      { 'aria-label': 'The last figures, and 15 minutes of each' },
      figure(
        'First token, p95',
        seconds(f.ttft_p95_seconds),
        f.ttft_p95_seconds === null ? 'nobody asked in 5 min' : 'of 5 min',
        spark('ttft_p95_seconds'),
      ),
      figure('KV promised', percent(f.kv_usage), f.kv_usage === null ? 'no worker tells its size' : '', spark('kv_usage')),
      figure('Waiting at the door', number(f.waiting), count(f.in_flight, 'in flight', 'in flight'), spark('waiting')),
      figure('Tokens', number(f.tokens_per_second), '/s generated', spark('tokens_per_second')),
    ),
    quiet && store.state.verdict.level === 'well'
      ? h(
          'div.nothing',
          { key: 'quiet' },
          h('p', null, h('b', null, 'No request in the last minutes')),
          h('p', null, 'Ask something: in ', h('a', { href: link('try') }, 'Try'), ', or'),
          h('pre.line', { tabindex: 0 }, curl()),
        )
      : null,
  ];
}

// curl is the line of the quick start, for this door and a model that it serves.
function curl() {
  const listen = store.state.door.listen ?? ':8000';
  const port = listen.slice(listen.lastIndexOf(':') + 1);
  const model = workersOf().flatMap((w) => w.models)[0] ?? 'MODEL';
  return asCurl(`http://${location.hostname}:${port}`, { model, messages: [{ role: 'user', content: 'Count from 1 to 20 by 1.' }] });
}

function card(pool) {
  const list = workersOf(pool.name);
  const f = figuresOf(pool.name);
  const r = store.state.rotations.find((x) => x.pool === pool.name);
  const short = pool.ready < pool.desired;
  return h(
    'article.card',
    { key: pool.name },
    h(
      'div.panel-head',
      null,
      h('h2', null, h('a', { href: `${link('workers')}?pool=${encodeURIComponent(pool.name)}` }, pool.name)),
      h(
        'span',
        { class: short ? `strong ${tone(pool.ready === 0 ? 'down' : 'changing')}` : 'muted' },
        `${pool.ready} of ${count(pool.desired, 'worker')} ready`,
      ),
    ),
    h(
      'p.muted.small',
      null,
      [pool.policy, f ? `${number(f.requests_per_second)} requests/s` : null, f ? `first token ${seconds(f.ttft_p95_seconds)} p95` : null]
        .filter(Boolean)
        .join(' · '),
    ),
    r?.state === 'running' || r?.state === 'halted'
      ? h(
          'p.small',
          null,
          badge(r.state),
          h(
            'a',
            { href: link('rotations') },
            `rotation ${r.id}: ${r.done.length} done${r.current ? `, now ${r.current}` : ''}, ${r.queue.length} to go`,
          ),
        )
      : pool.rotation.next
        ? h('p.muted.small', null, 'next rotation ', moment(pool.rotation.next))
        : null,
    list.length > CELLS ? crowd(list) : h('ul.cells', { class: list.length > 12 ? 'many' : undefined }, list.map(cell)),
  );
}

// crowd shows a pool that is too large for cells one by one: by state, and by name
// whoever is in trouble.
function crowd(list) {
  const by = Map.groupBy(list, (w) => w.state);
  return [
    h(
      'p.crowd',
      null,
      [...by].map(([state, some]) => h('span', { key: state }, badge(state), ` ${some.length}`)),
    ),
    h('ul.cells', null, list.filter(wrong).slice(0, 12).map(cell)),
    h('p.small', null, h('a', { href: `${link('workers')}?pool=${encodeURIComponent(list[0].pool)}` }, `All ${count(list.length, 'worker')}`)),
  ];
}

function cell(w) {
  return h(
    'li',
    { key: w.id },
    h(
      'a.cell',
      { href: workerLink(w.id), class: tone(w.state), title: `${w.id}: ${w.state}${w.reason ? `, ${w.reason}` : ''}. ${kvWords(w.kv)}` },
      h('span.cell-name', null, sign(w.state, 13), h('span.cell-id', null, w.name), w.state === 'ready' ? null : h('span.cell-state', null, w.state)),
      kvBar(w),
      h(
        'span.cell-foot',
        null,
        h('span', null, w.kv.usage === null ? DASH : percent(w.kv.usage)),
        h('span', null, `${number(w.requests.in_flight)} in flight`),
      ),
    ),
  );
}
