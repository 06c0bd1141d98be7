//! Mending a draft by rule, when asking the planner again did not help (P2, P3).

mod dependencies;

use std::collections::HashMap;

use super::check::{Bounds, MAX_ITEMS, MAX_NAME_BYTES, MAX_TEXT_BYTES, PlanProblem, check_plan};
use super::draft;
use super::reference::quoted;
use super::tree::{GoalPart, Id, Tree};
use super::values::Values;
use crate::flow::{Plan, PlanDraft, PlanTask, RunLimits};
use crate::ids::Role;
use crate::text::within_bytes;

/// Makes a plan of any draft, and says what was mended, one line each. The plan has no task when the draft
/// holds nothing that could be done; otherwise [`check_plan`] finds nothing wrong with it.
#[must_use]
pub fn repair(draft: &PlanDraft, limits: &RunLimits, roles: &[Role]) -> (Plan, Vec<String>) {
    repair_knowing(draft, limits, roles, None)
}

/// The same in a run with these values: goals do without those that nobody writes.
#[must_use]
pub fn repair_knowing(
    draft: &PlanDraft,
    limits: &RunLimits,
    roles: &[Role],
    values: Option<&Values>,
) -> (Plan, Vec<String>) {
    let (mut plan, problems) = draft::read(draft);
    let mut notes: Vec<String> = problems.iter().map(unreadable).collect();
    keep_readable(&mut plan, Bounds::of(limits).readable(), &mut notes);
    for _ in 0..PASSES {
        let mut mender = Mender { tree: Tree::of(&plan), bounds: Bounds::of(limits), notes: &mut notes };
        mender.mend(roles);
        plan = mender.tree.plan();
        if let Some(values) = values {
            notes.extend(values.mend(&mut plan, |_| true));
        }
        let left = check_plan(&plan, limits, roles);
        if left.is_empty() || left == [PlanProblem::Empty] {
            return (plan, notes);
        }
    }
    notes.push("the plan could not be kept together: only its first step is left".to_owned());
    (first_leaf(&plan, roles), notes)
}

/// Mending one thing can bring up another (two goals that are alike once they are cut to their limit); that
/// settles in the second pass.
const PASSES: usize = 4;

struct Mender<'a> {
    tree: Tree,
    bounds: Bounds,
    notes: &'a mut Vec<String>,
}

