// The record of a run, entry by entry.

import { h, say, settled } from './dom.js';
import { clock, count, short } from './format.js';
import { VirtualList } from './virtual.js';

const KINDS = ['', 'decided', 'offered', 'started', 'tool', 'step', 'released', 'outcome', 'unreadable'];

/** Whether an entry is looked for. Pure. */
export function fits(entry, { kind, words }) {
  if (kind && entry.kind !== kind) return false;
  if (!words.length) return true;
  const text = `${entry.seq} ${entry.task} ${entry.by} ${entry.kind} ${entry.text}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

class RecordTab {
  constructor({ model, inspector, query }) {
    Object.assign(this, { model, inspector });
    this.wanted = query.seq ? Number(query.seq) : null;
    this.search = h('input', { type: 'search', value: query.q ?? '', 'aria-label': 'Search the record', placeholder: 'task, agent, words', spellcheck: 'false' });
    this.kind = h('select', { 'aria-label': 'Kind of entry' }, KINDS.map((one) => h('option', { value: one }, one ? one.replaceAll('_', ' ') : 'every kind')));
    this.told = h('span', { class: 'quiet small', role: 'status' });
    this.list = new VirtualList({ label: 'Entries of the record', row: 32, className: 'entries', follow: true, draw: (el, n) => this.draw(el, n), open: (n) => this.open(n) });
    this.list.onMove = (n) => !inspector.el.hidden && this.open(n, false);
    this.search.addEventListener('input', settled(() => this.narrow(), 120));
    this.kind.addEventListener('change', () => this.narrow());
    this.el = h('div', { class: 'stack' }, h('div', { class: 'toolbar' }, h('div', { class: 'grow' }, this.search), h('div', null, this.kind), this.told), h('div', { class: 'panel fit' }, this.list.el));
    this.stop = model.on(({ entries, past }) => (entries || past) && this.narrow());
    model.begin();
    this.narrow();
  }

  update(query) {
    if (query.seq) {
      this.wanted = Number(query.seq);
      this.narrow();
    }
  }

  narrow() {
    const how = { kind: this.kind.value, words: this.search.value.toLowerCase().split(/\s+/).filter(Boolean) };
    const last = this.model.at ?? Infinity;
    const isAll = !how.kind && !how.words.length && last === Infinity;
    this.shown = isAll ? this.model.entries : this.model.entries.filter((entry) => entry.seq <= last && fits(entry, how));
    this.list.update(this.shown.length);
    const all = this.model.isWhole ? '' : ` of ${count(this.model.state?.entries)}, reading on`;
    say(this.told, `${count(this.shown.length)} entries${all}`);
    if (this.wanted !== null) {
      const n = this.shown.findIndex((entry) => entry.seq >= this.wanted);
      if (n >= 0) {
        this.list.show(n);
        this.inspector.entry(this.shown[n].seq);
        this.wanted = null;
      }
    }
  }

  draw(el, n) {
    const entry = this.shown[n];
    if (!entry) return;
    if (!el.parts) {
      el.parts = ['seq number', 'time', 'kind', 'task cut', 'text cut', 'by cut quiet'].map((name) => h('span', { class: name }));
      el.replaceChildren(h('div', { class: 'entry-row' }, el.parts));
    }
    const within = entry.run && this.model.state && entry.run !== this.model.state.id ? ` (run ${short(entry.run)})` : '';
    const texts = [entry.seq, clock(entry.at, true), entry.kind.replaceAll('_', ' '), entry.task + within, entry.text, entry.by];
    texts.forEach((text, at6) => say(el.parts[at6], text));
    el.parts[2].className = `kind k-${entry.tone}`;
    el.dataset.seq = entry.seq;
  }

  open(n, focus = true) {
    const entry = this.shown[n];
    if (!entry) return;
    if (entry.kind === 'step' && entry.step) this.inspector.step(entry, { focus });
    else this.inspector.entry(entry.seq);
  }

  close() {
    this.stop();
    this.list.close();
  }
}

export const open = (context) => new RecordTab(context);
