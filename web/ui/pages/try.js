// Try: ask any model, or one worker; several side by side; sixteen at once to
// watch where they go; pictures, sound, vectors and ranks where a pool takes them.
// Nothing of it is stored anywhere.
import * as ask from '../ask.js';
import { content } from '../attach.js';
import { h } from '../dom.js';
import { clean } from '../format.js';
import { empty } from '../parts.js';
import { mayNot, store } from '../store.js';
import * as answers from './answers.js';
import { picker, take } from './attached.js';
import * as calls from './calls.js';
import { kinds, models, of, serving, takes } from './offer.js';
import * as results from './results.js';

export const title = 'Try';
const MOST_BESIDE = 4; // of a browser's six connections, one is the page's own
const MOST_TIMES = 64;
const chats = new Set(['chat', 'compare', 'many']);

const form = {
  kind: 'chat',
  model: '',
  worker: '',
  beside: new Set(),
  times: '16',
  prompt: '',
  system: '',
  tokens: '256',
  temperature: '',
  schema: '',
  tools: '',
  choice: '',
  markdown: false,
  files: [],
  lines: 'A locomotive\nA steam engine\nA teapot',
  query: 'Which of these is a machine on rails?',
  picture: '',
  size: '',
  pictures: '1',
  speech: '',
  voice: '',
  language: '',
  sound: [],
};
const state = { thread: [], runs: [], many: [], got: {}, error: '', busy: null };

let repaint = () => {};
export function wire(paint) {
  repaint = paint;
}

export function enter(route) {
  const worker = route.query.get('worker');
  if (!worker) return;
  Object.assign(form, { worker, model: store.workers.get(worker)?.models[0] ?? form.model });
}

export function view() {
  const all = models();
  if (all.length === 0)
    return [h('h1', null, 'Try'), empty('No model is served', h('p', null, 'A model appears here when a worker has told what it serves.'))];
  if (!all.includes(form.model)) form.model = all[0];
  const offer = of(form.model);
  if (!offer.includes(form.kind)) form.kind = offer[0];
  const workers = serving(form.model, form.kind);
  if (form.worker && !workers.some((w) => w.id === form.worker)) form.worker = '';
  for (const id of form.beside) if (!workers.some((w) => w.id === id)) form.beside.delete(id);
  if (chats.has(form.kind)) form.files = form.files.filter((a) => fits().includes(a.kind));
  const reason = mayNot();
  return [
    h('div.page-head', null, h('h1', null, 'Try'), h('div.choices', { role: 'group', 'aria-label': 'What to try' }, offer.map(choice))),
    reason ? h('p.waits', null, reason) : null,
    h(
      'form.try',
      {
        onsubmit: (e) => {
          e.preventDefault();
          if (!state.busy && !reason) send();
        },
        ...take(form, held(), failed, repaint),
      },
      target(all, workers),
      asks[form.kind](),
      presses(reason),
    ),
    state.error ? h('p.refused', { role: 'alert' }, clean(state.error)) : null,
    shows[form.kind](),
  ];
}

// held names where the form keeps what is attached, and which kinds of files that are.
const held = () => (form.kind === 'transcribe' ? ['sound', ['audio']] : chats.has(form.kind) && fits().length ? ['files', fits()] : null);

// fits are the kinds of files that who is asked takes.
const fits = () => takes(serving(form.model, form.kind).filter((w) => !form.worker || w.id === form.worker));

function failed(error) {
  state.error = error.message;
  repaint();
}

const shows = {
  chat: () => answers.thread(state.thread, form.markdown),
  compare: () => answers.beside(state.runs, form.markdown),
  many: () => answers.crowd(state.many),
  image: () => results.pictures(state.got.image),
  speech: () => results.speech(state.got.speech),
  transcribe: () => results.transcript(state.got.transcribe),
  embeddings: () => results.vectors(state.got.embeddings),
  rerank: () => results.ranks(state.got.rerank),
};

const asks = {
  chat: prompt,
  compare: prompt,
  many: prompt,
  image: () => [
    field('What it shows', h('textarea', bind('picture', { placeholder: 'A steam locomotive in a roundhouse.' }))),
    h(
      'div.fields',
      null,
      field('Size', h('input', bind('size', { placeholder: 'the model’s own, or 1024x1024' }))),
      field('How many', h('input', bind('pictures', { type: 'number', min: 1, max: 8 }))),
    ),
  ],
  speech: () => [
    field('What it says', h('textarea', bind('speech', { placeholder: 'The train on track nine departs.' }))),
    h('div.fields', null, field('Voice', h('input', bind('voice', { placeholder: 'the model’s own' })))),
  ],
  transcribe: () => [
    picker(form, held(), failed, repaint),
    h('div.fields', null, field('Language', h('input', bind('language', { placeholder: 'told by the model, or en, de …' })))),
  ],
  embeddings: () => field('Sentences, one a line', h('textarea', bind('lines'))),
  rerank: () => [field('Question', h('input', bind('query'))), field('Texts to rank, one a line', h('textarea', bind('lines')))],
};

