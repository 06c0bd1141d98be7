//! What follows from a decision: the changes of a run's state.
//!
//! Here stands which kinds of event there are. What each of them says, is about, and changes stands with its payload, in
//! the file of its topic.

use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::ids::TaskId;
use crate::run::apply::ApplyResult;
use crate::run::state::RunState;
use crate::time::Millis;

/// Makes the enum of all kinds. Its methods call those of the payload.
macro_rules! run_events {
    ($($(#[doc = $doc:literal])+ $kind:ident),+ $(,)?) => {
        /// A change of the run's state.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(tag = "event", rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        #[expect(clippy::large_enum_variant, reason = "the large one begins a run and comes once in it")]
        pub enum RunEvent {
            $($(#[doc = $doc])+ $kind(super::$kind)),+
        }

        $(
            impl From<super::$kind> for RunEvent {
                fn from(payload: super::$kind) -> Self {
                    Self::$kind(payload)
                }
            }
        )+

        impl RunEvent {
            /// The name of the event, as it stands in the record.
            #[must_use]
            pub fn name(&self) -> &'static str {
                self.into()
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
    RunCreated,
    /// The run goes on from where another one stood. Comes with its creation only.
    RunForked,
    /// Earlier runs with a like goal taught something. Comes with the run's creation only.
    LessonsRecalled,
    /// The planner's plan was refused.
    PlanRefused,
    /// No planner is asked: the goal is small, the person brought a plan, or wants none.
    PlanningSkipped,
    /// The planner's plan is in order, and is to be improved from lessons of earlier runs before it is carried out.
    PlanDrafted,
    /// The plan was improved from lessons of earlier runs.
    PlanIterated,
    /// There is a plan.
    PlanAdopted,
    /// It was decided of steps of the run's blueprint what becomes of them, and the plan grew by their tasks.
    StepsExpanded,
    /// An agent started a task.
    TaskStarted,
    /// The agent that had a task was lost. The task goes to another within the same generation.
    TaskOrphaned,
    /// The agent that had a task handed it over in good order.
    TaskReleased,
    /// A task that agents kept dying of is given to nobody any more: it failed for good.
    TaskQuarantined,
    /// How a failed try of a task is answered. What follows from it comes next.
    FailureAnswered,
    /// The run had as many failures as it may have.
    ErrorBudgetUsedUp,
    /// A task ended well.
    TaskCompleted,
    /// A try of a task failed; it will be offered again.
    TaskRetried,
    /// Whoever had a task wrote nothing about it for too long. It is offered to another, which goes on after the last
    /// step.
    TaskTakenBack,
    /// A task failed for good.
    TaskFailed,
    /// A task cannot start because one it needs gave nothing.
    TaskBlocked,
    /// Several members do a task, each as a task of its own.
    MembersBegun,
    /// The members of a task are to think again, knowing what the others found.
    MembersDiscuss,
    /// A task that members did ended with the result of one of them.
    MembersSettled,
    /// A task was cut off.
    TaskAborted,
    /// A task was left out by decision.
    TaskSkipped,
    /// A task was put down where it stands, to be offered again: the next generation goes on from there.
    TaskParked,
    /// A person gave the plan as it is to be.
    PlanEdited,
    /// A task was put down until what it waits for is there.
    TaskWaits,
    /// What a task waited for is there: its next generation goes on with it.
    TaskAnswered,
    /// A task, or a person by a value, told others something.
    InformationShared,
    /// A task handed over part of its work: the plan has a task more, and the one that asked for it waits for its end.
    TaskDelegated,
    /// A value of the shared context was written.
    ContextWritten,
    /// Handing work over would have gone in a circle, or too far. The task goes on by itself, with another agent if there
    /// is one.
    HandOverRefused,
    /// Tasks waited for each other, or for what cannot come. One of them goes on without.
    DeadlockEnded,
    /// A role that tasks of the run need lost its last agent, or has one again.
    RoleAvailabilityChanged,
    /// A run was begun for a task that waits for its end.
    ChildBegun,
    /// Nothing was heard of a child for long: word of it is asked for.
    ChildAsked,
    /// A run that was begun for a task ended.
    ChildEnded,
    /// Somebody is asked.
    QuestionAsked,
    /// Somebody approved what is asked about, and others have to as well.
    ApprovalGiven,
    /// A person answered an approval with feedback instead of a choice. The question stays open.
    FeedbackGiven,
    /// A question was answered, or its time is up and its default is taken.
    QuestionAnswered,
    /// Nobody answered in time: somebody else is asked.
    QuestionPassedOn,
    /// Nobody needs the answer any more.
    QuestionWithdrawn,
    /// A task that was begun, or had ended, is to be done again from its beginning.
    TaskReopened,
    /// Results contradict each other, or another one takes part where they do.
    ConflictFound,
    /// Somebody is asked about a conflict: the sides for their methods, or a judge.
    ConflictExamined,
    /// The plan has a task more, which finds out what holds.
    VerificationAdded,
    /// A conflict ended: settled, or not, or it is none any more.
    ConflictResolved,
    /// Nothing is offered until the run is resumed.
    RunPaused,
    /// The run goes on.
    RunResumed,
    /// A goal was changed.
    GoalEdited,
    /// What somebody asked of the run cannot be done. Nothing else changes.
    RequestRefused,
    /// What was learnt from a task.
    Reflected,
    /// Somebody asks for a change of plan. Wishes are collected until the refinement is offered.
    RefinementWanted,
    /// The plan was changed.
    PlanRefined,
    /// What is left is to be planned anew. Nothing new is begun until it is; more reasons may follow.
    ReplanWanted,
    /// What was left is planned anew. What has ended stays as it is.
    Replanned,
    /// The plans of the run failed, and there will be no other. The run fails with the next event.
    RunGivenUp,
    /// The plan, or the report, was held against the person's own words, and does not speak of all of them.
    GoalUncovered,
    /// Agents are asked to bid for a task.
    AuctionOpened,
    /// The auction of a task is over.
    TaskAwarded,
    /// It shows whether an agent held its bid.
    BidHeld,
    /// A task is to be done once more by what a trial tries, in a run of its own. Nothing of it comes back.
    ShadowAsked,
    /// Nothing more of the run goes to what a trial tries.
    TrialWithdrawn,
    /// Guards are asked about a plan, a change of it, or a report, which waits for their verdict.
    GuardsAsked,
    /// Guards gave their verdict.
    GuardsAnswered,
    /// The report is being written.
    WritingBegan,
    /// The report is written, and a reviewer reads this draft before it is delivered.
    DraftReviewBegun,
    /// A reviewer has read the draft.
    DraftReviewed,
    /// The review of the draft did not take place, or nothing came of it. The draft is delivered.
    DraftReviewMissed,
    /// The run ended well.
    RunCompleted,
    /// The run failed.
    RunFailed,
    /// The run was stopped.
    RunAborted,
}

impl RunEvent {
    /// Whether nothing more happens in the run after this.
    #[must_use]
    pub const fn ends_run(&self) -> bool {
        matches!(self, Self::RunCompleted(_) | Self::RunFailed(_) | Self::RunAborted(_))
    }
}
