// Lines over time, drawn as SVG: a hole in the data is a hole in the line, and
// every chart has its numbers as a table for those who cannot see lines.
import { h } from './dom.js';
import { DASH, clockTime, hourTime } from './format.js';
import { plain } from './parts.js';

// A narrow screen gets a narrow drawing, so that its words stay readable.
const W = globalThis.innerWidth < 700 ? 340 : 600;
const H = 150;
const LEFT = 46;
const BOTTOM = 20;
const TOP = 8;

// nice is a round number at or above x, so that an axis reads well.
export function nice(x) {
  if (!(x > 0)) return 1;
  const size = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 2.5, 5, 10].map((k) => k * size).find((k) => k >= x * 0.9999);
}

// whole has an axis of things that cannot be halved end at an even number.
const whole = (c, most) => (c.counts ? Math.max(2, 2 * Math.ceil(most / 2)) : nice(most));

// line is the path of one series; null or a gap in time lifts the pen.
export function line(points, x, y, widest) {
  let d = '';
  let last = null;
  for (const [at, value] of points) {
    if (value === null || value === undefined) {
      last = null;
      continue;
    }
    const pen = last !== null && at - last <= widest ? 'L' : 'M';
    d += `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    if (pen === 'M') d += 'h0.01'; // a lone point is seen: its line has round ends
    last = at;
  }
  return d;
}

// sparkline is a line without axes, beside its figure.
export function sparkline(points, width = 140, height = 34) {
  const known = points.filter((p) => p[1] !== null && p[1] !== undefined);
  if (known.length < 2) return h('svg.spark', { viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' });
  const [from, to] = [known[0][0], points.at(-1)[0]]; // of a short life all is shown
  const top = Math.max(...known.map((p) => p[1])) || 1;
  const x = (t) => ((t - from) / (to - from || 1)) * width;
  const y = (v) => height - 2 - (v / top) * (height - 5);
  return h(
    'svg.spark',
    { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    h('path', { d: line(points, x, y, Infinity), 'vector-effect': 'non-scaling-stroke' }),
  );
}

// chart draws a panel. c.series are {name, points: [[ms, value]]}, c.marks are
// {at, kind, words}; c.cursor is the moment under the pointer of any chart, and
// c.point reports that moment.
export function chart(c) {
  const top = c.top ?? whole(c, Math.max(0, ...c.series.flatMap((s) => s.points.map((p) => p[1] ?? 0))));
  const x = (t) => LEFT + ((t - c.from) / (c.to - c.from)) * (W - LEFT - 6);
  const y = (v) => H - BOTTOM - (Math.min(v, top) / top) * (H - BOTTOM - TOP);
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * W;
    return px < LEFT ? null : c.from + ((px - LEFT) / (W - LEFT - 6)) * (c.to - c.from);
  };
  return h(
    'figure.chart',
    { key: c.title },
    h('figcaption', null, h('h2', null, c.title), h('span.muted.small', null, c.unit), legend(c)),
    h(
      'svg',
      {
        viewBox: `0 0 ${W} ${H}`,
        role: 'img',
        'aria-label': `${c.title}. The numbers are in the table below.`,
        onpointermove: (e) => c.point(at(e)),
        onpointerleave: () => c.point(null),
      },
      axes(c, top, x, y),
      (c.marks ?? []).filter((m) => m.at >= c.from && m.at <= c.to).map((m) => mark(m, x)),
      c.series.map((s, i) => h(`path.stroke.s${(i % 6) + 1}`, { key: s.name, d: line(s.points, x, y, c.step * 2.5) })),
      c.cursor ? h('line.cursor', { x1: x(c.cursor), x2: x(c.cursor), y1: TOP, y2: H - BOTTOM }) : null,
    ),
    twin(c),
  );
}

function axes(c, top, x, y) {
  const lines = [0, 0.5, 1].map((share) => [
    h('line.grid', { x1: LEFT, x2: W - 6, y1: y(top * share), y2: y(top * share) }),
    h('text.tick.end', { x: LEFT - 6, y: y(top * share) + 4 }, c.format(top * share)),
  ]);
  const times = [0, 1, 2, 3, 4].map((i) => {
    const t = c.from + ((c.to - c.from) * i) / 4;
    return h('text', { class: `tick ${['start', 'mid', 'mid', 'mid', 'end'][i]}`, x: x(t), y: H - 4 }, hourTime(t));
  });
  return [lines, times];
}

const mark = (m, x) =>
  h(
    'g',
    { class: `mark ${m.kind}` },
    h('title', null, `${clockTime(m.at)} ${m.words}`),
    h('line', { x1: x(m.at), x2: x(m.at), y1: TOP, y2: H - BOTTOM }),
    h('path', { d: `M${x(m.at) - 4} ${TOP - 6}h8l-4 6z` }),
  );

// nearest is a series' value at the cursor, or its latest one.
function nearest(points, cursor, step) {
  if (cursor === null || cursor === undefined) return points.at(-1)?.[1];
  let best = null;
  for (const p of points) if (Math.abs(p[0] - cursor) <= step && (!best || Math.abs(p[0] - cursor) < Math.abs(best[0] - cursor))) best = p;
  return best?.[1];
}

function legend(c) {
  return h(
    'span.legend',
    null,
    c.series.map((s, i) => {
      const value = nearest(s.points, c.cursor, c.step);
      return h(
        'span',
        { key: s.name },
        h(`i.swatch.s${(i % 6) + 1}`),
        s.name,
        ' ',
        h('b', null, value === null || value === undefined ? DASH : c.format(value)),
      );
    }),
  );
}

// twin is the chart as a table of some twenty rows.
function twin(c) {
  return h(
    'details',
    { ontoggle: (e) => c.open(c.title, e.currentTarget.open) },
    h('summary', null, 'as a table'),
    !c.opened ? null : plain(`${c.title} as a table`, ['time', ...c.series.map((s) => s.name)], rows(c)),
  );
}

function rows(c) {
  const step = Math.max(c.step, (c.to - c.from) / 20);
  const out = [];
  for (let t = c.to; t > c.from; t -= step) {
    out.push(
      h(
        'tr',
        null,
        h('th', { scope: 'row' }, clockTime(t)),
        c.series.map((s) => {
          const value = nearest(s.points, t, step / 2);
          return h('td', null, value === null || value === undefined ? DASH : c.format(value));
        }),
      ),
    );
  }
  return out;
}
