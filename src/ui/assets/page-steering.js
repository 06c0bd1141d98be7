// What waits for a person: questions, plans and calls to be approved.

import { button, empty, field, fill, h, note, panel } from './dom.js';
import { at, get, may, post, whyNot } from './api.js';
import { ago, cut, short, span } from './format.js';
import { fields, read } from './form.js';
import { link } from './route.js';

const about = (asked) => {
  const of = asked?.about;
  if (typeof of === 'string') return of;
  const [kind, what] = Object.entries(of ?? {})[0] ?? ['', ''];
  return `${kind} ${what}`.trim();
};

const APPROVED = ['plan', 'milestone', 'confidence', 'failure', 'step', 'call'];

class Steering {
  constructor({ route, live }) {
    this.title = 'Steering';
    this.run = route.query.run ?? '';
    this.list = h('div', { class: 'stack', id: 'questions' });
    this.known = new Map();
    this.el = [
      h('div', { class: 'head' }, h('div', null, h('h1', null, 'Steering'), h('p', { class: 'lead' }, 'Questions of the fleet to people, and plans and calls that want approval.')), this.run ? h('a', { class: 'button', href: '#/steering' }, 'Of all runs') : null),
      this.list,
    ];
    this.stop = [live.on('questions', (all) => this.show(all.at(-1)))];
    get('/api/questions').then((all) => this.had ?? this.show(all)).catch((error) => fill(this.list, h('div', { class: 'panel' }, empty('Questions cannot be read', error.text ?? String(error)))));
  }

  /** What is open; forms that somebody writes into stay as they are. */
  show(all) {
    this.had = true;
    const open = all.filter((one) => !one.asked?.end && (!this.run || String(one.run).endsWith(this.run)));
    const keyOf = (one) => `${one.run} ${one.question} ${one.asked.feedback?.length ?? 0}`;
    const wanted = new Set(open.map(keyOf));
    for (const [key, el] of this.known) {
      if (wanted.has(key)) continue;
      el.remove();
      this.known.delete(key);
    }
    if (!open.length) {
      fill(this.list, h('div', { class: 'panel' }, empty('Nothing waits for you', 'Questions and plans to be approved appear here by themselves.')));
      return;
    }
    if (!this.known.size) this.list.replaceChildren();
    for (const one of open) {
      const key = keyOf(one);
      if (this.known.has(key)) continue;
      const el = this.question(one);
      this.known.set(key, el);
      this.list.append(el);
    }
  }

  question(one) {
    const { asked } = one;
    const question = asked.question ?? {};
    const kind = about(asked);
    const left = asked.expires - Date.now();
    const isPlan = kind.startsWith('plan');
    const isApproved = APPROVED.some((name) => kind.startsWith(name));
    const body = h('div', { class: 'body stack' },
      h('p', { class: 'small quiet' }, h('a', { href: link(['runs', one.run]) }, `run ${short(one.run)}`), ` · about ${kind} · asked ${ago(asked.asked_at)}${asked.asked_of ? ` of ${asked.asked_of}` : ''} · ${left > 0 ? `${span(left)} left` : 'expired'}`),
      h('p', { class: 'quiet cut' }, cut(one.goal, 300)),
      h('p', { class: 'prewrap question-text' }, cut(question.text, 20000)),
      question.reason ? h('p', { class: 'prewrap quiet' }, question.reason) : null,
      (asked.feedback ?? []).map((text) => h('p', { class: 'small prewrap' }, `Feedback: ${cut(text, 2000)}`)),
      h('p', { class: 'small quiet', data: { otherwise: '' } }, `Without an answer in time: ${one.otherwise}`),
      asked.approvals?.length ? h('p', { class: 'small' }, `Approved so far by ${asked.approvals.join(', ')}`) : null);
    const el = panel(`${isPlan ? 'A plan to be approved' : isApproved ? `To be approved: ${kind}` : 'A question'} (${one.question} of run ${short(one.run)})`, body);
    el.dataset.question = one.question;
    el.dataset.run = one.run;
    if (isPlan) body.append(this.plan(one));
    else if (isApproved) body.append(this.approval(one));
    else if (question.form) body.append(this.form(one, question.form));
    else if (question.choices?.length) body.append(this.choices(one, question.choices));
    else body.append(this.text(one));
    return el;
  }

  async send(path, body, done) {
    try {
      await post(path, body);
      note(done, 'good');
      return true;
    } catch (error) {
      note(error.text ?? String(error), 'bad');
      return false;
    }
  }

  answer(one, body) {
    return this.send(at('runs', one.run, 'questions', one.question, 'answer'), body, 'Answered.');
  }

