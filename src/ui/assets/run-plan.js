// The plan of a run: as a tree and as a graph, both live.

import { empty, fill, h, say } from './dom.js';
import { cut, oneLine, status, tone } from './format.js';
import { Graph } from './graph.js';
import { nodes, rows } from './layout.js';
import { VirtualList } from './virtual.js';

class Plan {
  constructor({ model, inspector, query }) {
    Object.assign(this, { model, inspector });
    this.closed = new Set();
    this.rows = [];
    this.tree = new VirtualList({ label: 'Tasks of the plan', row: 44, role: 'treeitem', listRole: 'tree', className: 'tree', draw: (el, n) => this.draw(el, n), open: (n) => this.press(n) });
    this.tree.el.addEventListener('click', (event) => {
      const row = this.rows[Number(event.target.closest('.vrow')?.dataset.index)];
      if (!event.target.classList.contains('fold') || !row?.isParent) return;
      event.stopImmediatePropagation();
      this.fold(row.id, !row.isClosed);
    }, true);
    this.tree.onKey = (event, n) => this.key(event, n);
    this.tree.onMove = (n) => {
      this.graph.choose(this.rows[n]?.id);
      if (!inspector.el.hidden) this.open(this.rows[n]?.id, false);
    };
    this.graph = new Graph({ open: (id) => this.open(id) });
    this.phases = h('div', { class: 'phases' });
    this.none = h('div', { class: 'panel', hidden: true });
    this.both = h('div', { class: 'plan' }, h('div', { class: 'panel tree-box' }, this.tree.el), h('div', { class: 'panel graph-box' }, this.graph.el));
    this.el = h('div', { class: 'stack' }, this.phases, this.none, this.both);
    this.stop = model.on((what) => this.changed(what));
    this.wanted = query.task ?? null;
    if (model.state) this.all();
  }

  update(query) {
    if (query.task) this.open(query.task);
  }

  changed({ tasks, state, doing }) {
    if (state && tasks === null) this.all();
    else if (tasks?.length) this.some(tasks);
    if (doing?.length) this.tree.update();
  }

  all() {
    const { state } = this.model;
    this.nodes = nodes(state.plan, state.tasks);
    const has = this.nodes.length > 0;
    this.none.hidden = has;
    this.both.hidden = !has;
    if (!has) fill(this.none, empty('No plan yet', state.phase === 'ended' ? 'The run ended without one.' : 'The planner is at it, or one agent does the goal on its own.'));
    this.drawPhases();
    this.list();
    this.graph.update(this.nodes);
    if (this.wanted && state.tasks[this.wanted]) {
      this.open(this.wanted);
      this.wanted = null;
    }
  }

  some(tasks) {
    const { state } = this.model;
    const changed = new Set(tasks);
    for (const node of this.nodes ?? []) {
      if (!changed.has(node.id)) continue;
      node.status = state.tasks[node.id]?.status ?? 'created';
      this.graph.state(node.id, node.status);
    }
    for (const row of this.rows) if (changed.has(row.id)) row.status = state.tasks[row.id]?.status ?? 'created';
    this.drawPhases();
    this.tree.update();
  }

  /** What is done around the tasks: planning, reflecting, refining, writing. */
  drawPhases() {
    const around = Object.entries(this.model.state.tasks ?? {}).filter(([id]) => !/^\d/.test(id));
    const groups = new Map();
    for (const [id, task] of around) {
      const name = id.replace(/-\d.*$/, '');
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push([id, task]);
    }
    const told = [...groups].map(([name, all]) => {
      const open = all.filter(([, task]) => !['completed', 'failed', 'aborted', 'skipped'].includes(task.status));
      const shown = (open[0] ?? all.at(-1))[1].status;
      return { name, text: `${name}${all.length > 1 ? ` × ${all.length}` : ''}: ${status(shown)}`, tone: tone(shown), id: (open[0] ?? all.at(-1))[0] };
    });
    const said = told.map((one) => one.text).join();
    if (said === this.phasesSaid) return;
    this.phasesSaid = said;
    fill(this.phases, told.map((one) => h('button', { class: `pill ${one.tone}`, type: 'button', on: { click: () => this.open(one.id) } }, one.text)));
  }

  list() {
    this.rows = rows(this.nodes, this.closed);
    this.tree.update(this.rows.length);
  }

  draw(el, n) {
    const row = this.rows[n];
    if (!row) return;
    if (!el.parts) {
      el.parts = { fold: h('span', { class: 'fold', 'aria-hidden': 'true' }), mark: h('span', { class: 'mark', 'aria-hidden': 'true' }), title: h('span', { class: 'cut' }), about: h('span', { class: 'quiet small cut' }), pill: h('span', { class: 'pill' }) };
      const { fold, mark, title, about, pill } = el.parts;
      fill(el, h('div', { class: 'tree-row' }, fold, mark, h('div', { class: 'what' }, title, about), pill));
    }
    const { fold, mark, title, about, pill } = el.parts;
    el.dataset.task = row.id;
    el.dataset.status = row.status;
    el.setAttribute('aria-level', row.level);
    if (row.isParent) el.setAttribute('aria-expanded', String(!row.isClosed));
    else el.removeAttribute('aria-expanded');
    el.setAttribute('aria-selected', String(this.inspector.shown?.task === row.id));
    el.firstChild.style.paddingInlineStart = `${(row.level - 1) * 18 + 8}px`;
    say(fold, row.isParent ? (row.isClosed ? '▸' : '▾') : '');
    mark.className = `mark ${tone(row.status)}`;
    say(title, cut(row.title, 200));
    const task = this.model.state.tasks[row.id];
    const doing = this.model.doing.get(row.id);
    const now = task?.status === 'processing' && doing ? doing.text ?? doing.status ?? oneLine(doing.answer ?? doing.thought ?? '', 160) : '';
    say(about, now || [row.id, row.role, task?.agent, task?.generation > 1 ? `generation ${task.generation}` : ''].filter(Boolean).join(' · '));
    pill.className = `pill ${tone(row.status)}`;
    say(pill, status(row.status));
  }

  key(event, n) {
    const row = this.rows[n];
    if (!row) return false;
    if (event.key === 'ArrowLeft') {
      if (row.isParent && !row.isClosed) this.fold(row.id, true);
      else this.tree.show(this.rows.findIndex((one) => one.id === row.parent));
      return true;
    }
    if (event.key === 'ArrowRight') {
      if (row.isParent && row.isClosed) this.fold(row.id, false);
      else if (row.isParent) this.tree.show(n + 1);
      return true;
    }
    return false;
  }

  /** A row is opened; pressed on its mark, what is below it is folded away. */
  press(n) {
    this.open(this.rows[n]?.id);
  }

  fold(id, isClosed) {
    if (isClosed) this.closed.add(id);
    else this.closed.delete(id);
    this.list();
  }

  open(id, focus = true) {
    if (!id) return;
    this.inspector.task(id, { focus });
    this.graph.choose(id);
    const n = this.rows.findIndex((row) => row.id === id);
    if (n >= 0) this.tree.show(n);
    this.tree.update();
  }

  close() {
    this.stop();
    this.tree.close();
    this.graph.close();
  }
}

export const open = (context) => new Plan(context);
