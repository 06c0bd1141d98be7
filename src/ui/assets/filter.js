// What is looked for in lists: `status:failed cost>0.10 time>30s words`. Pure.

import { duration, word } from './format.js';

const UNITS = { ms: 1, s: 1000, min: 60000, m: 60000, h: 3600000, d: 86400000 };

/** A number with its unit, as the field has it: times in milliseconds, money in millionths, counts as they are. */
export function amount(field, text) {
  const found = /^([\d.]+)\s*(ms|s|min|m|h|d|k|M)?$/.exec(text.replace(/^\$/, ''));
  if (!found) return null;
  const value = Number(found[1]);
  if (!Number.isFinite(value)) return null;
  const unit = found[2];
  if (field === 'cost') return value * 1e6;
  if (field === 'time' || field === 'age') return value * (UNITS[unit] ?? 1000);
  return value * (unit === 'k' ? 1e3 : unit === 'M' || unit === 'm' ? 1e6 : 1);
}

const WORDS = ['status', 'model', 'tag', 'run'];
const NUMBERS = ['cost', 'time', 'age', 'tokens', 'calls', 'tasks'];

/** What a search says: words of the goal, fields, bounds, and what of it cannot be read. */
export function parse(text) {
  const wanted = { words: [], fields: {}, bounds: [], wrong: [] };
  for (const part of String(text).match(/"[^"]*"|\S+/g) ?? []) {
    const field = /^([a-z]+):(.*)$/i.exec(part);
    const bound = /^([a-z]+)(>=|<=|>|<)(.+)$/i.exec(part);
    if (bound && NUMBERS.includes(bound[1].toLowerCase())) {
      const name = bound[1].toLowerCase();
      const value = amount(name, bound[3]);
      if (value === null) wanted.wrong.push(part);
      else wanted.bounds.push({ name, is: bound[2], value });
    } else if (field && WORDS.includes(field[1].toLowerCase())) {
      if (field[2]) wanted.fields[field[1].toLowerCase()] = field[2].replaceAll('"', '').toLowerCase();
    } else {
      wanted.words.push(part.replaceAll('"', '').toLowerCase());
    }
  }
  return wanted;
}

const COMPARE = { '>': (a, b) => a > b, '<': (a, b) => a < b, '>=': (a, b) => a >= b, '<=': (a, b) => a <= b };

/** What a bound is compared with. */
export function measure(name, run, now) {
  const usage = run.usage ?? {};
  switch (name) {
    case 'cost': return usage.cost_micros ?? 0;
    case 'time': return duration(run, now);
    case 'age': return now - run.created_at;
    case 'tokens': return (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
    case 'calls': return (usage.model_calls ?? 0) + (usage.wasted_calls ?? 0);
    default: return Object.values(run.count ?? {}).reduce((sum, n) => sum + (Number.isFinite(n) ? n : 0), 0);
  }
}

/** Whether a run is looked for. */
export function shows(wanted, run, now = Date.now()) {
  const text = `${run.goal ?? ''} ${run.run ?? ''} ${run.reason ?? ''}`.toLowerCase();
  const { status, model, tag, run: id } = wanted.fields;
  return wanted.words.every((word) => text.includes(word))
    && (!status || (status === 'paused' ? Boolean(run.paused) : word(run.status).startsWith(status)))
    && (!model || (run.models ?? []).some((one) => one.toLowerCase().includes(model)))
    && (!tag || (run.tags ?? []).some((one) => one.toLowerCase().includes(tag)))
    && (!id || String(run.run).includes(id))
    && wanted.bounds.every(({ name, is, value }) => COMPARE[is](measure(name, run, now), value));
}

/** What a line of the traffic is about: its kind, sender, run, task and ids. */
export function aboutLine(line) {
  const message = line.message ?? {};
  const body = message.body ?? {};
  return {
    kind: line.unreadable ? 'unreadable' : String(body.type ?? Object.keys(body)[0] ?? ''),
    sender: String(message.sender ?? ''), run: String(message.run ?? ''), task: String(message.task ?? ''),
    id: String(message.id ?? ''), correlation: String(message.correlation ?? ''),
  };
}
