//! A fleet in one thread: the real decisions and the real fold, on a broker, a clock and a network that a seed
//! decides about. The same seed gives the same history, to the last message.
//!
//! What is real here is what a run's fate depends on: `decide`, `apply`, the invariants, an agent's journal, the matching of tasks and agents,
//! and the counts of what each queue takes. Around them stand models
//! of what surrounds them in a fleet: the broker with its fences, queues, leases and timers (`broker`), the way an
//! orchestrator drives a run (`owner`), the way an agent works (`agent`). People (`people`) answer what they
//! are asked, and fork runs; in some seeds results contradict each other, and tasks share values (`teams`). Faults (`faults`) strike them all; after every entry of the record, the rules in `checks`,
//! `family` and `accord` are looked at.

mod accord;
mod agenda;
mod agent;
mod asks;
mod broker;
mod checks;
mod claims;
mod driver;
mod explained;
mod family;
mod fate;
mod faults;
mod fleet;
mod folds;
mod goals;
mod hostile;
mod io;
mod job;
mod messages;
mod network;
mod owner;
mod people;
mod process;
mod products;
mod queue;
mod random;
mod scenario;
mod stalls;
mod teams;
mod trials;
mod turn;
mod world;

pub use claims::unsupported_claims;
pub use faults::{Fault, Faults};
pub use fleet::{Conduct, NESTED, RandomFleet, SPECIALIST, Victim};
pub use world::{Broken, Summary};

/// A rule that is left out on purpose, to see that the simulation notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Agents write whatever others wrote since they looked.
    AgentsWriteUnfenced,
    /// An agent that takes a task over begins it anew, whatever was done before.
    HistoryUnread,
    /// An agent that looks whether a task is still its own looks at its own generation alone.
    NewerOffersUnseen,
    /// Orchestrators write whatever others wrote since they looked.
    OwnersWriteUnfenced,
    /// A goal that is submitted again is decided upon as if it were new.
    GoalsDecidedTwice,
    /// Decisions do not name the reports of agents that they follow from.
    InputsUntold,
    /// A broker that is started again has lost the last entry it acknowledged.
    AcknowledgedLost,
    /// What is lent to a run counts as taken when its own tasks are placed.
    LentHeldAgainst,
    /// Orchestrators do not hear of steps for the hash chain.
    StepsUncovered,
    /// Whoever goes on with a task takes what others wrote about it for what its agent wrote.
    OthersBelieved,
}

/// How a seed is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A rule that is left out.
    pub sabotage: Option<Sabotage>,
    /// Whether every message is kept as a line of [`Broken::history`].
    pub traced: bool,
    /// Whether it is a [random fleet](RandomFleet) on a network without faults, in which no run may stall.
    pub fleets: bool,
}

/// Runs the history of one seed to its end.
///
/// # Errors
/// With the rules that were broken, and the history if it was to be kept.
pub fn run(seed: u64, options: Options) -> Result<Summary, Box<Broken>> {
    world::World::new(seed, options).run()
}

/// Runs a seed, and once more with its history kept if a rule was broken.
///
/// # Errors
/// With the rules that were broken, and the history.
pub fn run_explained(seed: u64, options: Options) -> Result<Summary, Box<Broken>> {
    run(seed, options).or_else(|_| run(seed, Options { traced: true, ..options }))
}
