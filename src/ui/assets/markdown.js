// Markdown as models write it, read into a tree and built as nodes. Markup in it is text, links go to http(s) alone, and
// however it is nested or long, reading it takes time in proportion to its length.

import { h } from './dom.js';

const LONGEST = 400000;
const DEEPEST = 8;

/** The blocks of a text. Pure. */
export function blocks(text) {
  const lines = String(text).slice(0, LONGEST).replace(/\r\n?/g, '\n').split('\n');
  return read(lines, 0);
}

// No expression has two repetitions of the same character next to each other: that takes quadratic time.
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+([^]*)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;

function read(lines, depth) {
  const found = [];
  let n = 0;
  while (n < lines.length) {
    const line = lines[n];
    const fence = /^\s{0,3}(```+|~~~+)\s*([\w+-]*)/.exec(line);
    const heading = /^\s{0,3}(#{1,6})\s([^]*)$/.exec(line);
    if (!line.trim()) {
      n += 1;
    } else if (fence) {
      const body = [];
      n += 1;
      while (n < lines.length && !lines[n].trimStart().startsWith(fence[1])) body.push(lines[n++]);
      n += 1;
      found.push({ kind: 'code', text: body.join('\n'), language: fence[2] });
    } else if (heading) {
      found.push({ kind: 'heading', level: heading[1].length, text: without(heading[2].trimEnd(), '#').trim() });
      n += 1;
    } else if (RULE.test(line)) {
      found.push({ kind: 'rule' });
      n += 1;
    } else if (/^\s{0,3}>/.test(line) && depth < DEEPEST) {
      const body = [];
      while (n < lines.length && /^\s{0,3}>/.test(lines[n])) body.push(lines[n++].replace(/^\s{0,3}>\s?/, ''));
      found.push({ kind: 'quote', blocks: read(body, depth + 1) });
    } else if (ITEM.test(line) && depth < DEEPEST) {
      n = list(lines, n, depth, found);
    } else if (line.includes('|') && cells(lines[n + 1] ?? '').every((cell) => /^:?-{2,}:?$/.test(cell))) {
      const rows = [];
      const heads = cells(line);
      n += 2;
      while (n < lines.length && lines[n].includes('|') && lines[n].trim()) rows.push(cells(lines[n++]));
      found.push({ kind: 'table', heads, rows });
    } else {
      const body = [];
      while (n < lines.length && lines[n].trim() && !(body.length && begins(lines[n]))) body.push(lines[n++]);
      found.push({ kind: 'text', text: body.join('\n') });
    }
  }
  return found;
}

/** A text without those of the characters that it ends with. */
function without(text, characters) {
  let end = text.length;
  while (end && characters.includes(text[end - 1])) end -= 1;
  return text.slice(0, end);
}

const begins = (line) => /^\s{0,3}(#{1,6}\s|```|~~~|>)/.test(line) || ITEM.test(line) || RULE.test(line);

function list(lines, from, depth, found) {
  const first = ITEM.exec(lines[from]);
  const isOrdered = /\d/.test(first[2]);
  const margin = first[1].length;
  const items = [];
  let n = from;
  while (n < lines.length) {
    const item = ITEM.exec(lines[n]);
    if (!item || item[1].length > margin + 1 || item[1].length < margin || /\d/.test(item[2]) !== isOrdered || RULE.test(lines[n])) break;
    const body = [item[3]];
    const inner = item[1].length + item[2].length + 1;
    n += 1;
    while (n < lines.length) {
      const next = ITEM.exec(lines[n]);
      const indent = lines[n].length - lines[n].trimStart().length;
      if (!lines[n].trim()) {
        const after = lines[n + 1];
        if (after === undefined || !after.trim() || after.length - after.trimStart().length < 2) break;
        body.push('');
      } else if (next && indent < inner - 1 && indent <= margin + 1) break;
      else if (!next && indent < 2 && begins(lines[n])) break;
      else body.push(lines[n].slice(Math.min(indent, inner)));
      n += 1;
    }
    while (n < lines.length && !lines[n].trim() && ITEM.test(lines[n + 1] ?? '')) n += 1;
    items.push(read(body, depth + 1));
  }
  found.push({ kind: 'list', isOrdered, start: isOrdered ? Number.parseInt(first[2], 10) : 1, items });
  return n;
}

const cells = (line) => line.trim().replace(/^\|/, '').replace(/\|$/, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));

const INLINE = /\\([\\`*_{}[\]()#+.!|<>~-])|(`+)|\[([^[\]]{0,1000})\]\(([^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500})?)\)|(\*\*|__)(?=\S)((?:(?!\5)[\s\S]){0,4000}?\S)\5|(?<![\w*])\*(?=[^\s*])([^*\n]{0,2000}[^\s*])\*(?!\w)|(?<!\w)_(?=[^\s_])([^_\n]{0,2000}[^\s_])_(?!\w)|(https?:\/\/[^\s<>()`"']{1,2000})|\n/g;

/** What stands in a line: `[{kind, text | parts}]`. Pure. */
export function inlines(text, depth = 0) {
  const found = [];
  let done = 0;
  const plain = (until) => {
    if (until > done) found.push({ kind: 'plain', text: text.slice(done, until) });
  };
  if (depth > DEEPEST) return [{ kind: 'plain', text }];
  // By the position of ticks, that of the next ticks of the same number: code ends there.
  const closing = new Map();
  const latest = new Map();
  for (const { 0: ticks, index } of text.matchAll(/`+/g)) {
    closing.set(latest.get(ticks.length), index);
    latest.set(ticks.length, index);
  }
  const inline = new RegExp(INLINE);
  for (let match = inline.exec(text); match; match = inline.exec(text)) {
    const [whole, escaped, ticks, label, target, , strong, starred, underscored, bare] = match;
    plain(match.index);
    done = match.index + whole.length;
    if (escaped !== undefined) found.push({ kind: 'plain', text: escaped });
    else if (ticks !== undefined && closing.has(match.index)) {
      const code = text.slice(done, closing.get(match.index));
      found.push({ kind: 'code', text: code.length > 2 ? code.replace(/^ (.+) $/, '$1') : code });
      done += code.length + ticks.length;
    } else if (ticks !== undefined) found.push({ kind: 'plain', text: ticks });
    else if (label !== undefined) found.push({ kind: 'link', target, parts: inlines(label, depth + 1) });
    else if (strong !== undefined) found.push({ kind: 'strong', parts: inlines(strong, depth + 1) });
    else if (starred !== undefined || underscored !== undefined) found.push({ kind: 'em', parts: inlines(starred ?? underscored, depth + 1) });
    else if (bare !== undefined) {
      const target = without(bare, '.,;:!?');
      found.push({ kind: 'link', target, parts: [{ kind: 'plain', text: target }] });
      done -= bare.length - target.length;
    } else found.push({ kind: 'plain', text: ' ' });
    inline.lastIndex = done;
  }
  plain(text.length);
  return found;
}

