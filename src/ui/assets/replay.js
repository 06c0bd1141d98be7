// Has every decision of a run made again, and says whether each came out as it is recorded.

import { button, dialog, fill, h } from './dom.js';
import { at, post } from './api.js';
import { plural, shown } from './format.js';

/** Opens what came of it. `toEntry(seq)` shows an entry. */
export async function show(run, toEntry) {
  const place = h('div', { class: 'stack', role: 'status' }, h('p', null, 'Every decision is made again from what was known then, and compared …'));
  const el = dialog('Replay', () => place);
  try {
    const told = await post(at('runs', run, 'replay'));
    fill(place, h('p', null, h('strong', null, told.same ? 'All of it came out the same.' : 'It came out otherwise.')),
      told.same ? h('p', { class: 'quiet' }, `${plural(told.decisions, 'decision')} with ${plural(told.events, 'event')} and ${plural(told.offers, 'offer')}, and ${plural(told.steps, 'step')} of agents were made again.`) : [
        told.missing ? h('p', null, `The record is not whole: ${told.missing}`) : null,
        ...['expected', 'came'].filter((name) => told[name] !== undefined).map((name) => h('div', null, h('h3', null, name === 'came' ? 'Came' : 'Recorded'), h('pre', { class: 'json', tabindex: '0' }, shown(told[name]))))],
      told.seq ? button(`Entry ${told.seq}`, () => {
        el.close();
        toEntry(told.seq);
      }) : null);
  } catch (error) {
    fill(place, h('p', { class: 'problem' }, error.text ?? String(error)));
  }
}
