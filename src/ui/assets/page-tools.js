// How calls of tools went, and what runs taught.

import { button, confirm, empty, fill, h, note, panel, settled, table } from './dom.js';
import { at, get, post, query, whyNot } from './api.js';
import { bytes, count, cut, date, plural, short, span } from './format.js';
import { link } from './route.js';

const N = (text) => [text, 'number'];

class Tools {
  constructor({ route }) {
    this.title = 'Tools and lessons';
    this.tools = h('div');
    this.lessons = h('div');
    this.search = h('input', { type: 'search', value: route.query.q ?? '', 'aria-label': 'Search lessons', placeholder: 'words of a goal or a lesson' });
    this.search.addEventListener('input', settled(() => this.loadLessons(), 200));
    this.el = [
      h('div', null, h('h1', null, 'Tools and lessons'), h('p', { class: 'lead' }, 'How calls of tools went in the newest runs, and what runs taught those after them.')),
      panel('Tools', this.tools),
      panel('Lessons', this.lessons, { tools: h('div', { class: 'search-box' }, this.search) }),
    ];
    this.loadTools();
    this.loadLessons();
  }

  async loadTools() {
    try {
      const { runs, tools } = await get('/api/tools');
      fill(this.tools, tools.length ? [table('Calls of tools', ['Tool', N('Calls'), N('Failed'), N('Timed out'), N('Refused'), N('Kept answers'), N('Mean'), N('95 % within'), N('Answered')], tools.map((one) => [
        h('code', null, one.name), count(one.calls), this.rate(one.failures, one.calls), count(one.timeouts), count(one.refused), count(one.cached), one.mean_ms === null ? '–' : span(one.mean_ms), one.p95_ms === null ? '–' : span(one.p95_ms), bytes(one.bytes)])), h('p', { class: 'body quiet small' }, `Counted in ${plural(runs.length, 'run')}.`)] : empty('No tool was called', `Looked at ${plural(runs.length, 'run')}.`));
    } catch (error) {
      fill(this.tools, empty('The calls cannot be counted', error.text ?? String(error)));
    }
  }

  rate(failures, calls) {
    const part = calls ? (100 * failures) / calls : 0;
    return h('span', { class: part >= 20 ? 'tone s-failed' : null }, `${count(failures)}${failures ? ` (${Math.round(part)} %)` : ''}`);
  }

  async loadLessons() {
    try {
      const all = await get(query('/api/lessons', { q: this.search.value }));
      const why = whyNot('forget');
      fill(this.lessons, all.length ? h('ul', { class: 'body stack' }, all.slice(0, 300).map((one) => h('li', { class: 'lesson' }, h('div', null,
        h('p', { class: 'small quiet' }, h('a', { href: link(['runs', one.run]) }, `run ${short(one.run)}`), ` · ${date(one.ended_at)} · ${cut(one.goal, 200)}`),
        h('ul', { class: 'told' }, one.lessons.map((text) => h('li', null, cut(text, 800))))),
      button('Forget', () => this.forget(one), { kind: 'tiny', why, name: `Forget the lessons of run ${short(one.run)}` })))) : empty(this.search.value ? 'Nothing like this' : 'No lessons yet', this.search.value ? 'No lesson has these words.' : 'Runs leave lessons when they end; runs with a like goal are given them.'));
    } catch (error) {
      fill(this.lessons, empty('The lessons cannot be read', error.text ?? String(error)));
    }
  }

  async forget(one) {
    const sure = await confirm('Forget these lessons', `No run is given the lessons of run ${short(one.run)} any more. Its record stays.`, { action: 'Forget', danger: true });
    if (sure === null) return;
    await post(at('lessons', one.run, 'forget'));
    note('Forgotten.', 'good');
    this.loadLessons();
  }

  reload() {
    this.loadTools();
    this.loadLessons();
  }

  close() {}
}

export const open = (context) => new Tools(context);
