//! How a run goes from one turn to the next: what waits meanwhile, when the next turn begins, when the run is let go of. Pure:
//! it is told what happens and says what is to be done.

use std::time::Duration;

use muster_shared::run::{Covered, Input};

use super::inbox::{Hashed, Inbox, RunMessage};
use super::outcome::{Alarm, TurnEnd, TurnOutcome};
use super::pace::Pace;
use super::run_log::RunLog;

/// Messages that wait for the turn to end; above it they are dropped and the record is read again.
const INBOX: usize = 4096;

/// Faults in a row after which a run is left alone.
const MOST_FAULTS: u32 = 3;

/// Wait after the first failure; doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Most doublings of the wait.
const MOST_DOUBLINGS: u32 = 5;

/// What holds for all runs of an orchestrator.
#[derive(Debug, Clone, Copy)]
pub struct DriverRules {
    /// How often in a row a run may decide in vain.
    pub max_turns_in_vain: u32,
    /// For how long it is set aside then.
    pub pause_in_vain: Duration,
}

/// What drives one run. At most one turn goes on at any time.
#[derive(Debug)]
pub struct Driver<E, R> {
    rules: DriverRules,
    log: Option<RunLog>,
    inbox: Vec<RunMessage<E, R>>,
    /// What agents wrote since the last turn began. No turn begins for that alone.
    covered: Vec<Covered>,
    /// How much of it was not delivered.
    missed: u64,
    busy: bool,
    /// Whether it waits after a failure, and nothing came since.
    waits: bool,
    failures: u32,
    faults: u32,
    pace: Pace,
    /// Whether it is set aside: it decided in vain too often.
    aside: bool,
}

/// What is to be done.
#[derive(Debug)]
pub enum Action<E, R> {
    /// Begin a turn with this. No alarm rings meanwhile, and no pause goes on.
    Begin {
        /// What is known of the run.
        log: Option<Box<RunLog>>,
        /// What came in.
        inbox: Inbox<E, R>,
    },
    /// Tell the driver when it is time.
    SetAlarm(Alarm),
    /// Tell the driver after this time that it has waited, unless a turn begins before.
    Wait(Duration),
    /// The run decides over and over for nothing: it waits for no place, and the driver is told after this time that the
    /// pause is over.
    StepAside(Duration),
    /// What was to be told of the pause is not needed any more.
    EndPause,
    /// The run cannot be handled here, for this reason: it is left to others for a while.
    LeaveAlone(String),
    /// Let the run go.
    Stop,
}

impl<E, R> Driver<E, R> {
    /// Knows nothing of the run yet.
    #[must_use]
    pub fn new(rules: DriverRules) -> Self {
        Self {
            rules,
            log: None,
            inbox: Vec::new(),
            covered: Vec::new(),
            missed: 0,
            busy: false,
            waits: false,
            failures: 0,
            faults: 0,
            pace: Pace::default(),
            aside: false,
        }
    }

    /// What is known of the run while no turn goes on.
    #[must_use]
    pub const fn log(&self) -> Option<&RunLog> {
        self.log.as_ref()
    }

    /// Something came in.
    pub fn receive(&mut self, messages: RunMessage<E, R>) -> Vec<Action<E, R>> {
        if let RunMessage::Covered(hashed) = messages {
            self.cover(hashed);
            return Vec::new();
        }
        // When the pause is over it is looked at in any case.
        if self.aside && !messages.is_news() {
            return Vec::new();
        }
        if self.inbox.len() >= INBOX {
            self.inbox.retain(|messages| matches!(messages, RunMessage::Order(_)));
            self.inbox.truncate(INBOX / 2);
            self.covered.clear();
            self.inbox.push(RunMessage::Reload);
        }
        self.inbox.push(messages);
        self.begin()
    }

    /// What an agent wrote waits for the next turn. After a gap the record is read again.
    fn cover(&mut self, Hashed { entry, missed }: Hashed) {
        if missed != self.missed {
            self.missed = missed;
            self.covered.clear();
            self.inbox.push(RunMessage::Reload);
        }
        self.covered.push(entry);
    }

