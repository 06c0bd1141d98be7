// The processes of the fleet by host and role, and what happened to them.

import { button, empty, fill, h, note, panel, reconcile, say } from './dom.js';
import { get, post, whyNot } from './api.js';
import { bytes, clock, count, date, plural, span } from './format.js';

/** What a process does, in words. */
export function doing(process) {
  const states = process.presence?.states ?? [];
  if (process.role === 'orchestrator') return process.busy ? plural(process.busy, 'run') : 'no run';
  if (!states.length) return process.busy ? `busy with ${process.busy}` : 'idle';
  const counts = new Map();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, n]) => (n > 1 ? `${n} × ${state.replaceAll('_', ' ')}` : state.replaceAll('_', ' '))).join(', ');
}

/** The processes by host, and what of the list is none. Pure. */
export function sorted(listed) {
  const hosts = new Map();
  const other = [];
  for (const one of listed) {
    if (!one.agent) {
      other.push(one);
      continue;
    }
    const host = one.host || 'unknown host';
    if (!hosts.has(host)) hosts.set(host, []);
    hosts.get(host).push(one);
  }
  const rank = (one) => (one.role === 'orchestrator' ? `0${one.agent}` : `1${one.role} ${one.agent}`);
  for (const all of hosts.values()) all.sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
  return { hosts: [...hosts].sort(([a], [b]) => (a < b ? -1 : 1)), other };
}

function said(one) {
  if (one.given_up !== undefined) return ['failed', `${one.name} was given up: it ended again and again`];
  if (one.joined_host) return ['done', `machine ${one.joined_host} joined ${date(one.since)} for ${(one.roles ?? []).join(', ')}; ${plural((one.agents ?? []).length, 'agent')} there`];
  if (one.provider) return ['failed', one.outage ?? `${one.provider} is not asked now`];
  if (one.guard_without_verdict) return ['wait', one.guard_without_verdict];
  return ['skipped', JSON.stringify(one)];
}

class Fleet {
  constructor({ live }) {
    this.title = 'Fleet';
    this.figures = h('dl', { class: 'figures', id: 'fleet-figures' });
    this.hosts = h('div', { class: 'stack' });
    this.other = h('ul', { class: 'stack' });
    this.events = h('ol', { class: 'events' });
    this.roles = h('tbody');
    this.el = [
      h('div', { class: 'head' }, h('div', null, h('h1', null, 'Fleet'), h('p', { class: 'lead' }, 'Every process, by host and role: what it does now, and what happened to others.')), this.figures),
      this.other,
      h('div', { class: 'fleet' },
        this.hosts,
        h('div', { class: 'stack' },
          panel('By role', h('table', null, h('caption', { class: 'sr' }, 'Processes by role'), h('thead', null, h('tr', null,
            h('th', { scope: 'col' }, 'Role'), h('th', { scope: 'col', class: 'number' }, 'Busy'), h('th', { scope: 'col' }, 'Start, stop'))), this.roles)),
          panel('What happened', h('div', { class: 'body scroll tall', tabindex: '0', role: 'region', 'aria-label': 'Events' }, this.events)))),
    ];
    this.stop = [live.on('fleet', (all) => this.show(all.at(-1)))];
    this.first = get('/api/fleet').then((fleet) => this.fleet ?? this.show(fleet)).catch((error) => this.fleet ?? this.missing(error));
  }

  missing(error) {
    fill(this.hosts, h('div', { class: 'panel' }, empty('No fleet', error.text ?? String(error))));
  }

  show(fleet) {
    this.fleet = fleet;
    const { hosts, other } = sorted(fleet.processes ?? []);
    const agents = hosts.flatMap(([, all]) => all);
    const workers = agents.filter((one) => one.role !== 'orchestrator');
    const sum = (all, of) => all.reduce((total, one) => total + (of(one) ?? 0), 0);
    this.drawFigures([
      ['processes', count(agents.length), agents.length],
      ['slots busy', `${count(sum(workers, (one) => one.busy))} of ${count(sum(workers, (one) => one.slots))}`, sum(workers, (one) => one.busy)],
      ['memory', bytes(sum(agents, (one) => one.resident_bytes)), sum(agents, (one) => one.resident_bytes)],
      ['hosts', count(hosts.length), hosts.length],
    ]);
    if (!hosts.length) fill(this.hosts, h('div', { class: 'panel' }, empty('No process has joined', '`muster up` starts a fleet on this machine.')));
    else {
      if (this.hosts.firstChild && !this.hosts.known) this.hosts.replaceChildren();
      reconcile(this.hosts, hosts, ([host]) => host, ([host]) => this.host(host), (el, [, all]) => this.drawHost(el, all));
    }
    reconcile(this.other, other, (one) => JSON.stringify(one), (one) => {
      const [tone, text] = said(one);
      return h('li', { class: 'row' }, h('span', { class: `pill s-${tone}` }, tone === 'failed' ? 'trouble' : 'note'), text);
    });
    this.drawRoles(agents);
    const events = fleet.events ?? [];
    if (!events.length) fill(this.events, h('li', { class: 'quiet' }, 'Nothing since the dashboard began: no process was lost, none took over.'));
    else {
      if (!this.events.known) this.events.replaceChildren();
      reconcile(this.events, events.slice(0, 200), (one) => `${one.at} ${one.text}`, (one) => h('li', null,
        h('time', { class: 'quiet', datetime: new Date(one.at).toISOString() }, clock(one.at)), ' ', one.text));
    }
  }

