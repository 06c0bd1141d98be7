// All runs: searched, narrowed, compared two by two.

import { button, empty, h, say, settled } from './dom.js';
import { get, query, whyNot } from './api.js';
import { ago, brief, cut, duration, money, plural, short, span, stateTone, status } from './format.js';
import { parse, shows } from './filter.js';
import { go, instead, link } from './route.js';
import { VirtualList } from './virtual.js';

const AT_ONCE = 200;
const ROW = 58;
const NARROW = 92;

class Runs {
  constructor({ route, live, shell }) {
    this.title = 'Runs';
    this.runs = [];
    this.shown = [];
    this.chosen = new Set();
    this.isMore = false;
    this.search = h('input', { type: 'search', id: 'search', value: route.query.q ?? '', placeholder: 'words, status:failed, cost>0.10, time>30s, age<2d, model:…', autocomplete: 'off', spellcheck: 'false' });
    this.state = h('select', null, ['', 'processing', 'completed', 'failed', 'aborted', 'paused'].map((one) =>
      h('option', { value: one, selected: (route.query.status ?? '') === one }, one || 'any state')));
    this.told = h('p', { class: 'quiet small', role: 'status' });
    this.compare = button('Compare', () => this.compareChosen(), { title: 'Compare the two runs that are chosen' });
    this.compare.disabled = true;
    this.list = new VirtualList({ label: 'Runs', row: ROW, className: 'runs', draw: (el, n) => this.draw(el, n), open: (n) => this.openRun(n) });
    this.list.onKey = (event, n) => event.key === ' ' && this.choose(this.shown[n]);
    this.none = h('div', { class: 'panel', hidden: true });
    this.more = button('Older runs', () => this.load(this.runs.at(-1)?.run), { kind: 'tiny start' });
    this.more.hidden = true;
    const look = settled(() => this.look(), 200);
    this.search.addEventListener('input', look);
    this.state.addEventListener('change', () => this.look());
    this.el = [
      h('div', { class: 'head' }, h('div', null, h('h1', null, 'Runs'), h('p', { class: 'lead' }, 'What was asked of the fleet, the newest first.')),
        button('New run', () => shell.onNew(), { kind: 'main', why: whyNot('run'), title: 'Begin a run (n)' })),
      h('div', { class: 'toolbar' },
        h('div', { class: 'field grow' }, h('label', { for: 'search' }, 'Search'), this.search),
        h('label', { class: 'field' }, h('span', null, 'State'), this.state), this.compare),
      this.told,
      h('div', { class: 'panel fit' }, this.list.el),
      this.none, this.more,
    ];
    this.stop = [
      live.on('run-brief', (all) => this.learn(all)),
      live.on('state', ({ again }) => again && this.load()),
    ];
    this.media = matchMedia('(max-width: 760px)');
    this.fit = () => this.list.resize(this.media.matches ? NARROW : ROW);
    this.media.addEventListener('change', this.fit);
    this.fit();
    this.load();
  }

  look() {
    instead(['runs'], { q: this.search.value, status: this.state.value });
    this.load();
  }

  async load(before) {
    const wanted = parse(this.search.value);
    const asked = query('/api/runs', {
      q: wanted.words.length === 1 ? wanted.words[0] : '', status: wanted.fields.status ?? (this.state.value === 'paused' ? '' : this.state.value),
      model: wanted.fields.model, limit: AT_ONCE, before,
    });
    this.asking?.abort();
    this.asking = new AbortController();
    try {
      const found = await get(asked, this.asking.signal);
      this.runs = before ? [...this.runs, ...found] : found;
      this.isMore = found.length >= AT_ONCE;
      this.narrow();
    } catch (error) {
      if (error.name === 'AbortError') return;
      say(this.told, error.text ?? String(error));
    }
  }

  /** Runs that changed: known ones in their place, new ones in theirs. */
  learn(all) {
    for (const one of all) {
      const at = this.runs.findIndex((known) => known.run === one.run);
      if (at >= 0) this.runs[at] = { ...this.runs[at], ...one };
      else {
        // A child run follows its parent.
        const outer = this.runs.findIndex((known) => known.run === one.parent?.run);
        const place = outer < 0 ? this.runs.findIndex((known) => !known.parent && (known.created_at ?? 0) <= (one.created_at ?? 0)) : outer + 1;
        this.runs.splice(place < 0 ? this.runs.length : place, 0, one);
      }
    }
    this.narrow();
  }

