// What came of a try: the answers with their speed and their worker, side by side,
// many as squares, and vectors as a table of how alike they are.
import { asCurl } from '../ask.js';
import { h } from '../dom.js';
import { DASH, clean, integer, number, seconds } from '../format.js';
import { icon } from '../icons.js';
import { explainLink, workerName } from '../parts.js';
import { store } from '../store.js';

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

function answer(run) {
  return [
    run.thought ? h('details.thought', null, h('summary', null, 'its reasoning'), h('p', null, clean(run.thought))) : null,
    h(
      'div.text',
      { 'aria-busy': String(run.phase === 'generating') },
      clean(run.text),
      run.phase === 'generating' ? h('i.caret', { 'aria-hidden': 'true' }) : null,
    ),
    run.tools ? h('pre.line', { tabindex: 0 }, JSON.stringify(run.tools, null, 1)) : null,
    run.error ? h('p.refused', { role: 'alert' }, clean(run.error)) : null,
  ];
}

export function thread(turns) {
  if (turns.length === 0) return h('p.muted', { key: 'thread' }, 'Answers come here, with their speed, their worker, and why it was that one.');
  return h(
    'ol.thread',
    { key: 'thread' },
    turns.map((t, i) => h('li', { key: i }, h('p.asked', null, t.prompt), h('div.said', null, answer(t.run), foot(t.run, t.body)))),
  );
}

export function beside(runs) {
  if (runs.length === 0) return h('p.muted', { key: 'beside' }, 'One prompt goes to each worker that is ticked, and each answer stands in a column.');
  return h(
    'div.beside',
    { key: 'beside' },
    runs.map((run) => h('section.panel', { key: run.asked, 'aria-label': run.asked }, h('h2', null, workerName(run.asked)), answer(run), foot(run))),
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
    h(
      'table.plain',
      null,
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          ['worker', 'requests', 'ended', 'first token, middle', 'tokens/s together'].map((x) => h('th', { scope: 'col', key: x }, x)),
        ),
      ),
      h(
        'tbody',
        null,
        ids.map((id) => {
          const list = by.get(id);
          return h(
            'tr',
            { key: id },
            h('th', { scope: 'row' }, workerName(id)),
            h('td', null, list.length),
            h('td', null, list.filter((r) => r.phase === 'ended').length),
            h('td', null, seconds(middle(list.map((r) => r.ttft)))),
            h('td', null, number(list.reduce((n, r) => n + (r.speed ?? 0), 0))),
          );
        }),
      ),
    ),
    runs.some((r) => r.error) ? h('p.refused', { role: 'alert' }, clean(runs.find((r) => r.error).error)) : null,
  );
}

const middle = (list) => {
  const known = list.filter((x) => x !== null).sort((a, b) => a - b);
  return known[Math.floor(known.length / 2)];
};

export function vectors(v) {
  if (!v) return h('p.muted', { key: 'vectors' }, 'How alike the sentences are, by the cosine of their vectors; needs a model that embeds.');
  const cosine = (a, b) => {
    let ab = 0,
      aa = 0,
      bb = 0;
    a.forEach((x, i) => {
      ab += x * b[i];
      aa += x * x;
      bb += b[i] * b[i];
    });
    return ab / Math.sqrt(aa * bb || 1);
  };
  return h(
    'section.panel',
    { key: 'vectors' },
    h(
      'p.foot.small',
      null,
      h('span', null, `${integer(v.list[0]?.length)} dimensions`),
      h('span', null, `took ${seconds(v.took)}`),
      v.worker ? h('span', null, workerName(v.worker)) : null,
      v.id ? explainLink(v.id) : null,
    ),
    h(
      'div.scroll',
      { tabindex: 0, role: 'region', 'aria-label': 'Cosines' },
      h(
        'table.plain',
        null,
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            h('td'),
            v.input.map((_, i) => h('th', { scope: 'col', key: i }, i + 1)),
          ),
        ),
        h(
          'tbody',
          null,
          v.input.map((words, i) =>
            h(
              'tr',
              { key: i },
              h('th', { scope: 'row' }, `${i + 1}. ${clean(words)}`),
              v.list.map((b, j) => {
                const c = cosine(v.list[i], b);
                return h('td.alike', { key: j, css: { '--alike': `${Math.round(Math.max(0, c) * 60)}%` } }, c.toFixed(2));
              }),
            ),
          ),
        ),
      ),
    ),
  );
}
