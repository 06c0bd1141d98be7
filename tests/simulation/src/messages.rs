//! What processes say to the broker, and what it answers.

use std::rc::Rc;

use muster_journal::{Newest, WithDecisions};
use muster_shared::flow::{Goal, TaskOffered};
use muster_shared::ids::{AgentId, Generation, Queue, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, ChainEntry, Decided, Digest, Entry, Input, LinkDraft};
use muster_shared::wire::ControlMessage;

use crate::agenda::Time;

/// One life of one process. A process that was started again is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life {
    /// Its place in the fleet.
    pub(crate) place: usize,
    /// Which life, from 1.
    pub(crate) number: u32,
}

/// Which work queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Line {
    Tasks(Queue),
    Commands,
}

/// What stands in a work queue.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    Task(Rc<TaskOffered>),
    Command(RunId, Rc<Order>),
}

/// What people ask.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "moved once or twice, and few at a time")]
pub(crate) enum Order {
    Submit(Goal),
    /// Anything that becomes an input as it is.
    Control(Input),
}

impl Order {
    fn brief(&self) -> String {
        match self {
            Self::Submit(goal) => format!("work on {:?}", goal.text),
            Self::Control(request) => input(request),
        }
    }
}

/// What a process asks of the broker.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "moved once or twice, and few at a time")]
pub(crate) enum Request {
    Decide {
        run: RunId,
        after: Seq,
        decided: Box<Decided>,
        offers: Vec<TaskOffered>,
        link: LinkDraft,
    },
    Report {
        run: RunId,
        key: AgentKey,
        after: Seq,
        event: AgentEvent,
    },
    ReadRun(RunId),
    ReadTask {
        run: RunId,
        task: TaskId,
        generation: Generation,
        after: Seq,
        decisions: WithDecisions,
    },
    /// Whether a task was taken from whoever began it.
    WasTaken {
        run: RunId,
        task: TaskId,
        agent: AgentId,
        since: Seq,
    },
    /// What was written last about a task.
    Newest {
        run: RunId,
        task: TaskId,
        generation: Generation,
    },
    /// Which unfinished runs fall to the asker.
    Orphans,
    /// Keeps the asker's lease for its full time.
    Renew,
    GiveUp,
    /// Waits for the first item of any of these.
    Take {
        lines: Vec<Line>,
        wait: Time,
    },
    Done {
        line: Line,
        item: u64,
    },
    Back {
        line: Line,
        item: u64,
        after: Time,
    },
    /// The newest offer of a task, if it was given out.
    GiveOutAgain {
        line: Line,
        run: RunId,
        task: TaskId,
    },
    /// All offers of a run leave their queues.
    WithdrawAll {
        run: RunId,
    },
    Progress {
        line: Line,
        item: u64,
    },
    /// Asks something of a run.
    Command(RunId, Rc<Order>),
    Control(ControlMessage),
}

/// An item that was given out.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) item: u64,
    pub(crate) body: Item,
    /// When it was to be given out at first.
    pub(crate) since: Time,
    /// How often it was given out, from 1.
    pub(crate) delivered: u32,
}

/// What the broker answers.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Done,
    Appended {
        first: Seq,
        last: Seq,
        /// The hash of the decision's link.
        link: Option<Digest>,
    },
    Conflict,
    Entries(Vec<Rc<Entry>>),
    WasTaken(bool),
    Newest(Newest),
    /// A run's record, and whether its newest author is somebody else whose lease holds.
    Record {
        entries: Vec<Rc<Entry>>,
        /// What its hash chain goes by.
        chain: Vec<ChainEntry>,
        elsewhere: bool,
    },
    Runs(Vec<RunId>),
    Taken(Taken),
}

impl Request {
    /// Whether it writes to the record: the moments around it are where a fault hurts most.
    pub(crate) const fn writes(&self) -> bool {
        matches!(self, Self::Decide { .. } | Self::Report { .. })
    }

    /// Whether it says nothing about what becomes of a run.
    pub(crate) const fn is_routine(&self) -> bool {
        matches!(self, Self::Take { .. } | Self::Renew | Self::Orphans | Self::Progress { .. })
    }

    /// The request in a few words.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Decide { after, decided, offers, .. } => {
                let events: Vec<&str> =
                    decided.events.iter().map(muster_shared::run::RunEvent::name).collect();
                let inputs: Vec<String> = decided.inputs.iter().map(input).collect();
                let offered = decided.offer.iter().map(|offer| offer.as_ref()).chain(offers);
                let offers: Vec<String> =
                    offered.map(|offer| format!("{}@{}", offer.task, offer.generation)).collect();
                format!("decides {inputs:?} -> {events:?}, offers {offers:?}, after {after}")
            }
            Self::Report { key, after, event, .. } => {
                let detail = match event {
                    AgentEvent::Started(started) => format!("attempt {}", started.attempt),
                    AgentEvent::ToolStarted(tool) => format!("step {}", tool.step.number),
                    AgentEvent::Step(step) => format!("step {}", step.number),
                    AgentEvent::Released(_) => String::new(),
                    AgentEvent::Outcome(outcome) => format!("{:?}", outcome.ending),
                    AgentEvent::Unreadable(_) => "nonsense".to_owned(),
                };
                let kind = event.kind();
                format!("reports {kind} {detail} of {}@{}, after {after}", key.task, key.generation)
            }
            Self::ReadRun(_) => "reads the run".to_owned(),
            Self::Take { lines, .. } => {
                format!("waits at {}", lines.iter().map(at).collect::<Vec<_>>().join(", "))
            }
            Self::Done { line, item } => format!("is done with {item} of {}", at(line)),
            Self::Back { line, item, after } => format!("gives {item} back to {} for {after} ms", at(line)),
            Self::Control(message) => format!("tells all: {message:?}"),
            Self::Command(run, order) => format!("asks of {}: {}", run.short(), order.brief()),
            other => format!("{other:?}"),
        }
    }
}

fn at(line: &Line) -> String {
    match line {
        Line::Tasks(queue) => queue.to_string(),
        Line::Commands => "commands".to_owned(),
    }
}

fn input(input: &Input) -> String {
    match input {
        Input::Agent { seq } | Input::Unreadable { seq, .. } => seq.to_string(),
        Input::Goal { .. } => "goal".to_owned(),
        Input::Refuse { .. } => "refuse".to_owned(),
        Input::Fork { from, .. } => format!("fork of {} at {}", from.run.short(), from.at),
        Input::ChildEnded { child, end } => format!("{} ended {:?}", child.short(), end.status),
        other => format!("{other:?}"),
    }
}

impl Answer {
    /// Whether it says nothing about what becomes of a run.
    pub(crate) fn is_routine(&self) -> bool {
        matches!(self, Self::Done) || matches!(self, Self::Runs(runs) if runs.is_empty())
    }

    /// The answer in a few words.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Entries(entries) => format!("{} entries", entries.len()),
            Self::Record { entries, elsewhere: false, .. } => format!("{} entries", entries.len()),
            Self::Record { .. } => "that somebody else has the run".to_owned(),
            Self::Taken(taken) => match &taken.body {
                Item::Task(offer) => {
                    format!(
                        "item {} {}@{}, time {}",
                        taken.item, offer.task, offer.generation, taken.delivered
                    )
                }
                Item::Command(..) => format!("command {}, time {}", taken.item, taken.delivered),
            },
            other => format!("{other:?}"),
        }
    }
}
