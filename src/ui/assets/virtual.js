// Long lists of rows of one height: only what is seen is built.

import { coalesced, h } from './dom.js';

/** Rows above and below what is seen that are built too. */
const BEYOND = 8;

/** Which rows are built, for a list that is scrolled so far. Pure. */
export function visible({ top, height, row, count, beyond = BEYOND }) {
  if (count <= 0 || row <= 0) return { first: 0, end: 0 };
  const first = Math.max(0, Math.min(count - 1, Math.floor(top / row)) - beyond);
  const end = Math.min(count, Math.ceil((top + Math.max(0, height)) / row) + beyond);
  return { first, end: Math.max(first, end) };
}

/** How far a list is to be scrolled so that a row is seen; as it is where the row is seen already. Pure. */
export function scrolled({ top, height, row, index }) {
  const [begin, end] = [index * row, (index + 1) * row];
  if (begin < top) return begin;
  if (end > top + height) return end - height;
  return top;
}

/** The row that a key leads to; null where the key is none of the list's. Pure. */
export function moved(key, { index, count, page }) {
  if (count === 0) return null;
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  if (!(key in steps)) return null;
  return Math.max(0, Math.min(count - 1, index + steps[key]));
}

/**
 * A list that is scrolled. `draw(el, index)` fills a row; `open(index)` is called when one is chosen; rows are `role`,
 * their list is `listRole`.
 */
export class VirtualList {
  constructor({ label, row, draw, open = null, role = 'listitem', listRole = 'list', className = '', key = null, follow = false }) {
    Object.assign(this, { row, draw, onOpen: open, role, key, follow });
    this.count = 0;
    this.current = 0;
    this.rows = new Map();
    this.spare = [];
    this.space = h('div', { class: 'space', role: 'presentation' });
    this.el = h('div', { class: `virtual ${className}`, role: listRole, 'aria-label': label, tabindex: '0' }, this.space);
    this.refresh = coalesced(() => this.render());
    this.el.addEventListener('scroll', () => this.scrolls(), { passive: true });
    this.el.addEventListener('keydown', (event) => this.press(event));
    this.el.addEventListener('click', (event) => this.click(event));
    this.sizes = new ResizeObserver(() => this.refresh());
    this.sizes.observe(this.el);
  }

  /** There are so many rows now, or they say something else. */
  update(count = this.count) {
    if (this.follow && count > this.count && (this.count || this.isTail) && !this.wantsEnd) this.wantsEnd = this.atEnd();
    this.count = count;
    this.current = Math.max(0, Math.min(this.current, count - 1));
    this.stale = true;
    this.refresh();
  }

  /** Whether its end is seen, of a list that is longer than its place. */
  atEnd() {
    const { scrollTop, clientHeight } = this.el;
    return this.isTail || (clientHeight < this.count * this.row && scrollTop + clientHeight >= this.count * this.row - this.row * 1.5);
  }

  scrolls() {
    this.isTail = this.isTail && this.el.scrollTop + this.el.clientHeight >= this.el.scrollHeight - this.row * 1.5;
    this.refresh();
  }

  /** Rows are of another height. */
  resize(row) {
    if (row === this.row) return;
    this.row = row;
    this.update();
  }

  render() {
    // Its height, how far it is scrolled and its rows change in one frame: else it is empty for the time between.
    const tall = `${this.count * this.row}px`;
    if (this.space.style.height !== tall) this.space.style.height = tall;
    if (this.wantsEnd) this.el.scrollTop = this.count * this.row;
    this.wantsEnd = false;
    const { scrollTop: top, clientHeight: height } = this.el;
    const { first, end } = visible({ top, height, row: this.row, count: this.count });
    for (const [index, el] of this.rows) {
      if (index < first || index >= end) {
        this.rows.delete(index);
        if (el.contains(document.activeElement)) this.el.focus({ preventScroll: true });
        el.remove();
        this.spare.push(el);
      }
    }
    const built = document.createDocumentFragment();
    for (let index = first; index < end; index += 1) {
      let el = this.rows.get(index);
      const isNew = !el;
      if (isNew) {
        el = this.spare.pop() ?? h('div', { role: this.role });
        this.rows.set(index, el);
        el.id = el.id || `${this.name()}-${(VirtualList.ids = (VirtualList.ids ?? 0) + 1)}`;
      }
      if (isNew || this.stale) {
        el.className = 'vrow';
        el.style.transform = `translateY(${index * this.row}px)`;
        el.style.height = `${this.row}px`;
        el.dataset.index = index;
        el.setAttribute(this.role === 'row' ? 'aria-rowindex' : 'aria-posinset', index + 1);
        if (this.role !== 'row') el.setAttribute('aria-setsize', this.count);
        this.draw(el, index);
      }
      el.classList.toggle('current', index === this.current);
      if (isNew) built.append(el);
    }
    this.spare.length = Math.min(this.spare.length, 60);
    this.stale = false;
    this.space.append(built);
    this.el.toggleAttribute('data-ready', true);
    const active = this.rows.get(this.current);
    if (active && this.isChosen) this.el.setAttribute('aria-activedescendant', active.id);
    else this.el.removeAttribute('aria-activedescendant');
  }

  name() {
    return this.role;
  }

  /** Makes a row the current one and brings it into sight. */
  show(index) {
    if (index < 0 || index >= this.count) return;
    this.current = index;
    this.isChosen = ['option', 'treeitem'].includes(this.role);
    const height = this.el.clientHeight;
    this.space.style.height = `${this.count * this.row}px`;
    this.el.scrollTop = scrolled({ top: this.el.scrollTop, height, row: this.row, index });
    this.refresh();
  }

  press(event) {
    if (event.target !== this.el && event.target.closest('input, textarea, select')) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.el.clientHeight / this.row) - 1);
    const to = moved(event.key, { index: this.current, count: this.count, page });
    if (to !== null) {
      event.preventDefault();
      this.show(to);
      this.onMove?.(to);
    } else if (event.key === 'Enter' && event.target === this.el && this.count) {
      event.preventDefault();
      this.onOpen?.(this.current);
    } else if (this.onKey?.(event, this.current)) {
      event.preventDefault();
    }
  }

  click(event) {
    const row = event.target.closest('.vrow');
    if (!row || event.target.closest('a, button, input')) return;
    this.current = Number(row.dataset.index);
    this.refresh();
    this.onOpen?.(this.current);
  }

  /** Lets go of what it listens to. */
  close() {
    this.sizes.disconnect();
  }
}
