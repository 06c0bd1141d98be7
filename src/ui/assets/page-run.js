// One run: what it stands at, what can be done about it, and the parts it is looked at by.

import { button, confirm, empty, fill, h, note, say } from './dom.js';
import { at, may, post, whyNot } from './api.js';
import { count, cut, date, duration, hasEnded, money, plural, short, span, stateTone, status } from './format.js';
import { go, instead } from './route.js';
import { RunModel } from './run-model.js';
import { Inspector } from './inspector.js';
import { Slider } from './slider.js';
import { total } from './page-runs.js';

const TABS = [
  ['plan', 'Plan', () => import('./run-plan.js')],
  ['timeline', 'Timeline', () => import('./run-timeline.js')],
  ['record', 'Record', () => import('./run-record.js')],
  ['report', 'Report', () => import('./run-report.js')],
  ['chat', 'Conversation', () => import('./run-chat.js')],
  ['spending', 'Spending', () => import('./run-spending.js')],
  ['explain', 'Why', () => import('./run-explain.js')],
  ['findings', 'Conflicts and lessons', () => import('./run-findings.js')],
  ['files', 'Files', () => import('./run-files.js')],
];

/** What a run waits for, in words. Pure. */
export function waited(one) {
  const tasks = one.tasks?.length ? ` for ${one.tasks.slice(0, 5).join(', ')}${one.tasks.length > 5 ? ' …' : ''}` : '';
  switch (one.for) {
    case 'orchestrator': return 'an orchestrator';
    case 'resume': return `somebody to resume it${one.reason ? ` (${one.reason})` : ''}`;
    case 'answer': return `an answer: ${one.text}`;
    case 'role': return `a process of role ${one.role}, of which there is none${tasks}`;
    case 'place': return `a free ${one.role}${tasks}`;
    case 'run': return `run ${short(one.run ?? '')}`;
    case 'within': return `${waited(one.waits)} (in run ${short(one.run ?? '')})`;
    default: return [one.for, one.text ?? one.reason ?? ''].filter(Boolean).join(' ').replaceAll('_', ' ');
  }
}

