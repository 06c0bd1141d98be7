//! Which tasks follow from what has ended so far. What is decided of a step stays decided: tasks are only added.

mod place;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::check::{needs, reads};
use super::expression::{Datum, Expression};
use super::layout::Layout;
use super::names::{Path, StepField};
use super::render::{self, cut};
use super::{BlueprintStep, Filled, MAX_VALUE_BYTES, StepOutcome};
use crate::flow::{Plan, PlanTask, RunLimits, TaskResult};
use crate::ids::TaskIndex;
use crate::plan::normal;

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
        let items = raw.into_iter().map(|item| cut(item.trim(), MAX_VALUE_BYTES));
        items.filter(|item| !item.is_empty() && seen.insert(normal(item))).collect()
    }
}

/// A line of a list without its mark.
fn plain_line(line: &str) -> String {
    let line = line.trim();
    let rest = line.trim_start_matches(|mark: char| mark.is_ascii_digit());
    let numbered = rest.len() < line.len() && rest.starts_with(['.', ')']);
    let line = if numbered { &rest[1..] } else { line };
    line.trim_start_matches(['-', '*', '•', ' ']).trim().to_owned()
}
