// Try: ask any model, or one worker; several side by side; sixteen at once to
// watch where they go; vectors of sentences. Nothing of it is stored anywhere.
import * as ask from '../ask.js';
import { h } from '../dom.js';
import { clean } from '../format.js';
import { empty } from '../parts.js';
import { mayNot, store, workersOf } from '../store.js';
import * as answers from './answers.js';

export const title = 'Try';
const kinds = { chat: 'Chat', compare: 'Side by side', many: 'Many at once', embeddings: 'Embeddings' };
const MOST_BESIDE = 4; // of a browser's six connections, one is the page's own
const MOST_TIMES = 64;

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
  lines: 'A locomotive\nA steam engine\nA teapot',
};
const state = { thread: [], runs: [], many: [], vectors: null, error: '', busy: null };

const results = {
  chat: () => answers.thread(state.thread),
  compare: () => answers.beside(state.runs),
  many: () => answers.crowd(state.many),
  embeddings: () => answers.vectors(state.vectors),
};

let repaint = () => {};
export function wire(paint) {
  repaint = paint;
}

export function enter(route) {
  const worker = route.query.get('worker');
  if (!worker) return;
  Object.assign(form, { worker, kind: 'chat', model: store.workers.get(worker)?.models[0] ?? form.model });
}

const models = () => [...new Set(workersOf().flatMap((w) => w.models))].sort();
const serving = () => workersOf().filter((w) => w.models.includes(form.model));

export function view() {
  const all = models();
  if (all.length === 0)
    return [h('h1', null, 'Try'), empty('No model is served', h('p', null, 'A model appears here when a worker has told what it serves.'))];
  if (!all.includes(form.model)) form.model = all[0];
  if (form.worker && !serving().some((w) => w.id === form.worker)) form.worker = '';
  for (const id of form.beside) if (!serving().some((w) => w.id === id)) form.beside.delete(id);
  const reason = mayNot();
  return [
    h(
      'div.page-head',
      null,
      h('h1', null, 'Try'),
      h('div.choices', { role: 'group', 'aria-label': 'What to try' }, Object.entries(kinds).map(choice)),
    ),
    reason ? h('p.waits', null, reason) : null,
    h(
      'form.try',
      {
        onsubmit: (e) => {
          e.preventDefault();
          if (!state.busy && !reason) send();
        },
      },
      target(all),
      form.kind === 'embeddings' ? lines() : prompt(),
      presses(reason),
    ),
    state.error ? h('p.refused', { role: 'alert' }, clean(state.error)) : null,
    results[form.kind](),
  ];
}

// set is a handler that keeps what is chosen, and shows the page so.
const set = (key, of) => (e) => {
  form[key] = of ? of(e) : e.target.value;
  state.error = '';
  repaint();
};

const choice = ([kind, name]) => h('button', { key: kind, 'aria-pressed': String(form.kind === kind), onclick: set('kind', () => kind) }, name);

function presses(reason) {
  const words = { chat: 'Send', compare: 'Send to each', many: `Send ${times()} at once`, embeddings: 'Embed' }[form.kind];
  const anew = () => {
    state.thread = [];
    repaint();
  };
  return h(
    'div.does',
    null,
    h('button.main', { type: 'submit', disabled: Boolean(state.busy || reason) }, words),
    h('button', { type: 'button', disabled: !state.busy, onclick: () => state.busy?.abort() }, 'Stop'),
    form.kind === 'chat' && state.thread.length ? h('button', { type: 'button', disabled: Boolean(state.busy), onclick: anew }, 'Begin anew') : null,
  );
}

const times = () => Math.min(MOST_TIMES, Math.max(2, Math.trunc(Number(form.times)) || 16));

const field = (name, input) => h('label.stacked', { key: name }, h('span', null, name), input);
const bind = (key, more) => ({
  value: form[key],
  oninput: (e) => {
    form[key] = e.target.value;
  },
  ...more,
});

