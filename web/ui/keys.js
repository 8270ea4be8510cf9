// Keys for those who have no time for a pointer: g and a letter goes to a page,
// / filters, j and k walk rows, x ticks, ? tells. They can be switched off.
import { count } from './format.js';
import { h } from './dom.js';
import { isOpen, open } from './dialog.js';
import { link } from './route.js';

const KEY = 'roundhouse-keys';
export const keysOn = () => localStorage.getItem(KEY) !== 'off';
export const setKeys = (on) => localStorage.setItem(KEY, on ? 'on' : 'off');

const goes = { n: 'now', w: 'workers', r: 'requests', o: 'rotations', e: 'events', c: 'charts', t: 'try', h: 'health', s: 'setup' };
let going = 0;

export function keys(event) {
  if (!keysOn() || event.ctrlKey || event.altKey || event.metaKey || isOpen()) return;
  const at = event.target;
  if (at.matches?.('input:not([type=checkbox]), textarea, select')) {
    if (event.key === 'Escape' && at.matches('[data-filter]')) at.blur();
    return;
  }
  if (performance.now() - going < 1500 && goes[event.key]) {
    going = 0;
    location.hash = link(goes[event.key]);
    return;
  }
  const act = does[event.key];
  if (!act) return;
  if (act(at) !== false) event.preventDefault();
}

const does = {
  g: () => {
    going = performance.now();
  },
  '/': () => focus('[data-filter]'),
  j: (at) => step(at, 1),
  k: (at) => step(at, -1),
  x: (at) => row(at)?.querySelector('input[type=checkbox]')?.click(),
  '.': () => focus('[data-actions] button, [data-actions] a'),
  '?': () => open({ title: 'Keys', body: help, buttons: () => null, leave: 'Close' }),
};

function focus(selector) {
  const el = document.querySelector(`#main ${selector}`);
  el?.focus();
  return Boolean(el);
}

const row = (at) => at.closest?.('[data-row]');

// step goes to the link, or what else takes the focus, of the next row.
function step(at, by) {
  const rows = [...document.querySelectorAll('#main [data-row]')];
  const to = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(row(at)) + by))];
  to?.querySelector('a, button')?.focus();
  return Boolean(to);
}

function help() {
  const list = [
    ['g then n w r o e c t h s', `go to one of ${count(Object.keys(goes).length, 'page')}, by its letter`],
    ['/', 'filter'],
    ['j  k', 'next and previous row'],
    ['x', 'tick the row'],
    ['.', 'go to the actions'],
    ['Escape', 'leave a dialog or a filter'],
    ['?', 'this'],
  ];
  return [
    h(
      'dl.facts',
      null,
      list.map(([key, what]) => h('div', { key }, h('dt', null, h('kbd', null, key)), h('dd', null, what))),
    ),
    h('p.muted', null, 'Setup switches them off.'),
  ];
}
