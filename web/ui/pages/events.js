// Events: one line each, by worker, kind and who; those that come are followed
// unless somebody has scrolled.
import { h } from '../dom.js';
import { count } from '../format.js';
import { empty, eventLine } from '../parts.js';
import { parse, setQuery } from '../route.js';
import { store } from '../store.js';

export const title = 'Events';

let repaint = () => {};
let words = '';
export function wire(paint) {
  repaint = paint;
}
export function enter(route) {
  words = route.query.get('q') ?? '';
}

export function view() {
  if (store.hello?.supervisor === false)
    return [h('h1', null, 'Events'), empty('A door alone keeps no events', h('p', null, 'Its log has what happened.'))];
  const kind = parse(location.hash).query.get('kind') ?? '';
  const kinds = [...new Set(store.events.filter((e) => e.kind).map((e) => e.kind))].sort();
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const list = store.events.filter(
    (e) =>
      'gap' in e ||
      ((!kind || e.kind === kind) && wanted.every((w) => `${e.kind} ${e.worker ?? ''} ${e.pool ?? ''} ${e.who} ${e.text}`.toLowerCase().includes(w))),
  );
  return [
    h(
      'div.page-head',
      null,
      h('h1', null, 'Events'),
      h('span.muted', null, count(list.length, 'event')),
      h(
        'div.filters',
        null,
        h(
          'select',
          {
            'aria-label': 'Kind',
            value: kind,
            onchange: (e) => {
              setQuery({ kind: e.target.value });
              repaint();
            },
          },
          h('option', { value: '' }, 'all kinds'),
          kinds.map((k) => h('option', { value: k, key: k }, k)),
        ),
        h('input.filter', {
          type: 'search',
          'aria-label': 'Filter events',
          placeholder: 'Filter events  /',
          value: words,
          'data-filter': true,
          oninput: (e) => {
            words = e.target.value;
            setQuery({ q: words });
            repaint();
          },
        }),
      ),
    ),
    store.events.length === 0
      ? empty('No event yet', h('p', null, 'Starts, drains, deaths, rotations and commands are told here as they happen.'))
      : list.length === 0
        ? h('p.empty', null, 'None of the last events is such.')
        : h('ol.events.all', null, list.reverse().map(eventLine)),
    h('p.muted.small', null, 'The last 500 are here; ', h('code', null, 'roundhouse events'), ' has 30 days.'),
  ];
}
