// What an operator can do. Each action says before what it will do, with figures
// that live while one reads; it is done by a second press, and is called done
// only when the supervisor has told of it.
import { address, del, operator, post, setOperator } from './api.js';
import * as dialog from './dialog.js';
import { count, integer, seconds, when } from './format.js';
import { h } from './dom.js';
import { plain } from './parts.js';
import { lastEvent, mayNot, now, store, workersOf } from './store.js';
import { split } from './route.js';

const PATIENCE = 20_000; // for the event of a command, after its answer

let announce = () => {};
let repaint = () => {};
export function wire(told, paint) {
  announce = told;
  repaint = paint;
}

const grave = new Set(['stop', 'abort']);

// button is an action's first press; it is dead, with the reason, while commands
// are not to be had.
export function button(words, make, options = {}) {
  const why = options.why || mayNot();
  return h(
    `button${options.class ?? ''}`,
    { disabled: Boolean(why), title: why || undefined, 'aria-label': options.label, onclick: () => ask(make()) },
    words,
  );
}

// ask opens the dialog of an action: {title, says() → descriptions, name to be
// typed, words of the button, run() → promise, done(event) → whether that is it}.
function ask(action) {
  const s = { action, typed: '', who: operator(), busy: '', error: '' };
  dialog.open({
    title: action.title,
    body: () => body(s),
    buttons: () => confirm(s),
    left: () => {
      s.left = true;
    },
  });
  action
    .prepare?.()
    .catch((e) => {
      s.error = e.message;
    })
    .finally(dialog.paint);
}

function body(s) {
  return [
    s.action.says(),
    s.action.form?.(),
    s.action.name
      ? h(
          'label.stacked',
          null,
          h('span', null, 'Type ', h('code', null, s.action.name), ' to confirm'),
          h('input', {
            value: s.typed,
            autocomplete: 'off',
            spellcheck: 'false',
            oninput: (e) => {
              s.typed = e.target.value;
              dialog.paint();
            },
          }),
        )
      : null,
    s.action.quiet
      ? null
      : h(
          'label.stacked',
          null,
          h('span', null, 'Your name, for the events'),
          h('input', {
            value: s.who,
            maxlength: 64,
            autocomplete: 'name',
            oninput: (e) => {
              s.who = e.target.value;
            },
          }),
        ),
    s.error ? h('p.refused', { role: 'alert' }, s.error) : null,
    s.busy ? h('p.muted', { role: 'status' }, s.busy) : null,
  ];
}

function confirm(s) {
  const why = mayNot();
  const ready = !s.busy && !why && (!s.action.name || s.typed === s.action.name) && (s.action.ready?.() ?? true);
  return h(
    `button.${s.action.grave ? 'grave' : 'main'}`,
    { disabled: !ready, title: why || undefined, 'aria-busy': String(Boolean(s.busy)), onclick: () => run(s), 'data-confirm': true },
    s.busy ? 'Waiting…' : s.action.words,
  );
}

async function run(s) {
  if (s.who.trim() !== operator()) setOperator(s.who);
  const after = lastEvent() ?? 0;
  Object.assign(s, { busy: 'Asked; waiting for the supervisor to tell of it', error: '' });
  dialog.paint();
  try {
    await s.action.run();
    if (s.action.done) await told((e) => e.id > after && s.action.done(e));
    announce(`${s.action.title}: the supervisor has taken it up`);
    if (!s.left) dialog.close();
  } catch (error) {
    Object.assign(s, { busy: '', error: error.message });
    if (s.left) announce(`${s.action.title}: ${error.message}`);
    dialog.paint();
  }
  repaint();
}

const waiting = new Set();

// heard is called with each event: a command that waits for it is done.
export function heard(event) {
  for (const w of waiting) if (w.is(event)) w.done();
}

function told(is) {
  if (store.events.some((e) => e.id && is(e))) return Promise.resolve();
  return new Promise((done, failed) => {
    const w = {
      is,
      done: () => {
        clearTimeout(timer);
        waiting.delete(w);
        done();
      },
    };
    const timer = setTimeout(() => {
      waiting.delete(w);
      failed(new Error('It was answered, but no event has come. Look at Events before you try again.'));
    }, PATIENCE);
    waiting.add(w);
  });
}

