//! What comes in.

use std::sync::Arc;

use muster_bus::{RegistryChange, Tapped};
use muster_shared::ids::RunId;
use muster_shared::run::Entry;
use muster_shared::time::Millis;
use muster_shared::wire::Live;

use super::fleet::Happened;
use crate::commands::Around;

/// How the way to the fleet stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// It was not reached yet.
    Connecting,
    /// The fleet was reached, for the first time or after it was gone: nothing that was known of it counts.
    Anew(String),
    /// It is there, at this address.
    Up(String),
    /// It is not; what a person is told of that.
    Away(String),
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// The way to the fleet.
    Link(Link),
    /// The newest runs were all given.
    CaughtUp,
    /// A process came, changed or left.
    Processes {
        /// What it is.
        change: Box<RegistryChange>,
        /// When it was heard.
        at: Millis,
    },
    /// What there is to know of the processes beside what they say of themselves.
    Around(Box<Around>),
    /// Something about the processes, for a person.
    Happened(Happened),
    /// Somebody wants to know all of a run. Its record follows.
    Opened(RunId),
    /// Nobody does any more.
    Closed(RunId),
    /// All that stands in the record of a run.
    Record {
        /// The run.
        run: RunId,
        /// The entries in order.
        entries: Vec<Arc<Entry>>,
    },
    /// The next entry of a run.
    Entry(Arc<Entry>),
    /// The record of a run cannot be read, or not on.
    Damaged {
        /// The run.
        run: RunId,
        /// Why.
        why: String,
    },
    /// What is done right now.
    Live(Live),
    /// A message passed.
    Tapped {
        /// The message.
        tapped: Box<Tapped>,
        /// How many before it were dropped, since nobody took them in time.
        dropped: u64,
    },
    /// Nobody wants to see what passes any more.
    TapEnded,
}