  text(one) {
    const input = h('textarea', { rows: '3', name: 'answer', disabled: !may('answer') });
    return h('form', { class: 'stack', on: { submit: (event) => {
      event.preventDefault();
      if (input.value.trim()) this.answer(one, { text: input.value });
    } } }, field('Answer', input), h('div', { class: 'row' }, this.submit('Answer')));
  }

  submit(label) {
    const why = whyNot('answer');
    return h('button', { class: 'button main', type: 'submit', disabled: Boolean(why), title: why || null }, label);
  }

  choices(one, choices) {
    const why = whyNot('answer');
    return h('div', { class: 'stack' }, h('div', { class: 'row', role: 'group', 'aria-label': 'Choices' }, choices.map((choice, n) => button(choice, () => this.answer(one, { choice: n + 1 }), { why, kind: 'wrap' }))));
  }

  form(one, asked) {
    const form = asked.form ?? {};
    const why = whyNot('answer');
    const decline = button('Decline', () => this.answer(one, { text: 'decline' }), { why });
    if (form.visit) {
      const isWeb = /^https?:\/\//i.test(form.visit);
      return h('div', { class: 'stack' }, h('p', null, 'Open this address and do what it asks: ', isWeb ? h('a', { href: form.visit, target: '_blank', rel: 'noopener noreferrer' }, form.visit) : form.visit),
        h('div', { class: 'row' }, button('Done', () => this.answer(one, { text: 'done' }), { why, kind: 'main' }), decline));
    }
    const all = fields(form.values ?? {});
    const problem = h('p', { class: 'problem', role: 'alert' });
    const send = async (event) => {
      event.preventDefault();
      const { values, wrong } = read(all);
      problem.textContent = wrong.join(' ');
      if (!wrong.length) await this.answer(one, { text: JSON.stringify(values) });
    };
    return h('form', { class: 'stack', on: { submit: send } }, all.map((one) => field(one.label, one.input, one.hint)), problem, h('div', { class: 'row' }, this.submit('Send'), decline));
  }

  /** Approved or rejected; of a call its arguments may be changed first. */
  approval(one) {
    const why = whyNot('answer');
    const call = one.call;
    const args = call?.arguments ?? call?.action?.arguments;
    const input = call ? h('textarea', { rows: '6', class: 'mono', spellcheck: 'false', value: JSON.stringify(args ?? {}, null, 2) }) : null;
    const approve = async () => {
      const body = { question: one.question };
      if (input) {
        try {
          const changed = JSON.parse(input.value);
          if (JSON.stringify(changed) !== JSON.stringify(args ?? {})) body.arguments = changed;
        } catch (error) {
          note(`The arguments are no JSON: ${error.message}`, 'bad');
          return;
        }
      }
      await this.send(at('runs', one.run, 'approve'), body, 'Approved.');
    };
    return h('div', { class: 'stack' }, call ? h('p', null, 'It calls ', h('code', null, call.name ?? call.tool ?? call.action?.name ?? 'a tool')) : null, input ? field('Arguments', input, 'They may be changed before the call is approved.') : null,
      this.verdict(one, button('Approve', approve, { why, kind: 'main' })));
  }

  verdict(one, approve) {
    const why = whyNot('answer');
    const feedback = h('input', { type: 'text', name: 'feedback', disabled: Boolean(why) });
    const reject = () => {
      if (!feedback.value.trim()) {
        note('Say what is to be different.', 'bad');
        feedback.focus();
        return;
      }
      this.send(at('runs', one.run, 'reject'), { question: one.question, feedback: feedback.value }, 'Rejected.');
    };
    return h('div', { class: 'toolbar' }, approve, h('div', { class: 'grow' }, field('What is to be different', feedback)), button('Reject', reject, { why, kind: 'danger' }));
  }

  plan(one) {
    const place = h('div', { class: 'stack' }, h('p', { class: 'quiet' }, 'Reading the plan …'));
    Promise.all([import('./plan-editor.js'), get(at('runs', one.run, 'plan'))]).then(([{ Editor }, draft]) => {
      const editor = new Editor(draft, one.run, may('answer'));
      const approve = async () => {
        const body = { question: one.question };
        if (editor.isChanged()) body.plan = editor.draft();
        await this.send(at('runs', one.run, 'approve'), body, editor.isChanged() ? 'Approved as you changed it.' : 'Approved.');
      };
      fill(place, editor.el, this.verdict(one, button('Approve', approve, { why: whyNot('answer'), kind: 'main' })));
    }).catch((error) => fill(place, h('p', { class: 'problem' }, error.text ?? String(error)), this.verdict(one, button('Approve', () => this.send(at('runs', one.run, 'approve'), { question: one.question }, 'Approved.'), { why: whyNot('answer'), kind: 'main' }))));
    return place;
  }

  close() {
    this.stop.forEach((stop) => stop());
  }
}

export const open = (context) => new Steering(context);
