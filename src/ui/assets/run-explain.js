// Explanation of a run: result, evidence, failures, alternatives, turning points, and requests, each with its log entries.

import { empty, fill, h, panel } from './dom.js';
import { at, get, query } from './api.js';
import { count, cut, span } from './format.js';
import { instead, link } from './route.js';

const MAX_ITEMS = 8;
const MAX_ITEMS_FULL = 200;

const STATUS = { upheld: 'confirmed', overruled: 'rejected', contested: 'not settled', both_hold: 'both claims are true' };

class Explain {
  constructor({ model, page, query: asked }) {
    Object.assign(this, { model, page });
    this.isFull = asked.full === 'true';
    this.task = asked.task ?? '';
    const input = h('input', { type: 'checkbox', name: 'full' });
    input.checked = this.isFull;
    input.addEventListener('change', () => {
      this.isFull = input.checked;
      instead(['runs', this.model.id, 'explain'], this.isFull ? { full: 'true' } : {});
      this.draw();
    });
    this.body = h('div', { class: 'stack' }, h('p', { class: 'quiet' }, 'Reading the event log …'));
    this.el = h('div', { class: 'stack' }, h('label', { class: 'row' }, input, 'All details'), this.body);
    this.load();
  }

  async load() {
    try {
      this.explained = await get(query(at('runs', this.model.id, 'explain'), { task: this.task }));
      this.draw();
    } catch (error) {
      fill(this.body, h('div', { class: 'panel' }, empty('This cannot be explained', error.text ?? String(error))));
    }
  }

  /** Buttons that open the log entries of a statement. */
  entries(all) {
    if (!this.isFull || !all?.length) return null;
    return all.slice(0, 6).map((seq) => h('button', { class: 'cite', type: 'button', 'aria-label': `Entry ${seq}`, on: { click: () => this.page.openTab('record', { seq }) } }, `#${seq}`));
  }

  item(one) {
    const when = one.at ? h('span', { class: 'quiet' }, `+${span(one.at - this.explained.began_at)} `) : null;
    return h('li', null, when, h('span', { class: 'prewrap' }, cut(one.text, 2000)), ' ', this.entries(one.entries));
  }

  section(title, all, draw) {
    if (!all?.length) return null;
    const max = this.isFull ? MAX_ITEMS_FULL : MAX_ITEMS;
    return panel(title, h('div', { class: 'body' }, h('ul', { class: 'told' }, all.slice(0, max).map(draw ?? ((one) => this.item(one))),
      all.length > max ? h('li', { class: 'quiet' }, `and ${count(all.length - max)} more`) : null)));
  }

  evidence(one) {
    const cite = (place) => h('a', { class: 'cite', href: link(['runs', this.model.id, 'report'], { source: `${place.path}:${place.line}` }) }, `${place.path}:${place.line}`);
    const status = STATUS[one.status.kind] ? `conflict ${one.status.conflict}: ${STATUS[one.status.kind]}` : '';
    const checked = one.verified ? 'verified by another task' : one.looked_up ? 'quotes found in the sources' : '';
    const about = [one.task, this.isFull ? one.agent : '', one.confidence ? `confidence ${one.confidence}%` : '', checked, status];
    return h('li', null, cut(one.text, 1200), ' ', one.citations.map(cite), h('span', { class: 'quiet small' }, ` ${about.filter(Boolean).join(' · ')}`), ' ', this.entries(one.entry ? [one.entry] : []));
  }

  failures(one) {
    const items = one.items.slice(0, this.isFull ? MAX_ITEMS_FULL : MAX_ITEMS);
    const end = one.end ? ` · ${String(typeof one.end === 'object' ? Object.keys(one.end)[0] : one.end).replaceAll('_', ' ')}` : '';
    return h('li', null, h('strong', null, one.task ? `${one.task} ${one.name ?? ''}` : 'The run'), end,
      h('ul', null, items.map((item) => h('li', { class: item.is_answer ? 'answer' : null }, item.is_answer ? '→ ' : '', item.text, ' ', this.entries(item.entries)))));
  }

  draw() {
    const { explained, isFull } = this;
    const { result } = explained;
    const conflict = (one) => h('li', null, h('strong', null, one.subject), h('ul', null, one.sides.map((side) => h('li', null, side))), h('p', null, one.end), this.entries(one.entries));
    fill(this.body,
      panel('Result', h('div', { class: 'body stack tight' }, h('p', { class: 'how' }, `${result.how[0].toUpperCase()}${result.how.slice(1)}.`), result.report_by ? h('p', { class: 'quiet' }, `Report by ${result.report_by}.`) : null,
        h('ul', { class: 'told' }, result.because.map((one) => this.item(one))))),
      this.section('Evidence', explained.evidence, (one) => this.evidence(one)),
      this.section('Unanswered', result.unanswered),
      this.section('Assumptions', result.assumed),
      this.section('Conflicts', result.conflicts, conflict),
      this.section('Failures', explained.failures, (one) => this.failures(one)),
      this.section('Turning points', explained.turning_points),
      isFull ? [this.section('Alternatives considered', explained.considered), this.section('Goals and commands', explained.requests),
        this.section('People', explained.people), this.section('Verdicts of guards', explained.guards)] : null);
  }

  close() {}
}

export const open = (context) => new Explain(context);
