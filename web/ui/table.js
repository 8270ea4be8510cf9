// A table that lives: sorted, filtered, ticked, and shown a page at a time. While
// the pointer or the focus is in it the order of its rows stays, so that nobody
// presses the button of the row that jumped there.
import { h } from './dom.js';
import { count, integer } from './format.js';

const STEP = 100;

export class Table {
  constructor(name, columns, repaint, options = {}) {
    Object.assign(this, { name, columns, repaint, sort: options.sort ?? columns[0].key, down: options.down ?? false, limit: STEP });
    this.filter = '';
    this.ticked = new Set();
    this.order = [];
    this.pointer = false;
    this.focus = false;
    this.words = options.words ?? ((row) => row.id);
    this.pick = options.pick;
  }

  // arrange puts rows in order: the present one while somebody is in the table,
  // with newcomers at its end.
  arrange(rows) {
    const wanted = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const left = rows.filter((r) => {
      const words = wanted.length ? this.words(r).toLowerCase() : '';
      return wanted.every((w) => words.includes(w));
    });
    if (!this.pointer && !this.focus) return this.keep(this.sorted(left));
    const place = new Map(this.order.map((id, i) => [id, i]));
    return this.keep(left.sort((a, b) => (place.get(a.id) ?? Infinity) - (place.get(b.id) ?? Infinity)));
  }

  keep(rows) {
    this.order = rows.map((r) => r.id);
    return rows;
  }

  sorted(rows) {
    const column = this.columns.find((c) => c.key === this.sort) ?? this.columns[0];
    const turn = this.down ? -1 : 1;
    return rows
      .map((r) => [column.value(r), r])
      .sort(([a, x], [b, y]) => {
        const none = (v) => v === null || v === undefined || Number.isNaN(v);
        if (none(a) || none(b)) return none(a) - none(b) || compare(x.id, y.id); // unknown comes last, whichever way
        return turn * compare(a, b) || compare(x.id, y.id);
      })
      .map(([, r]) => r);
  }

  by(key) {
    this.down = this.sort === key ? !this.down : Boolean(this.columns.find((c) => c.key === key)?.big);
    this.sort = key;
    this.order = [];
    this.pointer = this.focus = false; // asked for: now
    this.repaint();
  }

  filterBox(label) {
    return h('input.filter', {
      type: 'search',
      'aria-label': label,
      placeholder: `${label}  /`,
      value: this.filter,
      'data-filter': true,
      oninput: (e) => {
        this.filter = e.target.value;
        this.limit = STEP;
        this.order = [];
        this.repaint();
      },
    });
  }

  // view is the table; row describes one row's cells by its columns.
  view(rows, caption) {
    const all = this.arrange(rows);
    const some = all.slice(0, this.limit);
    return [
      h(
        'div.scroll',
        { tabindex: 0, role: 'region', 'aria-label': caption, key: `${this.name}-scroll` },
        h(
          'table.live',
          {
            onpointerenter: (e) => {
              this.pointer = e.pointerType === 'mouse';
            },
            onpointerleave: () => {
              this.pointer = false;
            },
            onfocusin: () => {
              this.focus = true;
            },
            onfocusout: () => {
              this.focus = false;
            },
          },
          h('caption.hidden-words', null, caption),
          h(
            'thead',
            null,
            h(
              'tr',
              null,
              this.pick ? h('th', { scope: 'col' }, this.tickAll(some)) : null,
              this.columns.map((c) => this.head(c)),
            ),
          ),
          h(
            'tbody',
            null,
            some.map((r) => this.row(r)),
          ),
        ),
      ),
      all.length > some.length
        ? h(
            'p.more',
            { key: `${this.name}-more` },
            h(
              'button',
              {
                onclick: () => {
                  this.limit += STEP * 5;
                  this.repaint();
                },
              },
              `Show more: ${integer(all.length - some.length)} are not shown`,
            ),
          )
        : null,
      all.length === 0 && rows.length > 0
        ? h('p.empty', { key: `${this.name}-none` }, `None of ${count(rows.length, 'row')} has “${this.filter}”.`)
        : null,
    ];
  }

  head(c) {
    const now = this.sort === c.key;
    return h(
      'th',
      { scope: 'col', key: c.key, class: c.class, 'aria-sort': now ? (this.down ? 'descending' : 'ascending') : undefined, title: c.title },
      c.value
        ? h('button.plain', { onclick: () => this.by(c.key) }, c.name, h('span.arrow', { 'aria-hidden': 'true' }, now ? (this.down ? '▾' : '▴') : ''))
        : c.name,
    );
  }

  row(r) {
    return h(
      'tr',
      { key: r.id, class: this.ticked.has(r.id) ? 'ticked' : undefined, 'data-row': r.id },
      this.pick
        ? h(
            'td.tick-cell',
            null,
            h('input', {
              type: 'checkbox',
              'aria-label': `tick ${r.id}`,
              checked: this.ticked.has(r.id),
              onchange: (e) => this.tick(r.id, e.target.checked),
            }),
          )
        : null,
      this.columns.map((c, i) =>
        h(i === 0 ? 'th' : 'td', { key: c.key, class: c.class, scope: i === 0 ? 'row' : undefined, 'data-name': c.name }, c.cell(r)),
      ),
    );
  }

  tick(id, on) {
    if (on) this.ticked.add(id);
    else this.ticked.delete(id);
    this.repaint();
  }

  tickAll(rows) {
    const every = rows.length > 0 && rows.every((r) => this.ticked.has(r.id));
    return h('input', {
      type: 'checkbox',
      'aria-label': 'tick all that are shown',
      checked: every,
      onchange: (e) => {
        for (const r of rows) this.ticked[e.target.checked ? 'add' : 'delete'](r.id);
        this.repaint();
      },
    });
  }
}

function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}
