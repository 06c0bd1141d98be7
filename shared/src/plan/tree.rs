//! A plan taken apart so that it can be rearranged: tasks keep their identity while their indices change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::check::{MAX_ITEMS, MAX_NAME_BYTES, MAX_TEXT_BYTES};
use super::draft::normal;
use super::reference::{self, Reference, TaskField, quoted};
use super::rights::met;
use crate::flow::{Plan, PlanTask};
use crate::ids::TaskIndex;
use crate::text::within_bytes;

/// Names an item of a [`Tree`].
pub(super) type Id = usize;

/// Words between the goal of a task and that of the task above it, whose place it takes.
const PART_OF: &str = "; as part of: ";

/// A plan that is being rearranged.
#[derive(Debug, Default)]
pub(super) struct Tree {
    goal: String,
    items: Vec<Item>,
    top: Vec<Id>,
}

/// A task that is being moved about. Its index, dependencies and references follow from where items end up.
#[derive(Debug)]
pub(super) struct Item {
    /// What it says; its goal and dependencies are kept apart.
    pub(super) task: PlanTask,
    /// Its goal.
    pub(super) goal: Vec<GoalPart>,
    /// The items it depends on.
    pub(super) needs: BTreeSet<Id>,
    parent: Option<Id>,
    children: Vec<Id>,
}

/// A part of a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GoalPart {
    /// Words.
    Text(String),
    /// What another item gave.
    Given(Id, TaskField),
}

impl Tree {
    /// Takes a plan apart. What refers to a task that is not in the plan is left out, or becomes words.
    pub(super) fn of(plan: &Plan) -> Self {
        let ids: HashMap<&TaskIndex, Id> = plan.tasks.keys().enumerate().map(|(id, at)| (at, id)).collect();
        let mut tree = Self { goal: plan.goal.clone(), ..Self::default() };
        for (id, (index, task)) in plan.tasks.iter().enumerate() {
            let parent = index.parent().and_then(|parent| ids.get(&parent).copied());
            tree.items.push(Item {
                task: task.clone(),
                goal: pieces(&task.goal, &ids),
                needs: task.depends_on.iter().filter_map(|needed| ids.get(needed).copied()).collect(),
                parent,
                children: Vec::new(),
            });
            tree.children_mut(parent).push(id);
        }
        tree
    }

    /// Puts the plan together.
    pub(super) fn plan(&self) -> Plan {
        let indices = self.indices();
        let tasks = indices.iter().map(|(id, index)| {
            let item = &self.items[*id];
            let mut depends_on: Vec<TaskIndex> =
                item.needs.iter().filter_map(|needed| indices.get(needed).cloned()).collect();
            depends_on.sort();
            let goal = goal_text(&item.goal, &indices);
            (index.clone(), PlanTask { goal, depends_on, ..item.task.clone() })
        });
        Plan { goal: self.goal.clone(), tasks: tasks.collect() }
    }

    pub(super) fn item(&self, id: Id) -> &Item {
        &self.items[id]
    }

    pub(super) fn item_mut(&mut self, id: Id) -> &mut Item {
        &mut self.items[id]
    }

    /// The children of an item, or the top.
    pub(super) fn children(&self, parent: Option<Id>) -> &[Id] {
        parent.map_or(&self.top, |id| &self.items[id].children)
    }

    pub(super) fn parent(&self, id: Id) -> Option<Id> {
        self.items[id].parent
    }

    pub(super) fn is_leaf(&self, id: Id) -> bool {
        self.items[id].children.is_empty()
    }

    /// All items, depth first.
    pub(super) fn all(&self) -> Vec<Id> {
        let mut found = Vec::new();
        let mut open: Vec<Id> = self.top.iter().rev().copied().collect();
        while let Some(id) = open.pop() {
            found.push(id);
            open.extend(self.items[id].children.iter().rev());
        }
        found
    }

    pub(super) fn leaves(&self) -> Vec<Id> {
        self.all().into_iter().filter(|id| self.is_leaf(*id)).collect()
    }

    /// 1 at the top.
    pub(super) fn depth(&self, id: Id) -> usize {
        std::iter::successors(Some(id), |at| self.items[*at].parent).count()
    }

    /// Levels from this item down to its lowest leaf; 1 for a leaf.
    pub(super) fn height(&self, id: Id) -> usize {
        1 + self.items[id].children.iter().map(|child| self.height(*child)).max().unwrap_or(0)
    }

    /// Whether `id` lies below `above`, or is it.
    pub(super) fn is_within(&self, id: Id, above: Id) -> bool {
        std::iter::successors(Some(id), |at| self.items[*at].parent).any(|at| at == above)
    }

    /// The leaves an item stands for.
    pub(super) fn leaves_of(&self, id: Id) -> Vec<Id> {
        let mut found = Vec::new();
        let mut open = vec![id];
        while let Some(at) = open.pop() {
            if self.is_leaf(at) {
                found.push(at);
            }
            open.extend(self.items[at].children.iter().rev());
        }
        found
    }

