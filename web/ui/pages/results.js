// What came of a try that is no chat: pictures, speech, words heard, vectors as a table
// of how alike they are, and ranks.
import { h } from '../dom.js';
import { DASH, bytes, clean, integer, percent, seconds } from '../format.js';
import { explainLink, plain, workerName } from '../parts.js';

const hint = (key, words) => h('p.muted', { key }, words);

// panel is a result under the line of who made it and how long it took.
const panel = (key, r, figures, ...children) =>
  h(
    'section.panel',
    { key, 'data-result': key },
    h(
      'p.foot.small',
      null,
      figures.map((f) => h('span', { key: f }, f)),
      h('span', null, `took ${seconds(r.took)}`),
      r.worker ? h('span', null, workerName(r.worker)) : null,
      r.id ? h('span', null, explainLink(r.id)) : null,
    ),
    children,
  );

const signs = { iVBOR: 'image/png', '/9j/': 'image/jpeg', UklGR: 'image/webp', R0lGO: 'image/gif' };
const typeOf = (b64) => Object.entries(signs).find(([sign]) => b64.startsWith(sign))?.[1] ?? 'image/png';

export function pictures(r) {
  if (!r) return hint('pictures', 'Pictures come here. A worker that answers with an address has it shown and not followed.');
  const list = r.answer.data ?? [];
  return panel(
    'pictures',
    r,
    [`${list.length} of them`],
    h(
      'ul.pictures',
      null,
      list.map((p, i) =>
        h(
          'li',
          { key: i },
          p.b64_json
            ? h('img', { src: `data:${typeOf(p.b64_json)};base64,${p.b64_json}`, alt: `${i + 1}: ${r.said}` })
            : h('code', null, clean(p.url ?? 'nothing')),
          p.revised_prompt ? h('p.muted.small', null, clean(p.revised_prompt)) : null,
        ),
      ),
    ),
  );
}

export function speech(r) {
  if (!r) return hint('speech', 'The text is spoken here.');
  return panel(
    'speech',
    r,
    [bytes(r.answer.size), clean(r.answer.type)],
    h('audio', { controls: true, src: r.url, 'aria-label': `Spoken: ${r.said}` }),
    h('p', null, h('a', { href: r.url, download: 'speech.wav' }, 'Save it')),
  );
}

export function transcript(r) {
  if (!r) return hint('transcript', 'The words that are heard in a recording come here.');
  return panel('transcript', r, [clean(r.name)], h('p.text', null, clean(r.answer.text)));
}

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b) || 1);

export function vectors(r) {
  if (!r) return hint('vectors', 'How alike the sentences are, by the cosine of their vectors.');
  return panel(
    'vectors',
    r,
    [`${integer(r.list[0]?.length)} dimensions`, `${integer(r.answer.usage?.prompt_tokens)} tokens`],
    plain(
      'Cosines',
      ['', ...r.input.map((_, i) => i + 1), 'begins with'],
      r.input.map((words, i) =>
        h(
          'tr',
          { key: i },
          h('th', { scope: 'row' }, `${i + 1}. ${clean(words)}`),
          r.list.map((b, j) => {
            const c = cosine(r.list[i], b);
            return h('td.alike', { key: j, css: { '--alike': `${Math.round(Math.max(0, c) * 60)}%` } }, c.toFixed(2));
          }),
          h(
            'td.mono.small',
            { key: 'first' },
            `${r.list[i]
              .slice(0, 3)
              .map((x) => x.toFixed(3))
              .join(' ')} …`,
          ),
        ),
      ),
    ),
  );
}

export function ranks(r) {
  if (!r) return hint('ranks', 'The texts by how well they answer the question, the best first.');
  const list = [...(r.answer.results ?? [])].sort((a, b) => b.relevance_score - a.relevance_score);
  const most = Math.max(...list.map((x) => Math.abs(x.relevance_score)), 1e-9);
  return panel(
    'ranks',
    r,
    [],
    plain(
      'Ranks',
      ['', 'text', 'score', ''],
      list.map((x, i) =>
        h(
          'tr',
          { key: x.index },
          h('td', null, i + 1),
          h('th', { scope: 'row' }, clean(r.documents[x.index] ?? DASH)),
          h('td', null, x.relevance_score.toPrecision(3)),
          h(
            'td',
            null,
            h('div.track.rank', { title: percent(x.relevance_score) }, h('i', { css: { width: `${(Math.abs(x.relevance_score) / most) * 100}%` } })),
          ),
        ),
      ),
    ),
  );
}
