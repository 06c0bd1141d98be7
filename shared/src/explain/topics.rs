//! Topics of run events.

use crate::flow::Ruling;
use crate::run::event::{
    ContextWritten, DraftReviewed, GuardsAnswered, MembersSettled, PlanAdopted, PlanRefined, TaskAwarded,
    TaskSkipped,
};
use crate::run::{ConflictEnd, RunEvent};

/// Topic of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Turning point.
    Turn,
    /// Alternative considered.
    Considered,
    /// Failure.
    Failure,
    /// Reaction to a failure.
    Answer,
    /// Question to a person, or decision of one.
    People,
    /// Verdict of a guard.
    Guards,
}

use Topic::{Answer, Considered, Failure, Guards, People, Turn};

pub(super) fn topics(event: &RunEvent) -> &'static [Topic] {
    match event {
        RunEvent::RunForked(_) | RunEvent::PlanIterated(_) | RunEvent::TaskDelegated(_) => &[Turn],
        RunEvent::ChildBegun(_) | RunEvent::ChildEnded(_) | RunEvent::VerificationAdded(_) => &[Turn],
        RunEvent::ReplanWanted(_) => &[Turn],
        RunEvent::PlanRefused(_) | RunEvent::HandOverRefused(_) => &[Considered, Failure],
        RunEvent::MembersDiscuss(_) | RunEvent::ConflictFound(_) | RunEvent::ShadowAsked(_) => &[Considered],
        RunEvent::TaskOrphaned(_)
        | RunEvent::TaskQuarantined(_)
        | RunEvent::TaskTakenBack(_)
        | RunEvent::ErrorBudgetUsedUp(_)
        | RunEvent::DeadlockEnded(_)
        | RunEvent::RoleAvailabilityChanged(_)
        | RunEvent::RunGivenUp(_) => &[Failure, Turn],
        RunEvent::TaskRetried(_)
        | RunEvent::TaskFailed(_)
        | RunEvent::TaskBlocked(_)
        | RunEvent::TaskAborted(_)
        | RunEvent::GoalUncovered(_)
        | RunEvent::DraftReviewMissed(_) => &[Failure],
        RunEvent::FailureAnswered(_) => &[Answer],
        RunEvent::TaskReopened(_) | RunEvent::Replanned(_) => &[Answer, Turn],
        RunEvent::PlanEdited(_)
        | RunEvent::QuestionAnswered(_)
        | RunEvent::RunPaused(_)
        | RunEvent::RunResumed(_)
        | RunEvent::GoalEdited(_) => &[People, Turn],
        RunEvent::QuestionAsked(_)
        | RunEvent::ApprovalGiven(_)
        | RunEvent::FeedbackGiven(_)
        | RunEvent::QuestionPassedOn(_)
        | RunEvent::QuestionWithdrawn(_) => &[People],
        RunEvent::RequestRefused(_) => &[People, Considered],
        RunEvent::RunFailed(_) | RunEvent::RunAborted(_) | RunEvent::TrialWithdrawn(_) => &[Turn],
        RunEvent::TaskSkipped(skipped) => of_skipped(skipped),
        RunEvent::PlanAdopted(PlanAdopted { repairs, .. }) => on(!repairs.is_empty(), &[Considered]),
        RunEvent::PlanRefined(refined) => of_refined(refined),
        RunEvent::MembersSettled(MembersSettled { verdict, .. }) => {
            on(!verdict.dissent.is_empty(), &[Considered])
        }
        RunEvent::TaskAwarded(TaskAwarded { bids, .. }) => on(bids.len() > 1, &[Considered]),
        RunEvent::BidHeld(bid) => on(!bid.kept, &[Failure]),
        RunEvent::ConflictResolved(resolved) => {
            if matches!(&resolved.end, ConflictEnd::Gone(_)) {
                &[Considered]
            } else {
                &[Considered, Turn]
            }
        }
        RunEvent::ContextWritten(ContextWritten { by, .. }) => match by {
            crate::flow::ContextAuthor::Person(_) => &[People, Turn],
            crate::flow::ContextAuthor::Task { .. } => &[],
        },
        RunEvent::GuardsAnswered(answered) => of_guards(answered),
        RunEvent::DraftReviewed(DraftReviewed { revise, .. }) => on(*revise, &[Considered, Turn]),
        _ => &[],
    }
}

const fn on(holds: bool, topics: &'static [Topic]) -> &'static [Topic] {
    if holds { topics } else { &[] }
}

const fn of_skipped(skipped: &TaskSkipped) -> &'static [Topic] {
    if skipped.by_person { &[People, Turn] } else { &[Failure] }
}

const fn of_refined(refined: &PlanRefined) -> &'static [Topic] {
    match (refined.changes.is_empty(), refined.refused.is_empty()) {
        (true, true) => &[],
        (true, false) => &[Considered],
        (false, true) => &[Turn, Answer],
        (false, false) => &[Turn, Answer, Considered],
    }
}

fn of_guards(answered: &GuardsAnswered) -> &'static [Topic] {
    let said = |ruling: Ruling| answered.said.verdicts.iter().any(|one| one.verdict == ruling);
    match (said(Ruling::Refuse), said(Ruling::Change)) {
        (true, _) => &[Guards, Failure, Turn],
        (false, true) => &[Guards, Turn],
        (false, false) => &[Guards],
    }
}
