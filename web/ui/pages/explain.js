// Why a request went where it went: the candidates as they were at that moment,
// and what came of it.
import { address, get } from '../api.js';
import { h } from '../dom.js';
import { DASH, clean, clockTime, count, integer, percent, seconds } from '../format.js';
import { badge, empty, facts, moment, workerName } from '../parts.js';
import { link } from '../route.js';
import { store } from '../store.js';

const reasons = {
  least: 'it would be the least full once the request is there',
  tie: 'several were equal, and it was its turn',
  prefix: 'it has the most of the prompt in its cache',
  sticky: 'the session is there',
  only: 'no other could take it',
  no_report: 'without a report to go by',
};

let repaint = () => {};
let shown = { id: '', decision: null, ended: null, error: '' };

export function wire(paint) {
  repaint = paint;
}

export async function enter(id) {
  const mine = (shown = { id, decision: null, ended: null, error: '' });
  await Promise.all([
    get(address('decisions', id)).then(
      (d) => {
        mine.decision = d;
      },
      (e) => {
        mine.error = e.status === 404 ? 'The last 512 choices are kept, and this one is not among them.' : e.message;
      },
    ),
    get('/api/requests?ended=1&limit=2560').then(
      (a) => {
        mine.ended = a.ended.find((r) => r.id === id) ?? null;
      },
      () => {},
    ),
  ]);
  repaint();
}

export function view(id) {
  const d = shown.decision;
  return [
    h('p.crumbs', null, h('a', { href: link('requests') }, 'Requests')),
    h('div.page-head', null, h('h1', null, 'Why it went there'), h('code', null, id)),
    outcome(shown.ended),
    d ? decision(d) : shown.error ? empty('No choice is known', h('p', null, shown.error)) : h('p.muted', null, 'Asking…'),
  ];
}

function outcome(r) {
  const live = store.requests?.requests.find((x) => x.id === shown.id);
  if (!r) return live ? h('p', null, `It is ${live.state}, `, workerName(live.worker)) : null;
  return h(
    'section.panel',
    { key: 'outcome' },
    h('h2', null, 'What came of it'),
    facts([
      ['Outcome', [badge(r.outcome), r.outcome === 'ok' ? null : ` ${[r.status, r.reason].filter(Boolean).map(clean).join(' ')}`]],
      ['Ended', moment(r.ended)],
      ['Worker', workerName(r.worker)],
      ['Model', r.model],
      ['Key', r.key ?? DASH],
      ['Path', r.path],
      ['Waited at the door', seconds(r.queue_seconds)],
      ['First token after', seconds(r.ttft_seconds)],
      ['Took', seconds(r.seconds)],
      ['Prompt', `${count(r.prompt_tokens, 'token')}${r.cached_tokens ? `, ${integer(r.cached_tokens)} from the cache` : ''}`],
      ['Generated', count(r.generated_tokens, 'token')],
      ['Resumed', r.resumes ? count(r.resumes, 'time') : 'never'],
    ]),
  );
}

function decision(d) {
  const known = d.candidates.map((c) => c.predicted_ttft_seconds).filter((x) => x !== null);
  const most = Math.max(...known, 0.001);
  const score = Math.max(...d.candidates.map((c) => Math.abs(c.score)), 1e-9);
  const rows = [...d.candidates].sort((a, b) => Boolean(a.excluded) - Boolean(b.excluded) || a.score - b.score);
  return h(
    'section.panel',
    { key: 'decision' },
    h(
      'p.answer',
      null,
      'It went to ',
      h('b', null, workerName(d.chosen)),
      `: ${reasons[d.reason] ?? d.reason}.`,
      d.runner_up ? [' The next best was ', workerName(d.runner_up), '.'] : null,
    ),
    h(
      'p.muted',
      null,
      `${clockTime(d.at)} · pool ${d.pool} · policy ${d.policy} · it needs ${count(d.need_tokens, 'token')} (prompt and expected answer)`,
      shown.ended?.ttft_seconds !== null && shown.ended !== null
        ? ` · foretold ${seconds(d.candidates.find((c) => c.worker === d.chosen)?.predicted_ttft_seconds)} to the first token, it came after ${seconds(shown.ended.ttft_seconds)}`
        : null,
    ),
    h(
      'div.scroll',
      { tabindex: 0, role: 'region', 'aria-label': 'Candidates' },
      h(
        'table.live.candidates',
        null,
        h('caption.hidden-words', null, 'The candidates as the choice saw them'),
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            ['worker', known.length ? FORETOLD : 'weight', ...columns].map((x, i) =>
              h('th', { scope: 'col', key: i, class: i > 1 ? 'n' : undefined }, x),
            ),
          ),
        ),
        h(
          'tbody',
          null,
          rows.map((c) => candidate(c, d, known.length ? [c.predicted_ttft_seconds, most] : [c.score, score])),
        ),
      ),
    ),
  );
}

const FORETOLD = 'first token, foretold';
const columns = ['score', 'KV then', 'prompt in its cache', 'prompts before it', 'report'];

function candidate(c, d, [value, most]) {
  const figures = [
    Number(c.score.toPrecision(4)).toString(),
    c.capacity_tokens
      ? `${percent((c.charged_tokens + c.foreign_tokens) / c.capacity_tokens)} of ${integer(c.capacity_tokens)}`
      : integer(c.charged_tokens),
    integer(c.prefix_tokens),
    integer(c.prefill_tokens),
    c.report_age_seconds === null ? DASH : `${seconds(c.report_age_seconds)} old`,
  ];
  const chosen = c.worker === d.chosen;
  return h(
    'tr',
    { key: c.worker, class: chosen ? 'chosen' : c.excluded ? 'out' : undefined },
    h('th', { scope: 'row' }, workerName(c.worker), chosen ? h('span.badge.tone-well', null, 'chosen') : null),
    h(
      'td.wide-cell',
      { 'data-name': c.excluded ? '' : FORETOLD },
      c.excluded
        ? h('span.muted', null, `out: ${clean(c.excluded)}`)
        : h(
            'div.forecast',
            null,
            h('div.track', null, h('i', { css: { width: `${Math.max(1, (Math.abs(value ?? 0) / most) * 100)}%` } })),
            h('span.small', null, c.predicted_ttft_seconds === null ? '' : seconds(c.predicted_ttft_seconds)),
          ),
    ),
    figures.map((value, i) => h('td.n', { key: i, 'data-name': columns[i] }, value)),
  );
}