// room is where the streams of workers could go on: the free tokens of the others
// in service, against those that these hold.
function room(ids) {
  const gone = new Set(ids);
  const pools = new Set(ids.map((id) => split(id)[0]));
  const stay = workersOf().filter((w) => pools.has(w.pool) && !gone.has(w.id) && w.state === 'ready');
  const free = stay.reduce((n, w) => n + Math.max(0, (w.kv.capacity_tokens ?? 0) - w.kv.charged_tokens - w.kv.foreign_tokens), 0);
  const of = ids.map((id) => store.workers.get(id)).filter(Boolean);
  const streams = of.reduce((n, w) => n + w.requests.in_flight, 0);
  const held = of.reduce((n, w) => n + w.kv.charged_tokens, 0);
  const fit = held > 0 ? Math.min(streams, Math.floor((streams * free) / held)) : streams;
  return { stay, free, streams, held, fit };
}

function roomWords(ids) {
  const r = room(ids);
  const fit = r.streams ? `: for ${integer(r.fit)} of these ${count(r.streams, 'request')} now` : '';
  const others =
    r.stay.length === 0
      ? h('p.refused', null, 'No other worker of the pool is in service: new requests would wait at the door.')
      : h('p', null, `${count(r.stay.length, 'other worker')} in service, with room for ${integer(r.free)} tokens${fit}.`);
  return [h('p', null, h('b', null, count(r.streams, 'request')), ` in flight there, ${integer(r.held)} tokens.`), others];
}

const named = (ids) => (ids.length === 1 ? ids[0] : count(ids.length, 'worker'));

const verbs = {
  drain: [
    'Drain',
    (ids) => [
      h(
        'p',
        null,
        'Takes no new requests. What is in flight ends there; what has not ended by the drain timeout goes on elsewhere. The process keeps running until it is undrained.',
      ),
      roomWords(ids),
    ],
  ],
  undrain: ['Undrain', () => h('p', null, 'Takes requests again at once.')],
  start: ['Start', () => h('p', null, 'Is started, warmed up by a real completion, and takes requests when that has answered.')],
  stop: [
    'Stop',
    (ids) => [
      h('p', null, 'Is drained and then stopped, and stays so, also through restarts of the machine, until it is started by hand.'),
      roomWords(ids),
    ],
  ],
};

// onWorkers is one of the commands for one worker or several.
export function onWorkers(verb, ids) {
  if (verb === 'rotate') return rotate(ids);
  const [word, says] = verbs[verb];
  return {
    title: `${word} ${named(ids)}`,
    words: `${word} ${named(ids)}`,
    grave: grave.has(verb),
    name: verb === 'stop' ? (ids.length === 1 ? ids[0] : `stop ${ids.length}`) : '',
    says: () => [ids.length > 1 ? h('p.mono.small', null, ids.join(', ')) : null, says(ids)],
    run: async () => {
      for (const id of ids) await post(address('workers', ...split(id), verb));
    },
    done: (e) => e.kind === verb && e.worker === ids.at(-1),
  };
}

// rotate asks the supervisor first what it would do, and shows just that.
function rotate(ids) {
  const plans = new Map(); // the turns by what is asked
  const paths = ids.map((id) => (id.includes('/') ? address('workers', ...split(id), 'rotate') : address('pools', id, 'rotate')));
  return {
    title: `Rotate ${named(ids)}`,
    words: 'Rotate',
    prepare: async () => {
      for (const p of paths) plans.set(p, (await post(p, { dry_run: true })).turns ?? []);
    },
    ready: () => plans.size === paths.length,
    says: () => [
      h('p', null, 'One after the other: drained, stopped, started, warmed up, used again. No request is lost.'),
      plans.size < paths.length ? h('p.muted', null, 'Asking the supervisor what it would do…') : turns([...plans.values()].flat()),
    ],
    run: async () => {
      for (const p of paths) await post(p);
    },
    done: (e) => e.kind === 'rotate' && e.pool === split(ids.at(-1))[0],
  };
}

export const rotatePool = (pool) => rotate([pool]);

function turns(list) {
  if (list.length === 0) return h('p', null, 'No worker needs a turn.');
  return plain(
    'The turns',
    ['worker', 'its turn', 'in flight'],
    list
      .slice(0, 50)
      .map((t) =>
        h(
          'tr',
          { key: t.worker },
          h('th', { scope: 'row' }, t.worker),
          h('td', null, t.skipped ? 'none: it does not run' : t.obstacle ? `not now: ${t.obstacle}` : 'can begin now'),
          h('td', null, integer(store.workers.get(t.worker)?.requests.in_flight)),
        ),
      ),
  );
}

