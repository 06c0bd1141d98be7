//! What follows from a decision: the changes of a run's state.
//!
//! Here stands which kinds of event there are. What each of them says, is about, and changes stands with its payload, in
//! the file of its topic.

use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use super::{
    ApprovalGiven, AuctionOpened, BidHeld, ChildAsked, ChildBegun, ChildEnded, ConflictExamined,
    ConflictFound, ConflictResolved, ContextWritten, DeadlockEnded, DraftReviewBegun, DraftReviewMissed,
    DraftReviewed, ErrorBudgetUsedUp, FailureAnswered, GoalEdited, GuardsAnswered, GuardsAsked,
    HandOverRefused, InformationShared, LessonsRecalled, MembersBegun, MembersDiscuss, MembersSettled,
    PlanAdopted, PlanDrafted, PlanEdited, PlanIterated, PlanRefined, PlanRefused, PlanningSkipped,
    QuestionAnswered, QuestionAsked, QuestionPassedOn, QuestionWithdrawn, RefinementWanted, Reflected,
    ReplanWanted, Replanned, RequestRefused, RoleAvailabilityChanged, RunAborted, RunCompleted, RunCreated,
    RunFailed, RunForked, RunGivenUp, RunPaused, RunResumed, ShadowAsked, StepsExpanded, TaskAborted,
    TaskAnswered, TaskAwarded, TaskBlocked, TaskCompleted, TaskDelegated, TaskFailed, TaskOrphaned,
    TaskParked, TaskQuarantined, TaskReleased, TaskReopened, TaskRetried, TaskSkipped, TaskStarted,
    TaskTakenBack, TaskWaits, TrialWithdrawn, VerificationAdded, WordsUncovered, WritingBegan,
};
use crate::ids::TaskId;
use crate::run::apply::ApplyResult;
use crate::run::state::RunState;
use crate::time::Millis;

/// Makes the enum of all kinds with their names, which stand on the wire, and hands what is asked of an event on to its payload.
macro_rules! run_events {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal),+ $(,)?) => {
        /// A change of the run's state.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(tag = "event", rename_all = "snake_case")]
        #[expect(clippy::large_enum_variant, reason = "the large one begins a run and comes once in it")]
        pub enum RunEvent {
            $($(#[doc = $doc])+ $kind($kind)),+
        }

        $(
            impl $kind {
                pub(super) const NAME: &'static str = $name;
            }

            impl From<$kind> for RunEvent {
                fn from(payload: $kind) -> Self {
                    Self::$kind(payload)
                }
            }
        )+

        impl RunEvent {
            /// The names of all kinds, as they stand in the record.
            pub const NAMES: &'static [&'static str] = &[$($kind::NAME),+];

            /// The name of the event, as it stands in the record.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$kind(_) => $kind::NAME),+ }
            }

            /// The task that it is about, if it is about one.
            #[must_use]
            pub fn task(&self) -> Option<TaskId> {
                match self { $(Self::$kind(payload) => payload.task()),+ }
            }

            /// It in words, for people.
            #[must_use]
            pub fn text(&self, words: Words<'_>) -> String {
                match self { $(Self::$kind(payload) => payload.text(words)),+ }
            }

            /// What it changes, for a decision that took `now` for the time.
            pub(in crate::run) fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
                match self { $(Self::$kind(payload) => payload.fold(run, now)),+ }
            }
        }
    };
}

