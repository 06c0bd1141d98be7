// What a page knows of one run: read once, and kept up to date by what is told of it.

import { at, get, query } from './api.js';
import { oneLine, shown } from './format.js';

const ENTRIES_AT_ONCE = 2000;

/** An entry in brief: what a list shows of it. Its whole is asked for when it is opened. Pure. */
export function digest(entry) {
  const { seq, at: when, kind, task = '', generation = 0, by = '', run } = entry;
  const event = entry.event ?? {};
  const brief = { seq, at: when, kind, task, generation, by, run, step: 0, text: '', tone: kind };
  switch (kind) {
    case 'decided':
      brief.text = (event.events ?? []).map(decided).concat(event.offer ? [`offers ${event.offer.task} to ${event.offer.queue}`] : []).join(', ') || 'a decision without events';
      brief.task = event.offer?.task ?? '';
      break;
    case 'offered': brief.text = `offered to ${event.queue ?? '?'}`; break;
    case 'started': brief.text = `attempt ${event.attempt ?? 1}${event.pid ? `, pid ${event.pid}` : ''}`; break;
    case 'step': case 'tool': {
      const step = kind === 'step' ? event : event.step ?? {};
      brief.step = step.number ?? 0;
      brief.text = stepText(step);
      if (step.observation && step.observation.status !== 'success') brief.tone = 'failed';
      break;
    }
    case 'outcome':
      brief.step = event.last_step?.number ?? 0;
      brief.text = [String(event.ending ?? '').replaceAll('_', ' '), event.reason, event.product?.result?.conclusion].filter(Boolean).join(': ');
      brief.tone = ['done', 'done_partial'].includes(event.ending) ? 'done' : 'failed';
      break;
    case 'released': brief.text = event.reason || 'put down'; break;
    default: brief.text = entry.unreadable ?? event.unreadable ?? '';
  }
  brief.text = oneLine(brief.text, 240);
  return brief;
}

function decided(event) {
  const name = String(event.event ?? '').replaceAll('_', ' ');
  return event.task ? `${name} ${event.task}` : name;
}

/** A step on one line: what was done, and what was thought. */
export function stepText(step) {
  const acts = [step.action, ...(step.more ?? []).map((one) => one.action)].filter(Boolean);
  const done = acts.map((act) => `${act.name}${act.arguments ? ` ${oneLine(shown(act.arguments), 90)}` : ''}`).join('; ');
  return step.thought?.text ? `${done} — ${step.thought.text}` : done;
}

/** What is told in whole when it changed, and what by its parts: those that changed, and null for one that is gone. */
const WHOLE = ['plan', 'questions', 'waits_for', 'refinements', 'lessons'];
const PARTS = ['reflections', 'conflicts'];
/** What of it was found out while the run went on. */
const FOUND = [...PARTS, 'refinements', 'lessons'];

/** Puts what changed into what is known. Pure but for `state`, which is changed. Gives the tasks that changed. */
export function merge(state, change) {
  const { head = {}, tasks = {}, removed = [] } = change;
  for (const [name, value] of Object.entries(head)) {
    if (name === 'goal') state.goal = { ...state.goal, text: value };
    else if (name !== 'run') state[name] = value;
  }
  for (const name of WHOLE) if (name in change) state[name] = change[name];
  for (const name of PARTS) {
    if (!change.full && !(name in change)) continue;
    const all = { ...(change.full ? {} : state[name]), ...change[name] };
    state[name] = Object.fromEntries(Object.entries(all).filter(([, part]) => part !== null));
  }
  state.tasks ??= {};
  if (change.full) {
    for (const name of Object.keys(state.tasks)) if (!(name in tasks)) delete state.tasks[name];
  }
  Object.assign(state.tasks, tasks);
  for (const name of removed) delete state.tasks[name];
  if (change.seq) state.seq = Math.max(state.seq ?? 0, change.seq);
  return change.full || 'plan' in change || removed.length ? null : Object.keys(tasks);
}

export class RunModel {
  constructor(id, live) {
    this.id = id;
    this.state = null;
    /** Whether the record was read: before that there is only what the dashboard knew already, which may lack what is told at length. */
    this.isRead = false;
    this.at = null;
    this.entries = [];
    this.isWhole = false;
    this.doing = new Map();
    this.listeners = new Set();
    this.stop = [
      live.on('run', (all) => this.take(all)),
      live.on('doing', (all) => this.hear(all)),
      live.on('state', ({ again }) => again && this.load().catch(() => {})),
    ];
  }

