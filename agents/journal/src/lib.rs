//! An agent's journal of one task, without I/O: what is read before it begins, what is written behind which fence, what
//! follows when others wrote meanwhile or no answer comes, and whether a model may be asked without looking.
//!
//! [`Journal`] says what it needs next ([`JournalStep`]) and is given the answer. The agent carries it out with the bus,
//! the simulation with a broker of its own. A crate of its own, so that the simulation gets by without models and tools.

mod fold;
mod journal;
mod look;
mod opening;
mod patience;
mod step;
mod taken;
mod writing;

#[cfg(test)]
mod tests;

pub use fold::TaskFold;
pub use journal::{Found, Journal, Moment};
pub use look::{AskNewest, Newest, SURE};
pub use opening::{Begin, LATE};
pub use patience::{MAX_PAUSE, PAUSE, Pause, Unanswered};
pub use step::{JournalFailure, JournalStep, ReadTask, WithDecisions};
pub use taken::AskWhoHolds;
pub use writing::{AppendEvent, Appended};
