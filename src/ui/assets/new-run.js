// Asks the fleet for something new.

import { button, dialog, field, h, note } from './dom.js';
import { post, whyNot } from './api.js';
import { go } from './route.js';

/** Opens the form. */
export function ask() {
  if (document.querySelector('dialog[open]')) return;
  const why = whyNot('run');
  if (why) {
    note(`A run cannot be begun: ${why}.`, 'bad');
    return;
  }
  const goal = h('textarea', { rows: '4', required: true, name: 'goal' });
  const documents = h('input', { type: 'text', name: 'documents', spellcheck: 'false' });
  const model = h('input', { type: 'text', name: 'model', spellcheck: 'false' });
  const review = h('select', null, [['', 'as the settings say'], ['auto', 'no'], ['ask-if-risky', 'when it is risky'], ['ask', 'yes']].map(([value, word]) => h('option', { value }, word)));
  const problem = h('p', { class: 'problem', role: 'alert' });
  dialog('New run', (close) => {
    const send = async (event) => {
      event.preventDefault();
      problem.textContent = '';
      const asked = { goal: goal.value };
      const paths = documents.value.split(',').map((path) => path.trim()).filter(Boolean);
      if (paths.length) asked.documents = paths;
      if (model.value.trim()) asked.model = model.value.trim();
      if (review.value) asked.review = review.value;
      try {
        const { run } = await post('/api/runs', asked);
        close();
        go(['runs', run]);
      } catch (error) {
        problem.textContent = error.text ?? String(error);
      }
    };
    return h('form', { class: 'stack', on: { submit: send } },
      field('Goal', goal, 'A question or an assignment.'),
      field('Documents', documents, 'Folders or files where the dashboard runs, with commas between them.'),
      field('Model', model, 'Empty: as the settings say.'),
      field('Ask before the plan is carried out', review), problem,
      h('div', { class: 'row' }, h('button', { class: 'button main', type: 'submit' }, 'Begin'), button('Cancel', close)));
  });
  goal.focus();
}
