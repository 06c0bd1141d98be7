// The page on which somebody logs in.

import { field, h } from './dom.js';
import { Problem, login } from './api.js';

/** The form. `done` is called when somebody is logged in. */
export function form(reason, done) {
  const input = h('input', { type: 'password', name: 'token', autocomplete: 'off', spellcheck: 'false', required: true });
  const problem = h('p', { class: 'problem', role: 'alert' }, reason ?? '');
  const send = async (event) => {
    event.preventDefault();
    problem.textContent = '';
    try {
      if (await login(input.value.trim())) done();
    } catch (error) {
      problem.textContent = error instanceof Problem ? error.text : String(error);
      input.select();
    }
  };
  return h('div', { class: 'login' },
    h('form', { class: 'panel', on: { submit: send } },
      h('div', { class: 'brand' }, h('img', { src: 'icon.svg', alt: '' }), 'Muster'),
      h('h1', null, 'Log in'),
      problem,
      field('Token', input, 'The terminal in which `muster ui` runs prints an address that logs you in; Enter there prints another. `muster keys token` makes tokens for others.'),
      h('button', { class: 'button main', type: 'submit' }, 'Log in')));
}