run_events! {
    /// The run exists. Always the first event.
    RunCreated = "run_created",
    /// The run goes on from where another one stood. Comes with its creation only.
    RunForked = "run_forked",
    /// Earlier runs with a like goal taught something. Comes with the run's creation only.
    LessonsRecalled = "lessons_recalled",
    /// The planner's plan was refused.
    PlanRefused = "plan_refused",
    /// No planner is asked: the goal is small, the person brought a plan, or wants none.
    PlanningSkipped = "planning_skipped",
    /// The planner's plan is in order, and is to be improved from lessons of earlier runs before it is carried out.
    PlanDrafted = "plan_drafted",
    /// The plan was improved from lessons of earlier runs.
    PlanIterated = "plan_iterated",
    /// There is a plan.
    PlanAdopted = "plan_adopted",
    /// It was decided of steps of the run's blueprint what becomes of them, and the plan grew by their tasks.
    StepsExpanded = "steps_expanded",
    /// An agent started a task.
    TaskStarted = "task_started",
    /// The agent that had a task was lost. The task goes to another within the same generation.
    TaskOrphaned = "task_orphaned",
    /// The agent that had a task handed it over in good order.
    TaskReleased = "task_released",
    /// A task that agents kept dying of is given to nobody any more: it failed for good.
    TaskQuarantined = "task_quarantined",
    /// How a failed try of a task is answered. What follows from it comes next.
    FailureAnswered = "failure_answered",
    /// The run had as many failures as it may have.
    ErrorBudgetUsedUp = "error_budget_used_up",
    /// A task ended well.
    TaskCompleted = "task_completed",
    /// A try of a task failed; it will be offered again.
    TaskRetried = "task_retried",
    /// Whoever had a task wrote nothing about it for too long. It is offered to another, which goes on after the last
    /// step.
    TaskTakenBack = "task_taken_back",
    /// A task failed for good.
    TaskFailed = "task_failed",
    /// A task cannot start because one it needs gave nothing.
    TaskBlocked = "task_blocked",
    /// Several members do a task, each as a task of its own.
    MembersBegun = "members_begun",
    /// The members of a task are to think again, knowing what the others found.
    MembersDiscuss = "members_discuss",
    /// A task that members did ended with the result of one of them.
    MembersSettled = "members_settled",
    /// A task was cut off.
    TaskAborted = "task_aborted",
    /// A task was left out by decision.
    TaskSkipped = "task_skipped",
    /// A task was put down where it stands, to be offered again: the next generation goes on from there.
    TaskParked = "task_parked",
    /// A person gave the plan as it is to be.
    PlanEdited = "plan_edited",
    /// A task was put down until what it waits for is there.
    TaskWaits = "task_waits",
    /// What a task waited for is there: its next generation goes on with it.
    TaskAnswered = "task_answered",
    /// A task, or a person by a value, told others something.
    InformationShared = "information_shared",
    /// A task handed over part of its work: the plan has a task more, and the one that asked for it waits for its end.
    TaskDelegated = "task_delegated",
    /// A value of the shared context was written.
    ContextWritten = "context_written",
    /// Handing work over would have gone in a circle, or too far. The task goes on by itself, with another agent if there
    /// is one.
    HandOverRefused = "hand_over_refused",
    /// Tasks waited for each other, or for what cannot come. One of them goes on without.
    DeadlockEnded = "deadlock_ended",
    /// A role that tasks of the run need lost its last agent, or has one again.
    RoleAvailabilityChanged = "role_availability_changed",
    /// A run was begun for a task that waits for its end.
    ChildBegun = "child_begun",
    /// Nothing was heard of a child for long: word of it is asked for.
    ChildAsked = "child_asked",
    /// A run that was begun for a task ended.
    ChildEnded = "child_ended",
    /// Somebody is asked.
    QuestionAsked = "question_asked",
    /// Somebody approved what is asked about, and others have to as well.
    ApprovalGiven = "approval_given",
    /// A question was answered, or its time is up and its default is taken.
    QuestionAnswered = "question_answered",
    /// Nobody answered in time: somebody else is asked.
    QuestionPassedOn = "question_passed_on",
    /// Nobody needs the answer any more.
    QuestionWithdrawn = "question_withdrawn",
    /// A task that was begun, or had ended, is to be done again from its beginning.
    TaskReopened = "task_reopened",
    /// Results contradict each other, or another one takes part where they do.
    ConflictFound = "conflict_found",
    /// Somebody is asked about a conflict: the sides for their methods, or a judge.
    ConflictExamined = "conflict_examined",
    /// The plan has a task more, which finds out what holds.
    VerificationAdded = "verification_added",
    /// A conflict ended: settled, or not, or it is none any more.
    ConflictResolved = "conflict_resolved",
    /// Nothing is offered until the run is resumed.
    RunPaused = "run_paused",
    /// The run goes on.
    RunResumed = "run_resumed",
    /// A goal was changed.
    GoalEdited = "goal_edited",
    /// What somebody asked of the run cannot be done. Nothing else changes.
    RequestRefused = "request_refused",
    /// What was learnt from a task.
    Reflected = "reflected",
    /// Somebody asks for a change of plan. Wishes are collected until the refinement is offered.
    RefinementWanted = "refinement_wanted",
    /// The plan was changed.
    PlanRefined = "plan_refined",
    /// What is left is to be planned anew. Nothing new is begun until it is; more reasons may follow.
    ReplanWanted = "replan_wanted",
    /// What was left is planned anew. What has ended stays as it is.
    Replanned = "replanned",
    /// The plans of the run failed, and there will be no other. The run fails with the next event.
    RunGivenUp = "run_given_up",
    /// The plan, or the report, was held against the person's own words, and does not speak of all of them.
    WordsUncovered = "words_uncovered",
    /// Agents are asked to bid for a task.
    AuctionOpened = "auction_opened",
    /// The auction of a task is over.
    TaskAwarded = "task_awarded",
    /// It shows whether an agent held its bid.
    BidHeld = "bid_held",
    /// A task is to be done once more by what a trial tries, in a run of its own. Nothing of it comes back.
    ShadowAsked = "shadow_asked",
    /// Nothing more of the run goes to what a trial tries.
    TrialWithdrawn = "trial_withdrawn",
    /// Guards are asked about a plan, a change of it, or a report, which waits for their verdict.
    GuardsAsked = "guards_asked",
    /// Guards gave their verdict.
    GuardsAnswered = "guards_answered",
    /// The report is being written.
    WritingBegan = "writing_began",
    /// The report is written, and a reviewer reads this draft before it is delivered.
    DraftReviewBegun = "draft_review_begun",
    /// A reviewer has read the draft.
    DraftReviewed = "draft_reviewed",
    /// The review of the draft did not take place, or nothing came of it. The draft is delivered.
    DraftReviewMissed = "draft_review_missed",
    /// The run ended well.
    RunCompleted = "run_completed",
    /// The run failed.
    RunFailed = "run_failed",
    /// The run was stopped.
    RunAborted = "run_aborted",
}

impl RunEvent {
    /// Whether nothing more happens in the run after this.
    #[must_use]
    pub const fn ends_run(&self) -> bool {
        matches!(self, Self::RunCompleted(_) | Self::RunFailed(_) | Self::RunAborted(_))
    }
}
