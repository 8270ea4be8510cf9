// What came of a chat: the answers with their speed and their worker, side by side,
// and many as squares.
import { asCurl } from '../ask.js';
import { h } from '../dom.js';
import { DASH, clean, integer, median, number, seconds } from '../format.js';
import { icon } from '../icons.js';
import { markdown } from '../markdown.js';
import { explainLink, plain, workerName } from '../parts.js';
import { store } from '../store.js';
import { one } from './attached.js';
import * as calls from './calls.js';

const phases = {
  waiting: 'waiting at the door',
  prompt: 'computing the prompt',
  generating: 'generating',
  ended: 'ended',
  stopped: 'stopped',
  failed: 'failed',
};

function foot(run, b) {
  const u = run.usage;
  const cached = run.cached ?? u?.prompt_tokens_details?.cached_tokens;
  const tokens = u ? `${integer(u.completion_tokens)} tokens for ${integer(u.prompt_tokens)}${cached ? ` (${integer(cached)} cached)` : ''}` : null;
  return h(
    'p.foot.small',
    null,
    h('span', { 'data-phase': run.phase }, phases[run.phase] ?? ''),
    h('span', null, 'first token ', h('b', null, seconds(run.ttft))),
    h('span', null, h('b', null, number(run.speed)), ' tokens/s'),
    tokens ? h('span', null, tokens) : null,
    run.worker ? h('span', null, workerName(run.worker)) : null,
    run.resumes === undefined
      ? null
      : h('span', null, run.resumes ? `resumed ${run.resumes === 1 ? 'once' : `${run.resumes} times`}` : 'not resumed'),
    run.id ? h('span', null, explainLink(run.id)) : null,
    b ? h('details.curl', null, h('summary', null, 'as curl'), h('pre.line', { tabindex: 0 }, asCurl(door(), b))) : null,
  );
}

const door = () => `http://${location.hostname}:${(store.state.door.listen ?? ':8000').split(':').at(-1)}`;

const drawn = new WeakMap(); // of each answer the text that was drawn last, and its elements

function body(run, marked) {
  const text = clean(run.text);
  if (!marked) return text;
  if (drawn.get(run)?.text !== text) drawn.set(run, { text, nodes: markdown(text) });
  return drawn.get(run).nodes;
}

function answer(run, marked, last) {
  return [
    run.thought ? h('details.thought', null, h('summary', null, 'its reasoning'), h('p', null, clean(run.thought))) : null,
    h(
      marked ? 'div.text.marked' : 'div.text',
      { key: marked ? 'marked' : 'text', 'aria-busy': String(run.phase === 'generating') },
      body(run, marked),
      run.phase === 'generating' ? h('i.caret', { 'aria-hidden': 'true' }) : null,
    ),
    calls.shown(run, last),
    run.error ? h('p.refused', { role: 'alert' }, clean(run.error)) : null,
  ];
}

export function thread(turns, marked) {
  if (turns.length === 0) return h('p.muted', { key: 'thread' }, 'Answers come here, with their speed, their worker, and why it was that one.');
  return h(
    'ol.thread',
    { key: 'thread' },
    turns.map((t, i) => h('li', { key: i }, asked(t), h('div.said', null, answer(t.run, marked, i === turns.length - 1), foot(t.run, t.body)))),
  );
}

const asked = (t) => [
  t.files.length
    ? h(
        'ul.attached.sent',
        { 'aria-label': 'Sent with it' },
        t.files.map((a) => one(a)),
      )
    : null,
  t.prompt ? h('p.asked', null, t.prompt) : null,
];

export function beside(runs, marked) {
  if (runs.length === 0) return h('p.muted', { key: 'beside' }, 'One prompt goes to each worker that is ticked, and each answer stands in a column.');
  return h(
    'div.beside',
    { key: 'beside' },
    runs.map((run) => h('section.panel', { key: run.asked, 'aria-label': run.asked }, h('h2', null, workerName(run.asked)), answer(run, marked), foot(run))),
  );
}

export function crowd(runs) {
  if (runs.length === 0)
    return h('p.muted', { key: 'many' }, 'The same request so many times at once: each square is one, and shows the worker it went to.');
  const by = Map.groupBy(
    runs.filter((r) => r.worker),
    (r) => r.worker,
  );
  const ids = [...by.keys()].sort();
  return h(
    'section.panel',
    { key: 'many' },
    h(
      'ul.squares',
      null,
      runs.map((r) =>
        h(
          'li',
          {
            key: r.n,
            class: `s${r.worker ? (ids.indexOf(r.worker) % 6) + 1 : 0} is-${r.phase}`,
            title: clean(r.error || r.text).slice(0, 200),
          },
          h('b', null, r.worker || DASH),
          h(
            'span.small',
            null,
            r.phase === 'failed' ? [icon('failed', 11), ' failed'] : r.phase === 'ended' ? `${seconds(r.took)} ✓` : phases[r.phase],
          ),
          h('span.small', null, `${number(r.speed)} tok/s`),
        ),
      ),
    ),
    plain(
      'What each worker did',
      ['worker', 'requests', 'ended', 'first token, median', 'tokens/s together'],
      ids.map((id) => {
        const list = by.get(id);
        return h(
          'tr',
          { key: id },
          h('th', { scope: 'row' }, workerName(id)),
          h('td', null, list.length),
          h('td', null, list.filter((r) => r.phase === 'ended').length),
          h('td', null, seconds(median(list.map((r) => r.ttft)))),
          h('td', null, number(list.reduce((n, r) => n + (r.speed ?? 0), 0))),
        );
      }),
    ),
    runs.some((r) => r.error) ? h('p.refused', { role: 'alert' }, clean(runs.find((r) => r.error).error)) : null,
  );
}
