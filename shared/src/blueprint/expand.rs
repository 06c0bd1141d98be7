//! Which tasks follow from what has ended so far. What is decided of a step stays decided: tasks are only added.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::check::{needs, reads, used};
use super::expression::{Datum, Expression};
use super::layout::{Arrangement, Layout, is_group, least_tasks, number};
use super::names::{Path, StepField};
use super::render::{self, cut, harmless};
use super::{BlueprintStep, Filled, MAX_VALUE_BYTES, StepOutcome};
use crate::flow::{Plan, PlanTask, RunLimits, TaskResult};
use crate::ids::{Role, TaskIndex};
use crate::plan::{MAX_NAME_BYTES, normal};

/// Longest item of a list in runs of before items were done in batches, in bytes.
const MAX_ITEM_BYTES: usize = 600;

/// Most items that are named where there is no room for them.
const MOST_NAMED: usize = 10;

/// Longest reason in a text, in bytes.
const MAX_REASON_BYTES: usize = 150;

/// How a leaf ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// What it gave, if it gave anything.
    pub result: Option<TaskResult>,
    /// Whether somebody decided to leave it out.
    pub skipped: bool,
    /// Why it gave nothing.
    pub why: String,
}

/// What a run by a blueprint has come to.
#[derive(Debug, Clone, Copy)]
pub struct BlueprintProgress<'a> {
    /// Limits in force.
    pub limits: &'a RunLimits,
    /// The plan.
    pub plan: &'a Plan,
    /// What was decided of the steps.
    pub step_outcomes: &'a BTreeMap<String, StepOutcome>,
    /// The leaves that have ended.
    pub ended: &'a BTreeMap<TaskIndex, Ended>,
    /// What was said to questions, by step.
    pub approvals: &'a BTreeMap<String, bool>,
    /// Whether items that cannot stand beside each other are done in batches. They were left out once.
    pub in_batches: bool,
}

/// A question that a person has to say yes to before a step begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalQuestion {
    /// The step.
    pub step: String,
    /// The question.
    pub text: String,
}

/// What follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expansion {
    /// What was decided of steps.
    pub step_outcomes: BTreeMap<String, StepOutcome>,
    /// The tasks that come with it.
    pub tasks: BTreeMap<TaskIndex, PlanTask>,
    /// What has to be asked before more can follow.
    pub questions: Vec<ApprovalQuestion>,
}

impl Expansion {
    /// Whether nothing was decided of any step.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.step_outcomes.is_empty()
    }
}

/// Decides of every step of which that is possible.
#[must_use]
pub fn expand(filled: &Filled, progress: &BlueprintProgress<'_>) -> Expansion {
    let mut work = StepWork {
        filled,
        progress,
        layout: Layout::of(&filled.blueprint, progress.limits),
        plan: progress.plan.clone(),
        step_outcomes: progress.step_outcomes.clone(),
        found: Expansion::default(),
    };
    // Each round decides of one step at least, or is the last.
    while filled
        .blueprint
        .steps
        .iter()
        .enumerate()
        .fold(false, |any, (at, step)| work.decide(at, step) || any)
    {}
    work.found
}

struct StepWork<'a> {
    filled: &'a Filled,
    progress: &'a BlueprintProgress<'a>,
    layout: Layout,
    plan: Plan,
    step_outcomes: BTreeMap<String, StepOutcome>,
    found: Expansion,
}

/// What a step gave, all its leaves together.
#[derive(Default)]
struct Given {
    results: Vec<TaskResult>,
}

