//! Looks after alerts: one process at a time looks, and whoever goes on after it knows what was told.
//!
//! What is to be told is written down, by compare-and-set, before anybody is told it, and crossed out after. Whoever dies in
//! between leaves a notice that is told once more, under the same id; whoever was thought dead and is not is refused by the write,
//! and tells nothing of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use muster_agents::model::budget_lease::FleetBudget;
use muster_bus::alerts::Turn;
use muster_bus::{Bus, BusError};
use muster_shared::ids::Seq;
use muster_shared::time::Millis;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::evaluate::{Looks, evaluate};
use super::notice::Notice;
use super::observe::Observer;
use super::outbox::Failed;
use super::rule::Rule;
use super::send::Receiver;
use super::state::{Silence, State};

/// Shortest time of a turn: whoever dies is followed after it.
const SHORTEST_TURN: Duration = Duration::from_secs(3);
/// How long before a bus that failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// How often what is pending or fires is written down, besides when something changes: for so long at most time is lost that
/// something was pending.
const WRITE: Duration = Duration::from_secs(10);
/// How often due notices are looked for.
const DUE: Duration = Duration::from_millis(250);

/// What alerts are looked after by.
pub(crate) struct Watch {
    /// The rules of which somebody is told.
    pub(crate) rules: Vec<Rule>,
    /// Who is told.
    pub(crate) receivers: BTreeMap<String, Arc<Receiver>>,
    /// For how long each is tried to be told.
    pub(crate) retry_for: BTreeMap<String, Duration>,
    /// How often rules are looked at.
    pub(crate) every: Duration,
    /// The budget of the whole fleet.
    pub(crate) fleet: FleetBudget,
}

/// Why a turn ended.
enum End {
    Stopped,
    /// Another process has it, or wrote.
    Lost,
}

impl Watch {
    /// Looks whenever it is this process's turn, until told to stop.
    pub(crate) async fn keep(&self, bus: &Bus, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let ended = match bus.alerts().take_turn(self.turn()).await {
                Ok(Some(turn)) => {
                    tracing::info!("looking after alerts: {} rules", self.rules.len());
                    Box::pin(self.shift(bus, turn, stop)).await
                }
                Ok(None) => {
                    self.pause(self.turn() / 4, stop).await;
                    continue;
                }
                Err(error) => Err(error),
            };
            match ended {
                Ok(End::Stopped) => return,
                Ok(End::Lost) => tracing::info!("another process looks after alerts"),
                Err(error) => {
                    tracing::warn!(%error, "alerts cannot be looked after now");
                    self.pause(AFTER_FAILURE, stop).await;
                }
            }
        }
    }

    async fn pause(&self, time: Duration, stop: &CancellationToken) {
        let _stopped = stop.run_until_cancelled(sleep(time)).await;
    }

    /// How long a turn lasts without being kept.
    fn turn(&self) -> Duration {
        (self.every * 2).clamp(SHORTEST_TURN, Duration::from_secs(30))
    }

    async fn shift(&self, bus: &Bus, mut turn: Turn, stop: &CancellationToken) -> Result<End, BusError> {
        let (mut state, revision) = bus.alerts().state::<State>().await?;
        state.outbox.keep_only(|to| self.receivers.contains_key(to));
        // What is at work is read first, which takes its time; the turn is kept meanwhile.
        let observer = {
            let begin = Observer::begin(bus, &self.rules, state.restarts.clone(), self.fleet);
            tokio::pin!(begin);
            let mut keep = interval(self.turn() / 3);
            loop {
                tokio::select! {
                    observer = &mut begin => break observer?,
                    _ = keep.tick() => match bus.alerts().keep_turn(&turn, self.turn()).await? {
                        Some(kept) => turn = kept,
                        None => return Ok(End::Lost),
                    },
                    () = stop.cancelled() => {
                        bus.alerts().leave_turn(&turn).await?;
                        return Ok(End::Stopped);
                    }
                }
            }
        };
        let mut shift = Shift {
            watch: self,
            bus,
            observer,
            state,
            revision,
            turn,
            written: Instant::now(),
            telling: BTreeSet::new(),
            told: JoinSet::new(),
        };
        let ended = shift.work(stop).await;
        shift.told.shutdown().await;
        if let Ok(End::Stopped) = &ended {
            bus.alerts().leave_turn(&shift.turn).await?;
        }
        ended
    }
}

/// What became of telling somebody.
struct Told {
    to: String,
    notice: Notice,
    came: Result<String, String>,
}

/// One turn.
struct Shift<'a> {
    watch: &'a Watch,
    bus: &'a Bus,
    observer: Observer,
    state: State,
    /// Where what is known stands on the bus.
    revision: Seq,
    turn: Turn,
    written: Instant,
    /// The destinations that are being told something.
    telling: BTreeSet<String>,
    told: JoinSet<Told>,
}

