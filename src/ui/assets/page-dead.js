// What could not be processed: looked at, tried again, thrown away.

import { button, confirm, dialog, empty, fill, h, note, panel } from './dom.js';
import { at, get, post, whyNot } from './api.js';
import { bytes, cut, date, shown } from './format.js';

class Dead {
  constructor() {
    this.title = 'Dead letters';
    this.list = h('div');
    this.el = [
      h('div', { class: 'head' }, h('div', null, h('h1', null, 'Dead letters'), h('p', { class: 'lead' }, 'Messages that nobody could process, kept until somebody looks.')), button('Look again', () => this.load())),
      panel('Letters', this.list),
    ];
    this.load();
  }

  async load() {
    try {
      const all = await get('/api/dead');
      const why = whyNot('dead');
      fill(this.list, all.length ? h('ul', { class: 'letters' }, all.map((one) => h('li', { data: { seq: one.seq } },
        h('div', { class: 'what' }, h('p', null, h('strong', null, `#${one.seq}`), ' ', h('span', { class: 'problem' }, cut(one.reason, 400))), h('p', { class: 'quiet small' }, h('code', null, cut(one.subject, 200)), ` · ${date(one.at)} · ${bytes(one.bytes)}`)),
        h('div', { class: 'row' }, button('Look', () => this.look(one), { kind: 'tiny', name: `Look at letter ${one.seq}` }), button('Retry', () => this.retry(one), { kind: 'tiny', why, name: `Retry letter ${one.seq}` }), button('Drop', () => this.drop(one), { kind: 'tiny danger', why, name: `Drop letter ${one.seq}` }))))) : empty('No dead letters', 'Everything that was sent could be processed.'));
    } catch (error) {
      fill(this.list, empty('They cannot be listed', error.text ?? String(error)));
    }
  }

  look(one) {
    dialog(`Dead letter ${one.seq}`, () => this.content(one), { broad: true });
  }

  content(one) {
    return h('div', { class: 'stack' }, h('p', { class: 'problem' }, one.reason), h('p', null, h('code', null, one.subject), ` · written by ${one.writer}`),
      Object.keys(one.headers ?? {}).length ? h('pre', { class: 'block', tabindex: '0' }, Object.entries(one.headers).map(([name, value]) => `${name}: ${value}`).join('\n')) : null,
      h('pre', { class: 'json', tabindex: '0' }, cut(one.content === undefined ? one.text ?? '' : shown(one.content), 100000)));
  }

  async retry(one) {
    if (await confirm(`Retry letter ${one.seq}`, this.content(one), { action: 'Retry' }) === null) return;
    this.act(one, 'retry', 'Tried again.', { confirmed: true });
  }

  async drop(one) {
    if (await confirm('Drop this letter', `Letter ${one.seq} is deleted for good.`, { action: 'Drop', danger: true }) === null) return;
    this.act(one, 'drop', 'Dropped.');
  }

  async act(one, what, done, body = {}) {
    try {
      await post(at('dead', one.seq, what), body);
      note(done, 'good');
    } catch (error) {
      note(error.text ?? String(error), 'bad');
    }
    this.load();
  }

  reload() {
    this.load();
  }

  close() {}
}

export const open = (context) => new Dead(context);
