// The admin API: the token in a header, never in an address or a cookie, and the
// server's own words where it refuses.

const TOKEN = 'roundhouse-token';
const NAME = 'roundhouse-operator';

// Refused is an answer that is no success.
export class Refused extends Error {
  constructor(status, words, id = '') {
    super(words);
    this.status = status;
    this.id = id;
  }
}

export const token = () => sessionStorage.getItem(TOKEN) ?? '';
export function setToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

// operator is the name that stands beside commands in the events.
export const operator = () => localStorage.getItem(NAME) ?? '';
export const setOperator = (name) => localStorage.setItem(NAME, name.trim().slice(0, 64));

export const headers = (more) => ({ ...(token() ? { Authorization: `Bearer ${token()}` } : {}), ...more });

// plain keeps a name within what a header can hold.
const plain = (name) => name.replace(/[^\x20-\x7e]+/gu, encodeURIComponent).slice(0, 64);

// commands carry a header that no form of another site can send.
export const commandHeaders = (kind = 'application/json') =>
  headers({ 'X-Roundhouse-Operator': plain(operator() || 'console'), ...(kind ? { 'Content-Type': kind } : {}) });

export async function refusal(answer) {
  const words = await answer.text().catch(() => '');
  const id = answer.headers.get('X-Request-Id') ?? '';
  try {
    return new Refused(answer.status, JSON.parse(words).error.message, id);
  } catch {
    return new Refused(answer.status, words.slice(0, 300) || `status ${answer.status}`, id);
  }
}

async function ask(path, options) {
  const answer = await fetch(path, { cache: 'no-store', ...options });
  if (!answer.ok) throw await refusal(answer);
  return answer.status === 204 ? null : answer.json();
}

export const get = (path, signal) => ask(path, { headers: headers(), signal });
export const post = (path, body) => ask(path, { method: 'POST', headers: commandHeaders(), body: JSON.stringify(body ?? {}) });
export const del = (path) => ask(path, { method: 'DELETE', headers: commandHeaders() });

// address joins parts of a path that may hold anything.
export const address = (...parts) => `/api/${parts.map(encodeURIComponent).join('/')}`;

// exchange takes a token for the one-time code that `roundhouse console` has put
// into the fragment, and wipes it from the address at once.
export async function exchange() {
  const code = /^#code=([^&]+)$/.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(null, '', '#/now');
  const session = await ask('/api/session', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ code: decodeURIComponent(code) }),
  });
  setToken(session.token);
}
