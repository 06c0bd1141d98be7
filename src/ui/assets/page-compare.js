// Two runs side by side.

import { empty, fill, h, panel, table } from './dom.js';
import { at, get } from './api.js';
import { count, date, duration, money, plural, short, span, status, tone } from './format.js';
import { byIndex } from './layout.js';
import { link } from './route.js';
import { total } from './page-runs.js';

const of = (usage, name) => usage?.[name] ?? 0;

/** What is compared: name, the number of a run, how it is written, whether less is better. Pure. */
const MEASURES = [
  ['Time', (run) => duration(run), span, true],
  ['Cost', (run) => of(run.usage, 'cost_micros'), money, true],
  ['Tokens in', (run) => of(run.usage, 'input_tokens'), count, true],
  ['Tokens out', (run) => of(run.usage, 'output_tokens'), count, true],
  ['Model calls', (run) => of(run.usage, 'model_calls'), count, true],
  ['Tool calls', (run) => of(run.usage, 'tool_calls'), count, null],
  ['Steps', (run) => of(run.usage, 'steps'), count, null],
  ['Tasks', (run) => total(run.count ?? {}), count, null],
  ['Tasks done', (run) => of(run.count, 'done'), count, false],
  ['Tasks failed', (run) => of(run.count, 'failed'), count, true],
  ['Entries', (run) => run.entries ?? 0, count, null],
];

/** How far one number is from another, in words: `+12 %`. Pure. */
export function change(a, b) {
  if (a === b) return 'same';
  if (!a) return '';
  const by = (100 * (b - a)) / a;
  return `${by > 0 ? '+' : '−'}${Math.abs(by) < 10 ? Math.abs(by).toFixed(1) : Math.round(Math.abs(by))} %`;
}

class Compare {
  constructor({ route }) {
    this.title = 'Compare';
    this.body = h('div', { class: 'stack' }, h('p', { class: 'quiet' }, 'Reading …'));
    this.el = [h('h1', null, 'Two runs'), this.body];
    get(at('runs', route.id, 'compare', route.other)).then((told) => this.draw(told)).catch((error) => fill(this.body, h('div', { class: 'panel' }, empty('These cannot be compared', error.text ?? String(error)))));
  }

  draw({ a, b }) {
    const side = (run, name) => panel(`${name}: run ${short(run.run)}`, h('div', { class: 'body stack tight' }, h('p', null, h('a', { href: link(['runs', run.run]) }, run.goal)), h('p', { class: 'row' }, h('span', { class: `pill ${tone(run.status)}` }, status(run.status)), h('span', { class: 'quiet' }, date(run.created_at)), (run.models ?? []).join(', ')),
      run.report ? h('p', null, run.report) : null, h('ul', { class: 'told small' }, Object.entries(run.summaries ?? {}).sort(([x], [y]) => byIndex(x, y)).slice(0, 60).map(([task, one]) => h('li', null, h('strong', null, task), ' ', one.short)))));
    const row = ([name, value, text, less]) => {
      const [x, y] = [value(a), value(b)];
      const better = less === null || x === y ? '' : (y < x) === less ? 's-done' : 's-failed';
      return [name, text(x), text(y), h('span', { class: better ? `tone ${better}` : null }, change(x, y), better ? h('span', { class: 'sr' }, better === 's-done' ? ' (better)' : ' (worse)') : null)];
    };
    const models = [...new Set([...(a.cost?.by_model ?? []), ...(b.cost?.by_model ?? [])].map((one) => one.model))];
    const perModel = (run, model) => (run.cost?.by_model ?? []).find((one) => one.model === model);
    fill(this.body, h('div', { class: 'grid2' }, side(a, 'A'), side(b, 'B')),
      panel('Figures', table('Figures of both runs', ['Figure', ['A', 'number'], ['B', 'number'], ['B against A', 'number']], MEASURES.map(row))),
      models.length ? panel('By model', table('Models of both runs', ['Model', ['A', 'number'], ['B', 'number']], models.map((model) => [model, ...[a, b].map((run) => {
        const one = perModel(run, model);
        return one ? `${plural(one.calls, 'call')}, ${money(one.usage.cost_micros)}` : '–';
      })]))) : null);
  }

  close() {}
}

export const open = (context) => new Compare(context);
