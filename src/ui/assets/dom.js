// Builds what is on the screen. Text of others gets here as text nodes alone: nothing in these files reads markup.

/** An element. `props`: class, on (listeners), data, style (properties), and attributes; false and null leave one out. */
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  if (props) {
    for (const [name, value] of Object.entries(props)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === 'class') el.className = value;
      else if (name === 'on') for (const [event, listener] of Object.entries(value)) el.addEventListener(event, listener);
      else if (name === 'data') Object.assign(el.dataset, value);
      else if (name === 'style') for (const [key, part] of Object.entries(value)) el.style.setProperty(key, part);
      else if (name === 'value') el.value = value;
      else el.setAttribute(name, value === true ? '' : String(value));
    }
  }
  add(el, children);
  return el;
}

function add(el, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(el, child);
    else el.append(child instanceof Node ? child : String(child));
  }
}

/** Puts these in the place of all that is there. */
export function fill(el, ...children) {
  el.replaceChildren();
  el.known = undefined;
  add(el, children);
  return el;
}

/** Sets a text, where it is another one. */
export function say(el, text) {
  const wanted = String(text);
  if (el.textContent !== wanted) el.textContent = wanted;
}

/** Brings the children of an element in line with items, each known by its key; keeps those that stay, with their focus. */
export function reconcile(parent, items, key, make, update) {
  const known = parent.known ?? (parent.known = new Map());
  const wanted = new Set();
  let place = parent.firstChild;
  for (const item of items) {
    const name = String(key(item));
    wanted.add(name);
    let el = known.get(name);
    if (!el) {
      el = make(item);
      known.set(name, el);
    }
    update?.(el, item);
    if (el === place) place = place.nextSibling;
    else parent.insertBefore(el, place);
  }
  for (const [name, el] of known) {
    if (!wanted.has(name)) {
      el.remove();
      known.delete(name);
    }
  }
}

let numbers = 0;
/** A name for an element that is not used yet. */
export const fresh = (what) => `${what}-${++numbers}`;

/** A field with its label. */
export function field(label, input, hint) {
  const id = input.id || fresh('field');
  input.id = id;
  const hinted = hint ? h('span', { class: 'hint small', id: `${id}-hint` }, hint) : null;
  if (hinted) input.setAttribute('aria-describedby', hinted.id);
  return h('div', { class: 'field' }, h('label', { for: id }, label), input, hinted);
}

/** A button. Where it may not be pressed it says why. */
export function button(label, press, { kind = '', why = '', title = '', name = '' } = {}) {
  const el = h('button', {
    class: `button ${kind}`, type: 'button', title: why || title || null, 'aria-disabled': why ? 'true' : null,
    'aria-label': name || null,
  }, label);
  const reason = why ? h('span', { class: 'sr' }, ` (${why})`) : null;
  if (reason) el.append(reason);
  el.addEventListener('click', (event) => (why ? event.preventDefault() : press(event)));
  return el;
}

/** A named part of a page. */
export function panel(title, body, { tools = null, level = 2, id = null } = {}) {
  const heading = h(`h${level}`, { id: id ?? fresh('part') }, title);
  return h('section', { class: 'panel', 'aria-labelledby': heading.id }, h('header', null, heading, tools), body);
}

/** What is shown where there is nothing to show. */
export const empty = (title, text, action) =>
  h('div', { class: 'empty' }, h('strong', null, title), text ? h('p', null, text) : null, action ?? null);

/** A table of plain cells: heads are texts, or [text, 'number']. */
export function table(caption, heads, rows) {
  const of = (head) => (Array.isArray(head) ? head : [head, '']);
  const headRow = h('tr', null, heads.map((head) => h('th', { scope: 'col', class: of(head)[1] || null }, of(head)[0])));
  const cell = (value, n) => h('td', { class: of(heads[n])[1] || null }, value);
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', null, h('caption', { class: 'sr' }, caption), h('thead', null, headRow),
      h('tbody', null, rows.map((row) => h('tr', null, row.map(cell))))));
}

/** Tells something shortly; screen readers are told too. */
export function note(text, kind = '') {
  const el = h('div', { class: `note ${kind}` }, text);
  const notes = document.getElementById('notes');
  notes.append(el);
  while (notes.childElementCount > 4) notes.firstElementChild.remove();
  setTimeout(() => el.remove(), kind === 'bad' ? 12000 : 6000);
}

/** Opens a dialog; it goes when it is closed. */
export function dialog(title, body, { broad = false } = {}) {
  const heading = h('h2', { id: fresh('dialog') }, title);
  const el = h('dialog', { class: broad ? 'broad' : null, 'aria-labelledby': heading.id });
  const close = button('Close', () => el.close(), { kind: 'plain tiny' });
  el.append(h('div', { class: 'stack' }, h('div', { class: 'row wide' }, heading, close), body(() => el.close())));
  el.addEventListener('close', () => el.remove());
  document.body.append(el);
  el.showModal();
  return el;
}

/** Asks whether something is to be done, with a reason where one is wanted. Gives the reason, or null. */
export function confirm(title, text, { action = 'OK', danger = false, reason = false, value = '', label = 'Reason' } = {}) {
  return new Promise((resolve) => {
    let given = null;
    const el = dialog(title, (close) => {
      const input = reason ? h('textarea', { rows: '3', value, name: 'reason' }) : null;
      const send = (event) => {
        event.preventDefault();
        given = input ? input.value : '';
        close();
      };
      return h('form', { class: 'stack', on: { submit: send } }, h('div', null, text), input ? field(label, input) : null,
        h('div', { class: 'row' }, h('button', { class: `button main ${danger ? 'danger-main' : ''}`, type: 'submit' }, action),
          button('Cancel', close)));
    });
    el.addEventListener('close', () => resolve(given));
  });
}

/** Does something at the next frame, once however often it is asked; also where the page is not seen. */
export function coalesced(work) {
  let due = false;
  const run = () => {
    if (!due) return;
    due = false;
    work();
  };
  return () => {
    if (due) return;
    due = true;
    if (document.hidden) setTimeout(run, 200);
    else requestAnimationFrame(run);
  };
}

/** Waits until nothing more was asked for a moment. */
export function settled(work, ms = 180) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), ms);
  };
}
