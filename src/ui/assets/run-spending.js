// Tokens, money and time of a run by task, role, model and tool.

import { empty, fill, h, panel, settled, table } from './dom.js';
import { at, get } from './api.js';
import { count, money, short, span } from './format.js';

const N = (text) => [text, 'number'];

/** Calls, tokens and money of some usage, as cells. */
const used = (usage = {}) => [count((usage.model_calls ?? 0) + (usage.wasted_calls ?? 0)), count(usage.tool_calls), count(usage.input_tokens), count(usage.cached_tokens), count(usage.output_tokens), money(usage.cost_micros)];
const USED = [N('Model calls'), N('Tool calls'), N('Tokens in'), N('From cache'), N('Tokens out'), N('Cost')];

const PHASES = { planning: 'planning', executing: 'execution', writing: 'writing', ended: 'after the end' };

/** A share as a bar with its words. */
function share(name, value, whole, text, tone = '') {
  const bar = h('span');
  bar.style.width = `${whole ? Math.min(100, (100 * value) / whole) : 0}%`;
  return h('div', { class: `share ${tone}` }, h('span', { class: 'cut' }, name), h('div', { class: 'meter', 'aria-hidden': 'true' }, bar), h('span', { class: 'number' }, text));
}

class Spending {
  constructor({ model }) {
    this.model = model;
    this.el = h('div', { class: 'stack' }, h('p', { class: 'quiet' }, 'Counting …'));
    const again = settled(() => this.load(), 1000);
    this.stop = model.on(({ state, live }) => state && live && again());
    this.load();
  }

  async load() {
    try {
      const explained = await get(at('runs', this.model.id, 'explain'));
      if (!this.isClosed) this.draw(explained);
    } catch (error) {
      fill(this.el, h('div', { class: 'panel' }, empty('Nothing to count', error.text ?? String(error))));
    }
  }

  draw({ cost, phases, total_ms: totalMs }) {
    const { total, budget } = cost;
    const tools = Object.entries(cost.tools);
    const sum = (field) => tools.reduce((all, [, one]) => all + (one[field] ?? 0), 0);
    const tokens = (usage = {}) => (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
    const most = Math.max(1, ...cost.by_role.map((one) => tokens(one.usage)));
    const figure = (name, text, value) => h('div', null, h('dt', null, name), h('dd', { data: { figure: name, value } }, text));
    const savings = [[total.reused_calls, `${count(total.reused_calls)} model calls were reused (${money(total.reused_micros)})`], [total.saved_micros, `provider caches saved ${money(total.saved_micros)}`], [sum('cached'), `${count(sum('cached'))} tool calls were reused (${span(sum('saved_ms'))})`]].filter(([n]) => n).map(([, text]) => text);
    fill(this.el,
      h('dl', { class: 'figures', id: 'spent' }, figure('cost', money(total.cost_micros), total.cost_micros), figure('tokens in', count(total.input_tokens), total.input_tokens), figure('tokens out', count(total.output_tokens), total.output_tokens),
        figure('model calls', count(total.model_calls), total.model_calls), figure('tool calls', count(total.tool_calls), total.tool_calls), figure('time', span(totalMs), totalMs)),
      budget && Object.keys(budget).length ? h('p', { class: 'quiet' }, `Budget: ${Object.entries(budget).map(([name, value]) => `${name.replaceAll('_', ' ')} ${name.includes('micros') ? money(value) : count(value)}`).join(', ')}`) : null,
      savings.length ? h('p', { class: 'quiet' }, `Saved: ${savings.join('; ')}.`) : null,
      h('div', { class: 'grid2' },
        panel('Time by phase', h('div', { class: 'body stack tight' }, phases.map((one) => share(`${PHASES[one.phase] ?? one.phase}${one.paused ? ', paused' : ''}`, one.millis, totalMs, span(one.millis))))),
        panel('By role', h('div', { class: 'body stack tight' }, cost.by_role.map((one) => share(one.role ?? 'child runs', tokens(one.usage), most, `${count(tokens(one.usage))} tokens · ${money(one.usage.cost_micros)}`))))),
      panel('By task', table('Use by task', ['Task', 'Role', ...USED, N('Model time'), N('Tool time')], cost.by_task.map((one) => [one.task ?? (one.run ? `run ${short(one.run)}` : 'not known'), one.role ?? '', ...used(one.usage), span(one.model_ms), span(one.tool_ms)]))),
      panel('By model', cost.by_model.length ? table('Use by model', ['Model', N('Time'), ...USED], cost.by_model.map((one) => [one.model, span(one.millis), ...used({ ...one.usage, model_calls: one.calls })])) : empty('No model was asked', 'The offline rules need none.')),
      panel('Tools', tools.length ? table('Calls of tools', ['Tool', N('Calls'), N('Failed'), N('Timed out'), N('Refused')], tools.map(([tool, one]) => [tool, count(one.calls), count(one.failures), count(one.timeouts), count(one.refused)])) : empty('No tool was called', '')));
  }

  close() {
    this.isClosed = true;
    this.stop();
  }
}

export const open = (context) => new Spending(context);
