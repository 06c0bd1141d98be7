//! What a run is told, and how it is sorted for a turn.

use muster_shared::run::{Covered, Input};

/// Something a run is told. `E` is an entry of the record, `R` whom to tell what became of an order.
#[derive(Debug)]
pub enum RunMessage<E, R> {
    /// An agent wrote to the run's record.
    Signal(E),
    /// An agent wrote this, signal or not: the run's hash chain covers it. Comes before the signal that it is.
    Covered(Hashed),
    /// Something that the run's record does not tell may have changed.
    Wake(Input),
    /// An agent came or got free that may do what the run waits for another with, or it is time to look whether one did.
    Look,
    /// An order from outside.
    Order(Order<R>),
    /// Something may have been missed: read the record again.
    Reload,
}

impl<E, R> RunMessage<E, R> {
    /// Whether it tells of more than that there may be room.
    pub const fn is_news(&self) -> bool {
        !matches!(self, Self::Wake(Input::Capacity) | Self::Covered(_))
    }
}

/// What an agent wrote, as it goes into the hash chain of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hashed {
    /// Its place and hash.
    pub entry: Covered,
    /// How many of these messages were not delivered before it. With every further one the record is read again: a chain has
    /// no gaps.
    pub missed: u64,
}

/// An order from outside the record, and whom to tell what became of it.
#[derive(Debug)]
pub struct Order<R> {
    /// What is to be decided upon.
    pub input: Input,
    /// Whom to tell.
    pub answer: R,
}

/// What came in since the last turn, sorted.
#[derive(Debug)]
pub struct Inbox<E, R> {
    /// What agents wrote, in order.
    pub signals: Vec<E>,
    /// All that agents wrote, signals or not, in order.
    pub covered: Vec<Covered>,
    /// What the orders ask for.
    pub commands: Vec<Input>,
    /// Who waits for an answer to them.
    pub waiting: Vec<R>,
    /// What may have changed, each once.
    pub wakes: Vec<Input>,
    /// Whether the record is to be read again.
    pub reload: bool,
    /// Whether anything came in that was not there before: more than the word that there may be room.
    pub news: bool,
}

impl<E, R> Inbox<E, R> {
    /// Sorts what came in.
    pub fn sort(messages: Vec<RunMessage<E, R>>) -> Self {
        let mut inbox = Self {
            signals: Vec::new(),
            covered: Vec::new(),
            commands: Vec::new(),
            waiting: Vec::new(),
            wakes: Vec::new(),
            reload: false,
            news: messages.iter().any(RunMessage::is_news),
        };
        for messages in messages {
            match messages {
                RunMessage::Signal(entry) => inbox.signals.push(entry),
                RunMessage::Covered(Hashed { entry, missed: _ }) => inbox.covered.push(entry),
                RunMessage::Order(Order { input, answer }) => {
                    inbox.commands.push(input);
                    inbox.waiting.push(answer);
                }
                RunMessage::Wake(input) => inbox.wake(input),
                RunMessage::Look => inbox.wake(Input::Capacity),
                RunMessage::Reload => inbox.reload = true,
            }
        }
        inbox
    }

    fn wake(&mut self, input: Input) {
        if !self.wakes.contains(&input) {
            self.wakes.push(input);
        }
    }
}
