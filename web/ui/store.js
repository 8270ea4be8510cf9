// What the stream has told: the snapshot, kept up to date by the changes, the
// last events, and how old all of it is. Nothing here is ever guessed ahead.

const KEPT_EVENTS = 500;
const KEPT_LINES = 2000;
const STALE = 2700; // milliseconds without a word, after which nothing is called live

export const store = {
  hello: null,
  state: null, // null until the first snapshot
  workers: new Map(), // id → worker, in the order of the snapshot
  events: [], // the oldest first, with {gap} where numbers are missing
  requests: null,
  log: { of: '', lines: [], missed: false, error: '' },
  link: 'connecting', // connecting | open | lost | denied | paused
  trouble: '', // why it is lost or denied, in words
  heard: null, // when the last message came, by this machine's steady clock
  skew: 0, // the server's clock minus this machine's
  bye: '',
};

// now is the server's time, in milliseconds: ages are told by its clock.
export const now = () => Date.now() + store.skew;

// age is how old what is shown is, in seconds; null before there is any.
export const age = () => (store.heard === null ? null : (performance.now() - store.heard) / 1000);

export const stale = () => store.link !== 'paused' && store.heard !== null && performance.now() - store.heard > STALE;

// may reports why commands are not to be had now, or ''.
export function mayNot() {
  if (store.hello?.rights === 'read') return 'This token only reads: commands take admin.token';
  if (store.link === 'paused') return 'The page is paused: go on first';
  if (!store.state || stale() || store.link !== 'open') return 'The supervisor does not answer: commands wait until it does';
  return '';
}

export const lastEvent = () => store.events.findLast((e) => e.id)?.id;

// heartbeat notes that the server is there; at is its time.
function heartbeat(at) {
  store.heard = performance.now();
  const t = Date.parse(at ?? '');
  if (Number.isFinite(t)) store.skew = t - Date.now();
}

// apply takes in one message of the stream.
export function apply(kind, data) {
  heartbeat(kind === 'event' || kind === 'sample' ? undefined : data.at); // those two have times of their own
  applied[kind]?.(data);
}

const applied = {
  hello(m) {
    store.hello = m;
    store.link = 'open';
    store.trouble = store.bye = '';
    followLog(store.log.of); // its lines come again
  },
  state(m) {
    store.workers = new Map(m.workers.map((w) => [w.id, { ...w, kvAt: Date.parse(m.at), requestsAt: Date.parse(m.at) }]));
    store.state = m;
  },
  change(m) {
    if (!store.state) return;
    const { workers, gone, ...rest } = m;
    for (const w of workers ?? []) {
      const next = { ...store.workers.get(w.id), ...w };
      if (w.kv) next.kvAt = Date.parse(m.at);
      if (w.requests) next.requestsAt = Date.parse(m.at);
      store.workers.set(w.id, next);
    }
    for (const id of gone ?? []) store.workers.delete(id);
    store.state = { ...store.state, ...rest };
  },
  event(m) {
    const last = lastEvent();
    if (last !== undefined && m.id <= last) return; // sent again after a break
    store.events.push(m);
    if (store.events.length > KEPT_EVENTS) store.events.splice(0, store.events.length - KEPT_EVENTS);
  },
  requests(m) {
    store.requests = m;
  },
  log(m) {
    const log = store.log;
    if (m.of !== log.of) return;
    log.error = m.error ?? '';
    log.lines.push(...m.lines.map((text) => ({ n: (log.count = (log.count ?? 0) + 1), text })));
    if (log.lines.length > KEPT_LINES) log.lines.splice(0, log.lines.length - KEPT_LINES);
  },
  gap(m) {
    if (m.what === 'events') {
      const before = store.events.at(-1);
      if (m.to <= lastEvent() || (before && 'gap' in before)) return; // told before the stream broke
      store.events.push({ gap: m.missed, from: m.from, to: m.to });
    } else store.log.lines.push({ n: (store.log.count = (store.log.count ?? 0) + 1), gap: m.missed });
  },
  bye(m) {
    store.bye = m.reason;
  },
};

// follow says whose log the next stream brings.
export function followLog(of) {
  store.log = { of, lines: [], count: 0, error: '' };
}

export const poolsOf = (filter) => (store.state?.pools ?? []).filter((p) => !filter || p.name === filter);
export const workersOf = (filter) => [...store.workers.values()].filter((w) => !filter || w.pool === filter);
export const figuresOf = (pool) => store.state?.figures.find((f) => f.pool === (pool || null));

// reportAge is how old a worker's last report is by now.
export const reportAge = (w) => (w.kv.report_age_seconds === null ? null : w.kv.report_age_seconds + Math.max(0, (now() - w.kvAt) / 1000));
