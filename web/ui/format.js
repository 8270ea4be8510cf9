// Numbers and times in words. Unknown is a dash, never 0.

export const DASH = '–';

const grouped = new Intl.NumberFormat('en-GB', { useGrouping: true, maximumFractionDigits: 0 });

const known = (n) => typeof n === 'number' && Number.isFinite(n);

// integer groups the digits of a count: 114 432.
export const integer = (n) => (known(n) ? grouped.format(n).replaceAll(',', '\u202f') : DASH);

// number has as many digits as one reads at a glance.
export function number(n) {
  if (!known(n)) return DASH;
  const size = Math.abs(n);
  if (size >= 100 || Number.isInteger(n)) return integer(Math.round(n));
  return n.toFixed(size >= 10 ? 1 : 2).replace(/\.?0+$/, '') || '0';
}

export const percent = (share) => (known(share) ? `${share > 0 && share < 0.01 ? '<\u202f1' : Math.round(share * 100)}\u202f%` : DASH);

// compact shortens what an axis or a cell has no room for: 12.3k, 4.1M.
export function compact(n) {
  if (!known(n)) return DASH;
  for (const [unit, size] of [
    ['G', 1e9],
    ['M', 1e6],
    ['k', 1e4],
  ]) {
    const by = unit === 'k' ? 1e3 : size;
    if (Math.abs(n) >= size) return number(Number((n / by).toPrecision(3))) + unit;
  }
  return number(n);
}

export function bytes(n) {
  if (!known(n)) return DASH;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; Math.abs(n) >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${number(Number(n.toPrecision(3)))} ${units[i]}`;
}

// seconds is a length of time: 84 ms, 1.2 s, 3 min 5 s, 2 h 4 min, 3 d 2 h.
export function seconds(s) {
  if (!known(s)) return DASH;
  if (s < 0) return `-${seconds(-s)}`;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  for (const [big, unit, small, part] of [
    [86400, 'd', 3600, 'h'],
    [3600, 'h', 60, 'min'],
    [60, 'min', 1, 's'],
  ]) {
    if (s < big) continue;
    const rest = Math.floor((s % big) / small);
    return `${Math.floor(s / big)} ${unit}${rest ? ` ${rest} ${part}` : ''}`;
  }
  return DASH;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const short = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const full = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
});

// when reads a time of the API, as milliseconds; null where there is none.
export function when(value) {
  const t = typeof value === 'number' ? value : Date.parse(value ?? '');
  return Number.isFinite(t) ? t : null;
}

export const clockTime = (value) => (when(value) === null ? DASH : clock.format(when(value)));
export const hourTime = (value) => (when(value) === null ? DASH : short.format(when(value)));
export const fullTime = (value) => (when(value) === null ? 'not known' : full.format(when(value)));

// whole is a length of time that goes on: in seconds, none of their parts.
export const whole = (s) => (s < 60 ? `${Math.max(0, Math.floor(s))} s` : seconds(s));

// ago is how long a moment is past, or until it comes.
export function ago(value, now) {
  const t = when(value);
  if (t === null) return DASH;
  const s = (now - t) / 1000;
  if (Math.abs(s) < 1) return 'now';
  return s > 0 ? `${whole(s)} ago` : `in ${whole(Math.ceil(-s))}`;
}

// since is how long something has been so.
export function since(value, now) {
  const t = when(value);
  return t === null ? DASH : whole((now - t) / 1000);
}

// median of what is known; null of nothing.
export function median(list) {
  const sorted = list.filter(known).sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return sorted.length ? (low + high) / 2 : null;
}

export const count = (n, one, many = `${one}s`) => (known(n) ? `${integer(n)} ${n === 1 ? one : many}` : `${DASH} ${many}`);

// clean makes control characters and escape sequences harmless before they are
// shown: they would be invisible here, and run a terminal where they are pasted.
export const clean = (words) =>
  String(words ?? '')
    .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
