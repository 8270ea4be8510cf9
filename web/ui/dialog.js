// One dialog at a time: it says what will happen, with figures that live, and is
// answered by a second press. Focus goes back to the button that opened it.
import { h, render } from './dom.js';

let shown = null;
let opener = null;

const place = () => document.getElementById('dialog');

// open shows a dialog. d.title, d.body() → described anew at each paint,
// d.buttons() → the answers.
export function open(d) {
  opener = document.activeElement;
  shown = d;
  paint();
  place().showModal();
  (place().querySelector('[autofocus]') ?? place().querySelector('button, input, select, textarea'))?.focus();
}

export function close() {
  if (shown) place().close();
}

// closed is what the browser tells, also of the Escape key.
export function closed() {
  if (place().open) return; // another one has been opened since
  shown?.left?.();
  shown = null;
  render(place());
  opener?.isConnected && opener.focus();
  opener = null;
}

export const isOpen = () => place().open;

export function paint() {
  if (!shown) return;
  render(
    place(),
    h('h2', { id: 'dialog-title' }, shown.title),
    h('div.dialog-body', null, shown.body()),
    h('div.answers', null, shown.buttons(), h('button', { onclick: close }, shown.leave ?? 'Cancel')),
  );
}
