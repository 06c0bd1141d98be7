// What stands around each page: the way to the others, who looks on, and how the line to the fleet stands.

import { button, dialog, fill, h, say } from './dom.js';
import { logout, me } from './api.js';

/** All pages in their order: name, word, key. */
export const PAGES = [
  ['fleet', 'Fleet', 'f'],
  ['runs', 'Runs', 'r'],
  ['steering', 'Steering', 's'],
  ['traffic', 'Traffic', 't'],
  ['playground', 'Playground', 'p'],
  ['tools', 'Tools and lessons', 'l'],
  ['dead', 'Dead letters', 'd'],
];

const KEYS = [
  ['g then a letter', 'go to a page: f fleet, r runs, s steering, t traffic, p playground, l lessons, d dead letters'],
  ['/', 'search on this page'],
  ['n', 'begin a run'],
  ['↑ ↓ Home End', 'move in a list'],
  ['Enter', 'open what is chosen'],
  ['← →', 'in a tree: close and open; in the timeline: move'],
  ['+ − 0', 'in the graph and the timeline: nearer, farther, all of it'],
  ['[ ]', 'in a run: the tab before, the tab after'],
  ['Esc', 'close what is open'],
  ['?', 'these keys'],
];

export class Shell {
  constructor(live) {
    this.side = document.getElementById('side');
    this.main = document.getElementById('main');
    this.links = new Map();
    this.badge = h('span', { class: 'badge', hidden: true });
    this.dot = h('span', { class: 'dot connecting', 'aria-hidden': 'true' });
    this.line = h('span', null, 'Connecting');
    this.banner = h('div', { class: 'banner', role: 'status', hidden: true });
    live.on('state', (how) => this.stands(how));
    live.on('questions', (all) => this.waits(all.at(-1).length));
    document.getElementById('skip').addEventListener('click', (event) => {
      event.preventDefault();
      this.main.focus();
    });
    this.keys(live);
  }

  /** Draws it for whoever is logged in. */
  draw() {
    const who = me();
    const link = ([name, word]) => {
      const el = h('a', { href: `#/${name}` }, h('span', null, word), name === 'steering' ? this.badge : null);
      this.links.set(name, el);
      return el;
    };
    fill(this.side,
      h('a', { class: 'brand', href: '#/fleet' }, h('img', { src: 'icon.svg', alt: '' }), 'Muster'),
      h('nav', { class: 'nav', 'aria-label': 'Pages' }, PAGES.map(link)),
      h('div', { class: 'foot' },
        h('p', { class: 'link-state' }, this.dot, this.line),
        h('p', { class: 'who' }, h('strong', null, who.name), h('span', { class: 'quiet' }, ` · ${who.role}`)),
        h('div', { class: 'row' }, button('Keys', () => this.help(), { kind: 'tiny plain', title: 'Keys (?)' }),
          button('Log out', () => logout(), { kind: 'tiny plain' })),
        h('p', { class: 'quiet version' }, `${who.fleet ? `${who.fleet} · ` : ''}${who.version ?? ''}`)));
    document.body.classList.remove('bare');
  }

  /** Shows a page. */
  show(name, title, el) {
    for (const [known, link] of this.links) {
      if (known === name) {
        link.setAttribute('aria-current', 'page');
        link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      } else link.removeAttribute('aria-current');
    }
    document.title = `${title} · Muster`;
    this.main.replaceChildren(this.banner, ...[].concat(el));
  }

  waits(n) {
    this.badge.hidden = n === 0;
    say(this.badge, n);
    this.badge.setAttribute('aria-label', `${n} waiting`);
  }

  stands({ state, reason }) {
    const words = { open: 'Live', connecting: 'Connecting', lost: 'Connection lost', away: 'No fleet' };
    this.dot.className = `dot ${state}`;
    say(this.line, words[state]);
    const lost = state === 'lost' || state === 'away';
    this.banner.hidden = !lost;
    if (state === 'lost') fill(this.banner, h('strong', null, 'Connection lost.'), ' What is shown may be old. Trying again by itself.');
    if (state === 'away') fill(this.banner, h('strong', null, 'The fleet cannot be reached.'), ` ${reason || ''} This page goes on when it is back.`);
  }

  help() {
    if (document.querySelector('dialog[open]')) return;
    dialog('Keys', () => h('table', null, h('caption', { class: 'sr' }, 'Keys'), h('tbody', null, KEYS.map(([key, what]) =>
      h('tr', null, h('th', { scope: 'row' }, h('kbd', null, key)), h('td', null, what))))));
  }

  keys() {
    let went = 0;
    document.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.body.classList.contains('bare')) return;
      const isWriting = event.target.closest?.('input, textarea, select, [contenteditable]');
      if (isWriting || document.querySelector('dialog[open]')) return;
      const wantsPage = Date.now() - went < 1200 && PAGES.find(([, , key]) => key === event.key);
      if (wantsPage) {
        location.hash = `#/${wantsPage[0]}`;
        went = 0;
      } else if (event.key === 'g') {
        went = Date.now();
        return;
      } else if (event.key === '/') {
        this.main.querySelector('input[type="search"]')?.focus();
      } else if (event.key === 'n') {
        this.onNew?.();
      } else if (event.key === '?') {
        this.help();
      } else {
        return;
      }
      event.preventDefault();
    });
  }
}