  /** Hears what changes: `{state, tasks (null: all), entries, doing, past, found (names)}`. */
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(what) {
    for (const listener of this.listeners) listener(what);
  }

  /** Reads the run, as it stands or as it stood at an entry. */
  async load(entry = this.at) {
    this.asking?.abort();
    this.asking = new AbortController();
    const late = [];
    this.late = late;
    try {
      const state = await get(query(at('runs', this.id), { at: entry }), this.asking.signal);
      this.at = entry;
      this.state = state;
      this.isRead = true;
      this.id = state.id ?? this.id;
      if (entry === null) {
        this.last = Math.max(this.last ?? 0, state.seq ?? state.folded ?? 0);
        // What was told while it was read may be newer than what was read.
        for (const change of late) if ((change.seq ?? 0) > (state.seq ?? 0)) this.put(change);
      }
    } finally {
      if (this.late === late) this.late = null;
    }
    this.tell({ state: true, tasks: null, past: true });
  }

  /** Puts what changed into the run as it stands. Gives the tasks that changed. */
  put(change) {
    const changed = merge(this.state, change);
    if (change.count && Number.isFinite(change.count)) this.state.entries = change.count;
    return changed;
  }

  /** Begins with what the dashboard knew already: a large record takes a while to read. */
  start(change) {
    if (this.state || !change.full || !change.head || change.damaged) return;
    this.id = change.run;
    this.state = { id: change.run };
  }

  /** The address may name a run by its end alone. */
  isOurs(run) {
    return this.state ? run === this.id : run.endsWith(this.id);
  }

  take(changes) {
    let tasks = [];
    let grew = false;
    const found = new Set();
    for (const change of changes) {
      if (change.run && !this.isOurs(change.run)) continue;
      this.late?.push(change);
      this.start(change);
      this.last = Math.max(this.last ?? 0, change.seq ?? 0);
      grew = this.add(change.entries ?? []) || grew;
      if (change.full && this.isBegun) this.more();
      if (!this.state || this.at !== null) continue;
      const changed = this.put(change);
      for (const name of FOUND) if (change.full || name in change) found.add(name);
      tasks = changed === null || tasks === null ? null : tasks.concat(changed);
    }
    if (this.state) this.tell({ state: this.at === null, tasks: this.at === null ? tasks : [], entries: grew, found, live: true });
  }

  hear(all) {
    for (const one of all) {
      if (one.text || one.status || one.thought || one.answer) this.doing.set(one.task, one);
      else this.doing.delete(one.task);
    }
    this.tell({ doing: all.map((one) => one.task) });
  }

  /** Adds entries that are not known yet. */
  add(entries) {
    const last = this.entries.at(-1)?.seq ?? 0;
    const fresh = entries.filter((entry) => entry.seq > last);
    // Before all are read, what comes now would leave a gap.
    if (!fresh.length || !this.isWhole) return fresh.length > 0;
    for (const entry of fresh) this.entries.push(digest(entry));
    return true;
  }

  /** Reads the entries, part by part, once somebody wants to see them. */
  begin() {
    if (this.isBegun) return;
    this.isBegun = true;
    this.more();
  }

  async more() {
    if (this.reading) return;
    this.reading = true;
    this.isWhole = false;
    try {
      for (;;) {
        const from = (this.entries.at(-1)?.seq ?? 0) + 1;
        const limit = this.entries.length ? ENTRIES_AT_ONCE : 300;
        const found = await get(query(at('runs', this.id, 'entries'), { from, limit }));
        if (this.isClosed) return;
        for (const entry of found) if (entry.seq >= from) this.entries.push(digest(entry));
        this.isWhole = found.length < limit;
        this.tell({ entries: true });
        if (this.isWhole) break;
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      if ((this.last ?? 0) > (this.entries.at(-1)?.seq ?? 0)) {
        this.reading = false;
        if (!this.retried) {
          this.retried = true;
          await this.more();
          this.retried = false;
        }
      }
    } finally {
      this.reading = false;
    }
  }

  close() {
    this.isClosed = true;
    this.asking?.abort();
    this.stop.forEach((stop) => stop());
    this.listeners.clear();
  }
}
