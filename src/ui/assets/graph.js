// The plan as a graph on a canvas. The tree beside it says the same to whoever cannot see it.

import { button, h } from './dom.js';
import { Sheet, drags, fitted } from './canvas.js';
import { colour } from './format.js';
import { NODE, layout, neighbour } from './layout.js';

const MARKS = { done: '✓', work: '▶', wait: '⏸', failed: '✕', skipped: '–', queued: '…' };

export class Graph {
  constructor({ open }) {
    this.boxes = [];
    this.edges = [];
    this.view = { x: 0, y: 0, scale: 1 };
    this.chosen = null;
    this.open = open;
    this.canvas = h('canvas', { class: 'graph', tabindex: '0', role: 'img', 'aria-label': 'The plan as a graph. Arrow keys choose a task, Enter opens it; the tree beside it lists the same.' });
    this.sheet = new Sheet(this.canvas, (...all) => this.draw(...all));
    const tools = h('div', { class: 'canvas-tools' },
      button('+', () => this.zoom(1.3), { kind: 'tiny', name: 'Nearer' }), button('−', () => this.zoom(1 / 1.3), { kind: 'tiny', name: 'Farther' }),
      button('All', () => this.fit(), { kind: 'tiny', name: 'Show all of the graph' }));
    this.el = h('div', { class: 'canvas-box' }, this.canvas, tools);
    drags(this.canvas, {
      move: (dx, dy) => this.move(dx, dy), press: (x, y) => this.press(x, y), pinch: (by, x, y) => this.zoom(by, x, y),
    });
    this.canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.shiftKey) this.move(-event.deltaY, 0);
      else this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  /** These are the tasks. */
  update(nodes) {
    const shape = nodes.map((node) => `${node.id}<${node.needs.join()}`).join('|');
    if (shape !== this.shape) {
      this.shape = shape;
      Object.assign(this, layout(nodes));
      this.byId = new Map(this.boxes.map((box) => [box.id, box]));
      if (!this.touched) this.fit();
    } else {
      for (const node of nodes) Object.assign(this.byId.get(node.id), { status: node.status, title: node.title, role: node.role });
    }
    this.sheet.redraw();
  }

  /** One task has another state. */
  state(id, status) {
    const box = this.byId?.get(id);
    if (box && box.status !== status) {
      box.status = status;
      this.sheet.redraw();
    }
  }

  choose(id) {
    this.chosen = id;
    const box = this.byId?.get(id);
    if (box) this.bring(box);
    this.sheet.redraw();
  }

  bring(box) {
    const { clientWidth: w, clientHeight: hh } = this.canvas;
    const { x, y, scale } = this.view;
    const [left, top] = [box.x * scale + x, box.y * scale + y];
    if (left < 10) this.view.x += 20 - left;
    if (top < 10) this.view.y += 20 - top;
    if (left + NODE.width * scale > w - 10) this.view.x -= left + NODE.width * scale - w + 20;
    if (top + NODE.height * scale > hh - 10) this.view.y -= top + NODE.height * scale - hh + 20;
  }

  fit() {
    const { clientWidth: w, clientHeight: hh } = this.canvas;
    if (!w || !this.width) {
      this.wantsFit = true;
      return;
    }
    this.wantsFit = false;
    const scale = Math.min(1.15, (w - 40) / this.width, (hh - 40) / this.height);
    this.view = { scale, x: Math.max(20, (w - this.width * scale) / 2), y: Math.max(20, (hh - this.height * scale) / 2) };
    this.sheet.redraw();
  }

  move(dx, dy) {
    this.touched = true;
    this.view.x += dx;
    this.view.y += dy;
    this.sheet.redraw();
  }

