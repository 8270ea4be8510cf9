// The place where files are attached to a question, and what is attached to it.
import * as attach from '../attach.js';
import { h } from '../dom.js';
import { bytes } from '../format.js';

const MOST = 8;

// record is the microphone: off, or on until it is pressed again.
export const record = {
  stop: null,
  size: 0,
};

// add reads files into the form. where is [its key, the kinds of files].
async function add(form, [key, kinds], files, failed, repaint) {
  try {
    for (const file of files) {
      if (form[key].length >= MOST) throw new Error(`At most ${MOST} files go with one question.`);
      form[key] = [...form[key], await attach.read(file, kinds)];
    }
  } catch (error) {
    failed(error);
  }
  repaint();
}

// take are the handlers of a form onto which files may be dropped or pasted.
export function take(form, where, failed, repaint) {
  if (!where) return {};
  const from = (list) => (e) => {
    const files = [...(list(e)?.files ?? [])];
    if (files.length === 0) return;
    e.preventDefault();
    add(form, where, files, failed, repaint);
  };
  return { ondragover: (e) => e.preventDefault(), ondrop: from((e) => e.dataTransfer), onpaste: from((e) => e.clipboardData) };
}

// picker is the button for files, the microphone, and the list of what is attached.
export function picker(form, where, failed, repaint) {
  const [key, kinds] = where;
  const said = kinds.length > 1 ? 'Attach pictures or sound' : kinds[0] === 'image' ? 'Attach pictures' : 'Choose a recording';
  const chosen = (e) => {
    const files = [...e.target.files];
    e.target.value = ''; // the same one can be chosen again
    add(form, where, files, failed, repaint);
  };
  return h(
    'div.attached',
    { key: 'attached' },
    h(
      'label.button',
      null,
      said,
      h('input.hidden-words', {
        type: 'file',
        accept: kinds.map((k) => `${k}/*`).join(','),
          multiple: key === 'files',
        'data-attach': true,
        onchange: chosen,
      }),
    ),
    kinds.includes('audio') && attach.canRecord()
      ? h(
          'button',
          { type: 'button', 'aria-pressed': String(Boolean(record.stop)), onclick: () => press(form, where, failed, repaint) },
          record.stop ? 'Stop recording' : 'Record',
        )
      : null,
    record.stop ? h('span.small', { role: 'status' }, record.size ? `recording, ${bytes(record.size)}` : 'recording') : null,
    form[key].length || record.stop ? null : h('span.muted.small', null, 'or drop or paste them here'),
    h(
      'ul',
      { 'aria-label': 'Attached' },
      form[key].map((a, i) =>
        one(a, () => {
          form[key] = form[key].filter((_, n) => n !== i);
          repaint();
        }),
      ),
    ),
  );
}

async function press(form, where, failed, repaint) {
  const stop = record.stop;
  record.stop = null;
  try {
    if (stop) await add(form, where, [await stop()], failed, repaint);
    else {
      record.size = 0;
      record.stop = await attach.record((size) => {
        record.size = size;
        repaint();
      });
    }
  } catch (error) {
    failed(new Error(`The recording failed: ${error.message}`));
  }
  repaint();
}

// one is a file that is attached; what removes it is left out once it is sent.
export const one = (a, remove) =>
  h(
    'li.attachment',
    { key: `${a.name} ${a.size}` },
    a.kind === 'image' ? h('img', { src: a.url, alt: a.name }) : null,
    h('span.small', null, a.name, h('span.muted', null, ` ${bytes(a.size)}`)),
    remove ? h('button.small-button', { type: 'button', 'aria-label': `Remove ${a.name}`, onclick: remove }, '×') : null,
  );
