//! A task in an agent's hands.

use std::rc::Rc;

use muster_shared::flow::TaskOffered;
use muster_shared::ids::Seq;
use muster_shared::run::{AgentEvent, AgentKey};

use crate::agenda::Time;
use crate::journal::Journal;
use crate::messages::Request;

/// A task in hand.
pub(crate) struct Job {
    pub(crate) offer: Rc<TaskOffered>,
    pub(crate) item: u64,
    pub(crate) taken: Time,
    pub(crate) key: AgentKey,
    pub(crate) journal: Journal,
    pub(crate) stage: Stage,
    /// The call or alarm that the stage waits for.
    pub(crate) awaited: u64,
    pub(crate) beat: u64,
    pub(crate) deadline: u64,
    pub(crate) openings: u32,
    /// When the request was sent that last showed the task to be ours.
    pub(crate) confirmed: Time,
    pub(crate) interrupt: Option<Interrupt>,
}

/// Why a task ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Cancel,
    Release,
    Park,
    Deadline,
}

/// What a task in hand waits for.
#[expect(clippy::large_enum_variant, reason = "moved once or twice, and few at a time")]
pub(crate) enum Stage {
    Opening,
    Writing {
        event: AgentEvent,
        since: Time,
        sent: Time,
        looking: bool,
    },
    /// Looking whether the task is still ours before a model is asked.
    Checking {
        sent: Time,
    },
    Thinking,
    Acting,
}

/// Asks for what was written about a task after a position.
pub(crate) fn read(job: &Job, after: Seq) -> Request {
    let TaskOffered { run, task, generation, .. } = &*job.offer;
    Request::ReadTask { run: *run, task: task.clone(), generation: *generation, after }
}

pub(crate) fn ms(span: std::time::Duration) -> Time {
    Time::try_from(span.as_millis()).unwrap_or(Time::MAX)
}
