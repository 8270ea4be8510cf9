// One stream a tab, read with fetch: EventSource cannot send a token, and two
// streams a tab would use up the browser's connections.
import { headers, Refused, refusal } from './api.js';
import { apply, lastEvent, store } from './store.js';

const HIDDEN_FOR = 30_000; // a tab that nobody sees lets its stream go after that
const MESSAGES = new Set(['hello', 'state', 'change', 'requests', 'sample', 'event', 'log', 'gap', 'bye']);

let wanted = {}; // the query of the stream: requests, worker, log
let control = null; // ends the present one
let waits = 0;
let timer = 0;
let asleep = 0;
let tell = () => {};

// start begins; told(kind, data) is called after each message and each change of
// the connection.
export function start(told) {
  tell = told;
  document.addEventListener('visibilitychange', seen);
  // A page that is left may be kept for the way back, and its stream with it: after
  // six of those the browser has no connection left.
  addEventListener('pagehide', cut);
  addEventListener('pageshow', (e) => {
    if (e.persisted) seen();
  });
  connect();
}

// want changes what the stream brings: it takes a new one, and the snapshot with it.
export function want(query) {
  if (JSON.stringify(query) === JSON.stringify(wanted)) return;
  wanted = query;
  if (store.link !== 'denied' && store.link !== 'paused') connect();
}

export function pause(on) {
  if (!on) return connect();
  cut();
  store.link = 'paused';
  tell('link');
}

export function reconnect() {
  waits = 0;
  connect();
}

function seen() {
  clearTimeout(asleep);
  if (document.hidden) asleep = setTimeout(cut, HIDDEN_FOR);
  else if (!control && store.link !== 'denied' && store.link !== 'paused') reconnect();
}

function cut() {
  clearTimeout(timer);
  control?.abort();
  control = null;
}

async function connect() {
  cut();
  const mine = (control = new AbortController());
  if (store.link !== 'lost') store.link = 'connecting';
  try {
    const query = new URLSearchParams(wanted);
    if (lastEvent() !== undefined) query.set('after', lastEvent());
    else query.set('tail', '200');
    const answer = await fetch(`/api/stream?${query}`, { headers: headers(), signal: mine.signal, cache: 'no-store' });
    if (!answer.ok) throw await refusal(answer);
    waits = 0;
    await read(answer.body, mine);
    throw new Error(farewell[store.bye] ?? 'the supervisor ended the stream');
  } catch (error) {
    if (mine !== control) return; // given up for another
    lost(error);
  }
}

const farewell = {
  slow: 'this page did not keep up',
  ending: 'the supervisor ends, or is replaced',
  full: 'too many pages look at this supervisor',
  expired: 'the token has expired',
};

function lost(error) {
  control = null;
  const denied = error instanceof Refused && (error.status === 401 || error.status === 403);
  store.link = denied ? 'denied' : 'lost';
  store.trouble = error instanceof TypeError ? 'it cannot be reached' : error.message;
  tell('link');
  if (!denied && !document.hidden) timer = setTimeout(connect, Math.min(5000, 250 * 2 ** waits++) * (0.8 + Math.random() * 0.4));
}

// read takes the stream apart: fields of lines, messages between empty lines.
async function read(body, mine) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done || mine !== control) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) message(block);
  }
}

function message(block) {
  let kind = 'message';
  const data = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) kind = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5));
  }
  if (data.length === 0 || !MESSAGES.has(kind)) return;
  const parsed = JSON.parse(data.join('\n'));
  apply(kind, parsed);
  tell(kind, parsed);
}