function target(all) {
  const one = form.kind === 'chat' || form.kind === 'embeddings';
  const models = all.map((m) => h('option', { value: m, key: m }, m));
  const workers = serving().map((w) => h('option', { value: w.id, key: w.id }, `${w.id} (${w.state})`));
  return h(
    'div.fields',
    null,
    field('Model', h('select', { value: form.model, onchange: set('model') }, models)),
    one
      ? field('Worker', h('select', { value: form.worker, onchange: set('worker') }, h('option', { value: '' }, 'the door chooses'), workers))
      : null,
    form.kind === 'many'
      ? field('How many', h('input', { type: 'number', min: 2, max: MOST_TIMES, value: form.times, oninput: set('times') }))
      : null,
    form.kind === 'compare'
      ? h('fieldset.picks', null, h('legend', null, `Workers, at most ${MOST_BESIDE}`), serving().slice(0, 64).map(pick))
      : null,
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

function prompt() {
  return [
    field(
      'Message',
      h(
        'textarea',
        bind('prompt', {
          placeholder: 'Count from 1 to 20 by 1.',
          'data-prompt': true,
          onkeydown: (e) => {
            if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
              e.preventDefault();
              e.target.form.requestSubmit();
            }
          },
        }),
      ),
    ),
    h(
      'details.settings',
      null,
      h('summary', null, 'System prompt, sampling, form'),
      h(
        'div.fields',
        null,
        field('System prompt', h('textarea', bind('system'))),
        field('Tokens at most', h('input', bind('tokens', { type: 'number', min: 1 }))),
        field('Temperature', h('input', bind('temperature', { type: 'number', min: 0, max: 2, step: 0.1, placeholder: 'the model’s own' }))),
        field('JSON schema of the answer', h('textarea.mono', bind('schema', { placeholder: '{"type":"object", …}', spellcheck: 'false' }))),
      ),
    ),
  ];
}

const lines = () => field('Sentences, one a line', h('textarea', bind('lines')));

function body(messages) {
  const b = { model: form.model, messages: [...(form.system.trim() ? [{ role: 'system', content: form.system }] : []), ...messages] };
  if (form.tokens) b.max_tokens = Number(form.tokens);
  if (form.temperature !== '') b.temperature = Number(form.temperature);
  if (form.schema.trim()) b.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema: JSON.parse(form.schema) } };
  return b;
}

async function send() {
  state.error = '';
  state.busy = new AbortController();
  try {
    await sends[form.kind](form.prompt.trim() || 'Count from 1 to 20 by 1.', state.busy.signal);
  } catch (error) {
    if (error.name !== 'AbortError') state.error = error instanceof SyntaxError ? `The JSON schema: ${error.message}` : error.message;
  }
  state.busy = null;
  repaint();
}

const sends = {
  async chat(words, signal) {
    const before = state.thread.flatMap((t) => [
      { role: 'user', content: t.prompt },
      { role: 'assistant', content: t.run.text },
    ]);
    const b = body([...before, { role: 'user', content: words }]);
    const turn = { prompt: words, run: {}, body: b };
    state.thread.push(turn);
    form.prompt = '';
    repaint();
    await ask.chat(turn.run, b, form.worker, signal, repaint);
  },
  async compare(words, signal) {
    const ids = form.beside.size
      ? [...form.beside]
      : serving()
          .filter((w) => w.state === 'ready')
          .slice(0, MOST_BESIDE)
          .map((w) => w.id);
    form.beside = new Set(ids);
    const b = body([{ role: 'user', content: words }]);
    state.runs = ids.map((id) => ({ asked: id }));
    await Promise.all(state.runs.map((run) => ask.chat(run, b, run.asked, signal, repaint)));
  },
  async many(words, signal) {
    const b = body([{ role: 'user', content: words }]);
    state.many = Array.from({ length: times() }, (_, n) => ({
      n,
      phase: 'waiting',
      text: '',
      thought: '',
      pieces: 0,
      ttft: null,
      speed: null,
      worker: '',
    }));
    repaint();
    await ask.many(state.many, b, signal, repaint);
  },
  async embeddings() {
    const input = form.lines
      .split('\n')
      .map((l) => l.trim())
      .filter(Boolean)
      .slice(0, 16);
    const began = performance.now();
    const answer = await ask.embeddings({ model: form.model, input }, form.worker);
    state.vectors = {
      input,
      list: answer.data.map((d) => d.embedding),
      took: (performance.now() - began) / 1000,
      worker: answer.worker,
      id: answer.id,
    };
  },
};
