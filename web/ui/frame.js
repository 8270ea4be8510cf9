// The frame of every page: the verdict, how old it is, where one is, and what to
// do where nothing is heard.
import { setToken, token } from './api.js';
import { h } from './dom.js';
import { whole } from './format.js';
import { icon, logo } from './icons.js';
import { link } from './route.js';
import { lasting, sign, tone, word, wrong } from './parts.js';
import { age, stale, store, workersOf } from './store.js';
import { pause, reconnect } from './stream.js';
import { nextTheme, theme } from './theme.js';
import * as charts from './pages/charts.js';
import * as events from './pages/events.js';
import * as health from './pages/health.js';
import * as now from './pages/now.js';
import * as requests from './pages/requests.js';
import * as rotations from './pages/rotations.js';
import * as setup from './pages/setup.js';
import * as trial from './pages/try.js';
import * as workers from './pages/workers.js';

export const pages = { now, workers, requests, rotations, events, charts, try: trial, health, setup };

let repaint = () => {};
let menu = false;
let typed = '';

export function wireFrame(paint) {
  repaint = paint;
  for (const page of Object.values(pages)) page.wire?.(paint);
}

// announce has one sentence read out; the last one at most each 5 s.
let due = 0;
let sentence = '';
export function announce(words) {
  sentence = words;
  if (due) return;
  due = setTimeout(
    () => {
      due = 0;
      document.getElementById('told').textContent = sentence;
    },
    document.getElementById('told').textContent ? 5000 : 50,
  );
}

let level = '';

export function frame(route) {
  const page = pages[route.page] ?? pages.now;
  const name = pages[route.page] ? route.page : 'now';
  const verdict = store.state?.verdict;
  if (verdict && verdict.level !== level) {
    if (level) announce(`${word(verdict.level)}: ${verdict.sentence}`);
    level = verdict.level;
  }
  document.title = `${verdict && verdict.level !== 'well' ? `${word(verdict.level)} · ` : ''}${page.title} · Roundhouse`;
  return h(
    'div.frame',
    { class: stale() ? 'stale' : undefined },
    h(
      'a.skip',
      {
        href: '#main',
        onclick: (e) => {
          e.preventDefault();
          document.getElementById('main').focus();
        },
      },
      'Skip to the page',
    ),
    head(),
    h(
      'nav.nav',
      { 'aria-label': 'Pages', class: menu ? 'open' : undefined, id: 'nav' },
      h(
        'ul',
        null,
        Object.entries(pages).map(([key, p]) =>
          h(
            'li',
            { key },
            h(
              'a',
              {
                href: link(key),
                'aria-current': key === name ? 'page' : undefined,
                onclick: () => {
                  menu = false;
                  repaint();
                },
              },
              icon(key),
              p.title,
              tally(key),
            ),
          ),
        ),
      ),
      h('footer', null, store.hello ? `Roundhouse ${store.hello.version}` : '', h('br'), store.hello?.rights === 'read' ? 'read only' : ''),
    ),
    h('main.content', { id: 'main', tabindex: -1, key: 'main' }, notices(), body(page, route)),
  );
}

function body(page, route) {
  if (store.link === 'denied') return signIn();
  if (!store.state)
    return h(
      'div.nothing',
      { key: 'wait' },
      h('p', null, h('b', null, store.link === 'lost' ? 'The supervisor does not answer' : 'Asking the supervisor…')),
      store.link === 'lost' ? h('p', null, `${store.trouble}. The door, if it runs, serves on; this page goes on trying.`) : null,
    );
  return h('div.page', { key: [route.page, ...route.rest].join('/'), 'data-address': location.hash }, page.view(route));
}

function head() {
  const v = store.state?.verdict;
  const level = stale() || !v ? 'off' : v.level;
  return h(
    'header.head',
    null,
    h('a.brand', { href: link('now') }, logo(), 'Roundhouse'),
    h(
      'div.verdict',
      { class: `${tone(level)}${level === 'changing' ? ' turning' : ''}`, 'data-level': level },
      h('span.verdict-mark', null, sign(level, 24)),
      h('p.verdict-words', null, verdictWords(v)),
    ),
    h(
      'div.tools',
      null,
      h('span.age', { class: stale() ? 'late' : undefined }, ageWords()),
      tool(store.link === 'paused' ? 'play' : 'pause', store.link === 'paused' ? 'Go on' : 'Pause', () => pause(store.link !== 'paused')),
      tool('theme', `Theme: ${theme()}`, nextTheme),
      h(
        'button.plain.menu',
        {
          'aria-expanded': String(menu),
          'aria-controls': 'nav',
          onclick: () => {
            menu = !menu;
            repaint();
          },
        },
        icon('menu'),
        h('span', null, 'Menu'),
      ),
    ),
  );
}

