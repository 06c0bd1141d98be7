// Numbers, times and states in words. Pure.

const grouped = new Intl.NumberFormat('en-US');
const one = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });

/** A count, with its thousands apart. */
export const count = (n) => grouped.format(n ?? 0);

/** `1 task`, `2 tasks`. */
export const plural = (n, word, many = `${word}s`) => `${count(n)} ${n === 1 ? word : many}`;

/** A time span of milliseconds, in two units at most. */
export function span(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–';
  if (ms < 0) return '0 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${one.format(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** Money, of millionths of a US dollar. */
export function money(micros) {
  const dollars = (micros ?? 0) / 1e6;
  if (dollars === 0) return '$0';
  if (dollars < 0.01) return `$${dollars.toFixed(4)}`;
  return `$${dollars < 100 ? dollars.toFixed(2) : grouped.format(Math.round(dollars))}`;
}

/** A large count in brief: 12.3 k. */
export function brief(n) {
  if (n < 10000) return count(n);
  if (n < 1e6) return `${one.format(n / 1e3)} k`;
  return `${one.format(n / 1e6)} M`;
}

/** Bytes, in the unit that fits. */
export function bytes(n) {
  if (n === null || n === undefined) return '–';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0;
  let value = n;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : one.format(value)} ${units[unit]}`;
}

const two = (n) => String(n).padStart(2, '0');

/** The time of day, with milliseconds where they are wanted. */
export function clock(ms, exact = false) {
  const at = new Date(ms);
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return exact ? `${text}.${String(at.getMilliseconds()).padStart(3, '0')}` : text;
}

/** Day and time. */
export function date(ms) {
  if (!ms) return '–';
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** How long ago something was. */
export const ago = (ms, now = Date.now()) => (now - ms < 1500 ? 'just now' : `${span(Math.floor((now - ms) / 1000) * 1000)} ago`);

/** The end of an id, by which commands name a run. */
export const short = (id) => String(id ?? '').slice(-12);

/** A text cut to so many characters. */
export function cut(text, most) {
  const all = String(text ?? '');
  return all.length > most ? `${all.slice(0, most - 1)}…` : all;
}

/** A text on one line. */
export const oneLine = (text, most = 300) => cut(String(text ?? '').replace(/\s+/g, ' ').trim(), most);

/** A value as text: texts as they are, the rest as JSON. */
export const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '');

/** The word of a status, which may say more beside it. */
export function word(status) {
  if (status && typeof status === 'object') return Object.keys(status)[0] ?? '';
  return String(status ?? '');
}

/** Why, where a status says it: `aborted: cancelled`. */
export function status(value) {
  if (value && typeof value === 'object') {
    const [name, why] = Object.entries(value)[0] ?? ['', ''];
    return `${name}${why ? `: ${String(why).replaceAll('_', ' ')}` : ''}`;
  }
  return String(value ?? '').replaceAll('_', ' ');
}

/** The class of a state's colour. */
export function tone(value) {
  switch (word(value)) {
    case 'completed': case 'done': case 'success': case 'split': return 's-done';
    case 'processing': case 'running': case 'busy': case 'in_work': return 's-work';
    case 'waiting': case 'done_partial': case 'parked': case 'paused': case 'blocked': case 'escalate': case 'delegate': case 'cut': return 's-wait';
    case 'failed': case 'error': case 'timeout': case 'lost': case 'silent': case 'effect_unknown': case 'damaged': case 'unreadable':
    case 'gave_up': case 'model_failed': case 'agent_failed': case 'deadline_passed': case 'budget_exhausted': return 's-failed';
    case 'queued': case 'created': return 's-queued';
    default: return 's-skipped';
  }
}

/** The class of a run's colour: a run that is paused or waits for an answer is not busy. */
export const stateTone = (run) => (['paused', 'waits for an answer'].includes(run.state) ? 's-wait' : tone(run.status));

/** The name of a colour as the style sheet knows it: `done` for `s-done`. */
export const colour = (value) => tone(value).slice(2);

/** Whether nothing more happens to a run. */
export const hasEnded = (run) => ['completed', 'failed', 'aborted', 'damaged', 'removed', 'gone'].includes(word(run?.status));

/** How long a run took, or takes. */
export const duration = (run, now = Date.now()) => (run.ended_at ?? now) - run.created_at;
