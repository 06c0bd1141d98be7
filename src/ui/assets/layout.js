// Where the tasks of a plan stand in the graph. Pure.

/** Most tasks of one column; further ones stand in columns beside it. */
const TALL = 32;
export const NODE = { width: 190, height: 40, gapX: 58, gapY: 14 };

/** The task above one by its index: `1-2` for `1-2-3`. Members (`1-2~a`) belong to their task. */
export function parentOf(index) {
  const member = index.indexOf('~');
  if (member > 0) return index.slice(0, member);
  const dash = index.lastIndexOf('-');
  return dash > 0 ? index.slice(0, dash) : null;
}

/** Compares indices as a plan lists them: part by part, as numbers. */
export function byIndex(a, b) {
  const [x, y] = [a.split(/[-~]/), b.split(/[-~]/)];
  for (let n = 0; n < Math.min(x.length, y.length); n += 1) {
    if (x[n] === y[n]) continue;
    const [p, q] = [Number(x[n]), Number(y[n])];
    return Number.isNaN(p) || Number.isNaN(q) ? (x[n] < y[n] ? -1 : 1) : p - q;
  }
  return x.length - y.length;
}

/** The tasks of a plan with what they need, from what `show` says of a run. */
export function nodes(plan, states) {
  const tasks = Object.entries(plan?.tasks ?? {});
  return tasks.map(([id, task]) => ({
    id, title: task.name || id, role: task.role ?? '', needs: task.depends_on ?? [], parent: parentOf(id),
    status: states?.[id]?.status ?? 'created',
  })).sort((a, b) => byIndex(a.id, b.id));
}

/** How far from the beginning each task stands: after what it needs, and after the task that it is a part of. */
export function depths(all) {
  const known = new Map(all.map((node) => [node.id, node]));
  const children = new Map();
  for (const node of all) {
    if (!known.has(node.parent)) continue;
    if (!children.has(node.parent)) children.set(node.parent, []);
    children.get(node.parent).push(node.id);
  }
  const begin = new Map();
  const end = new Map();
  const open = new Set();
  const beginOf = (id) => {
    if (begin.has(id)) return begin.get(id);
    // A circle is refused where plans are made; here it must not hang.
    if (open.has(id)) return 0;
    open.add(id);
    const node = known.get(id);
    let depth = known.has(node.parent) ? beginOf(node.parent) + 1 : 0;
    for (const need of node.needs) if (known.has(need)) depth = Math.max(depth, endOf(need) + 1);
    open.delete(id);
    begin.set(id, depth);
    return depth;
  };
  const endOf = (id) => {
    if (end.has(id)) return end.get(id);
    const own = beginOf(id);
    end.set(id, own);
    let last = own;
    for (const child of children.get(id) ?? []) last = Math.max(last, endOf(child));
    end.set(id, last);
    return last;
  };
  for (const node of all) beginOf(node.id);
  return begin;
}

/** Places and lines: `{boxes: [{id, x, y, …}], edges: [{from, to, kind}], width, height}`. */
export function layout(all) {
  const depth = depths(all);
  const columns = [];
  for (const node of all) (columns[depth.get(node.id)] ??= []).push(node);
  const place = new Map();
  let x = 0;
  let height = 0;
  for (const column of columns) {
    if (!column) continue;
    const ahead = (node) => [...node.needs, node.parent].map((id) => place.get(id)).filter(Boolean);
    const middle = (node) => {
      const before = ahead(node);
      return before.length ? before.reduce((sum, one) => sum + one.y, 0) / before.length : Infinity;
    };
    const weights = new Map(column.map((node) => [node.id, middle(node)]));
    const order = [...column].sort((a, b) => (weights.get(a.id) - weights.get(b.id) || 0) || byIndex(a.id, b.id));
    const tall = Math.max(TALL, Math.ceil(Math.sqrt(column.length) * 1.6));
    order.forEach((node, n) => {
      const y = (n % tall) * (NODE.height + NODE.gapY);
      place.set(node.id, { ...node, x: x + Math.floor(n / tall) * (NODE.width + 16), y });
      height = Math.max(height, y + NODE.height);
    });
    x += Math.ceil(column.length / tall) * (NODE.width + 16) - 16 + NODE.gapX;
  }
  const edges = [];
  for (const node of all) {
    if (place.has(node.parent)) edges.push({ from: node.parent, to: node.id, kind: 'part' });
    for (const need of node.needs) if (place.has(need)) edges.push({ from: need, to: node.id, kind: 'need' });
  }
  return { boxes: [...place.values()], edges, width: Math.max(0, x - NODE.gapX), height };
}

/** The tree as rows, those below closed tasks left out. */
export function rows(all, closed) {
  const known = new Set(all.map((node) => node.id));
  const parents = new Set(all.map((node) => node.parent));
  const level = new Map();
  const hidden = new Set();
  const found = [];
  for (const node of all) {
    const above = known.has(node.parent) ? node.parent : null;
    level.set(node.id, above === null ? 1 : level.get(above) + 1);
    if (above !== null && (hidden.has(above) || closed.has(above))) {
      hidden.add(node.id);
      continue;
    }
    found.push({ ...node, level: level.get(node.id), isParent: parents.has(node.id), isClosed: closed.has(node.id) });
  }
  return found;
}

/** The box that stands nearest in a direction from another; null where there is none. */
export function neighbour(boxes, from, key) {
  const wanted = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
  if (!wanted || !from) return null;
  let best = null;
  let least = Infinity;
  for (const box of boxes) {
    const [dx, dy] = [box.x - from.x, box.y - from.y];
    const along = dx * wanted[0] + dy * wanted[1];
    if (along <= 0) continue;
    const aside = Math.abs(dx * wanted[1]) + Math.abs(dy * wanted[0]);
    const far = along + aside * 2.5;
    if (far < least) [best, least] = [box, far];
  }
  return best;
}
