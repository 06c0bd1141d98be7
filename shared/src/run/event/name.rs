//! What can be said of an event of a run without looking into it.

use super::RunEvent;

impl RunEvent {
    /// Whether nothing more happens in the run after this.
    #[must_use]
    pub const fn ends_run(&self) -> bool {
        matches!(self, Self::RunCompleted { .. } | Self::RunFailed { .. } | Self::RunAborted { .. })
    }

    /// The version of the run's events, if this one creates it.
    #[must_use]
    pub const fn version(&self) -> Option<u32> {
        if let Self::RunCreated { event_version, .. } = self { Some(*event_version) } else { None }
    }

    /// The name of the event, as it stands in the record.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunCreated { .. } => "run_created",
            Self::RunForked { .. } => "run_forked",
            Self::LessonsRecalled { .. } => "lessons_recalled",
            Self::PlanRefused { .. } => "plan_refused",
            Self::PlanningSkipped { .. } => "planning_skipped",
            Self::PlanDrafted { .. } => "plan_drafted",
            Self::PlanIterated { .. } => "plan_iterated",
            Self::PlanAdopted { .. } => "plan_adopted",
            Self::StepsExpanded { .. } => "steps_expanded",
            Self::TaskStarted { .. } => "task_started",
            Self::TaskOrphaned { .. } => "task_orphaned",
            Self::TaskReleased { .. } => "task_released",
            Self::TaskQuarantined { .. } => "task_quarantined",
            Self::FailureAnswered { .. } => "failure_answered",
            Self::ErrorBudgetUsedUp { .. } => "error_budget_used_up",
            Self::DependencyLeft { .. } => "dependency_left",
            Self::TaskCompleted { .. } => "task_completed",
            Self::TaskRetried { .. } => "task_retried",
            Self::TaskTakenBack { .. } => "task_taken_back",
            Self::TaskFailed { .. } => "task_failed",
            Self::TaskBlocked { .. } => "task_blocked",
            Self::MembersBegun { .. } => "members_begun",
            Self::MembersDiscuss { .. } => "members_discuss",
            Self::ChairCalled { .. } => "chair_called",
            Self::MembersSettled { .. } => "members_settled",
            Self::TaskAborted { .. } => "task_aborted",
            Self::TaskSkipped { .. } => "task_skipped",
            Self::TaskParked { .. } => "task_parked",
            Self::PlanEdited { .. } => "plan_edited",
            Self::TaskWaits { .. } => "task_waits",
            Self::TaskAnswered { .. } => "task_answered",
            Self::TaskDelegated { .. } => "task_delegated",
            Self::InformationShared { .. } => "information_shared",
            Self::ContextWritten { .. } => "context_written",
            Self::HandOverRefused { .. } => "hand_over_refused",
            Self::DeadlockEnded { .. } => "deadlock_ended",
            Self::ChildBegun { .. } => "child_begun",
            Self::ChildAsked { .. } => "child_asked",
            Self::ChildEnded { .. } => "child_ended",
            Self::QuestionAsked { .. } => "question_asked",
            Self::QuestionAnswered { .. } => "question_answered",
            Self::QuestionPassedOn { .. } => "question_passed_on",
            Self::QuestionWithdrawn { .. } => "question_withdrawn",
            Self::TaskReopened { .. } => "task_reopened",
            Self::TaskStale { .. } => "task_stale",
            Self::ConflictFound { .. } => "conflict_found",
            Self::ConflictExamined { .. } => "conflict_examined",
            Self::VerificationAdded { .. } => "verification_added",
            Self::ConflictResolved { .. } => "conflict_resolved",
            Self::RunPaused { .. } => "run_paused",
            Self::RunResumed { .. } => "run_resumed",
            Self::GoalEdited { .. } => "goal_edited",
            Self::RequestRefused { .. } => "request_refused",
            Self::Reflected { .. } => "reflected",
            Self::RefinementWanted { .. } => "refinement_wanted",
            Self::PlanRefined { .. } => "plan_refined",
            Self::ReplanWanted { .. } => "replan_wanted",
            Self::Replanned { .. } => "replanned",
            Self::RunGivenUp { .. } => "run_given_up",
            Self::WordsUncovered { .. } => "words_uncovered",
            Self::AuctionOpened { .. } => "auction_opened",
            Self::TaskAwarded { .. } => "task_awarded",
            Self::BidHeld { .. } => "bid_held",
            Self::WritingBegan => "writing_began",
            Self::DraftReviewBegun { .. } => "draft_review_begun",
            Self::DraftReviewed { .. } => "draft_reviewed",
            Self::DraftReviewMissed { .. } => "draft_review_missed",
            Self::RunCompleted { .. } => "run_completed",
            Self::RunFailed { .. } => "run_failed",
            Self::RunAborted { .. } => "run_aborted",
        }
    }
}
