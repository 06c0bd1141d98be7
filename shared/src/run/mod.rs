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
    ApplyError, WrittenDecision, apply, apply_event, apply_late, apply_offer, begin_run, close_inputs,
    failed_plan, fold_event, note_decided,
};
pub use chain::{Chain, ChainEntry, Covered, LinkDraft};
pub use children::{Child, ChildEnd};
pub use conflicts::{ConflictCount, ConflictEnd, ConflictState, Conflicts, Settling, SettlingFor};
pub use control::{Control, Paused};
pub use count::{Shortfall, TaskCount, TaskEnd, count, end_of, in_part, is_completed_in_part, shortfalls};
pub use drafts::{DraftHistory, DraftReviewEnd, ReviewOfDraft};
pub use event::{
    AgentEvent, AgentKey, Checked, Decided, Digest, Entry, EventKind, Evidence, FailedPlan, Input, Link,
    RecordEvent, Released, Request, RequestAction, RunEvent, SignedOrder, SignerKind, Started, StopReason,
    ToolStarted, Unreadable,
};
pub use fork::{Inherited, InheritedPlanning, Origin};
pub use gaps::{Gap, gaps};
pub use group::Group;
pub use guarding::{Guarding, Held, HeldBack};
pub use peers::{PeerTalk, Shared};
pub use planning::{GivenUp, Iterated, PlanStage, Planning, Replan};
pub use questions::{QuestionEnd, QuestionState};
pub use refining::Refining;
pub use responses::{Answers, ResponseHistory};
pub use say::{Say, is_of_one};
pub use snapshot::Snapshot;
pub use spending::{Allotment, Spending, Uncounted};
pub use state::{Phase, RunState, RunStatus, Seen, Statuses};
pub use task_state::{Avoided, Death, Lost, TaskState, Waiting};
pub use tool_use::{ToolUse, ToolUses};
pub use trials::{Shadow, Trials};

/// The version of the event format that this build writes and the newest it can fold.
pub const EVENT_VERSION: u32 = 8;

/// The first version of events in which tasks wait and people are asked.
pub const WAITS_SINCE: u32 = 2;
/// The first version of events in which runs are given lessons of earlier ones.
pub const LESSONS_SINCE: u32 = 2;
/// The first version of events in which a plan grows by the steps of a blueprint.
pub const BLUEPRINTS_SINCE: u32 = 2;
/// The first version of events in which small goals are not planned, and failed plans are made anew.
pub const REPLANS_SINCE: u32 = 2;
/// The first version of events in which tasks are given out by other patterns than to one agent, results are held
/// against each other, and tasks share what they know.
pub const TEAMS_SINCE: u32 = 3;
/// The first version of events in which tasks name the tools they need, and planners are told of these.
pub const TOOLS_SINCE: u32 = 3;
/// The first version of events in which a person is asked about a task that its agent cannot go on with.
pub const STUCK_SINCE: u32 = 3;
/// The first version of events in which tasks ask and tell each other things.
pub const PEERS_SINCE: u32 = 3;
/// The first version of events in which plans are refused that use values of the shared context nobody writes.
pub const VALUES_CHECKED_SINCE: u32 = 3;
/// The first version of events in which it is held by rule how large tasks are.
pub const GRANULARITY_SINCE: u32 = 3;
/// The first version of events in which prompts tell in a line what each task has come to.
pub const SUMMARIES_SINCE: u32 = 3;
/// The first version of events in which reports are held against the person's own words.
pub const REPORTS_CHECKED_SINCE: u32 = 3;
/// The first version of events in which an entry that cannot be read counts as a failure of its task, and what is
/// missing, failed or left out is told by rule.
pub const REPAIRS_SINCE: u32 = 4;
/// The first version of events in which a report may be made by rule from a single task, agents may ask for a plan, and
/// whoever plans, refines or reflects is told what its answer is held against.
pub const FEW_CALLS_SINCE: u32 = 5;

/// The first version of events in which whoever judges a conflict may say that both sides hold.
pub const BOTH_HOLD_SINCE: u32 = 5;

/// The first version of events in which every decision carries a link of the run's hash chain.
pub const CHAIN_SINCE: u32 = 6;

/// The first version of events in which certain people, or several, have to approve.
pub const APPROVALS_SINCE: u32 = 7;

/// The first version of events in which orchestrators with credentials of a fleet seal every link.
pub const SEALED_SINCE: u32 = 7;

/// The first version of events in which only those have a say in a task that it was offered to, and of them whoever has it.
pub const HOLDERS_SINCE: u32 = 7;

/// The first version of events in which those who have to approve have a say in changes too, and a change of what is under
/// review takes the approvals before it back.
pub const CHANGES_APPROVED_SINCE: u32 = 8;

/// The first version of events in which plans may name the tools for data.
pub const DATA_TOOLS_SINCE: u32 = 8;

/// The first version of events in which what others say of a task is not taken for a word of whoever has it: tries are
/// counted by whoever decides, a try names the queue of its task, and what others say they used is not counted.
pub const HELD_SINCE: u32 = 8;

/// The first version of events in which guards that give no verdict are waited for, and are asked about plans that people
/// bring and about what is left of a run that is stopped.
pub const GUARDS_WAITED_FOR_SINCE: u32 = 8;

/// The first version of events in which a person may have to approve single calls of tools.
pub const CALLS_APPROVED_SINCE: u32 = 8;

/// The first version of events in which runs take part in trials.
pub const TRIALS_SINCE: u32 = 8;

/// The version of the event format that every build can fold.
pub const FIRST_EVENT_VERSION: u32 = 1;

/// [`FIRST_EVENT_VERSION`], for records that name none.
pub(crate) const fn first_event_version() -> u32 {
    FIRST_EVENT_VERSION
}

/// Whether a version need not be named.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) const fn is_first_event_version(version: &u32) -> bool {
    *version == FIRST_EVENT_VERSION
}
