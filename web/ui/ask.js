// One request through the door for Try: what is sent, what comes, and how fast.
import { commandHeaders, get, refusal } from './api.js';

// chat streams an answer. It calls told() at each piece; what it keeps in `run` is
// {phase, text, thought, worker, id, ttft, speed, usage, error}.
export async function chat(run, body, worker, signal, told) {
  const began = performance.now();
  Object.assign(run, {
    phase: 'waiting',
    text: '',
    thought: '',
    pieces: 0,
    worker: '',
    id: '',
    ttft: null,
    speed: null,
    usage: null,
    error: '',
    began,
  });
  try {
    const answer = await fetch('/api/try/v1/chat/completions', {
      method: 'POST',
      headers: { ...commandHeaders(), ...(worker ? { 'X-Roundhouse-Worker': worker } : {}) },
      body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
      signal,
      cache: 'no-store',
    });
    run.id = answer.headers.get('X-Request-Id') ?? '';
    run.worker = answer.headers.get('X-Roundhouse-Worker') ?? worker ?? '';
    if (!answer.ok) throw await refusal(answer);
    run.phase = 'prompt';
    told();
    for await (const data of events(answer.body)) {
      piece(run, data);
      told();
    }
    run.phase = 'ended';
    if (run.usage && run.first)
      run.speed = run.usage.completion_tokens > 1 ? (run.usage.completion_tokens - 1) / Math.max(0.001, (run.last - run.first) / 1000) : null;
  } catch (error) {
    run.phase = error.name === 'AbortError' ? 'stopped' : 'failed';
    run.error = run.phase === 'stopped' ? '' : error.message;
  }
  run.took = (performance.now() - began) / 1000;
  told();
  if (run.id) await outcome(run, told);
}

function piece(run, data) {
  if (data === '[DONE]') return;
  const m = JSON.parse(data);
  if (m.error) throw new Error(m.error.message ?? 'the stream ended with an error');
  if (m.usage) run.usage = m.usage;
  const d = m.choices?.[0]?.delta;
  if (!d) return;
  const thought = d.reasoning_content ?? d.reasoning ?? '';
  const words = d.content ?? '';
  if (d.tool_calls) call((run.calls ??= []), d.tool_calls);
  if (!thought && !words && !d.tool_calls) return;
  run.last = performance.now();
  if (run.ttft === null) Object.assign(run, { ttft: (run.last - run.began) / 1000, first: run.last, phase: 'generating' });
  run.text += words;
  run.thought += thought;
  run.pieces++;
  if (run.last > run.first) run.speed = (run.pieces - 1) / ((run.last - run.first) / 1000);
}

const MOST_CALLS = 128;

// call joins the pieces of calls, each to the one of its number.
function call(calls, pieces) {
  for (const p of pieces) {
    const n = p.index ?? 0;
    if (!Number.isInteger(n) || n < 0 || n >= MOST_CALLS) continue;
    const c = (calls[n] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
    if (p.id) c.id = p.id;
    c.function.name += p.function?.name ?? '';
    c.function.arguments += p.function?.arguments ?? '';
  }
}

// events are the data of server-sent events.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block
        .split('\n')
        .filter((l) => l.startsWith('data:'))
        .map((l) => l.slice(5).trimStart())
        .join('\n');
      if (data) yield data;
    }
  }
}

// outcome adds what the door wrote down of the request: the worker that ended it,
// and whether its stream was resumed.
async function outcome(run, told) {
  try {
    const list = (await get('/api/requests?ended=1&limit=200')).ended;
    const r = list.find((x) => x.id === run.id);
    if (r) Object.assign(run, { resumes: r.resumes, worker: r.worker ?? run.worker, cached: r.cached_tokens });
  } catch {
    return; // the answer is there; only its record is not
  }
  told();
}

// many sends one request several times at once. A browser has six connections to
// an address, so the server sends them, and tells of all in one stream.
export async function many(runs, body, signal, told) {
  const began = performance.now();
  const answer = await fetch(`/api/try/v1/chat/completions?times=${runs.length}`, {
    method: 'POST',
    headers: commandHeaders(),
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
    cache: 'no-store',
  });
  if (!answer.ok) throw await refusal(answer);
  for await (const data of events(answer.body)) {
    const m = JSON.parse(data);
    const run = runs[m.n];
    if (!run) continue;
    if (m.id !== undefined) Object.assign(run, { id: m.id, worker: m.worker ?? '', phase: 'prompt', began });
    if (m.data !== undefined) piece(run, m.data);
    if (m.ended) Object.assign(run, { phase: m.error ? 'failed' : 'ended', error: m.error ?? '', took: (performance.now() - began) / 1000 });
    told();
  }
}

// once sends what has one answer, and reads it as `of` says: json, text or blob.
export async function once(path, body, worker, signal, of = 'json') {
  const began = performance.now();
  const form = body instanceof FormData; // the browser names its kind, with the boundary
  const answer = await fetch(`/api/try/v1/${path}`, {
    method: 'POST',
    headers: { ...commandHeaders(form ? '' : undefined), ...(worker ? { 'X-Roundhouse-Worker': worker } : {}) },
    body: form ? body : JSON.stringify(body),
    signal,
    cache: 'no-store',
  });
  if (!answer.ok) throw await refusal(answer);
  return {
    worker: answer.headers.get('X-Roundhouse-Worker') ?? '',
    id: answer.headers.get('X-Request-Id') ?? '',
    answer: await answer[of](),
    took: (performance.now() - began) / 1000,
  };
}

// asCurl is the same request for a terminal, to the door, without a key and without
// what was attached.
export function asCurl(base, body) {
  const short = (_, value) => (typeof value === 'string' && value.length > 20_000 ? `${value.slice(0, 40)}…` : value);
  const quoted = JSON.stringify({ ...body, stream: true }, short).replaceAll("'", "'\\''");
  return `curl -sN ${base}/v1/chat/completions -H 'Content-Type: application/json' -d '${quoted}'`;
}