// set is a handler that keeps what is chosen, and shows the page so.
const set = (key, from) => (e) => {
  form[key] = from ? from(e) : e.target.value;
  state.error = '';
  repaint();
};

const choice = (kind) => h('button', { key: kind, 'aria-pressed': String(form.kind === kind), onclick: set('kind', () => kind) }, kinds[kind]);

const words = {
  chat: () => 'Send',
  compare: () => 'Send to each',
  many: () => `Send ${times()} at once`,
  image: () => 'Draw',
  speech: () => 'Speak',
  transcribe: () => 'Transcribe',
  embeddings: () => 'Embed',
  rerank: () => 'Rank',
};

function presses(reason) {
  const anew = () => {
    state.thread = [];
    repaint();
  };
  return h(
    'div.does',
    null,
    h('button.main', { type: 'submit', disabled: Boolean(state.busy || reason), 'aria-busy': String(Boolean(state.busy)) }, words[form.kind]()),
    h('button', { type: 'button', disabled: !state.busy, onclick: () => state.busy?.abort() }, 'Stop'),
    ['chat', 'compare'].includes(form.kind) ? marks() : null,
    form.kind === 'chat' && state.thread.length ? h('button', { type: 'button', disabled: Boolean(state.busy), onclick: anew }, 'Begin anew') : null,
  );
}

const marks = () =>
  h(
    'label',
    { key: 'markdown' },
    h('input', { type: 'checkbox', checked: form.markdown, onchange: set('markdown', (e) => e.target.checked) }),
    'Markdown',
  );

const whole = (text, least, most, otherwise) => Math.min(most, Math.max(least, Math.trunc(Number(text)) || otherwise));
const times = () => whole(form.times, 2, MOST_TIMES, 16);

const field = (name, input) => h('label.stacked', { key: name }, h('span', null, name), input);
const bind = (key, more) => ({
  value: form[key],
  oninput: (e) => {
    form[key] = e.target.value;
  },
  ...more,
});

function target(all, workers) {
  const one = !['compare', 'many'].includes(form.kind);
  const options = workers.map((w) => h('option', { value: w.id, key: w.id }, `${w.id} (${w.state})`));
  return h(
    'div.fields',
    null,
    field(
      'Model',
      h(
        'select',
        { value: form.model, onchange: set('model') },
        all.map((m) => h('option', { value: m, key: m }, m)),
      ),
    ),
    one
      ? field('Worker', h('select', { value: form.worker, onchange: set('worker') }, h('option', { value: '' }, 'the door chooses'), options))
      : null,
    form.kind === 'many'
      ? field('How many', h('input', { type: 'number', min: 2, max: MOST_TIMES, value: form.times, oninput: set('times') }))
      : null,
    form.kind === 'compare' ? h('fieldset.picks', null, h('legend', null, `Workers, at most ${MOST_BESIDE}`), workers.slice(0, 64).map(pick)) : null,
  );
}

function pick(w) {
  const on = form.beside.has(w.id);
  const press = (e) => {
    form.beside[e.target.checked ? 'add' : 'delete'](w.id);
    repaint();
  };
  return h(
    'label',
    { key: w.id },
    h('input', { type: 'checkbox', checked: on, disabled: !on && form.beside.size >= MOST_BESIDE, onchange: press }),
    w.id,
  );
}

const choices = { '': 'the model’s own choice', auto: 'auto', required: 'one at least', none: 'none' };

function prompt() {
  const onkeydown = (e) => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    e.target.form.requestSubmit();
  };
  return [
    field('Message', h('textarea', bind('prompt', { placeholder: 'Count from 1 to 20 by 1.', 'data-prompt': true, onkeydown }))),
    held() ? picker(form, held(), failed, repaint) : null,
    h(
      'details.settings',
      null,
      h('summary', null, 'System prompt, sampling, form, tools'),
      h(
        'div.fields',
        null,
        field('System prompt', h('textarea', bind('system'))),
        field('Tokens at most', h('input', bind('tokens', { type: 'number', min: 1 }))),
        field('Temperature', h('input', bind('temperature', { type: 'number', min: 0, max: 2, step: 0.1, placeholder: 'the model’s own' }))),
        field('JSON schema of the answer', h('textarea.mono', bind('schema', { placeholder: '{"type":"object", …}', spellcheck: 'false' }))),
        field('Tools, a JSON list', h('textarea.mono', bind('tools', { placeholder: calls.placeholder, spellcheck: 'false' }))),
        field('Calls', h('select', { value: form.choice, onchange: set('choice') }, Object.entries(choices).map(([value, said]) => h('option', { value, key: value }, said)))),
      ),
    ),
  ];
}

