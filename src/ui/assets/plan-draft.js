// A plan while it is edited: tasks keep who they need, wherever they are moved. Pure.

/** Makes tasks of a draft, each with a key; what they need is told by key. */
export function opened(draft) {
  let keys = 0;
  const byName = new Map();
  const byIndex = new Map();
  const take = (task, index) => {
    const { subtasks = [], depends_on: needs = [], ...rest } = task;
    const made = { key: `t${++keys}`, rest, needs, below: [] };
    byIndex.set(index, made.key);
    if (!byName.has(rest.name)) byName.set(rest.name, made.key);
    made.below = subtasks.map((one, n) => take(one, `${index}-${n + 1}`));
    return made;
  };
  const tasks = (draft.tasks ?? []).map((one, n) => take(one, String(n + 1)));
  const all = flat(tasks);
  // What names nothing that is there stays as it is written: the rules say so.
  for (const { task } of all) task.needs = task.needs.map((need) => byIndex.get(need) ?? byName.get(need) ?? need);
  return { goal: draft.goal, questions: draft.questions, tasks };
}

/** The draft again, with what tasks need by their places. */
export function closed(plan) {
  const index = new Map(flat(plan.tasks).map(({ task, index }) => [task.key, index]));
  const give = (task) => {
    const made = { ...task.rest, depends_on: [...new Set(task.needs.map((need) => index.get(need) ?? need))] };
    if (task.below.length) made.subtasks = task.below.map(give);
    return made;
  };
  const draft = { tasks: plan.tasks.map(give) };
  if (plan.goal !== undefined) draft.goal = plan.goal;
  if (plan.questions?.length) draft.questions = plan.questions;
  return draft;
}

/** All tasks from the first to the last, with their places. */
export function flat(tasks, prefix = '', level = 1) {
  return tasks.flatMap((task, n) => {
    const index = prefix ? `${prefix}-${n + 1}` : String(n + 1);
    return [{ task, index, level }, ...flat(task.below, index, level + 1)];
  });
}

/** The list that a task stands in, and where; with the task above it, where there is one. */
function spot(tasks, key) {
  const n = tasks.findIndex((task) => task.key === key);
  if (n >= 0) return { list: tasks, n };
  for (const task of tasks) {
    const found = spot(task.below, key);
    if (found) return { ...found, above: found.above ?? task };
  }
  return null;
}

const has = (task, key) => task.key === key || task.below.some((one) => has(one, key));

/** Takes a task out, with what is below it; nobody needs those any more. */
export function removed(plan, key) {
  const found = spot(plan.tasks, key);
  if (!found) return plan;
  const [gone] = found.list.splice(found.n, 1);
  const keys = new Set(flat([gone]).map(({ task }) => task.key));
  for (const { task } of flat(plan.tasks)) task.needs = task.needs.filter((need) => !keys.has(need));
  return plan;
}

/** Puts a task before, after or into another one. Not into itself. */
export function moved(plan, key, where, other) {
  const from = spot(plan.tasks, key);
  if (!from || key === other) return plan;
  const task = from.list[from.n];
  if (has(task, other)) return plan;
  from.list.splice(from.n, 1);
  const to = spot(plan.tasks, other);
  if (where === 'into') to.list[to.n].below.push(task);
  else to.list.splice(to.n + (where === 'after' ? 1 : 0), 0, task);
  return plan;
}

/** Moves a task by keys: up, down, in (below the one before it), out. */
export function shifted(plan, key, way) {
  const at = spot(plan.tasks, key);
  if (!at) return plan;
  const [before, after] = [at.list[at.n - 1], at.list[at.n + 1]];
  if (way === 'up' && before) return moved(plan, key, 'before', before.key);
  if (way === 'down' && after) return moved(plan, key, 'after', after.key);
  if (way === 'in' && before) return moved(plan, key, 'into', before.key);
  if (way === 'out' && at.above) return moved(plan, key, 'after', at.above.key);
  return plan;
}

/** Puts a new task after another one, or at the end. */
export function added(plan, after, key) {
  const task = { key, rest: { name: 'New task', goal: '', role: 'worker' }, needs: [], below: [] };
  const at = after ? spot(plan.tasks, after) : null;
  if (at) at.list.splice(at.n + 1, 0, task);
  else plan.tasks.push(task);
  return plan;
}
