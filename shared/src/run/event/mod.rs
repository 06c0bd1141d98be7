//! Events: what stands in the record.

mod agent_event;
mod facts;
mod input;
mod name;
mod record;
mod run_event;

pub use agent_event::{AgentEvent, AgentKey, EventKind, Released, Started, ToolStarted, Unreadable};
pub use facts::{Checked, Evidence, FailedPlan, StopReason};
pub use input::{Input, Request};
pub use record::{Decided, Entry, RecordEvent};
pub use run_event::RunEvent;
