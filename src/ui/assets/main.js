// Begins the dashboard: who looks on, which page is open, and the one stream of events for it.

import { fill, h, note } from './dom.js';
import { Problem, known, login, whenEnded } from './api.js';
import { Live } from './live.js';
import { Shell } from './shell.js';
import { parse } from './route.js';

const live = new Live();
const shell = new Shell(live);
let open = null;
let turn = 0;

/** Where each page is. They are loaded when they are opened. */
const PAGES = {
  fleet: () => import('./page-fleet.js'),
  runs: () => import('./page-runs.js'),
  run: () => import('./page-run.js'),
  compare: () => import('./page-compare.js'),
  steering: () => import('./page-steering.js'),
  traffic: () => import('./page-traffic.js'),
  playground: () => import('./page-playground.js'),
  tools: () => import('./page-tools.js'),
  dead: () => import('./page-dead.js'),
};

/** Which entry of the list of pages one belongs to. */
const WITHIN = { run: 'runs', compare: 'runs' };

async function show() {
  const route = parse(location.hash);
  if (open && open.route.page === route.page && open.page.update?.(route)) {
    open.route = route;
    return;
  }
  const mine = ++turn;
  const leave = open;
  open = null;
  leave?.page.close?.();
  const load = PAGES[route.page];
  if (!load) {
    location.replace('#/fleet');
    return;
  }
  try {
    const module = await load();
    if (mine !== turn) return;
    const page = module.open({ route, live, shell });
    open = { route, page };
    shell.show(WITHIN[route.page] ?? route.page, page.title, page.el);
    live.watch(page.watch ?? {});
    window.scrollTo(0, 0);
    if (leave) shell.main.focus({ preventScroll: true });
  } catch (error) {
    if (mine !== turn) return;
    fill(shell.main, h('h1', null, 'This page cannot be shown'), h('p', { class: 'problem' }, error instanceof Problem ? error.text : String(error)));
  }
}

async function logIn(reason) {
  turn += 1;
  open?.page.close?.();
  open = null;
  live.close();
  const { form } = await import('./login.js');
  document.body.classList.add('bare');
  document.title = 'Log in · Muster';
  fill(shell.main, form(reason, begin));
  shell.main.querySelector('input')?.focus();
}

function begin() {
  shell.draw();
  show();
}

/** A token that came with the address is used once, and taken out of the address at once. */
async function byAddress() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, '', `${location.pathname}#/fleet`);
  try {
    await login(decodeURIComponent(found[1]));
    return null;
  } catch (error) {
    return error instanceof Problem ? error.text : String(error);
  }
}

async function start() {
  const refused = await byAddress();
  try {
    if (await known()) begin();
    else await logIn(refused);
  } catch (error) {
    fill(shell.main, h('h1', null, 'The dashboard cannot be reached'), h('p', null, error.text ?? String(error)));
    setTimeout(start, 2000);
  }
}

whenEnded(() => logIn('The session has ended.'));
live.on('state', ({ again }) => again && open?.page.reload?.());
live.on('cut', async () => {
  // It does not say why: it may be a session that has ended, or that a dashboard started anew does not know.
  try {
    if (!(await known())) logIn('The session has ended.');
  } catch {
    // The line itself is gone: it is tried again.
  }
});
shell.onNew = () => import('./new-run.js').then(({ ask }) => ask());
window.addEventListener('hashchange', () => (/^#token=/.test(location.hash) ? start() : open || turn ? show() : null));
window.addEventListener('unhandledrejection', (event) => {
  if (event.reason instanceof Problem && event.reason.status !== 401) {
    event.preventDefault();
    note(event.reason.text, 'bad');
  }
});
start();