  narrow() {
    const wanted = parse(this.search.value);
    if (this.state.value) wanted.fields.status ??= this.state.value;
    const now = Date.now();
    this.shown = this.runs.filter((run) => shows(wanted, run, now));
    this.list.update(this.shown.length);
    this.list.el.parentElement.hidden = this.shown.length === 0;
    this.list.el.style.height = `min(${this.shown.length * this.list.row + 2}px, calc(100vh - 15rem))`;
    this.none.hidden = this.shown.length > 0;
    if (!this.shown.length) {
      this.none.replaceChildren(this.runs.length || this.search.value || this.state.value
        ? empty('Nothing like this', 'No run fits what is looked for.', button('Show all', () => this.clear()))
        : empty('No runs yet', 'Ask the fleet something: it plans, works and reports here, live.'));
    }
    const wrong = wanted.wrong.length ? ` Not understood: ${wanted.wrong.join(' ')}.` : '';
    say(this.told, `${plural(this.shown.length, 'run')}${this.shown.length < this.runs.length ? ` of ${this.runs.length}` : ''}.${wrong}`);
    this.more.hidden = !this.isMore;
  }

  clear() {
    [this.search.value, this.state.value] = ['', ''];
    this.look();
  }

  draw(el, n) {
    const run = this.shown[n];
    if (!run) return;
    if (!el.parts) {
      const parts = { goal: h('a', { class: 'goal cut' }), state: h('span', { class: 'pill' }), about: h('span', { class: 'quiet small cut about' }), figures: h('span', { class: 'small figs' }), pick: h('input', { type: 'checkbox' }) };
      parts.pick.addEventListener('change', () => this.choose(this.shown[Number(el.dataset.index)]));
      el.replaceChildren(h('div', { class: 'run-row' }, parts.pick, h('div', { class: 'what' }, parts.goal, parts.about), parts.figures, parts.state));
      el.parts = parts;
    }
    const { goal, state, about, figures, pick } = el.parts;
    say(goal, cut(run.goal ?? run.reason ?? 'a run that cannot be read', 300));
    goal.href = link(['runs', run.run]);
    state.className = `pill ${stateTone(run)}`;
    say(state, run.state ?? status(run.status));
    const done = run.count ? `${run.count.done} of ${plural(total(run.count), 'task')}` : '';
    const models = (run.models ?? []).join(', ');
    say(about, [short(run.run), run.created_at ? ago(run.created_at) : '', done, models, ...(run.tags ?? []), run.parent ? 'within another run' : '', run.reason ?? ''].filter(Boolean).join(' · '));
    const usage = run.usage ?? {};
    say(figures, run.created_at ? [span(duration(run)), `${brief((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0))} tokens`, money(usage.cost_micros)].join('  ·  ') : '');
    pick.checked = this.chosen.has(run.run);
    pick.setAttribute('aria-label', `Choose run ${short(run.run)} to compare`);
    el.dataset.run = run.run;
  }

  choose(run) {
    if (!run) return false;
    if (!this.chosen.delete(run.run)) this.chosen.add(run.run);
    while (this.chosen.size > 2) this.chosen.delete(this.chosen.values().next().value);
    this.compare.disabled = this.chosen.size !== 2;
    this.list.update();
    return true;
  }

  compareChosen() {
    const [one, other] = this.chosen;
    go(['runs', one, 'compare', other]);
  }

  openRun(n) {
    if (this.shown[n]) go(['runs', this.shown[n].run]);
  }

  close() {
    this.stop.forEach((stop) => stop());
    this.media.removeEventListener('change', this.fit);
    this.list.close();
    this.asking?.abort();
  }
}

/** All tasks that are counted. */
export const total = (counted) => Object.entries(counted).filter(([name]) => name !== 'replaced').reduce((sum, [, n]) => sum + (Number.isFinite(n) ? n : 0), 0);

export const open = (context) => new Runs(context);
