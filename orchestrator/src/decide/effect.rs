//! What a decision asks the outside world to do.

use muster_shared::flow::{
    CallForProposals, GuardRule, Hook, Information, Product, RunLessons, TrialCounts, TrialRule, Usage,
};
use muster_shared::ids::{AgentId, Generation, Queue, Seq, TaskId};
use muster_shared::run::Evidence;
use muster_shared::track_record::RunTrackRecord;
use muster_shared::wire::Command;

/// Something to be done once the decision stands in the record. All of them may be done twice without harm,
/// and all may be lost with the process: whoever takes the run over decides anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Interrupt whoever works on a generation of a task that has been closed.
    CancelTask {
        /// The task.
        task: TaskId,
        /// The generation that was closed.
        generation: Generation,
        /// Who works on it, when known; everybody is told otherwise.
        agent: Option<AgentId>,
        /// Why.
        reason: String,
    },
    /// Have whoever works on a generation of a task put it down where it stands.
    ParkTask {
        /// The task.
        task: TaskId,
        /// The generation.
        generation: Generation,
        /// Who works on it, when known; everybody is told otherwise.
        agent: Option<AgentId>,
        /// Why.
        reason: String,
    },
    /// Tell whoever works on a task what others shared with it.
    Inform {
        /// The task.
        task: TaskId,
        /// The generation.
        generation: Generation,
        /// Who works on it.
        agent: AgentId,
        /// What it is told.
        information: Vec<Information>,
        /// The progress tree as it stands now, where it has changed since; empty otherwise.
        progress: String,
    },
    /// Have whoever works for this run put down what is in hand.
    ParkRun {
        /// Why.
        reason: String,
    },
    /// Interrupt whoever works for this run.
    CancelRun {
        /// Why.
        reason: String,
    },
    /// Have the queue give a task to another agent now.
    HandOn {
        /// The task.
        task: TaskId,
        /// Its queue.
        queue: Queue,
        /// Where the acknowledgement of the lost try goes.
        ack: String,
    },
    /// Have the queue give a task to another agent now that somebody may have taken who died before it could say so. One
    /// that nobody has taken stays in the queue.
    HandOnUnstarted {
        /// The task.
        task: TaskId,
        /// Its queue.
        queue: Queue,
    },
    /// Take a task out of its queue undone.
    Withdraw {
        /// The task.
        task: TaskId,
        /// The queue that it was offered to.
        queue: Queue,
        /// Where the acknowledgement of the last try goes.
        ack: String,
    },
    /// Take all offers of the run out of their queues that are left there.
    WithdrawOffers,
    /// Keep what the run taught, for later runs.
    KeepLessons {
        /// The lessons.
        lessons: Box<RunLessons>,
    },
    /// Keep what agents and tools did in the run, for the choice of agents in later runs.
    KeepTrackRecord {
        /// What they did.
        track_record: Box<RunTrackRecord>,
    },
    /// Ask the agents of a role for bids, and decide upon those that come.
    CallForProposals {
        /// What is asked.
        call: Box<CallForProposals>,
        /// Most bids that are looked at.
        most: u16,
    },
    /// Ask guards about what an agent gave, or about a report, and decide upon what they say.
    AskGuards {
        /// Which question of the run.
        number: u32,
        /// At which hook.
        hook: Hook,
        /// The role of who made it; empty where a rule did.
        role: String,
        /// Where the outcome stands, if it is one.
        outcome: Option<Seq>,
        /// What they are asked about.
        product: Box<Product>,
        /// The guards.
        rules: Vec<GuardRule>,
    },
    /// Have a task done once more in a run of its own, as far as the budget of its trial goes.
    AskShadow {
        /// The trial.
        rule: Box<TrialRule>,
        /// The command that begins the run.
        command: Box<Command>,
    },
    /// Count what the shadow of a trial used.
    SettleShadow {
        /// The trial.
        trial: String,
        /// What was used.
        used: Usage,
    },
    /// Count what trials came to in this run.
    CountTrials {
        /// The trials, each with what it came to.
        counts: Vec<(TrialRule, TrialCounts)>,
    },
    /// Withdraw a trial in the whole fleet.
    WithdrawTrial {
        /// The trial.
        rule: Box<TrialRule>,
        /// Why.
        reason: String,
    },
    /// Send a command to another run.
    Command {
        /// The command.
        command: Box<Command>,
    },
    /// Keep an entry that cannot be read among the dead letters.
    BuryEntry {
        /// Its place in the record.
        seq: Seq,
        /// What is wrong with it.
        reason: String,
    },
    /// Keep a task that agents died of among the dead letters.
    Bury {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Where it came from.
        queue: Queue,
        /// What speaks against it.
        evidence: Evidence,
    },
}