  zoom(by, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    this.touched = true;
    const scale = Math.max(0.02, Math.min(3, this.view.scale * by));
    const real = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * real, y: y - (y - this.view.y) * real };
    this.sheet.redraw();
  }

  press(x, y) {
    const { x: ox, y: oy, scale } = this.view;
    const [px, py] = [(x - ox) / scale, (y - oy) / scale];
    const hit = this.boxes.find((box) => px >= box.x && px <= box.x + NODE.width && py >= box.y && py <= box.y + NODE.height);
    if (hit) {
      this.choose(hit.id);
      this.open(hit.id);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '+' || event.key === '=') this.zoom(1.3);
    else if (event.key === '-') this.zoom(1 / 1.3);
    else if (event.key === '0') this.fit();
    else if (event.key === 'Enter' && this.chosen) this.open(this.chosen);
    else if (event.key.startsWith('Arrow')) {
      const from = this.byId?.get(this.chosen);
      const to = from ? neighbour(this.boxes, from, event.key) : this.boxes[0];
      if (to) this.choose(to.id);
    } else return;
    event.preventDefault();
  }

  draw(c, width, height, colours) {
    const size = `${width} ${height}`;
    if (this.wantsFit || (size !== this.size && !this.touched)) this.fit();
    this.size = size;
    const { x, y, scale } = this.view;
    c.translate(x, y);
    c.scale(scale, scale);
    const seen = { left: -x / scale, top: -y / scale, right: (width - x) / scale, bottom: (height - y) / scale };
    const isSeen = (box) => box.x < seen.right && box.x + NODE.width > seen.left && box.y < seen.bottom && box.y + NODE.height > seen.top;
    this.lines(c, colours, seen, scale);
    c.textBaseline = 'middle';
    for (const box of this.boxes) if (isSeen(box)) this.box(c, box, colours, scale);
  }

  lines(c, colours, seen, scale) {
    for (const kind of ['part', 'need']) {
      c.beginPath();
      c.setLineDash(kind === 'part' ? [4, 4] : []);
      c.strokeStyle = kind === 'part' ? colours.line : colours['strong-line'];
      c.lineWidth = Math.max(1, 0.6 / scale);
      let drawn = 0;
      for (const edge of this.edges) {
        if (edge.kind !== kind) continue;
        const [a, b] = [this.byId.get(edge.from), this.byId.get(edge.to)];
        const [x1, y1, x2, y2] = [a.x + NODE.width, a.y + NODE.height / 2, b.x, b.y + NODE.height / 2];
        if (Math.max(x1, x2) < seen.left || Math.min(x1, x2) > seen.right || Math.max(y1, y2) < seen.top || Math.min(y1, y2) > seen.bottom) continue;
        const bend = Math.min(60, Math.abs(x2 - x1) / 2);
        c.moveTo(x1, y1);
        c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
        if (++drawn > 4000) break;
      }
      c.stroke();
    }
    c.setLineDash([]);
  }

  box(c, box, colours, scale) {
    const tone = colour(box.status);
    const isChosen = box.id === this.chosen;
    c.fillStyle = colours[`${tone}-soft`];
    c.strokeStyle = isChosen ? colours.text : colours[tone];
    c.lineWidth = isChosen ? 2.5 : tone === 'work' ? 2 : 1;
    if (scale < 0.22) {
      c.fillStyle = colours[tone];
      c.fillRect(box.x, box.y, NODE.width, NODE.height);
      if (isChosen) c.strokeRect(box.x, box.y, NODE.width, NODE.height);
      return;
    }
    c.beginPath();
    c.roundRect(box.x, box.y, NODE.width, NODE.height, 7);
    c.fill();
    c.stroke();
    if (scale < 0.4) return;
    c.fillStyle = colours[tone];
    c.font = `600 12px ${colours.sans}`;
    c.fillText(MARKS[tone], box.x + 9, box.y + 14);
    c.fillStyle = colours.text;
    c.fillText(fitted(c, box.title, NODE.width - 36), box.x + 26, box.y + 14);
    c.fillStyle = colours.muted;
    c.font = `11px ${colours.sans}`;
    c.fillText(fitted(c, `${box.id} · ${box.role}`, NODE.width - 36), box.x + 26, box.y + 29);
  }

  close() {
    this.sheet.close();
  }
}