impl StepWork<'_> {
    /// Decides of a step, if that is possible. Tells whether anything was decided.
    fn decide(&mut self, position: usize, step: &BlueprintStep) -> bool {
        match self.step_outcomes.get(&step.id) {
            Some(StepOutcome::Placed { .. }) => return self.fall_back(position, step),
            Some(StepOutcome::LeftOut { .. }) => return false,
            None => {}
        }
        let reads = reads(step);
        let must_have_ended = |other: &str| {
            step.approval.is_some()
                || reads.contains(other)
                || self.find(other).is_some_and(|other| !other.fallback.is_empty())
        };
        let possible = needs(step).iter().all(|other| {
            self.step_outcomes.contains_key(other) && (!must_have_ended(other) || self.has_ended(other))
        });
        if !possible {
            return false;
        }
        if let Some(condition) = &step.condition
            && !self.holds(condition)
        {
            return self.leave_out(step, &format!("its condition does not hold: {condition}"));
        }
        let items = step.for_each.as_ref().map(|list| self.items(list));
        if items.as_ref().is_some_and(Vec::is_empty) {
            return self.leave_out(step, "the list has no item");
        }
        if let Some(question) = &step.approval {
            match self.progress.approvals.get(&step.id) {
                Some(true) => {}
                Some(false) => return self.leave_out(step, "it was not approved"),
                None => {
                    let text = render::text(self.filled, question, None, &|_| String::new());
                    if self.found.questions.iter().all(|asked| asked.step != step.id) {
                        self.found.questions.push(ApprovalQuestion { step: step.id.clone(), text });
                    }
                    return false;
                }
            }
        }
        self.place(position, step, items);
        true
    }

    fn find(&self, id: &str) -> Option<&BlueprintStep> {
        self.filled.blueprint.steps.iter().find(|step| step.id == id)
    }

    fn leave_out(&mut self, step: &BlueprintStep, reason: &str) -> bool {
        self.settle(step, StepOutcome::LeftOut { reason: cut(reason, MAX_REASON_BYTES * 2) });
        true
    }

    fn settle(&mut self, step: &BlueprintStep, outcome: StepOutcome) {
        self.step_outcomes.insert(step.id.clone(), outcome.clone());
        self.found.step_outcomes.insert(step.id.clone(), outcome);
    }

    fn leaves(&self, id: &str) -> (&[TaskIndex], &[TaskIndex]) {
        match self.step_outcomes.get(id) {
            Some(StepOutcome::Placed { tasks, fallback, .. }) => (tasks, fallback),
            Some(StepOutcome::LeftOut { .. }) | None => (&[], &[]),
        }
    }

    fn all_ended(&self, leaves: &[TaskIndex]) -> bool {
        leaves.iter().all(|leaf| self.progress.ended.contains_key(leaf))
    }

    fn gave(&self, leaf: &TaskIndex) -> Option<&TaskResult> {
        self.progress.ended.get(leaf).and_then(|ended| ended.result.as_ref())
    }

    /// Whether a step has given all that it ever will.
    fn has_ended(&self, id: &str) -> bool {
        let (tasks, fallback) = self.leaves(id);
        self.all_ended(tasks)
            && self.all_ended(fallback)
            && (!fallback.is_empty() || !self.needs_fallback(id))
    }

    /// Whether a step has a failure block, and gave nothing although nobody decided so.
    fn needs_fallback(&self, id: &str) -> bool {
        let (tasks, _) = self.leaves(id);
        let failed = |leaf: &TaskIndex| self.progress.ended.get(leaf).is_some_and(|ended| !ended.skipped);
        self.find(id).is_some_and(|step| !step.fallback.is_empty())
            && !tasks.is_empty()
            && self.all_ended(tasks)
            && tasks.iter().all(|leaf| self.gave(leaf).is_none())
            && tasks.iter().any(failed)
    }

    fn given(&self, id: &str) -> Given {
        let (tasks, fallback) = self.leaves(id);
        let last = fallback.last();
        Given { results: tasks.iter().chain(last).filter_map(|leaf| self.gave(leaf)).cloned().collect() }
    }

    fn datum(&self, path: &Path) -> Datum {
        match path {
            Path::Item => Datum::Nothing,
            Path::Param(name) => match self.filled.params.get(name) {
                Some(Value::String(text)) => Datum::Text(text.clone()),
                Some(Value::Bool(flag)) => Datum::Flag(*flag),
                Some(Value::Number(number)) => number.as_f64().map_or(Datum::Nothing, Datum::Number),
                Some(Value::Array(items)) => {
                    Datum::List(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                }
                Some(Value::Null | Value::Object(_)) | None => Datum::Nothing,
            },
            Path::Step(id, field) => {
                let Given { results } = self.given(id);
                match field {
                    StepField::Ok => Datum::Flag(!results.is_empty()),
                    StepField::Result => {
                        let conclusions: Vec<String> =
                            results.into_iter().map(|result| result.conclusion).collect();
                        Datum::Text(conclusions.join("\n"))
                    }
                    StepField::Findings => Datum::List(
                        results
                            .into_iter()
                            .flat_map(|result| result.findings)
                            .map(|found| found.text)
                            .collect(),
                    ),
                    StepField::Unanswered => {
                        Datum::List(results.into_iter().flat_map(|result| result.unanswered).collect())
                    }
                }
            }
        }
    }

    /// Whether a condition holds. One that cannot be read never got past the check.
    fn holds(&self, condition: &str) -> bool {
        Expression::read(condition).is_ok_and(|read| read.value(&|path| self.datum(path)).holds())
    }

    /// The items of a list, each once. A text is a list of its lines.
    fn items(&self, list: &str) -> Vec<String> {
        let datum = Path::read(list.trim()).map_or(Datum::Nothing, |path| self.datum(&path));
        let raw: Vec<String> = match datum {
            Datum::List(items) => items,
            Datum::Text(text) => text.lines().map(plain_line).collect(),
            Datum::Number(_) | Datum::Flag(_) | Datum::Nothing => Vec::new(),
        };
        let mut seen = BTreeSet::new();
        let most = if self.progress.in_batches { MAX_VALUE_BYTES } else { MAX_ITEM_BYTES };
        let items = raw.into_iter().map(|item| cut(item.trim(), most));
        items.filter(|item| !item.is_empty() && seen.insert(normal(item))).collect()
    }

    fn place(&mut self, position: usize, step: &BlueprintStep, items: Option<Vec<String>>) {
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
        let Arrangement { items: most, batch } = self.arrangement(step, items.len());
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

    /// How the items of a step are laid out.
    fn arrangement(&self, step: &BlueprintStep, items: usize) -> Arrangement {
        let (planned, to_come) = (self.plan.tasks.len(), self.to_come(step));
        if self.progress.in_batches {
            self.layout.arrange(step, items, planned, to_come)
        } else {
            Arrangement { items: self.layout.items(step, planned, to_come), batch: None }
        }
    }

    /// What is said of the items that there is no room for, and how many they are.
    fn left_out(&self, items: &[Option<String>], most: usize) -> (String, u32) {
        let without = items.get(most..).unwrap_or_default();
        if without.is_empty() {
            return (String::new(), 0);
        }
        let (number, all) = (without.len(), items.len());
        if !self.progress.in_batches {
            let note = format!(
                "{number} of {all} items are left out: limits.max_width and limits.max_tasks allow no more"
            );
            return (note, 0);
        }
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
    fn fall_back(&mut self, position: usize, step: &BlueprintStep) -> bool {
        let Some(StepOutcome::Placed { tasks, fallback, note, left_out }) =
            self.step_outcomes.get(&step.id).cloned()
        else {
            return false;
        };
        if !fallback.is_empty() || !self.needs_fallback(&step.id) {
            return false;
        }
        let place = self.layout.place(position);
        // Batches count as one each.
        let below = |leaf: &TaskIndex| leaf.positions().get(place.depth()).copied();
        let taken = tasks.iter().filter_map(below).collect::<BTreeSet<u16>>().len();
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

    /// The place of a step, made ready: with the part that it stands in.
    fn part(&mut self, position: usize) -> TaskIndex {
        let place = self.layout.place(position);
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
            (_, None) => Some(self.layout.place(position)),
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

/// A task that only holds others together.
fn holder(title: &str) -> PlanTask {
    PlanTask::new(name(title, None), title, Role::Worker)
}

fn name(title: &str, item: Option<&str>) -> String {
    let whole = item.map_or_else(|| title.to_owned(), |item| format!("{title}: {item}"));
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&harmless(&line), MAX_NAME_BYTES)
}

fn role(text: Option<&str>) -> Role {
    text.and_then(|text| text.trim().to_lowercase().parse().ok()).unwrap_or(Role::Worker)
}

/// A line of a list without its mark.
fn plain_line(line: &str) -> String {
    let line = line.trim();
    let rest = line.trim_start_matches(|mark: char| mark.is_ascii_digit());
    let numbered = rest.len() < line.len() && rest.starts_with(['.', ')']);
    let line = if numbered { &rest[1..] } else { line };
    line.trim_start_matches(['-', '*', '•', ' ']).trim().to_owned()
}