impl Mender<'_> {
    fn mend(&mut self, roles: &[Role]) {
        self.fill_or_drop_empty();
        self.fit_texts();
        self.fit_roles(roles);
        self.lift_deep();
        self.collapse();
        self.merge_duplicates();
        self.shrink();
        self.fit_width();
        self.shrink();
        self.merge_duplicates();
        self.split_large();
        self.settle_dependencies();
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// A task without a name is named by its goal, and the other way round; one with neither goes.
    fn fill_or_drop_empty(&mut self) {
        // Last first, so that a parent is looked at when what is left below it is known.
        for id in self.tree.all().into_iter().rev() {
            let goal = self.tree.comparable_goal(id);
            let name = self.tree.item(id).task.name.trim().to_owned();
            match (name.is_empty(), goal.is_empty()) {
                (false, false) => {}
                (false, true) => self.tree.item_mut(id).goal = vec![GoalPart::Text(name)],
                (true, false) => {
                    let name = within_bytes(goal.replace(['{', '}'], "").trim(), 60);
                    let name = if name.is_empty() { "unnamed".to_owned() } else { name };
                    self.tree.item_mut(id).task.name = name;
                }
                (true, true) if self.tree.is_leaf(id) => {
                    self.note("left out a task without name and goal".to_owned());
                    self.tree.remove(id, None);
                }
                (true, true) => {
                    self.note("lifted the subtasks of a task without name and goal".to_owned());
                    self.tree.dissolve(id);
                }
            }
        }
    }

    fn fit_texts(&mut self) {
        for id in self.tree.all() {
            let goal = self.tree.item(id).goal.iter().map(|piece| match piece {
                GoalPart::Text(text) => text.len(),
                GoalPart::Given(..) => "{{1.result}}".len(),
            });
            let mut too_long = goal.sum::<usize>() > MAX_TEXT_BYTES;
            let task = &mut self.tree.item_mut(id).task;
            let PlanTask { name, criticism, expected_output, milestones, needs, tools, .. } = task;
            too_long |= [&*milestones, needs, tools].iter().any(|list| list.len() > MAX_ITEMS);
            milestones.truncate(MAX_ITEMS);
            tools.truncate(MAX_ITEMS);
            needs.truncate(MAX_ITEMS);
            let texts =
                [(name, MAX_NAME_BYTES), (criticism, MAX_TEXT_BYTES), (expected_output, MAX_TEXT_BYTES)];
            let items = milestones.iter_mut().chain(needs).chain(tools).map(|text| (text, MAX_TEXT_BYTES));
            for (text, most) in texts.into_iter().chain(items) {
                too_long |= text.len() > most;
                *text = within_bytes(text, most);
            }
            if too_long {
                let name = quoted(&self.tree.item(id).task.name);
                self.note(format!("shortened the texts of {name}"));
            }
        }
    }

    fn fit_roles(&mut self, roles: &[Role]) {
        let instead = substitute(roles);
        for id in self.tree.all() {
            if !roles.contains(&self.tree.item(id).task.role) {
                let is_leaf = self.tree.is_leaf(id);
                let task = &mut self.tree.item_mut(id).task;
                let role = std::mem::replace(&mut task.role, instead.clone());
                let name = quoted(&task.name);
                if is_leaf {
                    self.note(format!("gave {name} to a {instead}, there is no {role}"));
                }
            }
        }
    }

    /// Cuts the depth by lifting: what lies too deep takes the place of what it was part of.
    fn lift_deep(&mut self) {
        for id in self.tree.all().into_iter().rev() {
            if !self.tree.is_leaf(id) && self.tree.depth(id) >= self.bounds.depth {
                let name = quoted(&self.tree.item(id).task.name);
                self.note(format!("put the subtasks of {name} in its place, the plan was too deep"));
                self.tree.dissolve(id);
            }
        }
    }

    /// A parent with a single child says nothing that the child does not.
    fn collapse(&mut self) {
        for id in self.tree.all().into_iter().rev() {
            if let [only] = *self.tree.children(Some(id)) {
                let name = quoted(&self.tree.item(id).task.name);
                let only = quoted(&self.tree.item(only).task.name);
                self.note(format!("put {only} in the place of {name}, whose only subtask it was"));
                self.tree.dissolve(id);
            }
        }
    }

    fn merge_duplicates(&mut self) {
        let mut seen: HashMap<(Role, String), Id> = HashMap::new();
        for id in self.tree.leaves() {
            let key = (self.tree.item(id).task.role.clone(), self.tree.comparable_goal(id));
            match seen.get(&key) {
                Some(first) => {
                    let name = quoted(&self.tree.item(id).task.name);
                    self.note(format!("left out {name}, which another task does already"));
                    self.tree.merge_leaves(*first, id);
                }
                None => {
                    seen.insert(key, id);
                }
            }
        }
        self.collapse();
    }

    /// Too many tasks count as over-decomposed: neighbors become one.
    fn shrink(&mut self) {
        while self.tree.all().len() > self.bounds.tasks {
            let Some((kept, gone)) = neighbors(&self.tree, &self.tree.leaves()) else { return };
            self.note_merge(kept, gone);
            self.tree.merge_leaves(kept, gone);
            self.collapse();
        }
    }

    /// Splits what is too wide into groups where depth and number of tasks allow it, else merges.
    fn fit_width(&mut self) {
        let mut open = vec![None];
        while let Some(parent) = open.pop() {
            while self.tree.children(parent).len() > self.bounds.width {
                if self.group_children(parent) {
                    break;
                }
                let siblings = self.tree.children(parent).to_vec();
                let Some((one, other)) = neighbors(&self.tree, &siblings) else { break };
                self.note_merge(one, other);
                self.tree.merge_siblings(one, other);
            }
            let below = self.tree.children(parent).iter().filter(|child| !self.tree.is_leaf(**child));
            open.extend(below.map(|child| Some(*child)));
        }
        self.collapse();
    }

    /// Splits leaves that have too many milestones where depth, width and number of tasks allow it; else the last of
    /// their milestones become one.
    fn split_large(&mut self) {
        let most = self.bounds.milestones;
        for id in self.tree.leaves() {
            let milestones = self.tree.item(id).task.milestones.clone();
            if milestones.len() <= most {
                continue;
            }
            let name = quoted(&self.tree.item(id).task.name);
            let count = milestones.len().div_ceil(most);
            let fits = count <= self.bounds.width
                && self.tree.depth(id) < self.bounds.depth
                && self.tree.all().len() + count <= self.bounds.tasks;
            if fits {
                self.note(format!("split {name} into {count}, it had {} milestones", milestones.len()));
                let chunks = milestones.chunks(milestones.len().div_ceil(count));
                let parts = (1..).zip(chunks).map(|(number, chunk)| self.part(id, (number, count), chunk));
                let parts = parts.collect();
                self.tree.split(id, parts);
                self.tree.item_mut(id).task.milestones.clear();
            } else {
                self.note(format!("made the last milestones of {name} one, it had {}", milestones.len()));
                let (kept, rest) = milestones.split_at(most.saturating_sub(1));
                let last = within_bytes(&rest.join("; "), MAX_TEXT_BYTES);
                self.tree.item_mut(id).task.milestones = kept.iter().cloned().chain([last]).collect();
            }
        }
    }

    /// A part of a leaf, for some of its milestones, and the words that its goal begins with.
    fn part(&self, id: Id, (number, count): (usize, usize), milestones: &[String]) -> (PlanTask, String) {
        const LONGEST: usize = 1_000;
        let whole = &self.tree.item(id).task;
        let name = within_bytes(&format!("{number}/{count} {}", whole.name), MAX_NAME_BYTES);
        let reached = within_bytes(&milestones.join("; ").replace(['{', '}'], ""), LONGEST);
        let goal = format!("Part {number} of {count}, up to: {reached}. The whole: ");
        // No part is what the blueprint of the whole is for.
        (PlanTask { name, milestones: milestones.to_vec(), blueprint: None, ..whole.clone() }, goal)
    }

    fn group_children(&mut self, parent: Option<Id>) -> bool {
        let children = self.tree.children(parent).to_vec();
        let groups = children.len().div_ceil(self.bounds.width);
        let above = parent.map_or(0, |id| self.tree.depth(id));
        let height = children.iter().map(|child| self.tree.height(*child)).max().unwrap_or(0);
        let fits = self.bounds.width >= 2
            && groups <= self.bounds.width
            && above + 1 + height <= self.bounds.depth
            && self.tree.all().len() + groups <= self.bounds.tasks;
        if !fits {
            return false;
        }
        let size = children.len().div_ceil(groups);
        for members in children.chunks(size).filter(|members| members.len() > 1) {
            let names: Vec<&str> = members.iter().map(|id| self.tree.item(*id).task.name.as_str()).collect();
            let name = within_bytes(&names.join("; ").replace(['{', '}'], ""), MAX_NAME_BYTES);
            self.notes.push(format!("put tasks below a new one, there were too many side by side: {name}"));
            let role = self.tree.item(members[0]).task.role.clone();
            self.tree.group(members, group_task(name, role));
        }
        true
    }

    fn note_merge(&mut self, one: Id, other: Id) {
        let (one, other) = (&self.tree.item(one).task.name, &self.tree.item(other).task.name);
        let text = format!("merged {} with {}, the plan was too large", quoted(one), quoted(other));
        self.note(text);
    }

    fn name(&self, id: Id) -> String {
        quoted(&self.tree.item(id).task.name)
    }
}

