// Reflections of a run, changes of its plan, and lessons from earlier runs.

import { button, empty, fill, h, panel } from './dom.js';
import { cut, short, shown } from './format.js';
import { link } from './route.js';

class Findings {
  constructor({ model, inspector }) {
    Object.assign(this, { model, inspector });
    this.el = h('div', { class: 'stack' });
    this.stop = model.on(({ past, found }) => {
      if (past || found?.size) this.draw();
    });
    this.draw();
  }

  draw() {
    const { state } = this.model;
    if (!state) return;
    const reflections = Object.entries(state.reflections ?? {});
    const refinements = state.refinements ?? [];
    const lessons = Array.isArray(state.lessons) ? state.lessons : Object.values(state.lessons ?? {});
    const task = (id) => button(id, () => this.inspector.task(id, { focus: true }), { kind: 'tiny' });
    fill(this.el,
      panel('What was learnt', reflections.length ? h('ul', { class: 'body stack' }, reflections.map(([id, one]) => h('li', { class: 'row top' }, task(id), h('div', null, h('p', null, cut(one.summary, 1500)), [...(one.on_plan ?? []), ...(one.uncovered ?? [])].length ? h('ul', { class: 'plain' }, [...(one.on_plan ?? []), ...(one.uncovered ?? [])].map((text) => h('li', null, cut(shown(text), 500)))) : null, (one.lessons ?? []).length ? h('ul', { class: 'plain' }, one.lessons.map((text) => h('li', null, h('strong', null, 'Lesson: '), cut(shown(text), 500)))) : null)))) : empty('Nothing yet', 'Tasks are reflected on when something went wrong or stayed open.')),
      panel('Changes of plan', refinements.length ? h('ol', { class: 'body stack' }, refinements.map(([changes, refused]) => h('li', null, h('ul', { class: 'plain' }, [...(changes ?? []).map((text) => h('li', null, shown(text))), ...(refused ?? []).map((one) => h('li', { class: 'problem' }, `refused: ${shown(one.reason ?? one)}`))])))) : empty('None', 'The plan stands as it was made.')),
      panel('Lessons of earlier runs', lessons.length ? h('ul', { class: 'body stack tight' }, lessons.map((one) => h('li', null, cut(shown(one.text ?? one.lesson ?? one), 600), one.run ? [' ', h('a', { href: link(['runs', one.run]) }, short(one.run))] : null))) : empty('None were given', 'The planner is given lessons of runs with a like goal.')));
  }

  close() {
    this.stop();
  }
}

export const open = (context) => new Findings(context);
