//! Events: what stands in the record.
//!
//! Each kind of event of a decision stands in the file of its topic with all that there is to say of it: what it holds,
//! which task it is about, what it changes, and how it is told to people. A new kind needs its payload there, and a line
//! with its name in [`RunEvent`].

mod agent_event;
mod auctions;
mod beginning;
mod children;
mod conflicts;
mod control;
mod end;
mod ending;
mod facts;
mod failures;
mod groups;
mod guards;
mod holding;
mod input;
mod learning;
mod link;
mod payload;
mod peers;
mod planning;
mod questions;
mod record;
mod report;
mod request;
mod run_event;
mod signed;
mod trials;
mod waits;

pub use agent_event::{AgentEvent, AgentKey, EventKind, Released, Started, ToolStarted, Unreadable};
pub use auctions::{AuctionOpened, BidHeld, TaskAwarded};
pub use beginning::{LessonsRecalled, RunCreated, RunForked};
pub use children::{ChildAsked, ChildBegun, ChildEnded};
pub use conflicts::{ConflictExamined, ConflictFound, ConflictResolved, VerificationAdded};
pub use control::{GoalEdited, RequestRefused, RunPaused, RunResumed};
pub use end::{RunAborted, RunCompleted, RunFailed};
pub use ending::{
    TaskAborted, TaskBlocked, TaskCompleted, TaskFailed, TaskQuarantined, TaskReopened, TaskRetried,
    TaskSkipped,
};
pub use facts::{Evidence, FailedPlan, StopReason};
pub use failures::{ErrorBudgetUsedUp, FailureAnswered};
pub use groups::{MembersBegun, MembersDiscuss, MembersSettled};
pub use guards::{AskedAbout, GivingUp, GuardsAnswered, GuardsAsked, HandOver, Stopped};
pub use holding::{TaskOrphaned, TaskParked, TaskReleased, TaskStarted, TaskTakenBack};
pub use input::Input;
pub use learning::{PlanRefined, RefinementWanted, Reflected, ReplanWanted, Replanned, RunGivenUp};
pub use link::{Digest, Link, Mark, MarkedEntry, NotHexadecimal, Seal};
pub use payload::Words;
pub use peers::{ContextWritten, InformationShared};
pub use planning::{
    GoalUncovered, PlanAdopted, PlanDrafted, PlanEdited, PlanIterated, PlanRefused, PlanningSkipped,
    StepsExpanded,
};
pub use questions::{
    ApprovalGiven, FeedbackGiven, QuestionAnswered, QuestionAsked, QuestionPassedOn, QuestionWithdrawn,
};
pub use record::{Decided, Entry, RecordEvent};
pub use report::{DraftReviewBegun, DraftReviewMissed, DraftReviewed, WritingBegan};
pub use request::{Request, RequestAction};
pub use run_event::RunEvent;
pub use signed::{SignedOrder, SignerKind};
pub use trials::{ShadowAsked, TrialWithdrawn};
pub use waits::{
    DeadlockEnded, HandOverRefused, RoleAvailabilityChanged, TaskAnswered, TaskDelegated, TaskWaits,
};