const tool = (sign, words, does) =>
  h(
    'button.plain',
    {
      title: words,
      'aria-label': words,
      onclick: () => {
        does();
        repaint();
      },
    },
    icon(sign),
  );

function verdictWords(v) {
  if (!v) return h('strong', null, store.link === 'denied' ? 'Not signed in' : 'No data yet');
  if (stale()) return [h('strong', null, 'Not known'), ' ', h('span.more', null, `It was “${word(v.level)}” ${whole(age())} ago`)];
  return [
    h('strong', null, word(v.level)[0].toUpperCase() + word(v.level).slice(1)),
    ' ',
    h('span.more', null, v.sentence, ' ', h('span.muted', null, 'for ', lasting(v.since))),
  ];
}

function ageWords() {
  if (store.link === 'paused') return 'paused';
  const a = age();
  if (a === null) return '';
  return stale() ? `data ${whole(a)} old` : `data ${a.toFixed(1)} s old`;
}

// tally is the count of what is wrong on a page, beside its name.
function tally(page) {
  if (!store.state) return null;
  const n = {
    workers: () => workersOf().filter(wrong).length,
    rotations: () => store.state.rotations.filter((r) => r.state === 'halted').length,
    health: () => store.state.verdict.findings.filter((f) => f.level !== 'changing').length,
    requests: () => store.state.door.queued,
  }[page]?.();
  if (!n) return null;
  const what = page === 'requests' ? 'waiting' : 'wrong';
  return h(
    'span.tally',
    { class: page === 'requests' ? 'calm' : undefined, title: `${n} ${what}` },
    n > 999 ? '999+' : n,
    h('span.hidden-words', null, ` ${what}`),
  );
}

function notices() {
  const out = [];
  const notice = (key, bad, ...words) => out.push(h('div.notice', { key, class: bad ? 'bad' : undefined, role: bad ? 'alert' : 'status' }, words));
  if (store.state && store.link === 'paused')
    notice('paused', false, 'Paused: this is as it was. ', h('button', { onclick: () => pause(false) }, 'Go on'));
  else if (store.state && stale())
    notice(
      'stale',
      true,
      h(
        'span',
        null,
        `The supervisor does not answer${store.trouble ? `: ${store.trouble}` : ''}. The door serves on. What you see is ${whole(age())} old.`,
      ),
      h('button', { onclick: reconnect }, 'Try now'),
    );
  if (store.assets && store.hello && store.assets !== store.hello.assets)
    notice(
      'new',
      false,
      'The supervisor has been replaced, and brings another version of this page. ',
      h('button', { onclick: () => location.reload() }, 'Load it'),
    );
  if (store.hello) store.assets ??= store.hello.assets;
  if (token() && location.protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(location.host))
    notice('plain', false, 'This page comes over plain HTTP: whoever is on the way can read the token. Use ssh, or admin behind TLS.');
  return out;
}

function signIn() {
  const go = (e) => {
    e.preventDefault();
    setToken(typed.trim());
    typed = '';
    reconnect();
    repaint();
  };
  return h(
    'form.sign-in',
    { key: 'sign-in', onsubmit: go },
    h('h1', null, 'Sign in'),
    h(
      'p',
      null,
      'This console asks for ',
      h('code', null, 'admin.token'),
      ', or ',
      h('code', null, 'admin.read_token'),
      ' to look only. It stays in this tab and is sent as a header.',
    ),
    store.trouble ? h('p.refused', { role: 'alert' }, store.trouble) : null,
    h(
      'label.stacked',
      null,
      h('span', null, 'Token'),
      h('input', {
        type: 'password',
        autocomplete: 'current-password',
        value: typed,
        oninput: (e) => {
          typed = e.target.value;
        },
      }),
    ),
    h('p', null, h('button.main', { type: 'submit' }, 'Sign in')),
    h('p.muted', null, 'On the machine itself, ', h('code', null, 'roundhouse console'), ' signs you in without it.'),
  );
}
