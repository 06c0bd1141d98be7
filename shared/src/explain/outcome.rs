//! Why this result: how the run ended and by which rule, what was contested, what stayed unanswered, and what was assumed.

use serde::Serialize;

use super::story::Story;
use super::{Told, is_about, words};
use crate::flow::TaskStatus;
use crate::ids::{QuestionId, Seq, TaskId};
use crate::run::{
    Phase, QuestionEnd, RecordEvent, RunEvent, RunState, RunStatus, StopReason, TaskCount, count,
    is_completed_in_part, shortfalls,
};

/// How a run ended, and what follows of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultTold {
    /// How it stands.
    pub status: RunStatus,
    /// Whether it ended with a report although something is missing.
    pub in_part: bool,
    /// How it ended and by which rule, in a sentence.
    pub how: String,
    /// What ended it: the tasks and limits of the last decision.
    pub because: Vec<Told>,
    /// The title of its report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Who made the report, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_by: Option<String>,
    /// What became of its tasks; nothing before there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskCount>,
    /// What stayed unanswered, and why.
    pub unanswered: Vec<Told>,
    /// What was taken for granted, since nobody said otherwise.
    pub assumed: Vec<Told>,
    /// Results that contradicted each other, with both sides and what became of it.
    pub conflicts: Vec<ConflictTold>,
}

/// Results that contradicted each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictTold {
    /// Its number in the run.
    pub number: u32,
    /// What they are about.
    pub subject: String,
    /// Who claims what.
    pub sides: Vec<String>,
    /// What became of it.
    pub end: String,
    /// The entries in which it was found and ended.
    pub entries: Vec<Seq>,
}

/// How a run ended, or what is to be said of that on one task.
pub(super) fn result(state: &RunState, story: &Story<'_>, of: Option<&TaskId>) -> ResultTold {
    let is_wanted = |task: Option<&TaskId>| of.is_none_or(|of| task.is_some_and(|task| is_about(of, task)));
    let keep = |mut all: Vec<Told>| {
        all.retain(|told| is_wanted(told.task.as_ref()));
        all
    };
    ResultTold {
        status: state.status,
        in_part: is_completed_in_part(state),
        how: how(state),
        because: because(story),
        report: state.report.as_ref().map(|report| words::brief(&report.title)),
        report_by: state.report.as_ref().map(|_| report_by(state, story)),
        tasks: count(state),
        unanswered: keep(unanswered(state, story)),
        assumed: keep(assumed(state, story)),
        conflicts: conflicts(state, story, of),
    }
}

/// How it ended and by which rule.
fn how(state: &RunState) -> String {
    let reason =
        state.reason.as_deref().map(|reason| format!(": {}", words::brief(reason))).unwrap_or_default();
    match state.status {
        RunStatus::Created => "it was created, and nothing was offered yet".to_owned(),
        RunStatus::Processing => format!("it goes on: {}", busy_with(state.phase)),
        RunStatus::Completed if is_completed_in_part(state) => {
            "it ended with a report, and something that was asked for is missing".to_owned()
        }
        RunStatus::Completed => "it ended with a report, and all that was planned was done".to_owned(),
        RunStatus::Failed => format!("it failed{reason}"),
        RunStatus::Aborted(StopReason::Cancelled) => format!("somebody stopped it{reason}"),
        RunStatus::Aborted(StopReason::DeadlinePassed) => format!("its time was up{reason}"),
        RunStatus::Aborted(StopReason::BudgetExhausted) => format!("its budget was used up{reason}"),
        RunStatus::Aborted(StopReason::Refused) => format!("it was not taken up{reason}"),
    }
}

const fn busy_with(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "the plan is being made",
        Phase::Executing => "its tasks are being done",
        Phase::Writing => "the report is being written",
        Phase::Ended => "it is about to end",
    }
}

/// What stands in the decision that ended the run beside its end.
fn because(story: &Story<'_>) -> Vec<Told> {
    let Some(entry) = story.ended.and_then(|place| story.entries.get(place)) else { return Vec::new() };
    let RecordEvent::Decided(decided) = &entry.event else { return Vec::new() };
    let ends = |event: &&RunEvent| {
        matches!(
            event,
            RunEvent::TaskFailed(_)
                | RunEvent::TaskQuarantined(_)
                | RunEvent::TaskBlocked(_)
                | RunEvent::PlanRefused(_)
                | RunEvent::ErrorBudgetUsedUp(_)
                | RunEvent::RunGivenUp(_)
                | RunEvent::RunFailed(_)
                | RunEvent::RunAborted(_)
                | RunEvent::RunCompleted(_)
        )
    };
    decided.events.iter().filter(ends).map(|event| words::told(entry, event)).collect()
}

/// Who made the report.
fn report_by(state: &RunState, story: &Story<'_>) -> String {
    let from = story.events().filter_map(|(_, event)| {
        if let RunEvent::WritingBegan(began) = event { Some(began.from.clone()) } else { None }
    });
    let written = state.tasks.get(&TaskId::Write).is_some_and(|task| task.status == TaskStatus::Completed);
    match from.last() {
        Some(Some(task)) => format!("what {task} gave, by rule: it was the only task"),
        Some(None) if written => "the writer".to_owned(),
        Some(None) | None => "put together by rule from what tasks had given".to_owned(),
    }
}

