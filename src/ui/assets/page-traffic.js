// The decoded traffic on the bus, as it passes.

import { button, fill, h, say, settled } from './dom.js';
import { bytes, clock, count, cut, oneLine, short } from './format.js';
import { aboutLine } from './filter.js';
import { instead } from './route.js';
import { VirtualList } from './virtual.js';

/** Lines that are kept; older ones go. */
const MOST = 5000;
/** Most lines that are kept while the list stands still. */
const MOST_WAITING = 2000;

/** What a message says, on one line. Pure. */
export function says(line) {
  if (line.unreadable) return line.unreadable;
  const body = line.message?.body ?? {};
  const content = body.content ?? body[Object.keys(body)[0]] ?? body;
  const texts = [content.text, content.goal?.text, content.reason, content.thought?.text, content.action?.name, content.ending, (content.events ?? []).map((one) => String(one.event ?? '').replaceAll('_', ' ')).join(', '), content.offer?.task && `offers ${content.offer.task} to ${content.offer.queue}`, content.busy !== undefined && content.slots !== undefined ? `${content.busy}/${content.slots} busy` : ''];
  const said = texts.filter((text) => typeof text === 'string' && text).join(' · ');
  return oneLine(said || JSON.stringify(content), 400);
}

class Traffic {
  constructor({ route, live }) {
    this.title = 'Traffic';
    this.live = live;
    this.lines = [];
    this.held = [];
    this.isPaused = false;
    const { query } = route;
    const text = (name, label, hint) => h('label', { class: 'field' }, h('span', null, label), h('input', { type: name === 'text' ? 'search' : 'text', name, size: 12, value: query[name] ?? '', placeholder: hint, spellcheck: 'false', autocomplete: 'off' }));
    this.filters = h('form', { class: 'toolbar', on: { submit: (event) => event.preventDefault() } }, text('run', 'Run', 'any'), text('role', 'Role', 'any'), text('kind', 'Kind', 'step, outcome …'), text('text', 'Text', 'any'), text('correlation', 'Follow a message', 'its id'));
    const apply = settled(() => this.apply(), 250);
    this.filters.addEventListener('input', apply);
    this.pause = button('Pause', () => this.hold(!this.isPaused));
    this.rate = h('dd', { data: { figure: 'rate' } }, '0');
    this.passed = h('dd', null, '0');
    this.dropped = h('dd', null, '0');
    this.sum = 0;
    const figure = (name, el) => h('div', null, h('dt', null, name), el);
    this.list = new VirtualList({ label: 'Messages, the newest last', row: 30, className: 'traffic', follow: true, draw: (el, n) => this.draw(el, n), open: (n) => this.open(n) });
    // What passes is followed until somebody scrolls back.
    this.list.isTail = true;
    this.detail = h('aside', { class: 'panel inspector', hidden: true, 'aria-label': 'Message' });
    this.told = h('p', { class: 'quiet small' });
    this.el = [
      h('div', { class: 'head' }, h('div', null, h('h1', null, 'Traffic'), h('p', { class: 'lead' }, 'Every message on the bus, decoded, as it passes.')), h('dl', { class: 'figures' }, figure('a second', this.rate), figure('seen', this.passed), figure('left out', this.dropped))),
      this.filters,
      h('div', { class: 'row' }, this.pause, button('Clear', () => this.clear()), this.told),
      h('div', { class: 'run-body' }, h('div', { class: 'panel fit grow' }, this.list.el), this.detail),
    ];
    this.watch = this.wanted();
    this.stop = [live.on('tap', (all) => this.take(all))];
    this.head();
  }

  wanted() {
    const values = Object.fromEntries(new FormData(this.filters));
    const given = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim()]).filter(([, value]) => value));
    return { tap: 1, ...given };
  }

  apply() {
    const { tap, ...given } = this.wanted();
    instead(['traffic'], given);
    this.clear();
    this.live.watch({ tap, ...given });
  }

  take(all) {
    for (const one of all) {
      this.sum += one.lines.length;
      say(this.rate, count(Math.round(one.rate * 10) / 10));
      say(this.dropped, count(one.dropped));
      const into = this.isPaused ? this.held : this.lines;
      for (const line of one.lines) into.push(line);
    }
    say(this.passed, count(this.sum));
    if (this.held.length > MOST_WAITING) this.held.splice(0, this.held.length - MOST_WAITING);
    if (!this.isPaused) this.refresh();
    this.head();
  }

  refresh() {
    if (this.lines.length > MOST) this.lines.splice(0, this.lines.length - MOST);
    this.list.update(this.lines.length);
  }

  head() {
    say(this.told, this.isPaused ? `Paused; ${count(this.held.length)} newer messages wait.` : this.lines.length ? `${count(this.lines.length)} messages are kept here.` : 'Nothing has passed yet that fits.');
  }

  hold(isPaused) {
    this.isPaused = isPaused;
    say(this.pause, isPaused ? 'Go on' : 'Pause');
    if (!isPaused) {
      this.lines.push(...this.held);
      this.held = [];
      this.refresh();
    }
    this.head();
  }

  clear() {
    this.lines = [];
    this.held = [];
    this.list.isTail = true;
    this.list.update(0);
    this.head();
  }

  draw(el, n) {
    const line = this.lines[n];
    if (!line) return;
    if (!el.parts) {
      el.parts = ['time', 'kind', 'by cut', 'task cut', 'text cut', 'number quiet'].map((name) => h('span', { class: name }));
      el.replaceChildren(h('div', { class: 'tap-row' }, el.parts));
    }
    const about = (line.about ??= aboutLine(line));
    line.says ??= says(line);
    [clock(line.at, true), about.kind.replaceAll('_', ' '), about.sender || line.subject, [about.run && short(about.run), about.task].filter(Boolean).join(' '), line.says, bytes(line.bytes)].forEach((text, part) => say(el.parts[part], text));
    el.parts[1].className = `kind k-${line.unreadable ? 'failed' : about.kind}`;
  }

  open(n) {
    const line = this.lines[n];
    if (!line) return;
    if (!this.isPaused) this.hold(true);
    const about = line.about ?? aboutLine(line);
    const set = (name, value) => button(name === 'correlation' ? 'Follow this message' : `Only this ${name}`, () => {
      this.filters.elements[name].value = value;
      this.hold(false);
      this.apply();
    }, { kind: 'tiny' });
    const { about: _, says: said, ...plain } = line;
    this.detail.hidden = false;
    fill(this.detail, h('header', null, h('h2', null, about.kind || 'message'), button('Close', () => { this.detail.hidden = true; }, { kind: 'tiny plain', name: 'Close the message' })),
      h('div', { class: 'body stack' }, h('p', { class: 'small' }, h('code', null, line.subject), ` · ${bytes(line.bytes)}`),
        h('div', { class: 'row' }, about.correlation || about.id ? set('correlation', about.correlation || about.id) : null, about.run ? set('run', about.run) : null, about.kind ? set('kind', about.kind) : null),
        h('pre', { class: 'json', tabindex: '0' }, cut(JSON.stringify(plain, null, 2), 100000))));
  }

  close() {
    this.stop.forEach((stop) => stop());
    this.list.close();
  }
}

export const open = (context) => new Traffic(context);
