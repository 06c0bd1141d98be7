//! What became of the tasks of a run, counted by rule. Whatever tells of a run goes by this: what is shown while it goes
//! on, its report, JSON, and the exit code of whoever asked.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::RunStatus;
use super::questions::QuestionEnd;
use super::state::RunState;
use super::task_state::TaskState;
use crate::blueprint::{self, StepOutcome};
use crate::flow::{About, Ending, Plan, Report, TaskResult, TaskStatus};
use crate::ids::TaskIndex;
use crate::plan::{normal, order};

/// What became of a task of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// It gave what it was to give.
    Done,
    /// It gave a part of that.
    InPart,
    /// It ended well, left a question open, and gave nothing but a conclusion.
    LeftOpen,
    /// It failed.
    Failed,
    /// It could not be done, because of what it builds on or waited for.
    Blocked,
    /// It was cut off: there was no time for it.
    CutOff,
    /// A rule left it out: the budget or the failures of the run were exhausted, or a new plan has no such task.
    LeftOut,
    /// A person decided that it is not done.
    Skipped,
    /// It failed, and a task of that name in a later plan or the failure block of its step gave the result; or it gave a
    /// part, and the plan was changed for the rest. The other tasks are counted too.
    Replaced,
    /// It is in work, or waits for something.
    InWork,
    /// It has not begun.
    NotBegun,
}

impl TaskEnd {
    /// A word or two for it, after "a task that is".
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::InPart => "done in part",
            Self::LeftOpen => "left open",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::CutOff => "cut off",
            Self::LeftOut => "left out",
            Self::Skipped => "skipped",
            Self::Replaced => "replaced",
            Self::InWork => "not finished",
            Self::NotBegun => "not begun",
        }
    }

    /// Whether what the task was to give is missing, in whole or in part, and nobody decided so.
    #[must_use]
    pub const fn is_short(self) -> bool {
        !matches!(self, Self::Done | Self::LeftOpen | Self::Skipped | Self::Replaced)
    }
}

/// How many tasks of a plan ended how. Parents are not counted, nor members of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TaskCount {
    /// See [`TaskEnd::Done`].
    pub done: usize,
    /// See [`TaskEnd::InPart`].
    pub in_part: usize,
    /// See [`TaskEnd::LeftOpen`].
    pub left_open: usize,
    /// See [`TaskEnd::Failed`].
    pub failed: usize,
    /// See [`TaskEnd::Blocked`].
    pub blocked: usize,
    /// See [`TaskEnd::CutOff`].
    pub cut_off: usize,
    /// See [`TaskEnd::LeftOut`]. Items of a list that there was no room for are among them.
    pub left_out: usize,
    /// See [`TaskEnd::Skipped`].
    pub skipped: usize,
    /// See [`TaskEnd::Replaced`].
    pub replaced: usize,
    /// See [`TaskEnd::InWork`].
    pub in_work: usize,
    /// See [`TaskEnd::NotBegun`].
    pub not_begun: usize,
}

impl TaskCount {
    /// How many there are.
    #[must_use]
    pub const fn all(&self) -> usize {
        let Self {
            done,
            in_part,
            left_open,
            failed,
            blocked,
            cut_off,
            left_out,
            skipped,
            replaced,
            in_work,
            not_begun,
        } = *self;
        let ended = done + in_part + left_open + failed + blocked + cut_off + left_out + skipped + replaced;
        ended + in_work + not_begun
    }

    fn add(&mut self, end: TaskEnd) {
        let counted = match end {
            TaskEnd::Done => &mut self.done,
            TaskEnd::InPart => &mut self.in_part,
            TaskEnd::LeftOpen => &mut self.left_open,
            TaskEnd::Failed => &mut self.failed,
            TaskEnd::Blocked => &mut self.blocked,
            TaskEnd::CutOff => &mut self.cut_off,
            TaskEnd::LeftOut => &mut self.left_out,
            TaskEnd::Skipped => &mut self.skipped,
            TaskEnd::Replaced => &mut self.replaced,
            TaskEnd::InWork => &mut self.in_work,
            TaskEnd::NotBegun => &mut self.not_begun,
        };
        *counted += 1;
    }

