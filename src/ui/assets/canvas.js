// What the graph and the timeline share: a drawing that is moved and enlarged, sharp on every screen.

import { coalesced } from './dom.js';

/** The colours of the theme, read anew when it changes. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ['bg', 'panel', 'raised', 'sunken', 'line', 'strong-line', 'text', 'muted', 'accent', 'model', 'tool', 'takeover', 'sans', 'mono'];
  const states = ['done', 'work', 'wait', 'failed', 'skipped', 'queued'];
  return Object.fromEntries([...names, ...states, ...states.map((name) => `${name}-soft`)].map((name) => [name, of(name)]));
}

/** A canvas that fills its place. `draw(context, width, height, colours)` is called at most once a frame. */
export class Sheet {
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.colours = palette();
    this.redraw = coalesced(() => this.paint());
    this.onDraw = draw;
    this.sizes = new ResizeObserver(() => this.redraw());
    this.sizes.observe(canvas);
    this.media = matchMedia('(prefers-color-scheme: dark)');
    this.change = () => {
      this.colours = palette();
      this.redraw();
    };
    this.media.addEventListener('change', this.change);
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const scale = Math.min(2, window.devicePixelRatio || 1);
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.onDraw(this.context, width, height, this.colours);
  }

  close() {
    this.sizes.disconnect();
    this.media.removeEventListener('change', this.change);
  }
}

/** Follows a pointer that drags: `move(dx, dy)`; a press that does not move is `press(x, y)`. Two fingers: `pinch(by, x)`. */
export function drags(canvas, { move, press, pinch }) {
  const down = new Map();
  let moved = 0;
  let apart = 0;
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button) return;
    down.set(event.pointerId, [event.offsetX, event.offsetY]);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    apart = 0;
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.offsetX - before[0], event.offsetY - before[1]];
    down.set(event.pointerId, [event.offsetX, event.offsetY]);
    moved += Math.abs(dx) + Math.abs(dy);
    if (down.size === 2) {
      const [a, b] = [...down.values()];
      const now = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (apart) pinch?.(now / apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      apart = now;
    } else if (moved > 4) move(dx, dy);
  });
  const up = (event) => {
    const was = down.delete(event.pointerId);
    if (was && moved <= 4 && event.type === 'pointerup') press?.(event.offsetX, event.offsetY);
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
}

/** A text cut to a width; short of room, nothing. */
export function fitted(context, text, width) {
  if (width < 14) return '';
  if (context.measureText(text).width <= width) return text;
  const room = Math.max(1, Math.floor(width / Math.max(4, context.measureText('n').width)) - 1);
  return `${text.slice(0, room)}…`;
}
