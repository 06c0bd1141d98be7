// Spans of a run on a canvas: one row for each task, to be moved and enlarged.

import { button, h } from './dom.js';
import { Sheet, drags, fitted } from './canvas.js';
import { colour, cut, span as lasted } from './format.js';
import { byIndex } from './layout.js';

const ROW = 26;
const HEAD = 24;
const NAMES = 132;

/** Phases around the tasks of a plan, in the order in which they come. */
function rank(task) {
  if (task === 'plan') return [0, ''];
  if (task === 'write') return [3, ''];
  if (/^\d/.test(task)) return [1, task];
  const of = /^[a-z]+-(\d[\d~a-z-]*)$/.exec(task);
  return of && task.startsWith('reflect') ? [1, `${of[1]}`] : [2, task];
}

/** The spans row by row: one row for each task, in the order of the plan. Pure. */
export function lanes(spans) {
  const byTask = new Map();
  for (const one of spans) {
    if (!byTask.has(one.task)) byTask.set(one.task, []);
    byTask.get(one.task).push(one);
  }
  const order = (a, b) => {
    const [x, y] = [rank(a), rank(b)];
    if (x[0] !== y[0]) return x[0] - y[0];
    return byIndex(x[1], y[1]) || (a < b ? -1 : a > b ? 1 : 0);
  };
  return [...byTask.keys()].sort(order).map((task) => ({ task, spans: byTask.get(task) }));
}

