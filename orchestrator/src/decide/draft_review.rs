//! Whether somebody other than the writer looks at the report before it is delivered (O10), and what follows from what
//! they say. A review never costs a run its report: the newest draft is kept, and delivered when there is no better one.

use muster_shared::flow::{DraftReview, DraftReviewPolicy, DraftVerdict};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::event::{DraftReviewBegun, DraftReviewMissed, DraftReviewed};
use muster_shared::run::{DraftReviewEnd, Phase, RunState};
use muster_shared::text::normalise_space;
use muster_shared::time::Millis;

use super::builder::DecisionBuilder;
use super::control;
use super::deadline;
use super::effect::Effect;
use super::outcome::completed;
use super::{budget, report, survey};

/// What stands above the remarks that stay open.
const OPEN: &str = "## Remarks of the reviewer that stay open";

/// Has the draft reviewed that was just written, if the run wants that. Tells whether it is.
pub(super) fn begin(decision: &mut DecisionBuilder<'_>) -> bool {
    let now = decision.now();
    let wanted = |run: &&RunState| run.limits.draft_review == DraftReviewPolicy::On;
    let Some(run) = decision.open().filter(wanted) else { return false };
    let number = run.drafts.number().saturating_add(1);
    let until = waited_for(run, now);
    decision.emit(DraftReviewBegun { number, until });
    true
}

/// A reviewer has the time of a task, and half of what is left at most: the other half is the writer's.
fn waited_for(run: &RunState, now: Millis) -> Millis {
    let end = deadline::ends_at(run).map_or(run.deadline, |end| end.min(run.deadline));
    now.after(run.limits.task_deadline().min(end.since(now) / 2))
}

/// Until when a task is waited for that is a review.
pub(super) fn until(run: &RunState, task: &TaskId) -> Option<Millis> {
    let TaskId::DraftReview(number) = task else { return None };
    run.drafts.open().filter(|(open, _)| open == number).map(|(_, review)| review.until)
}

/// When the review that goes on is over at the latest. Its agent is given a moment to say what it has.
pub(super) fn next_deadline(run: &RunState) -> Option<Millis> {
    run.drafts.open().map(|(_, review)| review.until.after(deadline::GRACE))
}

/// A reviewer has read the draft: it is written again, or delivered.
pub(super) fn reviewed(decision: &mut DecisionBuilder<'_>, number: u32, seq: Seq, review: DraftReview) {
    completed(decision, TaskId::DraftReview(number), seq);
    let review = review.bounded();
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let revise = review.asks_for_changes() && may_be_written_again(run, now);
    decision.emit(DraftReviewed { number, review, revise });
    if !revise {
        deliver(decision, None);
    }
}

fn may_be_written_again(run: &RunState, now: Millis) -> bool {
    let rounds_left = run.drafts.rounds() < usize::from(run.limits.draft_rounds);
    rounds_left && !deadline::takes_nothing_up(run, now) && budget::affords(run, &TaskId::Write)
}

/// Ends a review that failed, whose time is up, or that can never be paid for.
pub(super) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some((number, reason)) = decision.open().and_then(|run| hopeless(run, now)) else { return };
    miss(decision, number, reason);
    deliver(decision, None);
}

/// The review that goes on, and why nothing comes of it any more.
fn hopeless(run: &RunState, now: Millis) -> Option<(u32, String)> {
    let (number, _) = run.drafts.open()?;
    let task = TaskId::DraftReview(number);
    let state = run.tasks.get(&task)?;
    let because = |reason: &str| Some((number, reason.to_owned()));
    if state.status.is_ended() {
        return because(state.reasons.last().map_or("it failed", String::as_str));
    }
    if run.control.paused.is_some() {
        return None;
    }
    if next_deadline(run).is_some_and(|over| over <= now) {
        return because("its time was up before it ended");
    }
    let too_dear = survey::is_unoffered(run, &task) && !budget::affords(run, &task);
    if too_dear { because(budget::USED_UP) } else { None }
}

fn miss(decision: &mut DecisionBuilder<'_>, number: u32, reason: String) {
    control::interrupt(decision, &TaskId::DraftReview(number), &reason);
    decision.emit(DraftReviewMissed { number, reason });
}

/// Delivers the newest draft where the run would end without a report. Tells whether there is one.
pub(super) fn rescue(decision: &mut DecisionBuilder<'_>, reason: &str) -> bool {
    let has_draft = |run: &RunState| run.phase == Phase::Writing && run.drafts.kept.is_some();
    if !decision.open().is_some_and(has_draft) {
        return false;
    }
    if let Some((number, _)) = decision.open().and_then(|run| run.drafts.open()) {
        miss(decision, number, reason.to_owned());
    }
    decision.effect(Effect::CancelRun { reason: reason.to_owned() });
    deliver(decision, Some(reason));
    true
}

fn deliver(decision: &mut DecisionBuilder<'_>, unrevised: Option<&str>) {
    if let Some(kept) = decision.open().and_then(|run| run.drafts.kept.clone()) {
        report::deliver(decision, *kept, unrevised);
    }
}

/// What the report says of its own review; nothing when there was none, or it was accepted.
pub(super) fn note(run: &RunState, unrevised: Option<&str>) -> Option<String> {
    let said = run.drafts.last_said().filter(|review| review.asks_for_changes());
    match run.drafts.current().last()?.end.as_ref()? {
        DraftReviewEnd::Missed(reason) => Some(match said {
            None => format!("> Nobody reviewed this report: {reason}."),
            Some(review) => {
                let why = format!(
                    "It was written again upon them, and nobody looked whether they are met: {reason}."
                );
                open_remarks(&why, review)
            }
        }),
        DraftReviewEnd::Reviewed { review, .. } if review.verdict == DraftVerdict::Accept => None,
        DraftReviewEnd::Reviewed { review, revise } => {
            let why = match (*revise, unrevised) {
                (true, Some(reason)) => format!("It was to be written again, and was not: {reason}."),
                (true, None) => "It was to be written again, and was not.".to_owned(),
                (false, _) => match run.drafts.rounds() {
                    0 => "It was not written again.".to_owned(),
                    rounds => format!(
                        "It had been written again before ({rounds} of {} times).",
                        run.limits.draft_rounds
                    ),
                },
            };
            review.asks_for_changes().then(|| open_remarks(&why, review))
        }
    }
}

fn open_remarks(why: &str, review: &DraftReview) -> String {
    let lines: Vec<String> =
        review.lines().iter().map(|line| format!("- {}", normalise_space(line))).collect();
    format!("{OPEN}\n\n{why}\n\n{}", lines.join("\n"))
}
