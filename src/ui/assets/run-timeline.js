// When what was done in a run: drawn, and as a table.

import { h, panel, say, settled } from './dom.js';
import { at, get } from './api.js';
import { count, cut, hasEnded, money, span, status, tone } from './format.js';
import { Timeline } from './timeline.js';
import { VirtualList } from './virtual.js';

/** Shortest pause between two looks, in milliseconds; long ones are looked at less often. */
const PAUSE = 400;

class When {
  constructor({ model, inspector, query }) {
    Object.assign(this, { model, inspector });
    this.spans = [];
    this.kind = query.kind ?? '';
    this.drawing = new Timeline({ open: (task, one) => this.open(task, one) });
    this.told = h('span', { class: 'quiet small', role: 'status' });
    this.select = h('select', { 'aria-label': 'Kind of span' }, ['', 'task', 'step', 'model', 'tool', 'wait', 'takeover'].map((one) => h('option', { value: one, selected: one === this.kind }, one || 'every kind')));
    this.select.addEventListener('change', () => this.list());
    this.table = new VirtualList({ label: 'Spans, the earliest first', row: 34, role: 'row', listRole: 'table', className: 'spans', draw: (el, n) => this.draw(el, n), open: (n) => this.open(this.shown[n].task, this.shown[n]) });
    const legend = [['task', 's-done'], ['model', 'k-model'], ['tool', 'k-tool'], ['wait', 'k-wait'], ['takeover', 'k-takeover']].map(([name, tone]) => h('span', { class: 'key' }, h('span', { class: `swatch ${tone}`, 'aria-hidden': 'true' }), name));
    this.el = h('div', { class: 'stack' },
      h('div', { class: 'panel' }, this.drawing.el, h('div', { class: 'row legend' }, legend, h('span', { class: 'quiet small' }, 'Drag to move, Ctrl and wheel or + − to enlarge'))),
      panel('All spans', this.table.el, { tools: h('div', { class: 'row' }, this.told, this.select) }));
    this.again = settled(() => this.load(), PAUSE);
    this.stop = model.on(({ entries, past }) => (entries || past) && this.soon());
    this.clock = setInterval(() => this.model.state && !hasEnded(this.model.state) && this.data && this.drawing.tick(), 500);
    this.load();
  }

  /** Looks again: at once where it was long ago, else when a look costs little of the time between. */
  soon() {
    if (this.loading) this.isStale = true;
    else if (Date.now() - (this.loadedAt ?? 0) > Math.max(PAUSE, 10 * (this.took ?? 0))) this.load();
    else this.again();
  }

  async load() {
    if (this.loading || this.isClosed) return;
    this.loading = true;
    const began = Date.now();
    try {
      const data = await get(at('runs', this.model.id, 'timeline'));
      if (this.isClosed) return;
      this.data = data;
      this.drawing.update(data, this.model.state ? !hasEnded(this.model.state) : false);
      this.list();
    } catch (error) {
      say(this.told, error.text ?? String(error));
    } finally {
      [this.loading, this.loadedAt, this.took] = [false, Date.now(), Date.now() - began];
      if (this.isStale) {
        this.isStale = false;
        this.soon();
      }
    }
  }

  list() {
    this.kind = this.select.value;
    const last = this.model.at === null ? Infinity : this.model.state?.decided_at ?? Infinity;
    this.shown = this.data.spans.filter((one) => (!this.kind || one.kind === this.kind) && one.start <= last).sort((a, b) => a.start - b.start);
    this.table.update(this.shown.length);
    this.table.el.setAttribute('aria-rowcount', this.shown.length);
    say(this.told, `${count(this.shown.length)} spans${this.data.cut ? ', cut: there are more' : ''}`);
  }

  draw(el, n) {
    const one = this.shown[n];
    if (!one) return;
    if (!el.parts) {
      el.parts = Array.from({ length: 7 }, (_, at7) => h('span', { role: 'cell', class: [1, 5].includes(at7) ? 'number' : 'cut' }));
      el.replaceChildren(h('div', { class: 'span-row', role: 'presentation' }, el.parts));
    }
    const texts = [one.kind, `+${span(one.start - this.data.from)}`, one.task, cut(one.name, 200), one.agent ?? '', one.end ? span(one.end - one.start) : 'lasts', one.tokens ? `${count(one.tokens)} tokens ${money(one.cost)}` : status(one.state)];
    texts.forEach((text, at7) => say(el.parts[at7], text));
    el.parts[0].className = `kind k-${one.kind}`;
    el.parts[6].className = `cut small ${one.tokens ? '' : `tone ${tone(one.state)}`}`;
  }

  open(task, one) {
    if (one?.step) this.inspector.step({ task, generation: one.gen, step: one.step });
    else this.inspector.task(task, { focus: true });
  }

  close() {
    this.isClosed = true;
    clearInterval(this.clock);
    this.stop();
    this.drawing.close();
    this.table.close();
  }
}

export const open = (context) => new When(context);