  drawFigures(all) {
    reconcile(this.figures, all, ([name]) => name, ([name]) => h('div', null, h('dt', null, name), h('dd', { data: { figure: name } })),
      (el, [, text, value]) => {
        say(el.lastChild, text);
        el.lastChild.dataset.value = value;
      });
  }

  host(host) {
    const rows = h('tbody');
    const heads = ['Process', ['Busy', 'number'], 'Does now', 'Model', ['Done', 'number'], ['Memory', 'number'], ['Up', 'number']];
    const el = panel(host, h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Processes on ${host}` }, h('table', { class: 'processes' }, h('caption', { class: 'sr' }, `Processes on ${host}`),
      h('thead', null, h('tr', null, heads.map((head) => h('th', { scope: 'col', class: Array.isArray(head) ? head[1] : null }, Array.isArray(head) ? head[0] : head)))), rows)));
    el.rows = rows;
    return el;
  }

  drawHost(el, all) {
    reconcile(el.rows, all, (one) => one.agent, () => {
      const cells = Array.from({ length: 7 }, (_, n) => h(n ? 'td' : 'th', n ? { class: [1, 4, 5, 6].includes(n) ? 'number' : null } : { scope: 'row', class: 'agent' }));
      cells[0].append(h('span', { class: 'name' }), h('span', { class: 'quiet small role' }));
      const meter = h('span');
      cells[1].append(h('span', { class: 'busy' }), h('div', { class: 'meter', 'aria-hidden': 'true' }, meter));
      const row = h('tr', null, cells);
      row.cells7 = cells;
      row.meter = meter;
      return row;
    }, (row, one) => this.drawProcess(row, one));
  }

  drawProcess(row, one) {
    const cells = row.cells7;
    row.dataset.agent = one.agent;
    say(cells[0].firstChild, one.name || one.agent);
    say(cells[0].lastChild, `${one.role} · pid ${one.pid}`);
    cells[0].firstChild.title = one.agent;
    say(cells[1].firstChild, `${one.busy}/${one.slots}`);
    row.meter.style.width = `${Math.min(100, (100 * one.busy) / Math.max(1, one.slots))}%`;
    say(cells[2], doing(one));
    say(cells[3], one.model || '–');
    const tally = one.track_record;
    say(cells[4], tally ? `${count(tally.done)}/${count((tally.done ?? 0) + (tally.failed ?? 0) + (tally.late ?? 0))}` : '–');
    say(cells[5], bytes(one.resident_bytes));
    say(cells[6], span(Math.max(0, Math.floor((Date.now() - one.started_at) / 1000) * 1000)));
  }

  drawRoles(agents) {
    const roles = new Map();
    for (const one of agents) {
      const known = roles.get(one.role) ?? { role: one.role, n: 0, busy: 0, slots: 0 };
      known.n += 1;
      known.busy += one.busy;
      known.slots += one.slots;
      roles.set(one.role, known);
    }
    reconcile(this.roles, [...roles.values()].sort((a, b) => (a.role < b.role ? -1 : 1)), (one) => one.role, ({ role }) => {
      const why = whyNot('fleet');
      const change = (path, word) => post(`/api/fleet/${path}`, { role, count: 1 }).then(() => note(`${word} one ${role}`, 'good')).catch((error) => note(error.text ?? String(error), 'bad'));
      return h('tr', { data: { role } }, h('th', { scope: 'row' }), h('td', { class: 'number' }), h('td', null, h('div', { class: 'row nowrap' },
        button('+', () => change('start', 'Started'), { kind: 'tiny', why, name: `Start one ${role}` }),
        button('−', () => change('stop', 'Stopped'), { kind: 'tiny', why, name: `Stop one ${role}` }))));
    }, (row, one) => {
      say(row.children[0], `${one.n} × ${one.role}`);
      say(row.children[1], `${one.busy}/${one.slots}`);
    });
  }

  close() {
    this.stop.forEach((stop) => stop());
  }
}

export const open = (context) => new Fleet(context);
