// Edits a plan before it is approved: tasks are dragged, or moved by keys, added, deleted, changed; the rules that it will be
// held to say at once what is wrong with it.

import { button, field, fill, h, say, settled } from './dom.js';
import { at, post } from './api.js';
import { plural } from './format.js';
import { added, closed, flat, moved, opened, removed, shifted } from './plan-draft.js';

const ROLES = ['worker', 'researcher'];

export class Editor {
  constructor(draft, run, isAllowed) {
    this.run = run;
    this.isAllowed = isAllowed;
    this.plan = opened(draft);
    this.first = JSON.stringify(closed(this.plan));
    this.keys = 0;
    this.rows = h('ul', { class: 'edit-tree', 'aria-label': 'Tasks of the plan' });
    this.form = h('div', { class: 'edit-form' });
    this.problems = h('ul', { class: 'problem plain', 'aria-live': 'polite' });
    this.changed = h('p', { class: 'quiet small', role: 'status' });
    this.check = settled(() => this.ask(), 250);
    this.el = h('div', { class: 'stack' },
      h('div', { class: 'row' }, button('Add a task', () => this.add(), { kind: 'tiny', why: isAllowed ? '' : 'your role may look at it only' }), this.changed),
      h('div', { class: 'edit-plan' }, this.rows, this.form), this.problems,
      isAllowed ? h('p', { class: 'quiet small' }, 'Drag tasks, or Alt and an arrow key: up, down, right below the one before, left out of the one above. Delete takes one out.') : null);
    this.draw();
    this.choose(this.plan.tasks[0]?.key);
  }

  draft() {
    return closed(this.plan);
  }

  isChanged() {
    return JSON.stringify(this.draft()) !== this.first;
  }

  /** Changes the plan and shows it. */
  change(change, focus) {
    change();
    this.draw();
    if (focus) this.rows.querySelector(`[data-key="${focus}"]`)?.focus();
    this.check();
  }

  add() {
    const key = `n${++this.keys}`;
    this.change(() => added(this.plan, this.chosen, key));
    this.choose(key);
    this.form.querySelector('input')?.select();
  }

  remove(key) {
    const all = flat(this.plan.tasks);
    const n = all.findIndex(({ task }) => task.key === key);
    this.change(() => removed(this.plan, key));
    const left = flat(this.plan.tasks);
    const next = left[Math.min(n, left.length - 1)]?.task.key;
    this.choose(next);
    if (next) this.rows.querySelector(`[data-key="${next}"]`)?.focus();
  }

  draw() {
    const all = flat(this.plan.tasks);
    const byKey = new Map(all.map(({ task, index }) => [task.key, index]));
    say(this.changed, this.isChanged() ? `Changed: ${plural(all.length, 'task')}` : plural(all.length, 'task'));
    fill(this.rows, all.map(({ task, index, level }) => {
      const needs = task.needs.map((need) => byKey.get(need) ?? need);
      const row = h('button', { class: `edit-row${task.key === this.chosen ? ' chosen' : ''}`, type: 'button', data: { key: task.key }, draggable: this.isAllowed ? 'true' : null, 'aria-pressed': String(task.key === this.chosen) },
        h('span', { class: 'quiet index' }, index), h('span', { class: 'cut' }, task.rest.name), h('span', { class: 'quiet small nowrap' }, [task.below.length ? '' : task.rest.role, needs.length ? `after ${needs.join(', ')}` : ''].filter(Boolean).join(' · ')));
      row.style.marginInlineStart = `${(level - 1) * 1.2}rem`;
      this.listen(row, task.key);
      return h('li', null, row);
    }));
  }

