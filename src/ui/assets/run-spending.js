// Tokens, money and time of a run by task, role, model and tool.

import { empty, fill, h, panel, settled, table } from './dom.js';
import { at, get } from './api.js';
import { count, money, short, span } from './format.js';

const N = (text) => [text, 'number'];

/** Calls, tokens and money of some usage, as cells. */
const used = (usage = {}) => [count((usage.model_calls ?? 0) + (usage.wasted_calls ?? 0)), count(usage.tool_calls), count(usage.input_tokens), count(usage.cached_tokens), count(usage.output_tokens), money(usage.cost_micros)];
const USED = [N('Model calls'), N('Tool calls'), N('Tokens in'), N('From cache'), N('Tokens out'), N('Cost')];

const KINDS = { work: 'agents at work', lost: 'work of agents that were lost', agent: 'waiting for an agent', decision: 'waiting for a decision', person: 'waiting for a person', pause: 'paused', child_run: 'waiting for a run within', guards: 'waiting for guards', bids: 'waiting for bids', room: 'waiting for room in a queue', clock: 'waiting for a time' };

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
      const told = await get(at('runs', this.model.id, 'explain'));
      if (!this.isClosed) this.draw(told);
    } catch (error) {
      fill(this.el, h('div', { class: 'panel' }, empty('Nothing to count', error.text ?? String(error))));
    }
  }

  draw({ cost, time }) {
    const { total, budget, spared } = cost;
    const tokens = (usage = {}) => (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
    const most = Math.max(1, ...cost.by_role.map((one) => tokens(one.usage)));
    const figure = (name, text, value) => h('div', null, h('dt', null, name), h('dd', { data: { figure: name, value } }, text));
    const savings = [[spared.model_calls, `${count(spared.model_calls)} calls were not made again (${money(spared.model_micros)})`], [spared.provider_micros, `caches of providers saved ${money(spared.provider_micros)}`], [spared.tool_calls, `${count(spared.tool_calls)} tool calls had an answer already (${span(spared.tool_ms)})`]].filter(([n]) => n).map(([, text]) => text);
    fill(this.el,
      h('dl', { class: 'figures', id: 'spent' }, figure('cost', money(total.cost_micros), total.cost_micros), figure('tokens in', count(total.input_tokens), total.input_tokens), figure('tokens out', count(total.output_tokens), total.output_tokens),
        figure('model calls', count(total.model_calls), total.model_calls), figure('tool calls', count(total.tool_calls), total.tool_calls), figure('time', span(time.total_ms), time.total_ms)),
      budget && Object.keys(budget).length ? h('p', { class: 'quiet' }, `Budget: ${Object.entries(budget).map(([name, value]) => `${name.replaceAll('_', ' ')} ${name.includes('micros') ? money(value) : count(value)}`).join(', ')}`) : null,
      savings.length ? h('p', { class: 'quiet' }, `Spared: ${savings.join('; ')}.`) : null,
      h('div', { class: 'grid2' },
        panel('Where the time went', h('div', { class: 'body stack tight' }, time.path_by_kind.length ? time.path_by_kind.map(([kind, ms]) => share(KINDS[kind] ?? kind, ms, time.total_ms, span(ms))) : h('p', { class: 'quiet' }, 'Nothing took time yet.'),
          h('p', { class: 'quiet small' }, 'Along the critical path: what would have to be quicker for the run to end sooner.'))),
        panel('By role', h('div', { class: 'body stack tight' }, cost.by_role.map((one) => share(one.role ?? 'runs within', tokens(one.usage), most, `${count(tokens(one.usage))} tokens · ${money(one.usage.cost_micros)}`))))),
      panel('By task', table('Use by task', ['Task', 'Role', ...USED], cost.by_task.map((one) => [one.task ?? (one.run ? `run ${short(one.run)}` : 'not known'), one.role ?? '', ...used(one.usage)]))),
      panel('By model', cost.by_model.length ? table('Use by model', ['Model', N('Time'), ...USED], cost.by_model.map((one) => [one.model, span(one.millis), ...used({ ...one.usage, model_calls: one.calls })])) : empty('No model was asked', 'The offline rules need none.')),
      panel('Tools', cost.tools.length ? table('Calls of tools', ['Tool', N('Calls'), N('Failed'), N('Timed out'), N('Refused'), N('Mean')], cost.tools.map((one) => [one.tool, count(one.calls), count(one.failed), count(one.timed_out), count(one.refused), one.mean_ms === null || one.mean_ms === undefined ? '–' : span(one.mean_ms)])) : empty('No tool was called', '')),
      panel('Critical path', table('Parts of the critical path', ['What', 'Task', 'Agent', N('From'), N('Time')], time.critical_path.slice(0, 400).map((one) => [KINDS[one.kind] ?? one.kind, one.task ?? '', one.agent ?? '', `+${span(one.from_ms)}`, span(one.millis)]))));
  }

  close() {
    this.isClosed = true;
    this.stop();
  }
}

export const open = (context) => new Spending(context);
