// A step: what was thought, done and seen, exactly what the model was sent, and what of that was new.

import { h } from './dom.js';
import { bytes, count, cut, money, shown, span, status, tone } from './format.js';

const MOST = 100000;

const part = (title, ...body) => h('section', { class: 'stack tight' }, h('h3', null, title), body);
const pre = (text) => h('pre', { class: 'block', tabindex: '0' }, cut(text, MOST));

/** Its nodes, from what the server tells of it. */
export function step(found) {
  const said = found.step;
  const all = [];
  if (said) {
    const { thought = {} } = said;
    const spent = (said.calls ?? []).map((call) => call.usage ?? {});
    const sum = (name) => spent.reduce((total, one) => total + (one[name] ?? 0), 0);
    all.push(h('p', { class: 'quiet small' }, [found.by, `${span(said.millis)} in all`, (said.calls ?? []).length ? `${count(sum('input_tokens'))} tokens in, ${count(sum('output_tokens'))} out, ${money(sum('cost_micros'))}` : 'no model was asked', (said.calls ?? []).map((call) => call.model).filter((model, n, models) => models.indexOf(model) === n).join(', ')].filter(Boolean).join(' · ')));
    all.push(part('Thought', [['', thought.text], ['Why: ', thought.reasoning], ['Next: ', thought.plan], ['Doubts: ', thought.criticism]]
      .filter(([, text]) => text).map(([label, text]) => h('p', { class: 'prewrap' }, label ? h('span', { class: 'quiet' }, label) : null, text))));
    for (const act of [{ action: said.action, observation: said.observation }, ...(said.more ?? [])]) all.push(acted(act));
    if (said.notes?.length) all.push(part('Remarks', pre(shown(said.notes))));
    if (said.heard?.length) all.push(part('Heard from others', said.heard.map((one) => h('p', { class: 'prewrap' }, one.text ?? shown(one)))));
  }
  if (found.prompt) all.push(...prompt(found.prompt, found.new));
  else all.push(h('p', { class: 'quiet' }, 'No model was asked for this step, so there is no prompt.'));
  const answer = (said?.calls ?? []).at(-1)?.answer;
  if (answer) all.push(h('details', null, h('summary', null, 'Answer, word for word'), pre(answer)));
  return all;
}

function acted({ action, observation }) {
  if (!action) return null;
  const submits = action.name === 'submit';
  return h('div', { class: 'stack tight' },
    part('Action', h('p', null, h('code', null, action.name), submits ? ' ends the task' : ''), action.arguments && Object.keys(action.arguments).length ? pre(shown(action.arguments)) : null),
    observation ? part('Observation', h('p', { class: 'row' }, h('span', { class: `pill ${tone(observation.status)}` }, status(observation.status)),
      h('span', { class: 'quiet small' }, [observation.millis ? span(observation.millis) : '', observation.cached ? 'an answer that was kept' : '', observation.truncated ? 'cut to its limit' : ''].filter(Boolean).join(' · '))), pre(observation.content ?? '')) : null);
}

/** The prompt: what was new in it first, then all of it. */
function prompt(sent, change) {
  const messages = sent.messages ?? [];
  const same = change?.same_messages ?? 0;
  const fresh = change?.messages ?? [];
  const about = [sent.model, sent.template?.name ? `template ${sent.template.name} v${sent.template.version}` : '', sent.parameters?.temperature !== undefined ? `temperature ${sent.parameters.temperature}` : '', checked(sent.check)].filter(Boolean).join(' · ');
  return [
    part('New in the prompt', h('p', { class: 'quiet small' }, change?.since ? `Since step ${change.since.step}: ${count(same)} messages at its head stayed the same.` : 'The first request of the task: all of it is new.'),
      fresh.map((one) => message(one, 'new')), (change?.removed ?? []).map((one) => message(one, 'gone'))),
    h('details', { class: 'prompt' }, h('summary', null, `The exact prompt: ${count(messages.length)} messages, ${bytes(messages.reduce((total, one) => total + (one.content ?? '').length, 0))}`),
      h('p', { class: 'quiet small' }, about), messages.map((one, n) => message(one, n < same ? '' : 'new')),
      sent.tools?.length ? h('details', null, h('summary', null, `${count(sent.tools.length)} tools were offered`), pre(shown(sent.tools))) : null),
  ];
}

const checked = (check) => ({ matches: 'its hash is that of what is shown', differs: 'its hash is NOT that of what is shown' }[check] ?? '');

function message(one, kind) {
  return h('article', { class: `message ${kind}` }, h('h4', null, one.role, kind ? h('span', { class: 'quiet' }, ` · ${kind}`) : null), h('pre', { tabindex: '0' }, cut(one.content ?? '', MOST)));
}
