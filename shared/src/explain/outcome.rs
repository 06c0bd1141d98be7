//! Result: status and reason, open questions, assumptions, and conflicts.

use serde::Serialize;

use super::run_timeline::RunTimeline;
use super::topics::{Topic, topics};
use super::{ExplanationItem, is_about, words};
use crate::flow::TaskStatus;
use crate::ids::{Seq, TaskId};
use crate::run::{
    QuestionEnd, RunEvent, RunState, RunStatus, StopReason, TaskCount, count, is_completed_in_part,
    shortfalls,
};

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultSummary {
    /// Status.
    pub status: RunStatus,
    /// Whether the report is incomplete.
    pub is_partial: bool,
    /// Reason for the status, in one sentence.
    pub how: String,
    /// Events of the decision that ended the run.
    pub because: Vec<ExplanationItem>,
    /// Title of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Author of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_by: Option<String>,
    /// Tasks by final state; absent without a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskCount>,
    /// Unanswered parts of the goal, and open questions.
    pub unanswered: Vec<ExplanationItem>,
    /// Assumptions and defaults.
    pub assumed: Vec<ExplanationItem>,
    /// Conflicts between results.
    pub conflicts: Vec<ConflictSummary>,
}

/// Conflict between results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictSummary {
    /// Number in the run.
    pub number: u32,
    /// Subject.
    pub subject: String,
    /// Claims with their tasks.
    pub sides: Vec<String>,
    /// Resolution.
    pub end: String,
    /// Entries of its detection and resolution.
    pub entries: Vec<Seq>,
}

/// Result of a run; conflicts of one task only, if a task is given.
pub(super) fn result(state: &RunState, timeline: &RunTimeline<'_>, of: Option<&TaskId>) -> ResultSummary {
    ResultSummary {
        status: state.status,
        is_partial: is_completed_in_part(state),
        how: how(state),
        because: because(timeline),
        report: state.report.as_ref().map(|report| words::brief(&report.title)),
        report_by: state.report.as_ref().map(|_| report_by(state, timeline)),
        tasks: count(state),
        unanswered: unanswered(state, timeline),
        assumed: assumed(state, timeline),
        conflicts: conflicts(state, timeline, of),
    }
}

fn how(state: &RunState) -> String {
    let reason =
        state.reason.as_deref().map(|reason| format!(": {}", words::brief(reason))).unwrap_or_default();
    match state.status {
        RunStatus::Created => "it was created, and nothing was offered yet".to_owned(),
        RunStatus::Processing => "it is in progress".to_owned(),
        RunStatus::Completed if is_completed_in_part(state) => {
            "it ended with a report, and parts of the goal are missing".to_owned()
        }
        RunStatus::Completed => "it ended with a report, and all that was planned was done".to_owned(),
        RunStatus::Failed => format!("it failed{reason}"),
        RunStatus::Aborted(StopReason::Cancelled) => format!("it was canceled{reason}"),
        RunStatus::Aborted(StopReason::DeadlinePassed) => format!("its deadline passed{reason}"),
        RunStatus::Aborted(StopReason::BudgetExhausted) => format!("its budget was exhausted{reason}"),
        RunStatus::Aborted(StopReason::Refused) => format!("it was refused{reason}"),
    }
}

fn because(timeline: &RunTimeline<'_>) -> Vec<ExplanationItem> {
    let Some(entry) = timeline.ended else { return Vec::new() };
    let ends = |event: &&RunEvent| event.ends_run() || topics(event).contains(&Topic::Failure);
    entry.event.events().iter().filter(ends).map(|event| words::item(entry, event)).collect()
}

fn report_by(state: &RunState, timeline: &RunTimeline<'_>) -> String {
    let from = timeline.events().filter_map(|(_, event)| {
        if let RunEvent::WritingBegan(began) = event { Some(began.from.clone()) } else { None }
    });
    let written = state.tasks.get(&TaskId::Write).is_some_and(|task| task.status == TaskStatus::Completed);
    match from.last() {
        Some(Some(task)) => format!("task {task}, the only one"),
        Some(None) if written => "the writer".to_owned(),
        Some(None) | None => "the orchestrator, from the results of tasks".to_owned(),
    }
}