    /// The alarm rings.
    pub fn rang(&mut self, alarm: Alarm) -> Vec<Action<E, R>> {
        self.inbox.push(match alarm {
            Alarm::Due(_) => RunMessage::Wake(Input::Timer),
            Alarm::Room(_) => RunMessage::Look,
        });
        self.begin()
    }

    /// The wait after a failure is over. When something came before, it was tried again then.
    pub fn waited(&mut self) -> Vec<Action<E, R>> {
        if self.waits { self.begin() } else { Vec::new() }
    }

    /// The pause is over.
    pub fn pause_is_over(&mut self) -> Vec<Action<E, R>> {
        let ended = self.end_pause();
        self.inbox.push(RunMessage::Wake(Input::Capacity));
        ended.into_iter().chain(self.begin()).collect()
    }

    /// A turn ended.
    pub fn ended(&mut self, end: TurnEnd) -> Vec<Action<E, R>> {
        let TurnEnd { log, outcome, took, answer: _, keeps_snapshot: _ } = end;
        (self.busy, self.log, self.faults) = (false, log, 0);
        let mut actions = Vec::new();
        match outcome {
            TurnOutcome::GoOn { wake, more } => {
                let DriverRules { max_turns_in_vain, pause_in_vain } = self.rules;
                if let Some(pause) = self.pace.took(took, max_turns_in_vain, pause_in_vain) {
                    self.aside = true;
                    actions.push(Action::StepAside(pause));
                }
                actions.extend(self.go_on(wake, more));
            }
            TurnOutcome::Ended | TurnOutcome::Elsewhere => actions.push(Action::Stop),
            TurnOutcome::Retry => {
                self.failures = self.failures.saturating_add(1);
                actions.push(self.wait());
            }
            TurnOutcome::GiveUp { reason } => {
                actions.extend([Action::LeaveAlone(reason), Action::Stop]);
            }
        }
        actions
    }

    /// A fault in a turn: what it knew is lost, the record is not.
    pub fn broke_off(&mut self) -> Vec<Action<E, R>> {
        (self.busy, self.log) = (false, None);
        self.faults += 1;
        self.failures = self.faults;
        if self.faults >= MOST_FAULTS {
            let reason = format!("a turn of it broke off {MOST_FAULTS} times in a row");
            return vec![Action::LeaveAlone(reason), Action::Stop];
        }
        vec![self.wait()]
    }

    /// How often in a row turns broke off.
    #[must_use]
    pub const fn faults(&self) -> u32 {
        self.faults
    }

    /// Who waits for answers to orders that no turn has taken up: the run is let go of.
    pub fn into_waiting(self) -> Vec<R> {
        Inbox::sort(self.inbox).waiting
    }

    fn go_on(&mut self, wake: Option<Alarm>, more: bool) -> Vec<Action<E, R>> {
        self.failures = 0;
        if more {
            self.inbox.push(RunMessage::Wake(Input::Capacity));
        }
        if !self.inbox.is_empty() {
            let begun = self.begin();
            if self.busy {
                return begun;
            }
        }
        // Deadlines hold for who is set aside too.
        wake.map(Action::SetAlarm).into_iter().collect()
    }

    fn begin(&mut self) -> Vec<Action<E, R>> {
        if self.busy || self.aside && !self.inbox.iter().any(RunMessage::is_news) {
            return Vec::new();
        }
        (self.busy, self.waits) = (true, false);
        let ended = self.end_pause();
        let mut inbox = Inbox::sort(std::mem::take(&mut self.inbox));
        inbox.covered.extend(std::mem::take(&mut self.covered));
        let begin = Action::Begin { log: self.log.take().map(Box::new), inbox };
        ended.into_iter().chain([begin]).collect()
    }

    fn end_pause(&mut self) -> Option<Action<E, R>> {
        std::mem::take(&mut self.aside).then_some(Action::EndPause)
    }

    fn wait(&mut self) -> Action<E, R> {
        self.waits = true;
        let doublings = self.failures.saturating_sub(1).min(MOST_DOUBLINGS);
        Action::Wait(FIRST_WAIT * 2u32.pow(doublings))
    }
}
