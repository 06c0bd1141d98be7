//! The record of a run, and how it is folded.
//!
//! The record is the only truth. Two kinds of author write to it: orchestrators write decisions and offers
//! (`run.<run>.>`), agents write what happens to the task they hold (`evt.<run>.…`). An agent's event changes
//! the run's state only when a decision names it.

pub mod apply;
pub mod chain;
pub mod children;
pub mod conflicts;
pub mod control;
pub mod conversation;
pub mod count;
pub mod deadlock;
pub mod drafts;
pub mod event;
pub mod fork;
pub mod gaps;
pub mod group;
pub mod guarding;
pub mod invariants;
pub mod peers;
pub mod planning;
pub mod questions;
pub mod refining;
pub mod responses;
pub mod say;
pub mod snapshot;
pub mod spending;
pub mod state;
pub mod task_state;
pub mod tool_use;
pub mod trials;
pub mod unguarded;

pub use apply::{
    ApplyError, ApplyResult, WrittenDecision, apply, apply_event, apply_late, apply_offer, begin_run,
    close_inputs, failed_plan, fold_event, note_decided,
};
pub use chain::{Chain, ChainEntry, Covered, LinkDraft};
pub use children::{Child, ChildEnd};
pub use conflicts::{ConflictCount, ConflictEnd, ConflictState, Conflicts, Settling, SettlingFor};
pub use control::{Control, Paused};
pub use count::{
    Shortfall, TaskCount, TaskEnd, count, end_of, in_part, is_completed_in_part, lacks_planned_work,
    left_out_by_plans, shortfalls,
};
pub use drafts::{DraftHistory, DraftReviewEnd, ReviewOfDraft};
pub use event::{
    AgentEvent, AgentKey, Decided, Digest, Entry, EventKind, Evidence, FailedPlan, Input, Link, RecordEvent,
    Released, Request, RequestAction, RunEvent, SignedOrder, SignerKind, Started, StopReason, ToolStarted,
    Unreadable,
};
pub use fork::{Inherited, InheritedPlanning, Origin};
pub use gaps::{Gap, gaps};
pub use group::Group;
pub use guarding::{Guarding, Held, HeldBack};
pub use peers::{PeerTalk, Shared};
pub use planning::{GivenUp, Iterated, PlanStage, Planning, Replan};
pub use questions::{QuestionEnd, QuestionState, note_waiting};
pub use refining::Refining;
pub use responses::{Answers, ResponseHistory};
pub use say::{Say, is_of_one};
pub use snapshot::Snapshot;
pub use spending::{Allotment, Spending, Uncounted};
pub use state::{Phase, RunState, RunStatus, Seen, Statuses};
pub use task_state::{Avoided, Death, Lost, TaskState, Waiting};
pub use tool_use::{ToolUse, ToolUses};
pub use trials::{Shadow, Trials};

/// The version of the event format: the only one that this build writes and reads.
pub const EVENT_VERSION: u32 = 1;
