// Beside a run: one of its tasks or steps, with all there is to know of it.

import { button, confirm, fill, h, note, say } from './dom.js';
import { at, get, post, query, whyNot } from './api.js';
import { count, cut, hasEnded, money, oneLine, span, status, tone } from './format.js';
import { go, link } from './route.js';
import { step as drawStep } from './step.js';

const list = (title, all, draw = (one) => one) => (all?.length ? h('div', null, h('h3', null, title), h('ul', { class: 'plain' }, all.map((one) => h('li', null, draw(one))))) : null);
const text = (title, value) => (value ? h('div', null, h('h3', null, title), h('p', { class: 'prewrap' }, value)) : null);

export class Inspector {
  constructor(model, { open, isPast }) {
    Object.assign(this, { model, open, isPast });
    this.heading = h('h2', { tabindex: '-1' });
    this.body = h('div', { class: 'body stack' });
    this.el = h('aside', { class: 'panel inspector', 'aria-label': 'Details', hidden: true },
      h('header', null, this.heading, button('Close', () => this.hide(), { kind: 'tiny plain', name: 'Close the details' })), this.body);
    this.stop = model.on((what) => this.changed(what));
  }

  changed({ tasks, doing, past }) {
    if (this.shown?.kind !== 'task') return;
    if (past || tasks === null || tasks?.includes(this.shown.task)) this.drawTask();
    if (doing?.includes(this.shown.task)) this.drawDoing();
  }

  begin(shown, title) {
    if (this.el.hidden) this.before = document.activeElement;
    this.shown = shown;
    this.el.hidden = false;
    this.el.parentElement?.classList.add('with-inspector');
    say(this.heading, title);
  }

  hide() {
    if (this.el.hidden) return;
    this.el.hidden = true;
    this.shown = null;
    this.el.parentElement?.classList.remove('with-inspector');
    this.before?.focus?.({ preventScroll: true });
    this.onHide?.();
  }

  /** Shows a task. */
  task(task, { focus = false } = {}) {
    this.begin({ kind: 'task', task }, `Task ${task}`);
    this.drawTask();
    if (focus) this.heading.focus({ preventScroll: true });
  }

