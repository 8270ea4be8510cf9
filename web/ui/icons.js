// Every sign of the console: shapes that differ, so that none is told by its
// colour alone. They are decoration beside words, and hidden from readers.
import { h } from './dom.js';

const paths = {
  well: 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13zM4.8 8.2l2.3 2.3 4.2-4.6',
  changing: 'M13.5 8a5.5 5.5 0 1 1-1.7-4M12 1v3.4H8.6',
  risk: 'M8 1.8L15 14H1zM8 6v3.6M8 11.6v.4',
  hurt: 'M8 1l7 7-7 7-7-7zM8 4.6v4M8 10.8v.4',
  off: 'M2.5 8h11',
  starting: 'M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12zM8 5v3l2 1.4',
  draining: 'M2.5 3h11l-4 5v5l-3-1.6V8z',
  stopped: 'M3.5 3.5h9v9h-9z',
  failed: 'M3 3l10 10M13 3L3 13',
  now: 'M1.5 8h3l2-5 3 10 2-5h3',
  workers: 'M2 2.5h12v4H2zM2 9.5h12v4H2zM4.5 4.5h.01M4.5 11.5h.01',
  requests: 'M2 5h9M8 2l3 3-3 3M14 11H5M8 8l-3 3 3 3',
  rotations: 'M13.5 8a5.5 5.5 0 1 1-1.7-4M12 1v3.4H8.6',
  events: 'M5 3.5h9M5 8h9M5 12.5h9M2 3.5h.01M2 8h.01M2 12.5h.01',
  charts: 'M2 2v12h12M4.5 11l3-4 2.5 2 3.5-5',
  try: 'M2 3h12v8H7l-3 3v-3H2z',
  health: 'M8 13.5S2 9.8 2 5.9A3.2 3.2 0 0 1 8 4.4a3.2 3.2 0 0 1 6 1.5c0 3.9-6 7.6-6 7.6z',
  setup: 'M2 4.5h7M13 4.5h1M2 11.5h2M8 11.5h6M9 2.5h4v4H9zM4 9.5h4v4H4z',
  pause: 'M5 3v10M11 3v10',
  play: 'M4.5 2.5l8 5.5-8 5.5z',
  theme: 'M8 1.8a6.2 6.2 0 1 0 0 12.4zM8 1.8a6.2 6.2 0 0 1 0 12.4',
  who: 'M8 8a3 3 0 1 0 0-6a3 3 0 0 0 0 6zM2.5 14c.6-3 2.8-4.3 5.5-4.3s4.9 1.3 5.5 4.3',
  menu: 'M2 4h12M2 8h12M2 12h12',
  help: 'M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 0 0 0-12.4zM6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.6-.9 1.3M8 11.4v.2',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  image: 'M2 2.5h12v11H2zM2 11l3.5-3.5 3 3L10.500 8.500 14 12M10.5 5.500h.01',
};

export function icon(name, size = 16) {
  return h(
    'svg',
    {
      width: size,
      height: size,
      viewBox: '0 0 16 16',
      fill: 'none',
      stroke: 'currentColor',
      'stroke-width': 1.6,
      'stroke-linecap': 'round',
      'stroke-linejoin': 'round',
      'aria-hidden': 'true',
      focusable: 'false',
    },
    h('path', { d: paths[name] ?? paths.off }),
  );
}

// logo is a turntable with a track that leads to it.
export function logo() {
  return h(
    'svg',
    {
      width: 24,
      height: 24,
      viewBox: '0 0 24 24',
      fill: 'none',
      stroke: 'currentColor',
      'stroke-width': 2,
      'stroke-linecap': 'round',
      'aria-hidden': 'true',
      focusable: 'false',
    },
    h('circle', { cx: 12, cy: 12, r: 9.5 }),
    h('path', { d: 'M12 2.5v19M8.500 12h7M12 12' }),
    h('circle', { cx: 12, cy: 12, r: 3.2, fill: 'currentColor', stroke: 'none' }),
  );
}
