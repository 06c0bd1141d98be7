//! What a process can do: ask the broker, be woken, end, and let the model hear of it.

use std::time::Duration;

use muster_journal::Moment;
use muster_shared::ids::{Generation, RunId, Seq, TaskId};
use muster_shared::time::Millis;

use crate::Sabotage;
use crate::agenda::Time;
use crate::messages::Request;
use crate::random::Random;

/// What a process wants done. Carried out by the world when the process has had its turn.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once or twice, and few at a time")]
pub(crate) enum Out {
    Ask {
        call: u64,
        request: Request,
        limit: Time,
    },
    Wake {
        token: u64,
        after: Time,
    },
    Note(Note),
    /// The process ends in good order.
    Exit,
}

/// What nobody in the fleet sees, and the rules are about.
#[derive(Debug)]
pub(crate) enum Note {
    /// A model is asked for a step.
    Asked { run: RunId, task: TaskId, generation: Generation, step: u32, known: Seq },
    /// A tool with lasting effect runs.
    ToolRan { key: String },
    /// An orchestrator takes a turn of a run.
    Decides(RunId),
    /// An orchestrator decides about a run over and over, with nothing new and nothing written.
    Circles(RunId),
    /// The decisions refused what this build gave them.
    Refused(String),
}

/// A process's hands for one turn.
pub(crate) struct Io<'a> {
    /// Time that nobody's clock shows.
    pub(crate) time: Time,
    /// What this process takes for the time.
    pub(crate) clock: Millis,
    /// How often its connection to the broker was made anew.
    pub(crate) connections: u64,
    pub(crate) random: &'a mut Random,
    pub(crate) numbers: &'a mut u64,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) out: Vec<Out>,
}

/// Longest wait for an answer.
pub(crate) const PATIENCE: Time = 5_000;

impl Io<'_> {
    const fn number(&mut self) -> u64 {
        *self.numbers += 1;
        *self.numbers
    }

    pub(crate) const fn moment(&self) -> Moment {
        Moment { at: Duration::from_millis(self.time), connections: self.connections }
    }

    /// Asks, and is answered under the number returned; by nothing when no answer comes in time.
    pub(crate) fn ask(&mut self, request: Request) -> u64 {
        let limit = match &request {
            Request::Take { wait, .. } => wait + PATIENCE,
            _ => PATIENCE,
        };
        let call = self.number();
        self.out.push(Out::Ask { call, request, limit });
        call
    }

    /// Is woken after a time, under the number returned.
    pub(crate) fn wake(&mut self, after: Time) -> u64 {
        let token = self.number();
        self.out.push(Out::Wake { token, after });
        token
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.out.push(Out::Note(note));
    }

    pub(crate) fn exit(&mut self) {
        self.out.push(Out::Exit);
    }

    pub(crate) fn is_sabotaged(&self, by: Sabotage) -> bool {
        self.sabotage == Some(by)
    }
}