    /// `2 of 7 tasks done, 1 in part, 4 failed`. What is in work or has not begun is the rest.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut words = format!("{} of {} tasks done", self.done, self.all());
        let others = [
            (self.in_part, "in part"),
            (self.left_open, "left open"),
            (self.failed, "failed"),
            (self.blocked, "blocked"),
            (self.cut_off, "cut off"),
            (self.left_out, "left out"),
            (self.skipped, "skipped"),
            (self.replaced, "replaced"),
        ];
        for (number, what) in others.into_iter().filter(|(number, _)| *number > 0) {
            words.push_str(&format!(", {number} {what}"));
        }
        words
    }
}

/// A task that did not give all that it was to give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortfall {
    /// The task; of items of a list that there was no room for, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskIndex>,
    /// Its name.
    pub name: String,
    /// What became of it.
    pub end: TaskEnd,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// `1-2 Check the licence (failed): it has none`.
impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(task) = &self.task {
            write!(f, "{task} ")?;
        }
        write!(f, "{} ({})", self.name, self.end.in_words())?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

/// Counts the tasks of a run; nothing while it has no plan.
#[must_use]
pub fn count(run: &RunState) -> Option<TaskCount> {
    let plan = run.plan.as_ref()?;
    let mut count = TaskCount::default();
    plan.leaves().for_each(|(index, _)| count.add(end_of(run, index)));
    count.left_out += without_room(run).map(|(_, number, _)| number).sum::<usize>();
    count.left_out += not_approved(run).count() + left_out_by_plans(run).len();
    Some(count)
}

/// What did not give all that it was to give, in order, with tasks that people skipped and tasks that others replaced.
#[must_use]
pub fn shortfalls(run: &RunState) -> Vec<Shortfall> {
    let leaves =
        run.plan.iter().flat_map(Plan::leaves).map(|(index, task)| (index, task, end_of(run, index)));
    let short = leaves.filter(|(index, _, end)| match end {
        TaskEnd::Done => false,
        // The plan that a task asked for has all that the task left open.
        TaskEnd::Replaced => !run.planned(index).and_then(given).is_some_and(TaskResult::asks_for_plan),
        _ => true,
    });
    let tasks = short.map(|(index, task, end)| Shortfall {
        task: Some(index.clone()),
        name: task.name.clone(),
        end,
        why: why(run, index, end),
    });
    let left_out =
        |name: String, why: &str| Shortfall { task: None, name, end: TaskEnd::LeftOut, why: why.to_owned() };
    let items = without_room(run).map(|(step, _, note)| left_out(format!("step {step}"), note));
    let unanswered = "it needs an approval, and nobody answered in time";
    let permissions = not_approved(run).map(|step| left_out(format!("step {step}"), unanswered));
    let parts = missing_parts(run).map(|part| left_out("report".to_owned(), part));
    tasks.chain(left_out_by_plans(run)).chain(items).chain(permissions).chain(parts).collect()
}

/// Tasks that had not started and that a new plan left out, in order. A task of that name in the plan is the same task.
#[must_use]
pub fn left_out_by_plans(run: &RunState) -> Vec<Shortfall> {
    let Some(plan) = run.plan.as_ref().filter(|_| !run.planning.replans.is_empty()) else {
        return Vec::new();
    };
    let mut known: BTreeSet<String> = plan.tasks.values().map(|task| normal(&task.name)).collect();
    let mut found = Vec::new();
    for (number, replan) in run.planning.replans.iter().enumerate().rev() {
        let reasons = replan.failed.reasons.join("; ");
        let gone = replan.left_out.iter().filter(|(_, name)| known.insert(normal(name)));
        found.extend(gone.map(|(index, name)| Shortfall {
            task: Some(index.clone()),
            name: name.clone(),
            end: TaskEnd::LeftOut,
            why: format!("new plan {} has no such task ({reasons})", number + 1),
        }));
    }
    found.sort_by(|one, other| one.task.cmp(&other.task));
    found
}