/** Whether an address may be followed: of the web, and nothing else. Pure. */
export function isSafe(target) {
  try {
    return ['http:', 'https:'].includes(new URL(target).protocol) && /^https?:\/\//i.test(target);
  } catch {
    return false;
  }
}

/** Builds the nodes of a text. `cite(place)` gives a node for a cited place such as `a.md:3`, or nothing. */
export function render(text, { cite = () => null, top = 2 } = {}) {
  return h('div', { class: 'markdown' }, blocks(text).map((block) => build(block, { cite, top })));
}

function build(block, how) {
  const inner = (text) => inlines(text).map((part) => inline(part, how));
  switch (block.kind) {
    case 'heading': return h(`h${Math.min(6, block.level - 1 + how.top)}`, null, inner(block.text));
    case 'code': return h('pre', { tabindex: '0' }, h('code', null, block.text));
    case 'rule': return h('hr');
    case 'quote': return h('blockquote', null, block.blocks.map((one) => build(one, how)));
    case 'list': return h(block.isOrdered ? 'ol' : 'ul', block.isOrdered && block.start !== 1 ? { start: block.start } : null, block.items.map((item) => h('li', null, item.map((one) => (one.kind === 'text' ? inner(one.text) : build(one, how))))));
    case 'table': return h('div', { class: 'scroll', tabindex: '0' }, h('table', null,
      h('thead', null, h('tr', null, block.heads.map((cell) => h('th', { scope: 'col' }, inner(cell))))),
      h('tbody', null, block.rows.map((row) => h('tr', null, row.map((cell) => h('td', null, inner(cell))))))));
    default: return h('p', null, inner(block.text));
  }
}

function inline(part, how) {
  switch (part.kind) {
    case 'plain': return cited(part.text, how);
    case 'code': return how.cite(part.text) ?? h('code', null, part.text);
    case 'strong': return h('strong', null, part.parts.map((one) => inline(one, how)));
    case 'em': return h('em', null, part.parts.map((one) => inline(one, how)));
    default: {
      const inner = part.parts.map((one) => (one.kind === 'plain' ? one.text : inline(one, { ...how, cite: () => null })));
      return isSafe(part.target) ? h('a', { href: part.target, target: '_blank', rel: 'noopener noreferrer nofollow' }, inner) : h('span', null, inner, ` (${part.target})`);
    }
  }
}

/** Places that are cited without code marks. */
function cited(text, how) {
  const found = [];
  let done = 0;
  for (const match of text.matchAll(/(?<![\w./-])[\w./-]{1,300}:\d{1,7}\b/g)) {
    const node = how.cite(match[0]);
    if (!node) continue;
    found.push(text.slice(done, match.index), node);
    done = match.index + match[0].length;
  }
  return [...found, text.slice(done)];
}
