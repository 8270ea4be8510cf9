// Some Markdown as descriptions of elements: text arrives in text nodes, a link is
// shown and not followed, and a picture is its words.
import { h } from './dom.js';

const DEEP = 6; // lists and quotations within each other; what lies deeper stays text

const fence = /^\s{0,3}(```+|~~~+)[^`]*$/;
const heading = /^(#{1,6})\s+(\S.*)$/;
const rule = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const quoted = /^\s{0,3}>\s?/;
const divider = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

// markdown describes a text that may end in the middle, as one that still comes does.
export const markdown = (text) => blocks(text.replaceAll('\r\n', '\n').split('\n'), 0);

function blocks(lines, depth) {
  const out = [];
  let words = [];
  const end = () => {
    if (words.length) out.push(h('p', null, inline(words.join('\n'))));
    words = [];
  };
  for (let at = 0; at < lines.length; ) {
    const [node, next] = block(lines, at, depth);
    if (node === undefined) {
      words.push(lines[at].trim());
      at++;
      continue;
    }
    end();
    if (node) out.push(node);
    at = next;
  }
  end();
  return out;
}

// block is what begins at a line and where it ends: undefined for words of a paragraph,
// null for a line that shows nothing.
function block(lines, at, depth) {
  const line = lines[at];
  if (line.trim() === '') return [null, at + 1];
  if (fence.test(line)) return code(lines, at);
  const head = heading.exec(line);
  if (head) return [h('p.heading', { 'data-level': head[1].length }, inline(head[2].trimEnd().replace(/ #+$/, ''))), at + 1];
  if (rule.test(line)) return [h('hr'), at + 1];
  if (line.includes('|') && divider.test(lines[at + 1] ?? '') && lines[at + 1].includes('-')) return table(lines, at);
  if (depth >= DEEP) return [undefined, at];
  if (quoted.test(line)) {
    const to = until(lines, at, (l) => !quoted.test(l));
    const inner = lines.slice(at, to).map((l) => l.replace(quoted, ''));
    return [h('blockquote', null, blocks(inner, depth + 1)), to];
  }
  return item.test(line) ? list(lines, at, depth) : [undefined, at];
}

function until(lines, from, ends) {
  let to = from + 1;
  while (to < lines.length && !ends(lines[to])) to++;
  return to;
}

function code(lines, at) {
  const [, mark] = fence.exec(lines[at]);
  const to = until(lines, at, (l) => l.trim().startsWith(mark) && l.trim().replaceAll(mark[0], '') === '');
  return [h('pre.line', { tabindex: 0 }, lines.slice(at + 1, to).join('\n')), to + 1];
}

// list takes the items of one kind that stand as deep, each with what is indented below it.
function list(lines, at, depth) {
  const [, indent, mark] = item.exec(lines[at]);
  const counted = /\d/.test(mark);
  const items = [];
  while (at < lines.length) {
    const found = item.exec(lines[at]);
    if (!found || found[1].length !== indent.length || /\d/.test(found[2]) !== counted) break;
    const to = until(lines, at, (l) => l.trim() !== '' && l.length - l.trimStart().length <= indent.length);
    const within = lines.slice(at + 1, to);
    const shift = within.filter((l) => l.trim()).reduce((n, l) => Math.min(n, l.length - l.trimStart().length), Infinity);
    items.push(h('li', null, inline(found[3]), blocks(within.map((l) => l.slice(shift)), depth + 1)));
    at = to;
  }
  return [h(counted ? 'ol' : 'ul', counted ? { start: Number.parseInt(mark, 10) } : null, items), at];
}

function table(lines, at) {
  const to = until(lines, at + 1, (l) => !l.includes('|'));
  const [head, ...rows] = [lines[at], ...lines.slice(at + 2, to)].map(cells);
  const shown = h(
    'table.plain',
    null,
    h('thead', null, h('tr', null, head.map((c) => h('th', { scope: 'col' }, inline(c))))),
    h('tbody', null, rows.map((r) => h('tr', null, head.map((_, i) => h('td', null, inline(r[i] ?? '')))))),
  );
  return [h('div.scroll', { tabindex: 0 }, shown), to];
}

const cells = (line) =>
  line
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((c) => c.trim());

// What stands within a line: code, escapes, links and pictures, strong, struck, stressed.
const pieces = new RegExp(
  [
    /(`{1,3})([^`]+)\1/,
    /\\([\\`*_{}[\]()#+.!|~>-])/,
    /!?\[([^\][]{0,500})\]\(([^()\s]{1,2000})\)/,
    /\*\*([^*]+(?:\*[^*]+)*?)\*\*/,
    /~~([^~]+)~~/,
    /\*([^*\s](?:[^*]*[^*\s])?)\*/,
    /(?<!\w)_([^_\s](?:[^_]*[^_\s])?)_(?!\w)/,
  ]
    .map((p) => p.source)
    .join('|'),
  'g',
);

function inline(text) {
  const out = [];
  let from = 0;
  for (const m of text.matchAll(pieces)) {
    const [all, , code, escaped, named, address, strong, struck, stressed, underlined] = m;
    out.push(text.slice(from, m.index));
    from = m.index + all.length;
    if (code !== undefined) out.push(h('code', null, code.trim()));
    else if (escaped !== undefined) out.push(escaped);
    else if (address !== undefined) out.push(named, named === address ? '' : h('code.muted', null, ` ${address}`));
    else if (strong !== undefined) out.push(h('strong', null, inline(strong)));
    else if (struck !== undefined) out.push(h('del', null, inline(struck)));
    else out.push(h('em', null, inline(stressed ?? underlined)));
  }
  out.push(text.slice(from));
  return out.filter((o) => o !== '');
}