/// Parts that the report was to have by its blueprint and does not have.
fn missing_parts(run: &RunState) -> impl Iterator<Item = &String> {
    let required = run.goal.blueprint.iter();
    let required: Vec<String> =
        required.flat_map(|filled| blueprint::missing_parts(filled, &Report::default())).collect();
    run.report.iter().flat_map(|report| &report.unanswered).filter(move |part| required.contains(part))
}

/// Whether no part of the goal was answered: the report names the goal itself as unanswered, or each result leaves its
/// question open or has only a conclusion from such results.
fn is_unanswered(run: &RunState) -> bool {
    let (Some(plan), Some(report)) = (&run.plan, &run.report) else { return false };
    let goal = normal(&run.goal.text);
    let result = |index: &TaskIndex| run.planned(index).and_then(given);
    let is_open = |index: &TaskIndex| result(index).is_some_and(TaskResult::is_left_open);
    let adds_nothing = |index: &TaskIndex| {
        let needed = order::dependencies(plan, index);
        let uses_open = !needed.is_empty() && needed.iter().all(is_open);
        let is_empty = |result: &TaskResult| {
            result.is_left_open() || result.is_only_a_wish() || (uses_open && result.has_only_a_conclusion())
        };
        result(index).is_none_or(is_empty)
    };
    let leaves = || plan.leaves().map(|(index, _)| index);
    report.unanswered.iter().any(|open| normal(open) == goal)
        || (leaves().any(is_open) && leaves().all(adds_nothing))
}

/// Result of a task that ended well.
fn given(state: &TaskState) -> Option<&TaskResult> {
    state.outcome.as_ref().filter(|_| state.status == TaskStatus::Completed)?.result()
}

/// Whether a run ended with a report although something of it is missing that nobody decided to leave out.
#[must_use]
pub fn is_completed_in_part(run: &RunState) -> bool {
    run.status == RunStatus::Completed && (lacks_planned_work(run) || is_unanswered(run))
}

/// Whether planned work is missing that no person decided to leave out. Tasks that rules added to verify claims were not planned.
#[must_use]
pub fn lacks_planned_work(run: &RunState) -> bool {
    let was_planned = |short: &&Shortfall| !short.task.as_ref().is_some_and(|task| run.is_verification(task));
    shortfalls(run).iter().filter(was_planned).any(|short| short.end.is_short())
}

/// What became of a leaf of the plan.
#[must_use]
pub fn end_of(run: &RunState, index: &TaskIndex) -> TaskEnd {
    let Some(state) = run.planned(index) else { return TaskEnd::NotBegun };
    let unless_replaced = |end| if is_replaced(run, index) { TaskEnd::Replaced } else { end };
    let is_left_open = given(state).is_some_and(TaskResult::is_left_open);
    match state.status_in_plan() {
        TaskStatus::Created | TaskStatus::Queued => TaskEnd::NotBegun,
        TaskStatus::Waiting | TaskStatus::Processing => TaskEnd::InWork,
        TaskStatus::Completed if part(state).is_none() && !is_left_open => TaskEnd::Done,
        TaskStatus::Completed if was_gone_on_with(run, index) => TaskEnd::Replaced,
        TaskStatus::Completed if part(state).is_none() => TaskEnd::LeftOpen,
        TaskStatus::Completed => TaskEnd::InPart,
        TaskStatus::Split => TaskEnd::Done,
        TaskStatus::Failed => unless_replaced(TaskEnd::Failed),
        TaskStatus::Blocked => unless_replaced(TaskEnd::Blocked),
        TaskStatus::Aborted => unless_replaced(TaskEnd::CutOff),
        TaskStatus::Skipped if state.skipped_by_person => TaskEnd::Skipped,
        TaskStatus::Skipped => unless_replaced(TaskEnd::LeftOut),
    }
}

/// Why a leaf that ended well gave only a part; nothing when it gave all, or did not end well.
#[must_use]
pub fn in_part<'a>(run: &'a RunState, index: &TaskIndex) -> Option<&'a str> {
    let state = run.planned(index).filter(|state| state.status == TaskStatus::Completed)?;
    part(state)
}

