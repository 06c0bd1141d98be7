// The conversation that a run is a turn of: what was asked and answered before it, and what is asked next.

import { field, fill, h } from './dom.js';
import { at, get, post, whyNot } from './api.js';
import { hasEnded, short, status } from './format.js';
import { render } from './markdown.js';
import { go, link } from './route.js';

const turn = (who, name, ...body) => h('li', { class: `turn by-${who}` }, h('p', { class: 'small quiet' }, name), body);

class Chat {
  constructor({ model }) {
    this.model = model;
    this.turns = h('ol', { class: 'turns', 'aria-label': 'Conversation' });
    const why = whyNot('run');
    this.input = h('textarea', { rows: '3', name: 'next', disabled: Boolean(why) });
    this.problem = h('p', { class: 'problem', role: 'alert' });
    this.send = h('button', { class: 'button main', type: 'submit', disabled: Boolean(why), title: why || null }, 'Ask');
    this.input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
    this.form = h('form', { class: 'stack', on: { submit: (event) => this.ask(event) } }, field('What is to be done next', this.input, why || 'It follows from this run: what was found stays known. Ctrl and Enter ask.'), this.problem, h('div', { class: 'row' }, this.send));
    this.el = h('div', { class: 'chat stack' }, this.turns, this.form);
    this.stop = model.on(({ state }) => state && this.draw());
    this.draw();
  }

  async draw() {
    const { state } = this.model;
    if (!state) return;
    const key = `${state.id} ${status(state.status)}`;
    if (key === this.key) return;
    this.key = key;
    const earlier = (state.goal?.conversation ?? []).flatMap((one) => [
      turn('person', h('a', { href: link(['runs', one.run, 'chat']) }, `run ${short(one.run)}`), h('p', { class: 'prewrap' }, one.asked)), turn('fleet', 'answer', render(one.answered))]);
    this.answer = turn('fleet', hasEnded(state) ? 'answer' : `${status(state.status)} …`, h('p', { class: 'quiet' }, hasEnded(state) ? state.reason ?? 'There is no report.' : 'The answer comes when the run has ended.'));
    fill(this.turns, earlier, turn('person', `run ${short(state.id)}`, h('p', { class: 'prewrap' }, state.goal?.text ?? '')), this.answer);
    this.form.hidden = !hasEnded(state);
    if (!hasEnded(state)) return;
    const report = await get(at('runs', this.model.id, 'report')).catch(() => null);
    if (report && this.key === key) fill(this.answer, h('p', { class: 'small quiet' }, 'answer'), render(report.markdown, { cite: (text) => this.cite(report, text) }), h('p', null, h('a', { href: link(['runs', this.model.id, 'report']) }, 'With its sources')));
  }

  cite(report, text) {
    if (!(report.citations ?? []).some((one) => one.cite === text)) return null;
    return h('a', { class: 'cite', href: link(['runs', this.model.id, 'report'], { source: text }) }, text);
  }

  async ask(event) {
    event.preventDefault();
    if (!this.input.value.trim()) return;
    this.send.disabled = true;
    this.problem.textContent = '';
    try {
      const { run } = await post('/api/runs', { goal: this.input.value, continue: this.model.id });
      go(['runs', run, 'chat']);
    } catch (error) {
      this.problem.textContent = error.text ?? String(error);
    } finally {
      this.send.disabled = false;
    }
  }

  close() {
    this.stop();
  }
}

export const open = (context) => new Chat(context);
