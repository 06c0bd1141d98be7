// Goes back to any entry of a run's record, and to now again.

import { button, h, say, settled } from './dom.js';
import { at, get, query, whyNot } from './api.js';
import { clock, count } from './format.js';

export class Slider {
  constructor(model, fork) {
    this.model = model;
    this.input = h('input', { type: 'range', min: '0', max: '0', value: '0', step: '1', id: 'slider' });
    this.label = h('label', { for: 'slider', class: 'small nowrap' }, 'Now');
    this.now = button('Now', () => this.go(null), { kind: 'tiny' });
    this.now.hidden = true;
    const why = whyNot('run');
    this.fork = button('Fork from here', fork, { kind: 'tiny', why });
    this.el = h('div', { class: 'slider' }, this.label, this.input, this.now, this.fork);
    const load = settled((seq) => this.go(seq), 120);
    this.input.addEventListener('input', () => {
      const seq = Number(this.input.value);
      const isNow = seq >= this.model.last;
      this.name(isNow ? null : seq);
      load(isNow ? null : seq);
    });
  }

  /** What is known of the run is another thing now. */
  async head() {
    if (this.first === undefined) {
      this.first = null;
      try {
        const [entry] = await get(query(at('runs', this.model.id, 'entries'), { limit: 1 }));
        this.first = entry?.seq ?? 0;
      } catch {
        this.first = undefined;
        return;
      }
    }
    if (this.first === null) return;
    const last = this.model.last ?? 0;
    this.input.min = String(this.first);
    this.input.max = String(Math.max(last, this.first));
    if (this.model.at === null) this.input.value = String(last);
    this.name(this.model.at);
  }

  name(entry) {
    const { state, last } = this.model;
    const when = entry !== null && this.model.at === entry && state?.decided_at ? `, ${clock(state.decided_at, true)}` : '';
    say(this.label, entry === null ? `Now · ${count(state?.entries)} entries` : `As of entry ${entry} of ${last}${when}`);
    this.input.setAttribute('aria-valuetext', this.label.textContent);
    this.now.hidden = entry === null;
    this.el.classList.toggle('past', entry !== null);
  }

  async go(entry) {
    try {
      await this.model.load(entry);
      if (entry === null) this.input.value = String(this.model.last);
      this.name(entry);
    } catch (error) {
      if (error.name !== 'AbortError') say(this.label, error.text ?? String(error));
    }
  }

  close() {}
}
