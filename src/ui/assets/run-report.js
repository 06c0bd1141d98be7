// The report of a run, with each place that it cites a way to the document.

import { button, empty, fill, h } from './dom.js';
import { at, get, query } from './api.js';
import { hasEnded, short } from './format.js';
import { link } from './route.js';
import { render } from './markdown.js';

/** A cited place: its document and line; nothing where it is none. Pure. */
export function place(cite) {
  const found = /^(.{1,500}):(\d{1,7})$/.exec(cite);
  return found ? { document: found[1], line: Number(found[2]) } : null;
}

class Report {
  constructor({ model, query: asked, page }) {
    Object.assign(this, { model, page });
    this.text = h('article', { class: 'panel report' });
    this.source = h('div', { class: 'panel source', hidden: true });
    this.el = h('div', { class: 'with-source' }, this.text, this.source);
    this.asked = asked;
    this.stop = model.on(({ state, live }) => state && live && !this.has && hasEnded(this.model.state) && this.load());
    this.load();
    if (asked.source) this.open(asked.source);
  }

  update(asked) {
    if (asked.source) this.open(asked.source);
  }

  async load() {
    try {
      const report = await get(at('runs', this.model.id, 'report'));
      if (this.isClosed) return;
      this.has = true;
      this.cites = new Map((report.citations ?? []).map((one) => [one.cite, one]));
      const body = String(report.markdown ?? '');
      fill(this.text,
        report.partial ? h('p', { class: 'banner' }, 'The run was stopped before its report was written: this is what its tasks had given until then.') : null,
        render(body, { cite: (text) => this.cite(text) }),
        h('div', { class: 'row report-tools' }, button('Copy as Markdown', () => navigator.clipboard?.writeText(body), { kind: 'tiny' }), button('Save', () => save(body, `report-${short(this.model.id)}.md`), { kind: 'tiny' })));
    } catch (error) {
      if (this.isClosed) return;
      fill(this.text, error.status === 404 ? empty('No report yet', 'It is written when the tasks are done.') : empty('The report cannot be shown', error.text ?? String(error)));
    }
  }

  cite(text) {
    if (!this.cites.has(text)) return null;
    return h('a', { class: 'cite', href: link(['runs', this.model.id, 'report'], { source: text }), title: 'Open the source at this line' }, text);
  }

  async open(cite) {
    const wanted = this.cites?.get(cite) ?? place(cite);
    if (!wanted) return;
    this.source.hidden = false;
    this.el.classList.add('both');
    try {
      const found = await get(query(at('runs', this.model.id, 'source'), { document: wanted.document, line: wanted.line, around: 20 }));
      const heading = h('h2', { tabindex: '-1' }, `${found.document}:${wanted.line}`);
      const lines = (found.lines ?? []).map((text, n) => {
        const line = (found.first ?? 1) + n;
        const el = h('div', { class: `line${line === wanted.line ? ' cited' : ''}`, data: { line } }, h('span', { class: 'no', 'aria-hidden': 'true' }, line), h('code', null, text));
        if (line === wanted.line) el.setAttribute('aria-current', 'true');
        return el;
      });
      const box = h('div', { class: 'lines scroll', tabindex: '0', role: 'region', 'aria-label': 'Lines of the document' }, lines);
      fill(this.source, h('header', null, heading, button('Close', () => this.hide(), { kind: 'tiny plain', name: 'Close the source' })), box);
      const cited = box.querySelector('.cited');
      if (cited) box.scrollTop = cited.offsetTop - box.clientHeight / 3;
      heading.focus({ preventScroll: true });
    } catch (error) {
      fill(this.source, h('p', { class: 'body problem' }, error.text ?? String(error)), button('Close', () => this.hide(), { kind: 'tiny' }));
    }
  }

  hide() {
    this.source.hidden = true;
    this.el.classList.remove('both');
    this.page.openTab('report', {});
  }

  close() {
    this.isClosed = true;
    this.stop();
  }
}

/** Gives a text to be kept as a file. */
export function save(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: 'text/markdown' }));
  const link = h('a', { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 5000);
}

export const open = (context) => new Report(context);
