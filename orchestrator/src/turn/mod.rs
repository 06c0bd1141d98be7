//! How a run is driven, without I/O: what is read, decided, written and carried out, in which order, and what follows when
//! something of it fails.
//!
//! [`Turn`] takes one turn: it says what it needs next ([`Next`]) and is given the result. [`Driver`] goes from one turn to
//! the next: it keeps the inbox and says what becomes of the run. The actors carry both out with the bus, the simulation
//! with a broker of its own.

mod driver;
mod inbox;
mod losses;
mod machine;
mod outcome;
mod pace;
mod prepared;
mod run_log;
mod silence;

#[cfg(test)]
mod tests;

pub use driver::{Action, Driver, DriverRules};
pub use inbox::{Hashed, Inbox, Order, RunMessage};
pub use machine::{
    AppendDecision, Appending, ClaimRun, DecideWithRoom, FindAgents, Next, PerformEffects, ReadLastStep,
    ReadLastWord, ReadRecord, TellOthers, Turn, TurnRules, View, WriteInHand,
};
pub use outcome::{Alarm, Failure, OrderReply, TurnEnd, TurnOutcome};
pub use pace::Took;
pub use prepared::{Written, WrittenAt};
pub use run_log::RunLog;
