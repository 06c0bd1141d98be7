// What happens, as it happens: one stream of events for the page that is open. What comes within one frame is told together.

import { coalesced } from './dom.js';
import { query } from './api.js';

const NAMES = ['fleet', 'run-brief', 'run', 'doing', 'questions', 'tap', 'away', 'back', 'ping'];
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;
/** Without a word for so long the line counts as cut: the server says something every 15 s. */
const SILENCE = 40000;
/** Most events that wait for a frame; of more, the page is told everything anew. */
const MOST_WAITING = 5000;

export class Live {
  constructor() {
    this.listeners = new Map();
    this.waiting = [];
    this.wanted = {};
    this.source = null;
    this.pause = FIRST_PAUSE;
    this.state = 'connecting';
    this.reason = '';
    this.flush = coalesced(() => this.tell());
    this.heard = 0;
    setInterval(() => this.listen(), 10000);
    window.addEventListener('online', () => this.state === 'lost' && this.open());
    window.addEventListener('pagehide', () => this.source?.close());
  }

  /** Hears events of a name, all of one frame at once; gives back how to stop. `state` is how the line stands; `cut`, that
   *  it broke, or could not be opened once more. */
  on(name, listener) {
    const all = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, all.add(listener));
    return () => all.delete(listener);
  }

  /** Says what the page shows: it is told of that, and the rest of the stream stays as it is. */
  watch(wanted) {
    const same = JSON.stringify(wanted) === JSON.stringify(this.wanted);
    this.wanted = wanted;
    if (!same || !this.source) this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    this.waiting = [];
    if (this.state !== 'lost') this.stands(this.state === 'away' ? 'away' : 'connecting', this.reason);
    const source = new EventSource(query('/api/events', this.wanted));
    this.source = source;
    source.addEventListener('open', () => {
      this.heard = Date.now();
      this.pause = FIRST_PAUSE;
      this.stands('open', '');
    });
    source.addEventListener('error', () => this.lost(source));
    for (const name of NAMES) source.addEventListener(name, (event) => this.hear(name, event.data));
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  lost(source) {
    if (source !== this.source) return;
    source.close();
    this.stands('lost', '');
    this.listeners.get('cut')?.forEach((listener) => listener());
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), this.pause);
    this.pause = Math.min(LONGEST_PAUSE, this.pause * 2);
  }

  /** A line that is cut without a word, as by a machine that slept, is opened anew. */
  listen() {
    if (this.source && this.state === 'open' && Date.now() - this.heard > SILENCE) this.lost(this.source);
  }

  hear(name, text) {
    this.heard = Date.now();
    if (name === 'ping') return;
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      return;
    }
    if (name === 'away') this.stands('away', data.reason);
    else if (name === 'back') this.stands('open', '');
    else if (this.waiting.length < MOST_WAITING) this.waiting.push([name, data]);
    else this.open();
    this.flush();
  }

  stands(state, reason) {
    if (state === this.state && reason === this.reason) return;
    const before = this.state;
    [this.state, this.reason] = [state, reason];
    const again = state === 'open' && (before === 'lost' || before === 'away');
    this.listeners.get('state')?.forEach((listener) => listener({ state, reason, again }));
  }

  tell() {
    const waiting = this.waiting;
    this.waiting = [];
    const byName = new Map();
    for (const [name, data] of waiting) {
      const all = byName.get(name);
      if (all) all.push(data);
      else byName.set(name, [data]);
    }
    for (const [name, all] of byName) this.listeners.get(name)?.forEach((listener) => listener(all));
  }
}
