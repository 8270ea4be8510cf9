// Setup: the configuration in force without its secrets, its doors and plugins,
// and what this page keeps about whoever looks at it.
import * as actions from '../actions.js';
import { get, operator, setOperator, setToken, token } from '../api.js';
import { h } from '../dom.js';
import { clean } from '../format.js';
import { keysOn, setKeys } from '../keys.js';
import { facts, plain } from '../parts.js';
import { store } from '../store.js';
import { reconnect } from '../stream.js';
import { nextTheme, theme } from '../theme.js';

export const title = 'Setup';

let repaint = () => {};
const nothing = { config: null, changes: null, plugins: null, version: null, error: '' };
let shown = nothing;
let seen; // the last reload that is shown
let name = '';
export function wire(paint) {
  repaint = paint;
}

export function enter() {
  name = operator();
  return look();
}

const lastReload = () => store.events.findLast((e) => e.kind === 'reload')?.id;

async function look() {
  seen = lastReload();
  const next = { ...nothing };
  const ask = (key, path) =>
    get(path).then(
      (v) => {
        next[key] = v;
      },
      (e) => {
        next.error ||= e.message;
      },
    );
  await Promise.all([ask('config', '/api/config'), ask('changes', '/api/config/changes'), ask('plugins', '/api/plugins'), ask('version', '/api/version')]);
  shown = next;
  repaint();
}

export function view() {
  if (shown.config && lastReload() !== seen) look();
  const v = shown.version;
  return [
    h(
      'div.page-head',
      null,
      h('h1', null, 'Setup'),
      h(
        'div.does.right',
        { 'data-actions': true },
        store.hello?.supervisor ? actions.button('Reload the configuration', () => actions.reload()) : null,
      ),
    ),
    shown.error ? h('p.refused', null, shown.error) : null,
    h(
      'div.columns',
      null,
      you(),
      h(
        'section.panel',
        null,
        h('h2', null, 'What runs'),
        facts([
          ['Version', v?.version],
          ['Door', v?.door],
          ['Process', v ? String(v.pid) : null],
          ['Door listens at', store.state.door.listen],
          ['Rights here', store.hello?.rights === 'read' ? 'to look' : 'operator'],
        ]),
      ),
      h('section.panel', null, h('h2', null, 'Plugins'), plugins()),
    ),
    shown.changes ? file(shown.changes) : null,
    h(
      'section.panel',
      null,
      h('h2', null, 'Configuration in force'),
      h('p.muted.small', null, 'As it was read, with defaults, without secrets.'),
      shown.config
        ? Object.entries(shown.config).map(([key, value]) => branch(key, value, key === 'Pools' || key === 'pools'))
        : h('p.muted', null, 'Asking…'),
    ),
  ];
}

// file shows how the configuration file differs from what runs.
function file(c) {
  return h(
    'section.panel',
    { 'data-file': c.error ? 'refused' : c.changes.length ? 'differs' : 'same' },
    h('div.page-head', null, h('h2', null, 'The file against what runs'), h('button', { onclick: look }, 'Compare again')),
    h('p.muted.small', null, clean(c.file)),
    c.error ? h('p.refused', null, 'A reload would be refused: ', clean(c.error)) : null,
    c.changes.length
      ? plain('Settings that differ', ['setting', 'runs', 'in the file'], c.changes.map(difference))
      : c.error
        ? null
        : h('p', null, 'The file says what runs.'),
  );
}

const difference = (d) =>
  h(
    'tr',
    { key: d.setting },
    h('th', { scope: 'row' }, clean(d.setting)),
    d.runs !== null && d.runs === d.file
      ? h('td.muted', { colspan: 2 }, 'other, and secret')
      : [d.runs, d.file].map((v) => h('td', null, v === null ? h('span.muted', null, 'not there') : h('code', null, clean(v)))),
  );

function you() {
  return h(
    'section.panel',
    null,
    h('h2', null, 'You, in this browser'),
    h(
      'label.stacked',
      null,
      h('span', null, 'Your name, for the events'),
      h('input', {
        value: name,
        maxlength: 64,
        autocomplete: 'name',
        oninput: (e) => {
          name = e.target.value;
        },
        onchange: () => {
          setOperator(name);
        },
      }),
    ),
    h(
      'p',
      null,
      h(
        'label',
        null,
        h('input', {
          type: 'checkbox',
          checked: keysOn(),
          onchange: (e) => {
            setKeys(e.target.checked);
            repaint();
          },
        }),
        'Single keys act (? lists them)',
      ),
    ),
    h(
      'p.does',
      null,
      h(
        'button',
        {
          onclick: () => {
            nextTheme();
            repaint();
          },
        },
        `Theme: ${theme()}`,
      ),
      token()
        ? h(
            'button',
            {
              onclick: () => {
                setToken('');
                reconnect();
                repaint();
              },
            },
            'Sign out',
          )
        : null,
    ),
  );
}

function plugins() {
  const list = Array.isArray(shown.plugins) ? shown.plugins : (Object.values(shown.plugins ?? {}).find(Array.isArray) ?? []);
  if (!shown.plugins) return h('p.muted', null, 'Asking…');
  if (list.length === 0) return h('p.muted', null, 'None is configured.');
  return h(
    'ul.short-list',
    null,
    list.map((p, i) =>
      h(
        'li',
        { key: i },
        h('b', null, clean(p.name ?? `plugin ${i + 1}`)),
        ' ',
        h(
          'span.muted.small',
          null,
          clean(
            Object.entries(p)
              .filter(([k, v]) => k !== 'name' && typeof v !== 'object')
              .map(([k, v]) => `${k} ${v}`)
              .join(', '),
          ),
        ),
      ),
    ),
  );
}

// branch shows one value of the configuration; what is nested folds.
function branch(key, value, open = false) {
  if (value === null || typeof value !== 'object')
    return h('p.leaf', { key }, h('span.leaf-name', null, key), h('code', null, value === '' ? '""' : String(value)));
  const inner = Object.entries(value);
  if (inner.length === 0) return h('p.leaf', { key }, h('span.leaf-name', null, key), h('code.muted', null, Array.isArray(value) ? '[]' : '{}'));
  if (Array.isArray(value) && value.every((x) => typeof x !== 'object'))
    return h('p.leaf', { key }, h('span.leaf-name', null, key), h('code', null, value.join(', ')));
  return h(
    'details.branch',
    { key, open: open || undefined },
    h('summary', null, key, Array.isArray(value) ? h('span.muted.small', null, ` ${value.length}`) : null),
    h(
      'div.twigs',
      null,
      inner.map(([k, x]) => branch(x?.Name ?? x?.name ?? k, x)),
    ),
  );
}