export function goOn(pool) {
  return {
    title: `Continue the rotation of ${pool}`,
    words: 'Continue',
    says: () => h('p', null, 'The halted rotation goes on with the worker at which it halted, and then with those in its queue.'),
    run: () => post(address('pools', pool, 'rotate'), { continue: true }),
    done: (e) => e.kind === 'continue' && e.pool === pool,
  };
}

export function abort(pool) {
  const r = store.state.rotations.find((x) => x.pool === pool);
  return {
    title: `Abort the rotation of ${pool}`,
    words: 'Abort',
    grave: true,
    name: pool,
    says: () =>
      h(
        'p',
        null,
        r
          ? `${count(r.done.length, 'worker')} of ${integer(r.done.length + r.queue.length + (r.current ? 1 : 0))} had their turn and stay as they are; the rest have none.`
          : 'The rotation ends where it stands.',
      ),
    run: () => post(address('pools', pool, 'rotate'), { abort: true }),
    done: (e) => e.kind === 'abort' && e.pool === pool,
  };
}

export function scale(pool) {
  const from = store.state.pools.find((p) => p.name === pool).desired;
  const s = { to: from };
  const gone = () =>
    workersOf(pool)
      .filter((w) => Number(w.name) > s.to)
      .map((w) => w.id);
  return {
    title: `Scale ${pool}`,
    words: 'Scale',
    ready: () => s.to !== from && s.to >= 1,
    get name() {
      return s.to < from ? pool : '';
    },
    get grave() {
      return s.to < from;
    },
    form: () =>
      h(
        'label',
        null,
        'Workers',
        h('input', {
          type: 'number',
          min: 1,
          max: 1024,
          value: s.to,
          oninput: (e) => {
            s.to = Math.trunc(Number(e.target.value));
            dialog.paint();
          },
        }),
      ),
    says: () => [
      h(
        'p',
        null,
        h('b', null, `${from} → ${s.to}`),
        s.to < from
          ? `: ${gone().join(', ') || 'the last ones'} drained first.`
          : s.to > from
            ? ': the new ones are started and warmed up before they take requests.'
            : ': as it is.',
      ),
      s.to < from ? roomWords(gone()) : null,
      h('p.muted.small', null, 'Until the configuration is reloaded with another number.'),
    ],
    run: () => post(address('pools', pool, 'scale'), { workers: s.to }),
    done: (e) => e.kind === 'scale' && e.pool === pool,
  };
}

export function cancel(request) {
  return {
    title: `Cancel request ${request.id}`,
    words: 'Cancel the request',
    grave: true,
    leave: 'Leave it',
    says: () => [
      h(
        'p',
        null,
        `${request.model}, ${request.worker || 'waiting at the door'}, for ${seconds((now() - when(request.since)) / 1000)}: ${count(request.generated_tokens, 'token')} so far.`,
      ),
      h('p', null, 'Its client gets an error, and the worker stops to compute it.'),
    ],
    run: () => del(address('requests', request.id)),
  };
}

export function reload() {
  return {
    title: 'Reload the configuration',
    words: 'Reload',
    says: () =>
      h(
        'p',
        null,
        'The file is read anew and applied whole or not at all. No request is dropped; workers whose settings changed get theirs at their next turn.',
      ),
    run: () => post('/api/reload'),
    done: (e) => e.kind === 'reload',
  };
}

export function schedule(pool, off) {
  return {
    title: off ? `Turn the schedule of ${pool} off` : `Turn the schedule of ${pool} on`,
    words: off ? 'Turn it off' : 'Turn it on',
    says: () =>
      h(
        'p',
        null,
        off ? 'No rotation begins by itself until it is turned on again. One that runs goes on.' : 'Rotations begin by the schedule again.',
      ),
    run: () => post('/api/schedule', { pool, off }),
    done: (e) => e.kind === 'schedule' && e.pool === pool,
  };
}

// forFinding makes the action of a finding's button.
export function forFinding(verb, finding) {
  if (verb === 'continue') return goOn(finding.pool);
  if (verb === 'abort') return abort(finding.pool);
  if (verb === 'scale') return scale(finding.pool);
  return finding.worker ? onWorkers(verb, [finding.worker]) : rotatePool(finding.pool);
}
