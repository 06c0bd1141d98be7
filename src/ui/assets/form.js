// Fields for the values that a question asks for, by its JSON Schema: an object of plain values.

import { h } from './dom.js';
import { cut } from './format.js';

/** What may be chosen: `[value, word]`. Pure. */
export function options(schema) {
  if (Array.isArray(schema?.enum)) return schema.enum.map((value) => [value, String(value)]);
  const titled = schema?.oneOf ?? schema?.anyOf;
  return Array.isArray(titled) && titled.every((one) => 'const' in one) ? titled.map((one) => [one.const, String(one.title ?? one.const)]) : null;
}

/** The fields of a schema, each with how it is labelled and read. */
export function fields(schema) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).slice(0, 32).map(([name, of]) => one(name, of, required.has(name)));
}

function one(name, of, isRequired) {
  const of1 = of ?? {};
  const about = [of1.description && of1.title ? of1.description : '', of1.minimum !== undefined ? `at least ${of1.minimum}` : '', of1.maximum !== undefined ? `at most ${of1.maximum}` : '', isRequired ? '' : 'may stay empty'].filter(Boolean).join(', ');
  const made = { name, label: cut(of1.title ?? of1.description ?? name, 200), hint: about || null, isRequired };
  const choices = options(of1);
  const inner = of1.type === 'array' ? options(of1.items) : null;
  if (choices) {
    made.input = h('select', { name, required: isRequired }, [isRequired && of1.default === undefined ? ['', 'choose'] : ['', '–'], ...choices.map((choice, n) => [n, choice[1]])].map(([value, word]) => h('option', { value, selected: value !== '' && choices[value][0] === of1.default }, word)));
    made.read = () => (made.input.value === '' ? undefined : choices[Number(made.input.value)][0]);
  } else if (inner) {
    made.input = h('select', { name, multiple: true, size: Math.min(6, inner.length) }, inner.map(([, word], n) => h('option', { value: n, selected: (of1.default ?? []).includes(inner[n][0]) }, word)));
    made.read = () => [...made.input.selectedOptions].map((chosen) => inner[Number(chosen.value)][0]);
  } else if (of1.type === 'boolean') {
    made.input = h('select', { name, required: isRequired }, [['', isRequired ? 'choose' : '–'], ['true', 'yes'], ['false', 'no']].map(([value, word]) => h('option', { value, selected: value === String(of1.default) }, word)));
    made.read = () => (made.input.value === '' ? undefined : made.input.value === 'true');
  } else if (of1.type === 'number' || of1.type === 'integer') {
    made.input = h('input', { type: 'number', name, step: of1.type === 'integer' ? '1' : 'any', min: of1.minimum, max: of1.maximum, required: isRequired, value: of1.default ?? '' });
    made.read = () => (made.input.value === '' ? undefined : Number(made.input.value));
  } else if (of1.type === 'array') {
    made.input = h('textarea', { name, rows: '3', value: (of1.default ?? []).join('\n') });
    made.hint = [about, 'one a line'].filter(Boolean).join(', ');
    made.read = () => made.input.value.split('\n').map((line) => line.trim()).filter(Boolean);
  } else {
    const type = { email: 'email', uri: 'url', date: 'date' }[of1.format] ?? (of1.format === 'password' ? 'password' : 'text');
    made.input = (of1.maxLength ?? 0) > 200 ? h('textarea', { name, rows: '3', required: isRequired, maxlength: of1.maxLength, value: of1.default ?? '' }) : h('input', { type, name, required: isRequired, maxlength: of1.maxLength, minlength: of1.minLength, value: of1.default ?? '' });
    made.read = () => (made.input.value === '' ? undefined : made.input.value);
  }
  return made;
}

/** What was given, and what is wrong with it. */
export function read(all) {
  const values = {};
  const wrong = [];
  for (const one of all) {
    const value = one.read();
    if (value === undefined) {
      if (one.isRequired) wrong.push(`${one.label} is needed.`);
    } else values[one.name] = value;
  }
  return { values, wrong };
}