    /// How a goal is compared with others.
    pub(super) fn comparable_goal(&self, id: Id) -> String {
        let parts = self.items[id].goal.iter().map(|piece| match piece {
            GoalPart::Text(text) => text.clone(),
            GoalPart::Given(other, field) => format!("{{{{#{other}.{field}}}}}"),
        });
        normal(&parts.collect::<String>())
    }

    /// Takes an item without children out. What refers to it refers to `instead`, or to nothing any more.
    /// With a replacement, a parent that has nothing left goes too; without, it becomes a leaf.
    pub(super) fn remove(&mut self, id: Id, instead: Option<Id>) {
        let parent = self.items[id].parent;
        self.children_mut(parent).retain(|child| *child != id);
        self.redirect(id, &instead.into_iter().collect::<Vec<_>>());
        if let (Some(parent), Some(_)) = (parent, instead)
            && self.is_leaf(parent)
        {
            self.remove(parent, instead);
        }
    }

    /// Puts the children of an item in its place. They take over its goal and what it needed.
    pub(super) fn dissolve(&mut self, id: Id) {
        let children = std::mem::take(&mut self.items[id].children);
        let (needs, above) = (self.items[id].needs.clone(), self.comparable_goal(id));
        let goal = self.items[id].goal.clone();
        for child in &children {
            if !self.comparable_goal(*child).contains(&above) {
                let words = GoalPart::Text(PART_OF.to_owned());
                self.items[*child].goal.extend(std::iter::once(words).chain(goal.iter().cloned()));
            }
            self.items[*child].parent = self.items[id].parent;
            self.items[*child].needs.extend(&needs);
        }
        let siblings = self.children_mut(self.items[id].parent);
        if let Some(position) = siblings.iter().position(|sibling| *sibling == id) {
            siblings.splice(position..=position, children.iter().copied());
        }
        self.redirect(id, &children);
    }

    /// Puts neighbours below a new parent that comes in their place.
    pub(super) fn group(&mut self, members: &[Id], task: PlanTask) {
        let Some(first) = members.first() else { return };
        let parent = self.items[*first].parent;
        let id = self.items.len();
        let goal = vec![GoalPart::Text(task.goal.clone())];
        self.items.push(Item { task, goal, needs: BTreeSet::new(), parent, children: members.to_vec() });
        let siblings = self.children_mut(parent);
        if let Some(position) = siblings.iter().position(|sibling| sibling == first) {
            siblings.insert(position, id);
        }
        siblings.retain(|sibling| !members.contains(sibling));
        for member in members {
            self.items[*member].parent = Some(id);
        }
    }

    /// Puts smaller tasks below a leaf, to be done one after the other. Each begins its goal with these words and goes
    /// on with that of the whole.
    pub(super) fn split(&mut self, id: Id, parts: Vec<(PlanTask, String)>) {
        let goal = self.items[id].goal.clone();
        let mut before = None;
        for (task, words) in parts {
            let part = self.items.len();
            let goal = [GoalPart::Text(words)].into_iter().chain(goal.clone()).collect();
            let needs = before.into_iter().collect();
            self.items.push(Item { task, goal, needs, parent: Some(id), children: Vec::new() });
            self.items[id].children.push(part);
            before = Some(part);
        }
    }

    /// Makes one of two siblings: leaves become one leaf, otherwise one takes in the other.
    pub(super) fn merge_siblings(&mut self, one: Id, other: Id) {
        match (self.is_leaf(one), self.is_leaf(other)) {
            (true, true) => self.merge_leaves(one, other),
            (true, false) => self.move_below(one, other),
            (false, true) => self.move_below(other, one),
            (false, false) => {
                for child in std::mem::take(&mut self.items[other].children) {
                    self.items[child].parent = Some(one);
                    self.items[one].children.push(child);
                }
                let needs = self.items[other].needs.clone();
                self.items[one].needs.extend(needs);
                self.remove(other, Some(one));
            }
        }
    }

    /// Makes one leaf of two; the later one goes.
    pub(super) fn merge_leaves(&mut self, kept: Id, gone: Id) {
        let same = self.comparable_goal(kept) == self.comparable_goal(gone);
        let other = &self.items[gone];
        let (task, goal, needs) = (other.task.clone(), other.goal.clone(), other.needs.clone());
        let item = &mut self.items[kept];
        if !same {
            item.task.name = within_bytes(&format!("{}; {}", item.task.name, task.name), MAX_NAME_BYTES);
            item.goal.push(GoalPart::Text("; also: ".to_owned()));
            item.goal.extend(goal);
        }
        join(&mut item.task.criticism, &task.criticism);
        join(&mut item.task.expected_output, &task.expected_output);
        add(&mut item.task.milestones, task.milestones);
        add(&mut item.task.needs, task.needs);
        // A blueprint does the one or the other, not both.
        if !same || item.task.blueprint != task.blueprint {
            item.task.blueprint = None;
        }
        // Who names no tool may need any.
        if item.task.tools.is_empty() || task.tools.is_empty() {
            item.task.tools.clear();
        } else {
            add(&mut item.task.tools, task.tools);
        }
        item.task.rights = met(item.task.rights.take(), task.rights);
        item.task.critical |= task.critical;
        item.task.priority = item.task.priority.max(task.priority);
        item.needs.extend(needs);
        self.remove(gone, Some(kept));
        self.items[kept].needs.remove(&kept);
    }