fn unanswered(state: &RunState, story: &Story<'_>) -> Vec<Told> {
    let mut all: Vec<Told> = missing(state, story).chain(left_open(state, story)).collect();
    if let Some(report) = &state.report {
        let is_new = |what: &&String| !all.iter().any(|told| told.text.contains(&words::brief(what)));
        let further = report.unanswered.iter().filter(is_new);
        let further = further.map(|what| format!("not answered by the report: {}", words::brief(what)));
        let entries: Vec<Seq> = story.ended.map(|place| story.seq(place)).into_iter().collect();
        let told = |text| Told { entries: entries.clone(), ..words::plain(text) };
        let further: Vec<Told> = further.map(told).collect();
        all.extend(further);
    }
    all.extend(state.open_questions().map(|(id, open)| {
        let text = format!("question {id} is open: {}", words::brief(&open.question.text));
        Told { entries: asked(story, id), ..words::plain(text) }
    }));
    all
}

/// Tasks that did not give what they were to give.
fn missing(state: &RunState, story: &Story<'_>) -> impl Iterator<Item = Told> {
    shortfalls(state).into_iter().map(|short| {
        let why =
            if short.why.is_empty() { String::new() } else { format!(": {}", words::brief(&short.why)) };
        let task = short.task.map(TaskId::Leaf);
        let which = task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
        let text = format!("{which}{} is {}{why}", words::brief(&short.name), short.end.in_words());
        let entries = task.as_ref().map(|task| story.end_of(task)).unwrap_or_default();
        Told { task, entries, ..words::plain(text) }
    })
}

/// What tasks that ended well say that they could not answer.
fn left_open(state: &RunState, story: &Story<'_>) -> impl Iterator<Item = Told> {
    let done = state.leaves().filter(|(_, found)| found.status == TaskStatus::Completed);
    done.flat_map(move |(index, found)| {
        let result = found.outcome.as_deref().and_then(|outcome| outcome.result());
        let open = result.map(|result| result.unanswered.as_slice()).unwrap_or_default();
        open.iter().map(move |what| {
            let text = format!("not answered by {index}: {}", words::brief(what));
            let task = TaskId::Leaf(index.clone());
            Told { entries: story.end_of(&task), task: Some(task), ..words::plain(text) }
        })
    })
}

/// The entry in which a question was asked.
fn asked(story: &Story<'_>, id: QuestionId) -> Vec<Seq> {
    let is_it = |event: &RunEvent| matches!(event, RunEvent::QuestionAsked(asked) if asked.id == id);
    story.events().filter(|(_, event)| is_it(event)).map(|(entry, _)| entry.seq).collect()
}

fn assumed(state: &RunState, story: &Story<'_>) -> Vec<Told> {
    let mut all = Vec::new();
    for (entry, event) in story.events() {
        let is_default = if let RunEvent::QuestionAnswered(answered) = event {
            answered.reply.by.is_none()
        } else {
            matches!(event, RunEvent::DependencyLeft(_) | RunEvent::PlanningSkipped(_))
        };
        if is_default {
            all.push(words::told(entry, event));
        }
    }
    let withdrawn =
        state.questions.iter().filter(|(_, asked)| matches!(asked.end, Some(QuestionEnd::Withdrawn(_))));
    all.extend(withdrawn.map(|(id, asked)| {
        let text = format!("question {id} was never answered: {}", words::brief(&asked.question.text));
        Told { entries: self::asked(story, *id), ..words::plain(text) }
    }));
    for (task, found) in &state.tasks {
        if let Some(marked) = &found.answers.marked {
            let text = format!("{task} counts in part: {}", words::brief(marked));
            all.push(Told { task: Some(task.clone()), entries: story.end_of(task), ..words::plain(text) });
        }
    }
    all
}

fn conflicts(state: &RunState, story: &Story<'_>, of: Option<&TaskId>) -> Vec<ConflictTold> {
    let found = state.conflicts.found.iter().filter(|(_, conflict)| {
        of.is_none_or(|of| conflict.sides.iter().any(|side| is_about(of, &TaskId::Leaf(side.task.clone()))))
    });
    found
        .map(|(number, conflict)| ConflictTold {
            number: *number,
            subject: words::brief(&conflict.subject),
            sides: conflict.sides.iter().map(|side| words::brief(&side.in_full())).collect(),
            end: match &conflict.end {
                Some(end) => words::brief(&end.in_full(&conflict.redone)),
                None => "it is being settled".to_owned(),
            },
            entries: entries_of(story, *number),
        })
        .collect()
}

fn entries_of(story: &Story<'_>, number: u32) -> Vec<Seq> {
    let is_about = |event: &RunEvent| {
        matches!(event, RunEvent::ConflictFound(found) if found.id == number)
            || matches!(event, RunEvent::ConflictResolved(resolved) if resolved.id == number)
    };
    let about = story.events().filter(|(_, event)| is_about(event));
    about.map(|(entry, _)| entry.seq).collect()
}