/// The two tasks to merge: neighbors, preferably with one parent, one role and short goals; the earlier one first.
fn neighbors(tree: &Tree, candidates: &[Id]) -> Option<(Id, Id)> {
    let pairs = candidates.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)));
    let length = |id: Id| tree.comparable_goal(id).len();
    pairs.max_by_key(|&(one, other)| {
        let same_parent = tree.parent(one) == tree.parent(other);
        let same_role = tree.item(one).task.role == tree.item(other).task.role;
        (same_parent, same_role, std::cmp::Reverse(length(one).saturating_add(length(other))))
    })
}

fn substitute(roles: &[Role]) -> Role {
    match roles.first() {
        Some(first) if !roles.contains(&Role::Worker) => first.clone(),
        Some(_) | None => Role::Worker,
    }
}

fn unreadable(problem: &PlanProblem) -> String {
    format!("left out: {problem}")
}

fn keep_readable(plan: &mut Plan, most: usize, notes: &mut Vec<String>) {
    // A task comes after the one it is part of, so that what is kept is a tree.
    if let Some(first_gone) = plan.tasks.keys().nth(most).cloned() {
        let gone = plan.tasks.split_off(&first_gone);
        notes.push(format!("left out {} tasks from {first_gone} on, the plan was far too large", gone.len()));
    }
}

fn group_task(name: String, role: Role) -> PlanTask {
    PlanTask::new(name.clone(), name, role)
}

fn first_leaf(plan: &Plan, roles: &[Role]) -> Plan {
    let first = plan.leaves().next().map(|(_, task)| {
        let goal = within_bytes(&quoted(&task.name), MAX_TEXT_BYTES);
        let rights = task.rights.clone();
        (crate::ids::TaskIndex::top(1), PlanTask { rights, ..group_task(goal, substitute(roles)) })
    });
    Plan { goal: plan.goal.clone(), tasks: first.into_iter().collect() }
}