class Run {
  constructor({ route, live }) {
    this.live = live;
    this.model = new RunModel(route.id, live);
    this.watch = { run: route.id };
    this.title = `Run ${short(route.id)}`;
    this.goal = h('h1', { class: 'goal-title' }, `Run ${short(route.id)}`);
    this.about = h('p', { class: 'lead' });
    this.state = h('span', { class: 'pill' });
    this.figures = h('dl', { class: 'figures', id: 'run-figures' });
    this.actions = h('div', { class: 'row', id: 'run-actions' });
    this.alert = h('div', { class: 'banner', hidden: true });
    this.slider = new Slider(this.model, () => this.forkAt());
    this.inspector = new Inspector(this.model, { open: (tab, query) => this.openTab(tab, query), isPast: () => this.model.at !== null });
    this.body = h('div', { class: 'run-tab', role: 'tabpanel', tabindex: '-1' });
    this.tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Parts of the run' }, TABS.map(([name, word]) => {
      const tab = h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-selected': 'false', tabindex: '-1' }, word);
      tab.addEventListener('click', () => this.openTab(name));
      return tab;
    }));
    this.tabs.addEventListener('keydown', (event) => this.tabKey(event));
    this.el = [
      h('div', { class: 'head' }, h('div', null, this.goal, this.about), this.actions),
      this.alert,
      h('div', { class: 'row run-state' }, this.state, this.figures),
      this.slider.el, this.tabs,
      h('div', { class: 'run-body' }, this.body, this.inspector.el),
    ];
    this.model.on((what) => this.changed(what));
    this.keys = (event) => this.key(event);
    document.addEventListener('keydown', this.keys);
    this.clock = setInterval(() => this.model.state && !hasEnded(this.model.state) && this.head(), 1000);
    this.update(route);
    this.load();
  }

  async load() {
    try {
      await this.model.load(null);
    } catch (error) {
      if (error.name === 'AbortError') return;
      if (!this.model.isRead) this.wait(error);
    }
  }

  /** A run that was just asked for is not there yet: the first word of it makes it known. */
  wait(error) {
    this.isBroken = true;
    fill(this.body, h('div', { class: 'panel' }, empty(error.status === 404 ? 'Not there yet' : 'This run cannot be shown', error.text ?? String(error))));
    if (error.status !== 404) return;
    const stop = this.live.on('run-brief', (all) => {
      if (all.some((one) => this.model.isOurs(one.run))) {
        stop();
        this.load();
      }
    });
    this.model.stop.push(stop);
  }

  reopen() {
    const [name, query] = [this.name, this.query];
    this.name = null;
    this.openTab(name, query, true);
  }

  /** Another part of the same run. */
  update(route) {
    if (route.id !== this.watch.run) return false;
    this.openTab(TABS.some(([name]) => name === route.tab) ? route.tab : 'plan', route.query, true);
    return true;
  }

  async openTab(name, query = {}, isHere = false) {
    if (!isHere) instead(['runs', this.watch.run, name], query);
    this.query = query;
    if (name === this.name && this.tab) {
      this.tab.update?.(query);
      return;
    }
    this.name = name;
    for (const [known] of TABS) {
      const tab = this.tabs.querySelector(`#tab-${known}`);
      tab.setAttribute('aria-selected', known === name);
      tab.tabIndex = known === name ? 0 : -1;
      if (known === name) tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
    this.body.setAttribute('aria-labelledby', `tab-${name}`);
    const module = await TABS.find(([known]) => known === name)[2]();
    if (this.name !== name || this.isClosed) return;
    this.tab?.close?.();
    this.tab = module.open({ model: this.model, inspector: this.inspector, query, page: this });
    fill(this.body, this.tab.el);
    this.body.dataset.tab = name;
  }

  tabKey(event) {
    const to = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (to) {
      event.preventDefault();
      this.step(to);
      this.tabs.querySelector('[aria-selected="true"]').focus();
    }
  }

  step(by) {
    const n = TABS.findIndex(([name]) => name === this.name);
    this.openTab(TABS[(n + by + TABS.length) % TABS.length][0]);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.('input, textarea, select') || document.querySelector('dialog[open]')) return;
    if (event.key === '[') this.step(-1);
    else if (event.key === ']') this.step(1);
    else if (event.key === 'Escape') this.inspector.hide();
  }

  changed(what) {
    if (this.isBroken && this.model.state) {
      this.isBroken = false;
      this.reopen();
    }
    if (what.state || what.past) this.head();
  }

  head() {
    const state = this.model.state;
    if (!state) return;
    say(this.goal, cut(state.goal?.text ?? '', 400));
    const parent = state.goal?.parent ? 'within another run' : '';
    const forked = state.forked ? `forked from ${short(state.forked.run)} at ${state.forked.at}` : '';
    say(this.about, [`run ${short(state.id)}`, `begun ${date(state.created_at)}`, state.goal?.model ?? '', parent, forked, state.reason ?? ''].filter(Boolean).join(' · '));
    const isPaused = Boolean(state.paused) && !hasEnded(state);
    this.state.className = `pill ${stateTone(state)}`;
    say(this.state, state.state ?? status(state.status));
    this.state.dataset.status = status(state.status);
    this.drawFigures(state);
    this.drawActions(state, isPaused);
    this.drawAlert(state);
    this.slider.head();
  }

  drawFigures(state) {
    const usage = state.usage ?? {};
    const counted = state.count ?? {};
    const all = [
      ['time', span(hasEnded(state) ? duration(state) : Math.floor(duration(state) / 1000) * 1000), duration(state)],
      ['tasks done', `${count(counted.done)} of ${count(total(counted))}`, counted.done],
      ['model calls', count(usage.model_calls), usage.model_calls],
      ['tool calls', count(usage.tool_calls), usage.tool_calls],
      ['tokens in', count(usage.input_tokens), usage.input_tokens],
      ['tokens out', count(usage.output_tokens), usage.output_tokens],
      ['cost', money(usage.cost_micros), usage.cost_micros],
      ['steps', count(usage.steps), usage.steps ?? 0],
    ];
    if (!this.figures.childElementCount) for (const [name] of all) this.figures.append(h('div', null, h('dt', null, name), h('dd', { data: { figure: name } })));
    all.forEach(([, text, value], n) => {
      const el = this.figures.children[n].lastChild;
      say(el, text);
      el.dataset.value = value ?? 0;
    });
  }

  drawActions(state, isPaused) {
    const ended = hasEnded(state);
    const key = `${ended} ${isPaused} ${this.model.at}`;
    if (key === this.actionsFor) return;
    this.actionsFor = key;
    const why = whyNot('steer') || (this.model.at !== null ? 'this is how it stood: go to now first' : '');
    const all = [];
    if (!ended) {
      all.push(isPaused ? button('Resume', () => this.order('resume', 'Let the run go on?', 'Resume'), { why })
        : button('Pause', () => this.order('pause', 'What is in work is finished; nothing new is begun.', 'Pause'), { why }));
      all.push(button('Edit goal', () => this.edit(), { why }));
      all.push(button('Cancel run', () => this.order('cancel', 'The run is stopped. What its tasks gave so far is put together.', 'Cancel the run', true), { why, kind: 'danger' }));
    } else {
      all.push(button('Go on', () => this.openTab('chat'), { why: whyNot('run'), kind: 'main', title: 'Ask for what follows from this run' }));
    }
    all.push(button('Replay', () => this.replay(), { why: whyNot('replay'), title: 'Make every decision again and compare' }));
    fill(this.actions, all);
  }

  drawAlert(state) {
    const waits = (state.waits_for ?? []).map(waited);
    const open = Object.values(state.questions ?? {}).filter((one) => !one.end).length;
    const texts = [];
    if (open && this.model.at === null) texts.push(h('span', null, h('strong', null, `${plural(open, 'question')} waiting.`), ' The run goes on when it is answered. ', h('a', { href: `#/steering?run=${this.model.id}` }, may('answer') ? 'Answer' : 'Look')));
    else if (waits.length && !hasEnded(state)) texts.push(h('span', { class: 'quiet' }, `Waits for ${cut(waits.join(', '), 300)}`));
    if (typeof state.missing === 'string') texts.push(h('span', null, `The record is damaged: ${state.missing}`));
    this.alert.hidden = !texts.length;
    const said = texts.map((one) => one.textContent).join();
    if (said !== this.alertSaid) fill(this.alert, texts);
    this.alertSaid = said;
  }

  async order(what, text, action, danger = false) {
    const reason = await confirm(`${action}: run ${short(this.model.id)}`, text, { action, danger, reason: true, label: 'Reason (it is recorded)' });
    if (reason === null) return;
    try {
      await post(at('runs', this.model.id, what), { reason });
      note(`${action}: done.`, 'good');
    } catch (error) {
      note(error.text ?? String(error), 'bad');
    }
  }

  async edit() {
    const goal = await confirm('Edit the goal', 'The plan is made anew for it; what was found stays known.', { action: 'Change', reason: true, label: 'Goal', value: this.model.state.goal?.text ?? '' });
    if (goal === null) return;
    await post(at('runs', this.model.id, 'plan'), { goal });
    note('The goal was changed.', 'good');
  }

  async replay() {
    const { show } = await import('./replay.js');
    await show(this.model.id, (seq) => this.openTab('record', { seq }));
  }

  async forkAt() {
    const seq = this.model.at ?? this.model.last;
    const model = await confirm(`Fork at entry ${seq}`, 'A new run begins where this one stood after this entry, and goes on its own way.', { action: 'Fork', reason: true, label: 'Another model (may stay empty)' });
    if (model === null) return;
    const { run } = await post(at('runs', this.model.id, 'fork'), { at: seq, ...(model.trim() ? { model: model.trim() } : {}) });
    go(['runs', run]);
  }

  close() {
    this.isClosed = true;
    clearInterval(this.clock);
    document.removeEventListener('keydown', this.keys);
    this.tab?.close?.();
    this.slider.close();
    this.inspector.close();
    this.model.close();
  }
}

export const open = (context) => new Run(context);
