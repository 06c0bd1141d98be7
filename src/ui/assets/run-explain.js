// Why a run came to what it came to: for users, developers and auditors, each told what they want to know.

import { empty, fill, h, panel, table } from './dom.js';
import { at, get, query } from './api.js';
import { count, cut, span } from './format.js';
import { instead, link } from './route.js';

const MOST = { user: 8, developer: 20, auditor: 200 };

class Explain {
  constructor({ model, inspector, query: asked, page }) {
    Object.assign(this, { model, inspector, page });
    this.reader = asked.for ?? 'user';
    this.task = asked.task ?? '';
    this.readers = h('div', { class: 'row', role: 'radiogroup', 'aria-label': 'For whom' }, ['user', 'developer', 'auditor'].map((one) => {
      const input = h('input', { type: 'radio', name: 'reader', value: one });
      input.checked = one === this.reader;
      input.addEventListener('change', () => {
        this.reader = one;
        instead(['runs', this.model.id, 'explain'], { for: one });
        this.draw();
      });
      return h('label', { class: 'row' }, input, `For ${one}s`);
    }));
    this.body = h('div', { class: 'stack' }, h('p', { class: 'quiet' }, 'Looking into the record …'));
    this.el = h('div', { class: 'stack' }, this.readers, this.body);
    this.load();
  }

  async load() {
    try {
      this.told = await get(query(at('runs', this.model.id, 'explain'), { for: this.reader, task: this.task }));
      this.draw();
    } catch (error) {
      fill(this.body, h('div', { class: 'panel' }, empty('This cannot be explained', error.text ?? String(error))));
    }
  }

  /** The entries that something rests on. */
  entries(all) {
    if (this.reader === 'user' || !all?.length) return null;
    return all.slice(0, 6).map((seq) => h('button', { class: 'cite', type: 'button', 'aria-label': `Entry ${seq}`, on: { click: () => this.page.openTab('record', { seq }) } }, `#${seq}`));
  }

  item(told) {
    const when = told.at && this.told.began_at ? h('span', { class: 'quiet' }, `+${span(told.at - this.told.began_at)} `) : null;
    return h('li', null, when, h('span', { class: 'prewrap' }, cut(told.text, 2000)), ' ', this.entries(told.entries));
  }

  section(title, all, draw) {
    if (!all?.length) return null;
    const most = MOST[this.reader];
    return panel(title, h('div', { class: 'body' }, h('ul', { class: 'told' }, all.slice(0, most).map(draw ?? ((one) => this.item(one))),
      all.length > most ? h('li', { class: 'quiet' }, `and ${count(all.length - most)} more`) : null)));
  }

  draw() {
    const { told, reader } = this;
    const { result } = told;
    const deep = reader !== 'user';
    const cite = (place) => h('a', { class: 'cite', href: link(['runs', this.model.id, 'report'], { source: `${place.path}:${place.line}` }) }, `${place.path}:${place.line}`);
    const standing = (one) => (typeof one.standing === 'object' ? `${Object.keys(one.standing)[0].replaceAll('_', ' ')} (conflict ${Object.values(one.standing)[0]})` : one.standing === 'uncontested' ? '' : String(one.standing ?? ''));
    fill(this.body,
      panel('How it ended', h('div', { class: 'body stack tight' }, h('p', { class: 'how' }, `${result.how[0].toUpperCase()}${result.how.slice(1)}.`), result.report_by ? h('p', { class: 'quiet' }, `The report is by ${result.report_by}.`) : null,
        h('ul', { class: 'told' }, result.because.map((one) => this.item(one))))),
      this.section('What it rests on', told.evidence, (one) => h('li', null, cut(one.text, 1200), ' ', (one.citations ?? []).map(cite), h('span', { class: 'quiet small' }, [` ${one.task}`, one.agent && deep ? one.agent : '', one.confidence ? `${one.confidence} % sure` : '', one.verified ? 'looked up by another' : one.looked_up ? 'looked up by rule' : '', standing(one), one.stale ? 'made from what has changed since' : ''].filter(Boolean).join(' · ')), ' ', this.entries(one.entry ? [one.entry] : []))),
      this.section('Not answered', result.unanswered),
      this.section('Taken for granted', result.assumed),
      this.section('Contradictions', result.conflicts, (one) => h('li', null, h('strong', null, one.subject), h('ul', null, one.sides.map((side) => h('li', null, side))), h('p', null, one.end), this.entries(one.entries))),
      this.section('What went wrong, and what was done', told.troubles, (one) => h('li', null, h('strong', null, one.task ? `${one.task} ${one.name ?? ''}` : 'The run'), one.end ? ` · ${String(typeof one.end === 'object' ? Object.keys(one.end)[0] : one.end).replaceAll('_', ' ')}` : '', h('ul', null, one.items.slice(0, MOST[reader]).map((part) => h('li', { class: part.is_answer ? 'answer' : null }, part.is_answer ? '→ ' : '', part.text ?? part.told?.text, ' ', this.entries(part.entries ?? part.told?.entries)))))),
      this.section('Turning points', told.turning_points),
      deep ? this.section('What else was considered', told.considered) : null,
      deep ? this.section('Worth a look', told.look_at, (one) => h('li', null, h('button', { class: 'cite', type: 'button', on: { click: () => (one.step ? this.inspector.step({ task: one.task, generation: 1, step: one.step }) : this.inspector.task(one.task)) } }, `${one.task}${one.step ? ` step ${one.step}` : ''}`), ' ', one.why)) : null,
      reader === 'auditor' ? this.audit(told.audit) : null);
  }

  audit(audit) {
    return [
      this.section('Orders', audit.orders, (one) => h('li', null, h('strong', null, one.by), one.signed_by ? h('span', { class: 'quiet' }, ` (signed ${cut(one.signed_by, 20)})`) : null, ' ', one.text ?? one.told?.text, ' ', this.entries(one.entries ?? one.told?.entries))),
      this.section('People', audit.people), this.section('Guards', audit.guards), this.section('Rights', audit.rights),
      panel('Decisions', table('Decisions by orchestrator', ['Orchestrator', ['Decisions', 'number']], Object.entries(audit.decided_by ?? {}).map(([name, n]) => [name, count(n)]))),
      h('p', { class: 'quiet' }, audit.has_chain ? 'Its decisions carry a hash chain: `muster audit` verifies it.' : 'Its decisions carry no hash chain.'),
    ];
  }

  close() {}
}

export const open = (context) => new Explain(context);
