//! Which questions an event has something to say on.

use crate::flow::Ruling;
use crate::run::event::{
    ContextWritten, DraftReviewed, GuardsAnswered, MembersSettled, PlanAdopted, PlanRefined, TaskAwarded,
    TaskSkipped,
};
use crate::run::{ConflictEnd, RunEvent};

/// A question that people have of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Where did the course change?
    Turn,
    /// What else was considered?
    Considered,
    /// What went wrong?
    Failure,
    /// What was done about it?
    Answer,
    /// Who decided?
    People,
    /// What did guards say?
    Guards,
}

use Topic::{Answer, Considered, Failure, Guards, People, Turn};

/// What an event has something to say on.
pub(super) fn topics(event: &RunEvent) -> &'static [Topic] {
    match event {
        RunEvent::RunForked(_) | RunEvent::PlanIterated(_) | RunEvent::TaskDelegated(_) => &[Turn],
        RunEvent::ChildBegun(_) | RunEvent::ChildEnded(_) | RunEvent::VerificationAdded(_) => &[Turn],
        RunEvent::ReplanWanted(_) => &[Turn],
        RunEvent::PlanRefused(_) | RunEvent::HandOverRefused(_) => &[Considered, Failure],
        RunEvent::MembersDiscuss(_) | RunEvent::ChairCalled(_) | RunEvent::ConflictFound(_) => &[Considered],
        RunEvent::ShadowAsked(_) => &[Considered],
        RunEvent::TaskOrphaned(_)
        | RunEvent::TaskQuarantined(_)
        | RunEvent::TaskTakenBack(_)
        | RunEvent::ErrorBudgetUsedUp(_)
        | RunEvent::DeadlockEnded(_)
        | RunEvent::RunGivenUp(_) => &[Failure, Turn],
        RunEvent::TaskRetried(_)
        | RunEvent::TaskFailed(_)
        | RunEvent::TaskBlocked(_)
        | RunEvent::TaskAborted(_)
        | RunEvent::TaskStale(_)
        | RunEvent::WordsUncovered(_)
        | RunEvent::DraftReviewMissed(_) => &[Failure],
        RunEvent::FailureAnswered(_) | RunEvent::DependencyLeft(_) => &[Answer],
        RunEvent::TaskReopened(_) | RunEvent::Replanned(_) => &[Answer, Turn],
        RunEvent::PlanEdited(_)
        | RunEvent::QuestionAnswered(_)
        | RunEvent::RunPaused(_)
        | RunEvent::RunResumed(_)
        | RunEvent::GoalEdited(_) => &[People, Turn],
        RunEvent::QuestionAsked(_)
        | RunEvent::ApprovalGiven(_)
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
        RunEvent::ConflictResolved(resolved) => match &resolved.end {
            ConflictEnd::Settled(_) | ConflictEnd::Unsettled(_) | ConflictEnd::Both(_) => &[Considered, Turn],
            ConflictEnd::Gone(_) => &[Considered],
        },
        RunEvent::ContextWritten(ContextWritten { by, .. }) => match by {
            crate::flow::ContextAuthor::Person(_) => &[People, Turn],
            crate::flow::ContextAuthor::Task { .. } => &[],
        },
        RunEvent::GuardsAnswered(answered) => of_guards(answered),
        RunEvent::DraftReviewed(DraftReviewed { revise, .. }) => on(*revise, &[Considered, Turn]),
        RunEvent::RunCreated(_)
        | RunEvent::LessonsRecalled(_)
        | RunEvent::PlanningSkipped(_)
        | RunEvent::PlanDrafted(_)
        | RunEvent::StepsExpanded(_)
        | RunEvent::TaskStarted(_)
        | RunEvent::TaskReleased(_)
        | RunEvent::TaskCompleted(_)
        | RunEvent::MembersBegun(_)
        | RunEvent::TaskParked(_)
        | RunEvent::TaskWaits(_)
        | RunEvent::TaskAnswered(_)
        | RunEvent::InformationShared(_)
        | RunEvent::ChildAsked(_)
        | RunEvent::ConflictExamined(_)
        | RunEvent::Reflected(_)
        | RunEvent::RefinementWanted(_)
        | RunEvent::AuctionOpened(_)
        | RunEvent::GuardsAsked(_)
        | RunEvent::WritingBegan(_)
        | RunEvent::DraftReviewBegun(_)
        | RunEvent::RunCompleted(_) => &[],
    }
}

/// These, if something holds.
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
