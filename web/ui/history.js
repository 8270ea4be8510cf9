// The past as series, asked for once and then carried on by the stream's samples.
import { get } from './api.js';

const loaded = new Map(); // query → {data, asked, error}
const MOST = 24; // queries that are kept

let repaint = () => {};
export const wire = (paint) => {
  repaint = paint;
};

// of returns what is known for a query, and asks where that is nothing or old.
export function of(query) {
  let h = loaded.get(query);
  if (!h) {
    if (loaded.size >= MOST) loaded.delete(loaded.keys().next().value);
    loaded.set(query, (h = { data: null, error: '', asked: 0 }));
  }
  const every = Math.max(10, h.data?.step_seconds ?? 0) * 1000;
  const live = h.data?.step_seconds === 5 && performance.now() - (h.sampled ?? 0) < 12_000;
  if (!h.busy && performance.now() - h.asked > (h.data ? (live ? 300_000 : every) : h.error ? 3000 : 0)) load(query, h);
  return h;
}

async function load(query, h) {
  Object.assign(h, { busy: true, asked: performance.now() });
  try {
    h.data = await get(`/api/history?${query}`);
    h.error = '';
  } catch (error) {
    h.error = error.message;
  }
  h.busy = false;
  repaint();
}

// sample carries on what has the step of the samples; what falls out at the
// beginning of the window is dropped.
export function sample(m) {
  for (const h of loaded.values()) {
    const d = h.data;
    if (!d?.series.length || d.step_seconds !== m.step_seconds) continue;
    const step = d.step_seconds * 1000;
    const width = (d.width ??= d.series[0].values.length);
    const index = Math.max(0, Math.round((Date.parse(m.at) - Date.parse(d.from)) / step));
    const drop = Math.min(width, Math.max(0, index + 1 - width));
    for (const s of d.series) {
      while (s.values.length <= index) s.values.push(null);
      s.values[index] = m.series.find((x) => x.name === s.name && x.pool === s.pool && x.worker === s.worker)?.value ?? null;
      s.values.splice(0, drop);
    }
    d.from = new Date(Date.parse(d.from) + drop * step).toISOString();
    h.sampled = performance.now();
  }
}

// points of one series as [ms, value].
export function points(data, name, pool = null, worker = null) {
  const s = data?.series.find((x) => x.name === name && x.pool === pool && x.worker === worker);
  if (!s) return [];
  const from = Date.parse(data.from) + data.step_seconds * 500;
  return s.values.map((v, i) => [from + i * data.step_seconds * 1000, v]);
}