  drawTask() {
    const { task } = this.shown;
    const { state } = this.model;
    const planned = state?.plan?.tasks?.[task];
    const found = state?.tasks?.[task] ?? {};
    const { outcome } = found;
    const result = outcome?.product?.result;
    const usage = outcome?.usage;
    this.doing = h('p', { class: 'doing', 'aria-live': 'off' });
    const since = found.offered_at ? `, offered ${span(Date.now() - found.offered_at)} ago` : '';
    const works = found.agent ? `with ${found.agent}` : found.ended_by ? `by ${found.ended_by}` : found.queue && found.status === 'queued' ? `in the queue of ${found.queue}` : '';
    const parts = this.taskParts();
    fill(parts.head,
      h('div', { class: 'row' }, h('span', { class: `pill ${tone(found.status ?? 'created')}` }, status(found.status ?? 'not begun')),
        h('span', { class: 'quiet small' }, [planned?.role, works].filter(Boolean).join(' · ') + (hasEnded(state) || !found.agent ? '' : since))),
      this.doing);
    this.drawActions(parts, task, Boolean(planned));
    fill(parts.rest,
      planned ? h('h3', { class: 'big' }, planned.name) : null,
      text('Goal', planned?.goal),
      text('Result', result?.conclusion ?? (outcome ? [String(outcome.ending).replaceAll('_', ' '), outcome.reason].filter(Boolean).join(': ') : '')),
      result?.body ? h('details', null, h('summary', null, 'Document'), h('pre', null, cut(result.body, 20000))) : null,
      list('Findings', result?.findings, (one) => [one.text, ' ', (one.citations ?? []).map((place) => this.cite(place)), one.confidence ? h('span', { class: 'quiet small' }, ` ${one.confidence} %`) : null]),
      list('Not answered', result?.unanswered),
      list('Went wrong', found.reasons),
      list('Waits for', found.waiting ? [JSON.stringify(found.waiting.wait)] : [], (one) => h('code', null, cut(one, 400))),
      list('Needs', planned?.depends_on, (one) => button(one, () => this.task(one), { kind: 'tiny' })),
      text('Expected', planned?.expected_output), text('Could go wrong', planned?.criticism), list('Milestones', planned?.milestones),
      usage ? h('dl', { class: 'figures' }, [['generation', found.generation], ['attempt', found.attempt], ['model calls', count(usage.model_calls)], ['tool calls', count(usage.tool_calls)], ['tokens', count((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0))], ['cost', money(usage.cost_micros)]].map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value)))) : null,
      this.steps(task));
    this.drawDoing();
  }

  /** Where a task is drawn. Its buttons stay where they are while it changes: one that is being pressed is not taken away. */
  taskParts() {
    if (this.parts?.head.parentElement !== this.body) {
      this.parts = { head: h('div', { class: 'stack' }), actions: h('div', { class: 'row' }), rest: h('div', { class: 'stack' }), drawn: null };
      fill(this.body, this.parts.head, this.parts.actions, this.parts.rest);
    }
    return this.parts;
  }

  drawDoing() {
    const now = this.model.doing.get(this.shown.task);
    const words = now ? [now.text ?? now.status, now.thought ? oneLine(now.thought.slice(-280), 300) : '', now.answer ? oneLine(now.answer.slice(-280), 300) : ''].filter(Boolean).join(' — ') : '';
    this.doing.hidden = !words;
    say(this.doing, words);
  }

  drawActions(parts, task, isPlanned) {
    const why = whyNot('steer') || (this.isPast() ? 'this is how it stood: go to now first' : '') || (hasEnded(this.model.state) ? 'the run has ended' : '');
    const drawn = JSON.stringify([task, isPlanned, why]);
    if (parts.drawn === drawn) return;
    parts.drawn = drawn;
    parts.actions.hidden = !isPlanned;
    fill(parts.actions, isPlanned ? this.actions(task, why) : null);
  }

  actions(task, why) {
    const order = (what, words) => async () => {
      const reason = await confirm(`${words}: task ${task}`, what === 'skip' ? 'The run goes on without it.' : 'It is done again from its beginning.', { action: words, reason: true, label: 'Reason (it is recorded)' });
      if (reason === null) return;
      try {
        await post(at('runs', this.model.id, 'tasks', task, what), { reason });
        note(`${words}: done.`, 'good');
      } catch (error) {
        note(error.text ?? String(error), 'bad');
      }
    };
    const edit = async () => {
      const goal = await confirm(`Edit task ${task}`, 'It is done again for its new goal.', { action: 'Change', reason: true, label: 'Goal', value: this.model.state.plan.tasks[task].goal });
      if (goal === null) return;
      await post(at('runs', this.model.id, 'plan'), { task, goal });
      note('The task was changed.', 'good');
    };
    return [button('Skip', order('skip', 'Skip'), { kind: 'tiny', why }), button('Redo', order('redo', 'Redo'), { kind: 'tiny', why }), button('Edit', edit, { kind: 'tiny', why })];
  }

  /** The steps of a task, as far as its entries are known; they are read when they are wanted. */
  steps(task) {
    const place = h('div', { class: 'stack' }, h('h3', null, 'Steps'));
    const rows = h('ol', { class: 'steps' });
    place.append(rows);
    const draw = () => {
      const last = this.model.at ?? Infinity;
      const all = this.model.entries.filter((one) => one.task === task && one.step && one.seq <= last && (one.kind === 'step' || one.kind === 'outcome'));
      if (all.length === rows.childElementCount && all.length) return;
      fill(rows, all.length ? all.slice(-300).map((one) => h('li', null, h('button', { class: 'step-link', type: 'button', on: { click: () => this.step(one) } },
        h('span', { class: 'quiet' }, `${one.generation > 1 ? `${one.generation}.` : ''}${one.step}`), h('span', { class: 'cut' }, one.text)))) : h('li', { class: 'quiet' }, this.model.isWhole ? 'No step is recorded.' : 'Reading …'));
    };
    this.model.begin();
    draw();
    this.stopSteps?.();
    this.stopSteps = this.model.on(({ entries }) => entries && draw());
    return place;
  }

  /** Shows a step: `{task, generation, step, seq}`. */
  async step({ task, generation, step, seq }, { focus = true } = {}) {
    const shown = { kind: 'step', task, generation, step };
    this.begin(shown, `Task ${task}, step ${step}`);
    fill(this.body, h('p', { class: 'quiet' }, 'Reading …'));
    try {
      const found = await get(at('runs', this.model.id, 'steps', task, generation, step));
      if (this.shown !== shown) return;
      const entry = found.seq ?? seq;
      const tools = h('div', { class: 'row' },
        button('Task', () => this.task(task), { kind: 'tiny' }),
        entry ? button('Run as of here', () => this.model.load(entry), { kind: 'tiny', title: `Show the run as it stood at entry ${entry}` }) : null,
        entry ? button('In the record', () => this.open('record', { seq: entry }), { kind: 'tiny' }) : null,
        found.prompt ? button('Playground', () => go(['playground'], { run: this.model.id, task, gen: generation, step }), { kind: 'tiny', why: whyNot('playground') }) : null);
      fill(this.body, tools, drawStep(found));
      if (focus) this.heading.focus({ preventScroll: true });
    } catch (error) {
      fill(this.body, h('p', { class: 'problem' }, error.text ?? String(error)));
    }
  }

  /** Shows an entry of the record as it stands there. */
  async entry(seq) {
    const shown = { kind: 'entry', seq };
    this.begin(shown, `Entry ${seq}`);
    fill(this.body, h('p', { class: 'quiet' }, 'Reading …'));
    try {
      const [entry] = await get(query(at('runs', this.model.id, 'entries'), { from: seq, limit: 1 }));
      if (this.shown !== shown) return;
      const isStep = entry && ['step', 'tool'].includes(entry.kind);
      const step = isStep ? entry.event.number ?? entry.event.step?.number : entry?.event?.last_step?.number;
      fill(this.body, h('div', { class: 'row' },
        step ? button('Step', () => this.step({ task: entry.task, generation: entry.generation, step, seq }), { kind: 'tiny' }) : null,
        entry?.task ? button(`Task ${entry.task}`, () => this.task(entry.task), { kind: 'tiny' }) : null,
        button('Run as of here', () => this.model.load(seq), { kind: 'tiny' })),
      h('pre', { class: 'json', tabindex: '0' }, cut(JSON.stringify(entry ?? null, null, 2), 200000)));
    } catch (error) {
      fill(this.body, h('p', { class: 'problem' }, error.text ?? String(error)));
    }
  }

  cite(place) {
    const name = `${place.path ?? place.document}:${place.line}`;
    return h('a', { class: 'cite', href: link(['runs', this.model.id, 'report'], { source: name }) }, name);
  }

  close() {
    this.stop();
    this.stopSteps?.();
  }
}