  listen(row, key) {
    row.addEventListener('click', () => this.choose(key));
    if (!this.isAllowed) return;
    row.addEventListener('keydown', (event) => {
      const way = { ArrowUp: 'up', ArrowDown: 'down', ArrowRight: 'in', ArrowLeft: 'out' }[event.key];
      if (event.altKey && way) this.change(() => shifted(this.plan, key, way), key);
      else if (event.key === 'Delete') this.remove(key);
      else if (!event.altKey && (way === 'up' || way === 'down')) {
        const all = [...this.rows.querySelectorAll('.edit-row')];
        all[all.indexOf(row) + (way === 'up' ? -1 : 1)]?.focus();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    row.addEventListener('dragstart', (event) => {
      this.dragged = key;
      event.dataTransfer.effectAllowed = 'move';
      event.dataTransfer.setData('text/plain', key);
    });
    const where = (event) => {
      const part = event.offsetY / Math.max(1, row.clientHeight);
      return part < 0.28 ? 'before' : part > 0.72 ? 'after' : 'into';
    };
    row.addEventListener('dragover', (event) => {
      if (!this.dragged || this.dragged === key) return;
      event.preventDefault();
      row.dataset.drop = where(event);
    });
    row.addEventListener('dragleave', () => delete row.dataset.drop);
    row.addEventListener('drop', (event) => {
      event.preventDefault();
      const dragged = this.dragged;
      this.dragged = null;
      this.change(() => moved(this.plan, dragged, where(event), key), dragged);
    });
    row.addEventListener('dragend', () => {
      this.dragged = null;
      delete row.dataset.drop;
    });
  }

  choose(key) {
    this.chosen = key;
    for (const row of this.rows.querySelectorAll('.edit-row')) {
      row.classList.toggle('chosen', row.dataset.key === key);
      row.setAttribute('aria-pressed', String(row.dataset.key === key));
    }
    const all = flat(this.plan.tasks);
    const found = all.find(({ task }) => task.key === key);
    if (!found) {
      fill(this.form, h('p', { class: 'quiet' }, 'No task is chosen.'));
      return;
    }
    const { task } = found;
    const byKey = new Map(all.map(({ task: one, index }) => [one.key, index]));
    const byIndex = new Map(all.map(({ task: one, index }) => [index, one.key]));
    const set = (name, input) => input.addEventListener('input', () => {
      task.rest[name] = input.value;
      this.draw();
      this.check();
    });
    const off = this.isAllowed ? null : true;
    const name = h('input', { type: 'text', name: 'name', value: task.rest.name ?? '', disabled: off });
    const goal = h('textarea', { rows: '4', name: 'goal', value: task.rest.goal ?? '', disabled: off });
    const roles = [...new Set([...ROLES, task.rest.role].filter(Boolean))];
    const listId = 'roles-known';
    const role = h('input', { type: 'text', name: 'role', value: task.rest.role ?? '', list: listId, disabled: off });
    const needs = h('input', { type: 'text', name: 'needs', value: task.needs.map((need) => byKey.get(need) ?? need).join(', '), disabled: off });
    set('name', name);
    set('goal', goal);
    set('role', role);
    needs.addEventListener('change', () => {
      task.needs = needs.value.split(',').map((one) => one.trim()).filter(Boolean).map((one) => byIndex.get(one) ?? one);
      this.draw();
      this.check();
    });
    fill(this.form, field('Name', name), field('Goal', goal), task.below.length ? null : field('Role', role), h('datalist', { id: listId }, roles.map((one) => h('option', { value: one }))), field('Needs', needs, 'Places of tasks that must end before it, with commas between them.'),
      this.isAllowed ? h('div', { class: 'row' }, ...[['↑', 'up', 'Up'], ['↓', 'down', 'Down'], ['→', 'in', 'Below the one before'], ['←', 'out', 'Out of the one above']].map(([mark, way, word]) => button(mark, () => this.change(() => shifted(this.plan, key, way)), { kind: 'tiny', name: word })), button('Delete', () => this.remove(key), { kind: 'tiny danger' })) : null);
  }

  async ask() {
    try {
      const { problems } = await post(at('runs', this.run, 'plan', 'check'), { plan: this.draft() });
      fill(this.problems, problems.map((text) => h('li', null, text)));
    } catch (error) {
      fill(this.problems, h('li', null, error.text ?? String(error)));
    }
  }
}
