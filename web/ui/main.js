// The console begins here: it takes a token if there is a code for one, opens the
// stream, and paints the page of the present address whenever something changes.
import * as actions from './actions.js';
import { exchange } from './api.js';
import { closed, paint as paintDialog } from './dialog.js';
import { render } from './dom.js';
import { announce, frame, pages, wireFrame } from './frame.js';
import * as history from './history.js';
import { keys } from './keys.js';
import { parse } from './route.js';
import { followLog, store } from './store.js';
import * as stream from './stream.js';
import { restoreTheme } from './theme.js';

let route = parse(location.hash);
let painted = true;

// repaint paints at the next frame, once for all that asked.
function repaint() {
  if (!painted) return;
  painted = false;
  requestAnimationFrame(() => {
    painted = true;
    paint();
  });
}

const app = document.getElementById('app');
app.replaceChildren(); // what stood there until this could run

function paint() {
  render(app, frame(route));
  paintDialog();
  pages[route.page]?.painted?.();
}

// visit goes to the page of the address: what it needs of the stream is asked for.
function visit() {
  const before = route;
  route = parse(location.hash);
  const page = pages[route.page] ?? pages.now;
  const query = page.wants?.(route) ?? {};
  if (query.log !== store.log.of) followLog(query.log ?? '');
  stream.want(query);
  page.enter?.(route);
  paint();
  if (before.page !== route.page || before.rest.join() !== route.rest.join()) {
    scrollTo(0, 0);
    document.getElementById('main')?.focus({ preventScroll: true });
  }
}

function told(kind, message) {
  if (kind === 'event') actions.heard(message);
  if (kind === 'sample') history.sample(message);
  repaint();
}

actions.wire(announce, repaint);
history.wire(repaint);
wireFrame(repaint);
restoreTheme();
document.getElementById('dialog').addEventListener('close', closed);
document.addEventListener('keydown', keys);
addEventListener('hashchange', visit);
exchange()
  .catch((error) => {
    store.trouble = `The one-time code was refused: ${error.message}`;
  })
  .finally(() => {
    route = parse(location.hash);
    const page = pages[route.page] ?? pages.now;
    stream.want(page.wants?.(route) ?? {});
    followLog(page.wants?.(route)?.log ?? '');
    page.enter?.(route);
    paint();
    stream.start(told);
  });
setInterval(repaint, 250); // ages go on by themselves, and what is late is seen to be
