// Files that tasks of a run wrote. They are given out to be kept; of what is in them nothing is shown as a page.

import { empty, fill, h, panel, settled } from './dom.js';
import { at, get } from './api.js';
import { bytes } from './format.js';

const PICTURE = /\.(png|jpe?g|gif|webp)$/i;
const LARGEST_PICTURE = 5e6;

class Files {
  constructor({ model }) {
    this.model = model;
    this.el = h('div', { class: 'stack' });
    const again = settled(() => this.load(), 1500);
    this.stop = model.on(({ state, live }) => state && live && again());
    this.load();
  }

  async load() {
    try {
      const { artifacts } = await get(at('runs', this.model.id, 'files'));
      const text = JSON.stringify(artifacts);
      if (this.isClosed || text === this.text) return;
      this.text = text;
      const path = (file) => `${at('runs', this.model.id, 'files')}/${file.path.split('/').map(encodeURIComponent).join('/')}`;
      const row = (file) => h('li', { class: 'file' }, h('a', { href: path(file), download: '' }, file.path), h('span', { class: 'quiet' }, bytes(file.bytes ?? file.size)),
        PICTURE.test(file.path) && (file.bytes ?? 0) < LARGEST_PICTURE ? h('img', { src: path(file), alt: `Picture ${file.path}`, loading: 'lazy' }) : null);
      fill(this.el, panel('Files', artifacts?.length ? h('ul', { class: 'body stack' }, artifacts.map(row)) : empty('No files', 'No task of this run has written one.')));
    } catch (error) {
      fill(this.el, h('div', { class: 'panel' }, empty('The files cannot be listed', error.text ?? String(error))));
    }
  }

  close() {
    this.isClosed = true;
    this.stop();
  }
}

export const open = (context) => new Files(context);