function parsed(of, read, text) {
  try {
    return read(text);
  } catch (error) {
    throw new Error(`${of}: ${error.message}`);
  }
}

function body(messages) {
  const b = { model: form.model, messages: [...(form.system.trim() ? [{ role: 'system', content: form.system }] : []), ...messages] };
  if (form.tokens) b.max_tokens = Number(form.tokens);
  if (form.temperature !== '') b.temperature = Number(form.temperature);
  if (form.schema.trim()) b.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema: parsed('The JSON schema', JSON.parse, form.schema) } };
  if (form.tools.trim()) b.tools = parsed('The tools', calls.read, form.tools);
  if (b.tools && form.choice) b.tool_choice = form.choice;
  return b;
}

// one is a request of one message, with what is attached to it.
const one = (said) => body([{ role: 'user', content: content(said, form.files) }]);

// unsaid is what is asked where nothing is written: after calls nothing, since their
// returns go on.
function unsaid() {
  if (form.files.length) return 'What is this?';
  const last = state.thread.at(-1);
  return form.kind === 'chat' && last && calls.made(last.run).length ? '' : 'Count from 1 to 20 by 1.';
}

async function send() {
  state.error = '';
  const busy = (state.busy = new AbortController());
  try {
    await sends[form.kind](form.prompt.trim() || unsaid(), busy.signal);
  } catch (error) {
    if (error.name !== 'AbortError')
      state.error = [error.message, error.status && `status ${error.status}`, error.id && `request ${error.id}`].filter(Boolean).join(' · ');
  }
  state.busy = null;
  repaint();
}

const listed = () =>
  form.lines
    .split('\n')
    .map((l) => l.trim())
    .filter(Boolean)
    .slice(0, 16);

const sends = {
  async chat(said, signal) {
    const asked = said ? { role: 'user', content: content(said, form.files) } : null;
    const turn = { prompt: said, files: form.files, asked, run: {} };
    turn.body = body([...state.thread.flatMap(calls.turn), ...(asked ? [asked] : [])]);
    state.thread.push(turn);
    Object.assign(form, { prompt: '', files: [] });
    repaint();
    await ask.chat(turn.run, turn.body, form.worker, signal, repaint);
  },
  async compare(said, signal) {
    const ready = serving(form.model, 'compare').filter((w) => w.state === 'ready');
    const ids = form.beside.size ? [...form.beside] : ready.slice(0, MOST_BESIDE).map((w) => w.id);
    form.beside = new Set(ids);
    const b = one(said);
    state.runs = ids.map((id) => ({ asked: id }));
    await Promise.all(state.runs.map((run) => ask.chat(run, b, run.asked, signal, repaint)));
  },
  async many(said, signal) {
    const b = one(said);
    const blank = { phase: 'waiting', text: '', thought: '', pieces: 0, ttft: null, speed: null, worker: '' };
    state.many = Array.from({ length: times() }, (_, n) => ({ n, ...blank }));
    repaint();
    await ask.many(state.many, b, signal, repaint);
  },
  async image(_, signal) {
    const said = form.picture.trim() || 'A steam locomotive in a roundhouse.';
    const b = {
      model: form.model,
      prompt: said,
      n: whole(form.pictures, 1, 8, 1),
      response_format: 'b64_json',
      ...(form.size ? { size: form.size } : {}),
    };
    const got = await ask.once('images/generations', b, form.worker, signal);
    state.got.image = { ...got, said };
  },
  async speech(_, signal) {
    const said = form.speech.trim() || 'The train on track nine departs.';
    const b = { model: form.model, input: said, response_format: 'wav', ...(form.voice ? { voice: form.voice } : {}) };
    const got = await ask.once('audio/speech', b, form.worker, signal, 'blob');
    if (state.got.speech) URL.revokeObjectURL(state.got.speech.url);
    state.got.speech = { ...got, said, url: URL.createObjectURL(got.answer) };
  },
  async transcribe(_, signal) {
    const sound = form.sound.at(-1);
    if (!sound) throw new Error('Choose a recording first, drop one here, or record one.');
    const b = new FormData();
    b.set('model', form.model); // before the file: the door reads it in what comes first
    if (form.language) b.set('language', form.language);
    b.set('response_format', 'json');
    b.set('file', sound.file, sound.name);
    state.got.transcribe = { ...(await ask.once('audio/transcriptions', b, form.worker, signal)), name: sound.name };
  },
  async embeddings(_, signal) {
    const input = listed();
    const got = await ask.once('embeddings', { model: form.model, input }, form.worker, signal);
    state.got.embeddings = { ...got, input, list: got.answer.data.map((d) => d.embedding) };
  },
  async rerank(_, signal) {
    const documents = listed();
    const got = await ask.once('rerank', { model: form.model, query: form.query, documents }, form.worker, signal);
    state.got.rerank = { ...got, documents };
  },
};