fn unanswered(state: &RunState, timeline: &RunTimeline<'_>) -> Vec<ExplanationItem> {
    let mut all: Vec<ExplanationItem> = missing(state, timeline).chain(left_open(state, timeline)).collect();
    if let Some(report) = &state.report {
        let is_new = |what: &&String| !all.iter().any(|item| item.text.contains(&words::brief(what)));
        let further = report.unanswered.iter().filter(is_new);
        let further = further.map(|what| format!("not answered by the report: {}", words::brief(what)));
        let entries: Vec<Seq> = timeline.ended.map(|entry| entry.seq).into_iter().collect();
        let item = |text| ExplanationItem { entries: entries.clone(), ..words::plain(text) };
        let further: Vec<ExplanationItem> = further.map(item).collect();
        all.extend(further);
    }
    all.extend(state.open_questions().map(|(id, open)| {
        let text = format!("question {id} is open: {}", words::brief(&open.question.text));
        ExplanationItem { entries: timeline.asked(id), ..words::plain(text) }
    }));
    all
}

/// Tasks without the expected result.
fn missing(state: &RunState, timeline: &RunTimeline<'_>) -> impl Iterator<Item = ExplanationItem> {
    shortfalls(state).into_iter().map(|short| {
        let why =
            if short.why.is_empty() { String::new() } else { format!(": {}", words::brief(&short.why)) };
        let task = short.task.map(TaskId::Leaf);
        let which = task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
        let text = format!("{which}{} is {}{why}", words::brief(&short.name), short.end.in_words());
        let entries = task.as_ref().map(|task| timeline.end_of(task)).unwrap_or_default();
        ExplanationItem { task, entries, ..words::plain(text) }
    })
}

/// Questions that completed tasks report as unanswered.
fn left_open(state: &RunState, timeline: &RunTimeline<'_>) -> impl Iterator<Item = ExplanationItem> {
    let done = state.leaves().filter(|(_, found)| found.status == TaskStatus::Completed);
    done.flat_map(move |(index, found)| {
        let result = found.outcome.as_deref().and_then(|outcome| outcome.result());
        let open = result.map(|result| result.unanswered.as_slice()).unwrap_or_default();
        open.iter().map(move |what| {
            let text = format!("not answered by {index}: {}", words::brief(what));
            let task = index.to_task_id();
            ExplanationItem { entries: timeline.end_of(&task), task: Some(task), ..words::plain(text) }
        })
    })
}

fn assumed(state: &RunState, timeline: &RunTimeline<'_>) -> Vec<ExplanationItem> {
    let mut all = Vec::new();
    for (entry, event) in timeline.events() {
        let is_default = if let RunEvent::QuestionAnswered(answered) = event {
            answered.reply.by.is_none()
        } else {
            matches!(event, RunEvent::PlanningSkipped(_))
        };
        if is_default {
            all.push(words::item(entry, event));
        }
    }
    let withdrawn =
        state.questions.iter().filter(|(_, asked)| matches!(asked.end, Some(QuestionEnd::Withdrawn(_))));
    all.extend(withdrawn.map(|(id, asked)| {
        let text = format!("question {id} was never answered: {}", words::brief(&asked.question.text));
        ExplanationItem { entries: timeline.asked(*id), ..words::plain(text) }
    }));
    for (task, found) in &state.tasks {
        if let Some(marked) = &found.answers.marked {
            let text = format!("{task} counts in part: {}", words::brief(marked));
            all.push(ExplanationItem {
                task: Some(task.clone()),
                entries: timeline.end_of(task),
                ..words::plain(text)
            });
        }
    }
    all
}

fn conflicts(state: &RunState, timeline: &RunTimeline<'_>, of: Option<&TaskId>) -> Vec<ConflictSummary> {
    let found = state.conflicts.found.iter().filter(|(_, conflict)| {
        of.is_none_or(|of| conflict.sides.iter().any(|side| is_about(of, &side.task.to_task_id())))
    });
    found
        .map(|(number, conflict)| ConflictSummary {
            number: *number,
            subject: words::brief(&conflict.subject),
            sides: conflict.sides.iter().map(|side| words::brief(&side.in_full())).collect(),
            end: match &conflict.end {
                Some(end) => words::brief(&end.in_full(&conflict.redone)),
                None => "it is being settled".to_owned(),
            },
            entries: timeline.entries_with(|event| is_conflict(event, *number)),
        })
        .collect()
}

fn is_conflict(event: &RunEvent, number: u32) -> bool {
    matches!(event, RunEvent::ConflictFound(found) if found.id == number)
        || matches!(event, RunEvent::ConflictResolved(resolved) if resolved.id == number)
}