/// Why a task that ended well gave only a part; nothing when it gave all.
fn part(state: &TaskState) -> Option<&str> {
    if let Some(why) = state.answers.marked.as_deref() {
        return Some(why);
    }
    let outcome = state.outcome.as_ref()?;
    (outcome.ending != Ending::Done).then_some(outcome.reason.as_str())
}

fn is_replaced(run: &RunState, index: &TaskIndex) -> bool {
    has_successor(run, index)
        || run.planning.expansion.values().any(|outcome| is_fallen_back_from(run, outcome, index))
}

/// Whether a task of the same name, in a plan that was made after this one had ended, gave a result.
fn has_successor(run: &RunState, index: &TaskIndex) -> bool {
    let (Some(plan), Some(task)) = (&run.plan, run.plan_task(index)) else { return false };
    let name = normal(&task.name);
    let later = run.planning.replans.iter().filter(|replan| replan.ended.contains(index));
    later.flat_map(|replan| plan.leaves().filter(|(leaf, _)| !replan.ended.contains(*leaf))).any(
        |(leaf, task)| {
            leaf > index && normal(&task.name) == name && run.planned(leaf).and_then(given).is_some()
        },
    )
}

/// Whether the plan was changed, or made anew, for the sake of what this task left open.
fn was_gone_on_with(run: &RunState, index: &TaskIndex) -> bool {
    let asked_by = format!("{index}: ");
    let asks = |why: &String| why.starts_with(&asked_by);
    if run.planning.replans.iter().any(|replan| replan.failed.reasons.iter().any(asks)) {
        return true;
    }
    let wanted = run.refining.wanted.iter().filter(|(_, reasons)| reasons.iter().any(asks));
    let mut made = wanted.filter_map(|(number, _)| run.refinement(*number));
    made.any(|(changes, _)| !changes.is_empty())
}

/// Whether a leaf is of a step whose failure block gave what it was to give.
fn is_fallen_back_from(run: &RunState, outcome: &StepOutcome, index: &TaskIndex) -> bool {
    let StepOutcome::Placed { tasks, fallback, .. } = outcome else { return false };
    let gave =
        |leaf: &TaskIndex| run.planned(leaf).is_some_and(|state| state.status == TaskStatus::Completed);
    (tasks.contains(index) || fallback.contains(index)) && fallback.last().is_some_and(gave)
}

/// Steps of a blueprint with items that there was no room for: how many, and why.
fn without_room(run: &RunState) -> impl Iterator<Item = (&str, usize, &str)> {
    run.planning.expansion.iter().filter_map(|(step, outcome)| match outcome {
        StepOutcome::Placed { note, left_out, .. } if !note.is_empty() => {
            Some((step.as_str(), usize::try_from(*left_out).unwrap_or(usize::MAX), note.as_str()))
        }
        StepOutcome::Placed { .. } | StepOutcome::LeftOut { .. } => None,
    })
}

/// Steps of a blueprint that were left out because nobody said in time whether they may begin.
fn not_approved(run: &RunState) -> impl Iterator<Item = &str> {
    run.questions.values().filter_map(|asked| {
        if let (About::Step(step), Some(QuestionEnd::Answered(reply))) = (&asked.about, &asked.end)
            && reply.by.is_none()
        {
            matches!(run.planning.expansion.get(step), Some(StepOutcome::LeftOut { .. }))
                .then_some(step.as_str())
        } else {
            None
        }
    })
}

fn why(run: &RunState, index: &TaskIndex, end: TaskEnd) -> String {
    let Some(state) = run.planned(index) else { return String::new() };
    let open = || given(state).map(|result| result.unanswered.join("; "));
    match end {
        TaskEnd::Done | TaskEnd::InWork => String::new(),
        _ if state.status == TaskStatus::Completed => {
            part(state).map(str::to_owned).or_else(open).unwrap_or_default()
        }
        _ => state.reasons.last().cloned().unwrap_or_default(),
    }
}
