// A recorded step is asked again with another prompt, model or temperature. Nothing of it touches the run.

import { button, empty, field, fill, h, panel } from './dom.js';
import { at, get, post, whyNot } from './api.js';
import { count, cut, money, short, shown, span } from './format.js';
import { instead, link } from './route.js';

const ROLES = ['system', 'user', 'assistant', 'tool'];

class Playground {
  constructor({ route }) {
    this.title = 'Playground';
    const { query } = route;
    const input = (name, type = 'text') => h('input', { type, name, value: query[name] ?? '', required: true, spellcheck: 'false', autocomplete: 'off' });
    this.which = { run: input('run'), task: input('task'), gen: input('gen', 'number'), step: input('step', 'number') };
    if (!this.which.gen.value) this.which.gen.value = '1';
    if (!this.which.step.value) this.which.step.value = '1';
    this.place = h('div', { class: 'stack' }, h('div', { class: 'panel' }, empty('Take any recorded step', 'Open a step of a run and press Playground there, or name one above.')));
    this.answers = h('div', { class: 'grid2', 'aria-live': 'polite' });
    this.el = [
      h('div', null, h('h1', null, 'Playground'), h('p', { class: 'lead' }, 'Take a step as it was recorded, change what the model is sent, and ask again. The run stays as it is.')),
      h('form', { class: 'toolbar', on: { submit: (event) => {
        event.preventDefault();
        this.load();
      } } }, h('div', { class: 'grow' }, field('Run', this.which.run)), field('Task', this.which.task), field('Generation', this.which.gen), field('Step', this.which.step), h('button', { class: 'button', type: 'submit' }, 'Take it')),
      this.place, this.answers,
    ];
    if (query.run && query.task) this.load();
  }

  chosen() {
    const { run, task, gen, step } = this.which;
    return { run: run.value.trim(), task: task.value.trim(), gen: Number(gen.value) || 1, step: Number(step.value) || 1 };
  }

  async load() {
    const chosen = this.chosen();
    instead(['playground'], chosen);
    fill(this.answers);
    try {
      const found = await get(at('runs', chosen.run, 'steps', chosen.task, chosen.gen, chosen.step));
      if (!found.prompt) fill(this.place, h('div', { class: 'panel' }, empty('No model was asked for this step', 'The offline rules need no prompt: take a step of a run with a model.')));
      else this.draw(found, chosen);
    } catch (error) {
      fill(this.place, h('div', { class: 'panel' }, empty('This step cannot be taken', error.text ?? String(error))));
    }
  }

  draw(found, chosen) {
    const { prompt } = found;
    this.messages = (prompt.messages ?? []).map((one) => ({ ...one }));
    const list = h('ol', { class: 'stack messages' });
    const rows = () => fill(list, this.messages.map((one, n) => {
      const role = h('select', { 'aria-label': `Who says message ${n + 1}` }, ROLES.map((name) => h('option', { value: name, selected: name === one.role }, name)));
      const content = h('textarea', { rows: Math.min(14, Math.max(3, Math.ceil(one.content.length / 90))), value: one.content, 'aria-label': `Message ${n + 1}` });
      role.addEventListener('change', () => { one.role = role.value; });
      content.addEventListener('input', () => { one.content = content.value; });
      return h('li', { class: 'stack tight' }, h('div', { class: 'row wide' }, h('div', null, role), button('Take out', () => {
        this.messages.splice(n, 1);
        rows();
      }, { kind: 'tiny plain' })), content);
    }));
    rows();
    const model = h('input', { type: 'text', value: prompt.model ?? '', spellcheck: 'false' });
    const temperature = h('input', { type: 'number', min: '0', max: '2', step: '0.1', value: prompt.parameters?.temperature ?? '' });
    const why = whyNot('playground');
    this.problem = h('p', { class: 'problem', role: 'alert' });
    const ask = h('button', { class: 'button main', type: 'submit', disabled: Boolean(why), title: why || null }, 'Ask again');
    const send = async (event) => {
      event.preventDefault();
      ask.disabled = true;
      ask.textContent = 'Asking …';
      this.problem.textContent = '';
      try {
        const body = { ...chosen, messages: this.messages };
        if (model.value.trim() && model.value.trim() !== prompt.model) body.model = model.value.trim();
        if (temperature.value !== '') body.temperature = Number(temperature.value);
        this.compare(await post('/api/playground', body));
      } catch (error) {
        this.problem.textContent = error.text ?? String(error);
      } finally {
        ask.disabled = false;
        ask.textContent = 'Ask again';
      }
    };
    fill(this.place, panel(`Task ${chosen.task}, step ${chosen.step}`, h('form', { class: 'body stack', on: { submit: send } },
      h('div', { class: 'toolbar' }, h('div', { class: 'grow' }, field('Model', model)), field('Temperature', temperature)),
      list, h('div', { class: 'row' }, button('Add a message', () => {
        this.messages.push({ role: 'user', content: '' });
        rows();
      }, { kind: 'tiny' })), this.problem, h('div', { class: 'row' }, ask, why ? h('span', { class: 'quiet' }, why) : null)),
    { tools: h('a', { href: link(['runs', chosen.run]) }, `run ${short(chosen.run)}`) }));
  }

  compare({ before, after, left }) {
    const calls = (all) => (all?.length ? h('pre', { class: 'block' }, shown(all)) : null);
    const usage = after.usage ?? {};
    fill(this.answers,
      panel('As it was', h('div', { class: 'body stack tight' }, h('p', { class: 'quiet small' }, before.model), h('pre', { class: 'block', tabindex: '0' }, cut(before.answer || '(no words)', 100000)))),
      panel('Now', h('div', { class: 'body stack tight' }, h('p', { class: 'quiet small' }, [after.model, span(after.millis), `${count(usage.input_tokens)} tokens in, ${count(usage.output_tokens)} out`, after.cost_micros === null || after.cost_micros === undefined ? '' : money(after.cost_micros), left === undefined ? '' : `${left} more this hour`].filter(Boolean).join(' · ')),
        h('pre', { class: 'block', tabindex: '0' }, cut(after.answer || '(no words)', 100000)), calls(after.tool_calls))));
    this.answers.scrollIntoView({ block: 'nearest' });
  }

  close() {}
}

export const open = (context) => new Playground(context);