    fn move_below(&mut self, id: Id, parent: Id) {
        let siblings = self.children_mut(self.items[id].parent);
        siblings.retain(|sibling| *sibling != id);
        self.items[parent].children.insert(0, id);
        self.items[id].parent = Some(parent);
    }

    fn children_mut(&mut self, parent: Option<Id>) -> &mut Vec<Id> {
        match parent {
            Some(id) => &mut self.items[id].children,
            None => &mut self.top,
        }
    }

    /// Lets everything that refers to an item refer to others.
    fn redirect(&mut self, gone: Id, instead: &[Id]) {
        let name = quoted(&self.items[gone].task.name);
        for id in self.all() {
            let item = &mut self.items[id];
            if item.needs.remove(&gone) {
                item.needs.extend(instead.iter().copied().filter(|other| *other != id));
            }
            if item.goal.iter().any(|piece| matches!(piece, GoalPart::Given(other, _) if *other == gone)) {
                let pieces = std::mem::take(&mut item.goal);
                item.goal =
                    pieces.into_iter().flat_map(|piece| replaced(piece, gone, instead, &name)).collect();
            }
        }
    }

    fn indices(&self) -> BTreeMap<Id, TaskIndex> {
        let mut indices: BTreeMap<Id, TaskIndex> = BTreeMap::new();
        for id in self.all() {
            let parent = self.items[id].parent;
            let position = self.children(parent).iter().position(|child| *child == id).unwrap_or(0);
            let position = u16::try_from(position + 1).unwrap_or(u16::MAX);
            let index = match parent.and_then(|parent| indices.get(&parent)) {
                Some(parent) => parent.child(position),
                None => TaskIndex::top(position),
            };
            indices.insert(id, index);
        }
        indices
    }
}

fn pieces(goal: &str, ids: &HashMap<&TaskIndex, Id>) -> Vec<GoalPart> {
    let goal = reference::without_malformed_context(goal);
    // A name that stands for no task by now is words.
    let goal = &reference::with_names(&goal, |_, field, whole| field.map(|_| quoted(whole)));
    let (mut pieces, mut from) = (Vec::new(), 0);
    for (range, reference) in reference::find(goal) {
        pieces.push(GoalPart::Text(goal[from..range.start].to_owned()));
        let known = reference.ok().and_then(|found| Some((*ids.get(&found.task)?, found.field)));
        pieces.push(match known {
            Some((id, field)) => GoalPart::Given(id, field),
            None => GoalPart::Text(quoted(&goal[range.clone()])),
        });
        from = range.end;
    }
    pieces.push(GoalPart::Text(goal[from..].to_owned()));
    pieces
}

fn replaced(piece: GoalPart, gone: Id, instead: &[Id], name: &str) -> Vec<GoalPart> {
    match piece {
        GoalPart::Given(id, field) if id == gone => {
            if instead.is_empty() {
                return vec![GoalPart::Text(name.to_owned())];
            }
            let others = instead.iter().map(|other| GoalPart::Given(*other, field));
            let with_commas = others.flat_map(|given| [GoalPart::Text(", ".to_owned()), given]);
            with_commas.skip(1).collect()
        }
        other @ (GoalPart::Text(_) | GoalPart::Given(..)) => vec![other],
    }
}

/// The goal as text. What does not fit is left out at the end; a reference is never cut through.
fn goal_text(pieces: &[GoalPart], indices: &BTreeMap<Id, TaskIndex>) -> String {
    let mut text = String::new();
    for piece in pieces {
        let next = match piece {
            GoalPart::Text(words) => within_bytes(words, MAX_TEXT_BYTES - text.len()),
            GoalPart::Given(id, field) => match indices.get(id) {
                Some(index) => Reference { task: index.clone(), field: *field }.to_string(),
                None => String::new(),
            },
        };
        if text.len() + next.len() > MAX_TEXT_BYTES {
            break;
        }
        text.push_str(&next);
    }
    text.trim().to_owned()
}

fn join(text: &mut String, more: &str) {
    if !more.is_empty() && !text.contains(more) {
        let between = if text.is_empty() { "" } else { "; " };
        *text = within_bytes(&format!("{text}{between}{more}"), MAX_TEXT_BYTES);
    }
}

fn add(items: &mut Vec<String>, more: Vec<String>) {
    for item in more {
        if items.len() < MAX_ITEMS && !items.contains(&item) {
            items.push(item);
        }
    }
}