impl Shift<'_> {
    async fn work(&mut self, stop: &CancellationToken) -> Result<End, BusError> {
        let mut look = interval(self.watch.every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut keep = interval(self.watch.turn() / 3);
        keep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due = Instant::now();
        loop {
            let is_kept = tokio::select! {
                () = stop.cancelled() => return Ok(End::Stopped),
                news = self.observer.next() => {
                    news?;
                    true
                }
                Some(told) = self.told.join_next(), if !self.told.is_empty() => match told {
                    Ok(told) => self.note(told).await?,
                    // It broke, which is a fault of ours: whoever it was is told again by the next turn.
                    Err(error) => return Err(BusError::Other { what: "telling of an alert".into(), reason: error.to_string() }),
                },
                _ = look.tick() => self.look().await?,
                _ = keep.tick() => self.keep().await?,
                () = sleep_until(due), if !self.state.outbox.is_empty() => {
                    due = Instant::now() + DUE;
                    self.tell();
                    true
                }
            };
            if !is_kept {
                return Ok(End::Lost);
            }
        }
    }

    async fn keep(&mut self) -> Result<bool, BusError> {
        match self.bus.alerts().keep_turn(&self.turn, self.watch.turn()).await? {
            Some(turn) => {
                self.turn = turn;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Looks at all rules. `false` when somebody else wrote.
    async fn look(&mut self) -> Result<bool, BusError> {
        let rules = &self.watch.rules;
        let readings = self.observer.readings(rules).await;
        let silences: BTreeMap<String, Silence> = self.bus.alerts().silences().await?;
        let look = Looks { now: self.observer.now(), longest: self.watch.longest() };
        let (mut state, notices) = evaluate(&self.state, rules, &readings, &silences, look);
        state.restarts.clone_from(self.observer.restarts());
        let is_news = !notices.is_empty();
        for lost in state.outbox.put(notices, rules) {
            tracing::error!("too much waits to be told; nobody is told: {}", lost.line());
        }
        let changed = is_news || differs(&self.state, &state);
        let is_due = state.is_busy() && self.written.elapsed() >= WRITE;
        self.state = state;
        if changed || is_due {
            return self.write().await;
        }
        Ok(true)
    }

    /// Writes what is known down. Only then is anybody told anything new.
    async fn write(&mut self) -> Result<bool, BusError> {
        match self.bus.alerts().save(&self.state, self.revision).await? {
            Some(revision) => {
                self.revision = revision;
                self.written = Instant::now();
                self.tell();
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Tells what is due, each destination one thing at a time.
    fn tell(&mut self) {
        let now = self.observer.now();
        for (to, waiting) in self.state.outbox.due(now) {
            let Some(receiver) = self.watch.receivers.get(to) else { continue };
            if !self.telling.insert(to.to_owned()) {
                continue;
            }
            let (to, notice, receiver) = (to.to_owned(), waiting.notice.clone(), Arc::clone(receiver));
            self.told.spawn(async move {
                let came = receiver.tell(&notice).await;
                Told { to, notice, came }
            });
        }
    }

    /// Takes note of what became of telling somebody.
    async fn note(&mut self, told: Told) -> Result<bool, BusError> {
        let Told { to, notice, came } = told;
        self.telling.remove(&to);
        match came {
            Ok(said) => {
                tracing::debug!(to, id = notice.id, said, "an alert was told");
                self.state.outbox.taken(&to, &notice.id);
            }
            Err(why) => {
                let longest = self.watch.retry_for.get(&to).copied().unwrap_or_default();
                match self.state.outbox.failed(&to, &notice.id, &why, self.observer.now(), longest) {
                    Some(Failed::GivenUp(notice)) => {
                        tracing::error!(
                            "{to} was not told, and is not tried any more ({why}): {}",
                            notice.line()
                        );
                    }
                    Some(Failed::Again) | None => {
                        tracing::warn!("{to} could not be told, and is told again: {why}")
                    }
                }
            }
        }
        self.write().await
    }
}

impl Watch {
    /// The most time that counts from one look to the next: a look may be late, and after a death nobody looked.
    fn longest(&self) -> Duration {
        self.every * 2
    }
}

/// Whether something is known that others should know if this process dies: not what was measured.
fn differs(before: &State, after: &State) -> bool {
    let phases = |state: &State| -> Vec<(String, String, super::state::Phase, Option<Millis>)> {
        let all = state
            .rules
            .iter()
            .flat_map(|(rule, all)| all.iter().map(move |(series, one)| (rule, series, one)));
        all.map(|(rule, series, one)| (rule.clone(), series.clone(), one.phase, one.told)).collect()
    };
    let known = |state: &State| -> Vec<(String, String, usize)> {
        let all = state.restarts.iter();
        all.map(|(process, known)| (process.clone(), known.agent.clone(), known.times.len())).collect()
    };
    phases(before) != phases(after) || known(before) != known(after)
}
