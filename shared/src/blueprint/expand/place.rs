//! The tasks that a step becomes, with their places in the plan.

use std::collections::BTreeSet;

use super::super::check::{needs, used};
use super::super::layout::{Arrangement, is_group, least_tasks, number};
use super::super::names::Path;
use super::super::render::{self, cut, harmless};
use super::super::{BlueprintStep, StepOutcome};
use super::{MAX_REASON_BYTES, StepWork};
use crate::flow::{PlanTask, Rights};
use crate::ids::{Role, TaskIndex};
use crate::plan::{MAX_NAME_BYTES, normal};

/// Most items that are named where there is no room for them.
const MOST_NAMED: usize = 10;

impl StepWork<'_> {
    pub(super) fn place(&mut self, position: usize, step: &BlueprintStep, items: Option<Vec<String>>) {
        let place = self.part(position);
        let depends_on = self.dependencies(step);
        let title = self.title(step);
        let task = |work: &Self, item: Option<&str>, critical: bool| PlanTask {
            name: name(&title, item),
            goal: work.goal(&step.goal, item, &title),
            role: role(step.role.as_deref()),
            milestones: step.milestones.iter().map(|text| harmless(text)).collect(),
            expected_output: work.text(&step.expected_output, item),
            needs: step.needs.iter().map(|need| need.trim().to_owned()).collect(),
            depends_on: depends_on.clone(),
            pattern: step.pattern.as_ref().and_then(|text| text.parse().ok()),
            critical,
            rights: rights(step),
            ..holder(&title)
        };
        if !is_group(step) {
            let task = task(self, None, step.critical);
            self.add(place.clone(), task, step);
            return self.settle(
                step,
                StepOutcome::Placed {
                    tasks: vec![place],
                    fallback: Vec::new(),
                    note: String::new(),
                    left_out: 0,
                },
            );
        }
        let critical = step.critical && step.fallback.is_empty();
        let mut items: Vec<Option<String>> =
            items.map_or_else(|| vec![None], |items| items.into_iter().map(Some).collect());
        let Arrangement { items: most, batch } =
            self.layout.arrange(step, items.len(), self.plan.tasks.len(), self.to_come(step));
        let (note, left_out) = self.left_out(&items, most);
        items.truncate(most);
        self.insert(place.clone(), holder(&title));
        let mut tasks = Vec::new();
        for (item, at) in items.iter().zip(0..) {
            let index = match batch {
                None => place.child(number(at)),
                Some(size) => self.batch(&place, &title, at / size).child(number(at % size)),
            };
            let task = task(self, item.as_deref(), critical);
            self.add(index.clone(), task, step);
            tasks.push(index);
        }
        self.settle(step, StepOutcome::Placed { tasks, fallback: Vec::new(), note, left_out });
    }

    /// What is said of the items that there is no room for, and how many they are.
    fn left_out(&self, items: &[Option<String>], most: usize) -> (String, u32) {
        let without = items.get(most..).unwrap_or_default();
        if without.is_empty() {
            return (String::new(), 0);
        }
        let (number, all) = (without.len(), items.len());
        let named: Vec<String> = without
            .iter()
            .flatten()
            .take(MOST_NAMED)
            .map(|item| format!("{:?}", cut(&harmless(item), MAX_REASON_BYTES)))
            .collect();
        let more = if number > named.len() { ", …" } else { "" };
        let note = format!(
            "{number} of {all} items are left out: limits.max_width, limits.max_depth and limits.max_tasks allow no more. \
             They are {}{more}",
            named.join(", ")
        );
        (note, u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// The place of a batch of items, made ready.
    fn batch(&mut self, place: &TaskIndex, title: &str, position: usize) -> TaskIndex {
        let index = place.child(number(position));
        if !self.plan.tasks.contains_key(&index) {
            self.insert(index.clone(), holder(&format!("{title}, batch {}", number(position))));
        }
        index
    }

    /// Places the failure block of a step that gave nothing.
    pub(super) fn fall_back(&mut self, position: usize, step: &BlueprintStep) -> bool {
        let Some(StepOutcome::Placed { tasks, fallback, note, left_out }) =
            self.step_outcomes.get(&step.id).cloned()
        else {
            return false;
        };
        if !fallback.is_empty() || !self.needs_fallback(&step.id) {
            return false;
        }
        let place = self.placed_at(position, &tasks);
        // Batches count as one each, and so does what was added to the plan meanwhile.
        let below = |index: &TaskIndex| {
            index.positions().get(place.depth()).copied().filter(|_| index.is_below(&place))
        };
        let taken = usize::from(self.plan.tasks.keys().filter_map(below).max().unwrap_or_default());
        let why: Vec<&str> = tasks
            .iter()
            .filter_map(|leaf| self.progress.ended.get(leaf))
            .map(|ended| ended.why.as_str())
            .filter(|why| !why.is_empty())
            .collect();
        let why = cut(&harmless(&why.join("; ")), MAX_REASON_BYTES * 2);
        let depends_on = self.dependencies(step);
        let mut placed: Vec<TaskIndex> = Vec::new();
        for (other, at) in step.fallback.iter().zip(taken..) {
            let index = place.child(number(at));
            let title = if other.name.trim().is_empty() {
                format!("{} in another way", self.title(step))
            } else {
                other.name.trim().to_owned()
            };
            let mut goal = self.goal(&other.goal, None, &title);
            if !why.is_empty() {
                let room = crate::plan::MAX_TEXT_BYTES.saturating_sub(goal.len() + 160);
                goal =
                    format!("{goal}\n\nThis is done because {:?} gave nothing: {}", step.id, cut(&why, room));
            }
            let task = PlanTask {
                name: name(&title, None),
                goal,
                role: role(other.role.as_deref()),
                expected_output: self.text(&other.expected_output, None),
                depends_on: depends_on.iter().chain(placed.last()).cloned().collect(),
                critical: step.critical && at + 1 == taken + step.fallback.len(),
                rights: rights(step),
                ..holder(&title)
            };
            self.add(index.clone(), task, step);
            placed.push(index);
        }
        self.settle(step, StepOutcome::Placed { tasks, fallback: placed, note, left_out });
        true
    }

    /// How many tasks may still follow besides those of this step.
    fn to_come(&self, step: &BlueprintStep) -> usize {
        let others = self.filled.blueprint.steps.iter().filter(|other| other.id != step.id);
        let tasks = others.map(|other| match self.step_outcomes.get(&other.id) {
            None => least_tasks(other),
            Some(StepOutcome::Placed { fallback, .. }) if fallback.is_empty() => other.fallback.len(),
            Some(StepOutcome::Placed { .. } | StepOutcome::LeftOut { .. }) => 0,
        });
        tasks.sum()
    }

    fn title(&self, step: &BlueprintStep) -> String {
        let title = render::text(self.filled, step.title(), None, &|_| String::new());
        if title.is_empty() { step.id.clone() } else { title }
    }

    /// The place of a step whose tasks these are.
    fn placed_at(&self, position: usize, tasks: &[TaskIndex]) -> TaskIndex {
        let own = self.layout.place(position);
        let is_there = |task: &TaskIndex| *task == own || task.is_below(&own);
        match tasks.iter().find(|task| !is_there(task)) {
            Some(elsewhere) => TaskIndex::top(elsewhere.positions().first().copied().unwrap_or_default()),
            None => own,
        }
    }

    /// Whether a task that is none of the blueprint's stands where a step is to stand: it was added to the plan meanwhile.
    fn is_taken(&self, place: &TaskIndex) -> bool {
        let is_leaf = |index: &TaskIndex| self.plan.leaves().any(|(leaf, _)| leaf == index);
        self.plan.tasks.contains_key(place) || place.parent().is_some_and(|part| is_leaf(&part))
    }

    /// The place behind all others: those that are there, and those that steps will have.
    fn behind_all(&self) -> TaskIndex {
        let there = self.plan.tasks.keys().filter_map(|index| index.positions().first().copied()).max();
        let kept = number(self.layout.reserved().saturating_sub(1));
        TaskIndex::top(there.unwrap_or_default().max(kept).saturating_add(1))
    }

    /// The place of a step, made ready: with the part that it stands in.
    fn part(&mut self, position: usize) -> TaskIndex {
        let place = self.layout.place(position);
        if self.is_taken(&place) {
            return self.behind_all();
        }
        if let Some(part) = place.parent()
            && !self.plan.tasks.contains_key(&part)
        {
            let title = format!("Part {part}");
            self.insert(part, holder(&title));
        }
        place
    }

    fn add(&mut self, index: TaskIndex, mut task: PlanTask, step: &BlueprintStep) {
        let same = |other: &PlanTask| other.role == task.role && normal(&other.goal) == normal(&task.goal);
        if self.plan.leaves().any(|(_, other)| same(other)) {
            task.goal = format!("{} (step {}, task {index})", task.goal, step.id);
        }
        self.insert(index, task);
    }

    fn insert(&mut self, index: TaskIndex, task: PlanTask) {
        self.plan.tasks.insert(index.clone(), task.clone());
        self.found.tasks.insert(index, task);
    }

    /// The tasks that those of a step wait for.
    fn dependencies(&self, step: &BlueprintStep) -> Vec<TaskIndex> {
        // What has ended for nothing holds up only those that use its result; others were decided with that in mind.
        let used = used(step);
        let needed = needs(step);
        let needed = needed
            .iter()
            .filter(|id| used.contains(*id) || !self.has_ended(id) || !self.given(id).results.is_empty());
        let needed: BTreeSet<TaskIndex> = needed.filter_map(|id| self.stands_for(id)).collect();
        needed.into_iter().collect()
    }

    /// The task whose result is that of a step, with all below it: the last of its failure block where that was
    /// needed.
    fn stands_for(&self, id: &str) -> Option<TaskIndex> {
        let (tasks, fallback) = self.leaves(id);
        let position = self.filled.blueprint.steps.iter().position(|step| step.id == id)?;
        match (tasks, fallback.last()) {
            ([], None) => None,
            (_, Some(last)) => Some(last.clone()),
            (tasks, None) => Some(self.placed_at(position, tasks)),
        }
    }

    /// The goal of a task; its title where the values leave nothing of it.
    fn goal(&self, template: &str, item: Option<&str>, title: &str) -> String {
        let goal = self.text(template, item);
        if goal.is_empty() { harmless(title) } else { goal }
    }

    fn text(&self, template: &str, item: Option<&str>) -> String {
        render::text(self.filled, template, item, &|path| self.reference(path))
    }

    /// What stands for a reference to a step: references to its tasks, resolved when the task is offered.
    fn reference(&self, path: &Path) -> String {
        let Path::Step(id, field) = path else { return String::new() };
        if let Some(StepOutcome::LeftOut { reason }) = self.step_outcomes.get(id) {
            return format!("(step {id} was left out: {})", cut(&harmless(reason), MAX_REASON_BYTES));
        }
        self.stands_for(id).map(|task| format!("{{{{{task}.{field}}}}}")).unwrap_or_default()
    }
}

/// What the tasks of a step may use; nothing where that is all that the run may.
fn rights(step: &BlueprintStep) -> Option<Box<Rights>> {
    step.rights.clone().filter(|rights| !rights.is_open())
}

/// A task that only holds others together.
fn holder(title: &str) -> PlanTask {
    PlanTask::new(name(title, None), title, Role::Worker)
}

fn name(title: &str, item: Option<&str>) -> String {
    let whole = item.map_or_else(|| title.to_owned(), |item| format!("{title}: {item}"));
    cut(&harmless(&crate::text::normalise_space(&whole)), MAX_NAME_BYTES)
}

fn role(text: Option<&str>) -> Role {
    text.and_then(|text| text.trim().to_lowercase().parse().ok()).unwrap_or(Role::Worker)
}