/** Steps of an axis that fit: 1, 2 or 5 of a power of ten, in milliseconds. Pure. */
export function ticks(from, to, most) {
  const least = Math.max(1, (to - from) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

/** The part that is seen after it was enlarged around a place; never narrower than 5 ms. Pure. */
export function zoomed({ from, to }, by, around, whole) {
  const width = Math.max(5, Math.min((whole.to - whole.from) * 1.2, (to - from) / by));
  const part = (around - from) / (to - from);
  return { from: around - width * part, to: around + width * (1 - part) };
}

export class Timeline {
  constructor({ open }) {
    this.open = open;
    this.lanes = [];
    this.whole = { from: 0, to: 1 };
    this.view = { from: 0, to: 1 };
    this.top = 0;
    this.current = 0;
    this.canvas = h('canvas', { class: 'timeline', tabindex: '0', role: 'img', 'aria-label': 'What was done when, one row for each task. Arrow keys move, plus and minus enlarge; the table below lists the same.' });
    this.sheet = new Sheet(this.canvas, (...all) => this.draw(...all));
    const tools = h('div', { class: 'canvas-tools' },
      button('+', () => this.zoom(1.6), { kind: 'tiny', name: 'Nearer' }), button('−', () => this.zoom(1 / 1.6), { kind: 'tiny', name: 'Farther' }),
      button('All', () => this.fit(), { kind: 'tiny', name: 'Show all of the timeline' }));
    this.el = h('div', { class: 'canvas-box' }, this.canvas, tools);
    drags(this.canvas, {
      move: (dx, dy) => this.move(dx, dy), press: (x, y) => this.press(x, y),
      pinch: (by, x) => this.zoom(by, this.time(x)),
    });
    this.canvas.addEventListener('wheel', (event) => {
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY / 300), this.time(event.offsetX));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(-(event.deltaX || event.deltaY), 0);
      else if (!this.move(0, -event.deltaY)) return;
      event.preventDefault();
    }, { passive: false });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.canvas.addEventListener('mousemove', (event) => this.hover(event));
  }

  /** What there is to draw. */
  update({ from, to, spans }, isLive) {
    const isAll = this.view.from <= this.whole.from && this.view.to >= this.whole.to;
    const end = Math.max(isLive ? Date.now() : to, from + 1, ...[to]);
    this.whole = { from, to: end };
    this.isLive = isLive;
    this.lanes = lanes(spans);
    if (isAll || this.whole.from === 0) this.fit();
    this.sheet.redraw();
  }

  /** The time goes on for what lasts. */
  tick() {
    if (!this.isLive) return;
    const isAll = this.view.to >= this.whole.to;
    this.whole = { ...this.whole, to: Math.max(this.whole.to, Date.now()) };
    if (isAll && this.view.from <= this.whole.from) this.fit();
    else this.sheet.redraw();
  }

  fit() {
    const beyond = (this.whole.to - this.whole.from) * 0.02 + 1;
    this.view = { from: this.whole.from - beyond / 2, to: this.whole.to + beyond };
    this.sheet.redraw();
  }

  width() {
    return Math.max(40, this.canvas.clientWidth - this.names());
  }

  names() {
    return this.canvas.clientWidth < 520 ? 76 : NAMES;
  }

  time(x) {
    return this.view.from + ((x - this.names()) / this.width()) * (this.view.to - this.view.from);
  }

  place(time) {
    return this.names() + ((time - this.view.from) / (this.view.to - this.view.from)) * this.width();
  }

  move(dx, dy) {
    const by = (dx / this.width()) * (this.view.to - this.view.from);
    const before = [this.top, this.view.from];
    this.view = { from: this.view.from - by, to: this.view.to - by };
    const most = Math.max(0, this.lanes.length * ROW + HEAD - this.canvas.clientHeight);
    this.top = Math.max(0, Math.min(most, this.top - dy));
    this.sheet.redraw();
    return before[0] !== this.top || before[1] !== this.view.from;
  }

  zoom(by, around = (this.view.from + this.view.to) / 2) {
    this.view = zoomed(this.view, by, around, this.whole);
    this.sheet.redraw();
  }

  laneAt(y) {
    return y < HEAD ? -1 : Math.floor((y - HEAD + this.top) / ROW);
  }

  spanAt(x, y) {
    const lane = this.lanes[this.laneAt(y)];
    if (!lane || x < this.names()) return null;
    const within = (one) => this.place(one.start) - 2 <= x && x <= this.place(one.end ?? this.whole.to) + 2;
    const order = ['model', 'tool', 'step', 'takeover', 'wait', 'task'];
    return lane.spans.filter(within).sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))[0] ?? null;
  }

  press(x, y) {
    const n = this.laneAt(y);
    if (!this.lanes[n]) return;
    this.current = n;
    this.sheet.redraw();
    this.open(this.lanes[n].task, this.spanAt(x, y));
  }

  hover(event) {
    const one = this.spanAt(event.offsetX, event.offsetY);
    this.canvas.title = one ? `${one.kind} ${cut(one.name, 120)} · ${lasted((one.end ?? this.whole.to) - one.start)}${one.agent ? ` · ${one.agent}` : ''}` : '';
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = this.width() / 8;
    const does = {
      '+': () => this.zoom(1.6), '=': () => this.zoom(1.6), '-': () => this.zoom(1 / 1.6), 0: () => this.fit(),
      ArrowLeft: () => this.move(step, 0), ArrowRight: () => this.move(-step, 0),
      ArrowUp: () => this.row(-1), ArrowDown: () => this.row(1),
      Enter: () => this.lanes[this.current] && this.open(this.lanes[this.current].task, null),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  row(by) {
    this.current = Math.max(0, Math.min(this.lanes.length - 1, this.current + by));
    const y = this.current * ROW;
    const room = this.canvas.clientHeight - HEAD - ROW;
    this.top = Math.max(y - room, Math.min(this.top, y));
    this.sheet.redraw();
  }

  draw(c, width, height, colours) {
    const names = this.names();
    c.textBaseline = 'middle';
    this.axis(c, width, height, colours, names);
    const first = Math.max(0, Math.floor(this.top / ROW));
    const end = Math.min(this.lanes.length, Math.ceil((this.top + height) / ROW));
    c.save();
    c.beginPath();
    c.rect(0, HEAD, width, height - HEAD);
    c.clip();
    for (let n = first; n < end; n += 1) {
      const y = HEAD + n * ROW - this.top;
      if (n === this.current) {
        c.fillStyle = colours.sunken;
        c.fillRect(0, y, width, ROW);
      }
      c.save();
      c.beginPath();
      c.rect(names, y, width - names, ROW);
      c.clip();
      this.lane(c, this.lanes[n].spans, y, width, colours);
      c.restore();
      c.fillStyle = colours.text;
      c.font = `12px ${colours.sans}`;
      c.fillText(fitted(c, this.lanes[n].task, names - 18), 10, y + ROW / 2);
    }
    c.restore();
  }

  axis(c, width, height, colours, names) {
    c.font = `11px ${colours.sans}`;
    c.strokeStyle = colours.line;
    c.fillStyle = colours.muted;
    c.lineWidth = 1;
    c.beginPath();
    const base = this.whole.from;
    for (const at of ticks(this.view.from - base, this.view.to - base, this.width() / 90)) {
      const x = Math.round(this.place(base + at)) + 0.5;
      if (x < names) continue;
      c.moveTo(x, HEAD - 6);
      c.lineTo(x, height);
      if (x < width - 44) c.fillText(at === 0 ? '0' : `${at < 0 ? '−' : ''}${lasted(Math.abs(at))}`, x + 4, HEAD / 2);
    }
    c.moveTo(names + 0.5, 0);
    c.lineTo(names + 0.5, height);
    c.stroke();
  }

  lane(c, spans, y, width, colours) {
    const bar = (one, top, tall, fill) => {
      const x = this.place(one.start);
      const w = Math.max(1.5, this.place(one.end ?? this.whole.to) - x);
      if (x > width || x + w < 0) return null;
      c.fillStyle = fill;
      c.fillRect(x, y + top, w, tall);
      return [x, w];
    };
    for (const one of spans) if (one.kind === 'wait') bar(one, 10, 6, colours.line);
    for (const one of spans) {
      if (one.kind !== 'task') continue;
      const tone = one.state === 'lost' ? 'failed' : one.end ? colour(one.state) : 'work';
      const at = bar(one, 4, 18, colours[`${tone}-soft`]);
      if (!at) continue;
      c.fillStyle = colours[tone];
      c.fillRect(at[0], y + 4, Math.max(1.5, at[1]), 2);
      if (at[1] > 60) {
        c.font = `11px ${colours.sans}`;
        c.fillStyle = colours.text;
        c.fillText(fitted(c, one.agent ?? one.name, at[1] - 8), Math.max(at[0], this.names()) + 4, y + 11.5);
      }
    }
    for (const one of spans) {
      if (one.kind === 'model') bar(one, 17, 5, colours.model);
      else if (one.kind === 'tool') bar(one, 17, 5, ['success', 'processing'].includes(one.state) ? colours.tool : colours.failed);
      else if (one.kind === 'takeover') bar(one, 3, 20, colours.takeover);
      else if (one.kind === 'step') {
        const at = bar(one, 22, 2, colours['strong-line']);
        if (at && at[1] > 5) c.fillRect(at[0] + at[1] - 1, y + 16, 1, 8);
      }
    }
  }

  close() {
    this.sheet.close();
  }
}
