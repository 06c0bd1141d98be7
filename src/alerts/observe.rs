//! What is followed of the record and the registry, and read from the bus when rules are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_agents::model::budget_lease::FleetBudget;
use muster_bus::record::Unreadable;
use muster_bus::registry::RegistryChange;
use muster_bus::subject::Subject;
use muster_bus::{Bus, BusError, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::Entry;
use muster_shared::time::Millis;

use super::evaluate::Readings;
use super::rule::{Condition, Rule};
use super::sight::{Measured, Sight, ToBeRead};
use super::state::Restarts;
use crate::app;

/// How many of the newest runs are read at the beginning, besides those at work: calls and steps within a window count,
/// whoever looks.
const NEWEST: usize = 50;

/// How often this machine's clock is compared with the broker's, by whose time entries are stamped.
const COMPARE: Duration = Duration::from_secs(60);

/// How long what is written after an entry may take to come: rules are looked at less often.
const GATHER: Duration = Duration::from_millis(250);

/// Follows what rules are about.
pub(crate) struct Observer {
    bus: Bus,
    sight: Sight,
    entries: BoxStream<'static, Result<Entry, Unreadable>>,
    processes: BoxStream<'static, RegistryChange>,
    /// Runs that have to be read from their beginning.
    to_read: BTreeSet<RunId>,
    fleet: FleetBudget,
    /// The broker's clock minus ours, in milliseconds, and when it was compared.
    skew: (i64, Instant),
}

impl Observer {
    /// Reads what is at work, and follows from there.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn begin(
        bus: &Bus,
        rules: &[Rule],
        restarts: BTreeMap<String, Restarts>,
        fleet: FleetBudget,
    ) -> Result<Self, BusError> {
        let mut sight = Sight::new(rules, restarts);
        let skew = skew(bus).await?;
        let now = by_broker(skew);
        for profile in bus.registry().list().await? {
            sight.joined(&profile, now);
        }
        let processes = bus.registry().watch().await?;
        let entries = match rules.iter().any(|rule| is_of_record(rule.when)) {
            true => {
                // What is written while runs are read comes again, and counts once.
                let places = bus.record().newest().await?;
                for run in at_work(bus).await? {
                    read(bus, &mut sight, run, now).await?;
                }
                bus.record().look_on(&RecordFilter::Everything, places, GATHER).await?
            }
            false => futures::stream::pending().boxed(),
        };
        let skew = (skew, Instant::now());
        let to_read = BTreeSet::new();
        Ok(Self { bus: bus.clone(), sight, entries, processes, to_read, fleet, skew })
    }

    /// The broker's time.
    pub(crate) fn now(&self) -> Millis {
        by_broker(self.skew.0)
    }

    /// What is known of processes.
    pub(crate) const fn restarts(&self) -> &BTreeMap<String, Restarts> {
        self.sight.restarts()
    }

    /// Takes the next news in. Nothing is lost when it is not waited for any more.
    ///
    /// # Errors
    /// When nothing more will come.
    pub(crate) async fn next(&mut self) -> Result<(), BusError> {
        let now = self.now();
        tokio::select! {
            entry = self.entries.next() => match entry {
                Some(Ok(entry)) => {
                    if let Err(ToBeRead(run)) = self.sight.take(&entry, now) {
                        self.to_read.insert(run);
                    }
                }
                Some(Err(unreadable)) => {
                    let run = Subject::parse(&unreadable.subject).ok().and_then(|subject| subject.run());
                    if let Some(run) = run.filter(|_| !unreadable.of_nobody) {
                        self.sight.cannot_follow(run, unreadable.seq, now);
                    }
                }
                None => return Err(ended("the record")),
            },
            change = self.processes.next() => match change {
                Some(RegistryChange::Joined(profile) | RegistryChange::Changed(profile)) => {
                    self.sight.joined(&profile, now);
                }
                Some(RegistryChange::Left(agent)) => self.sight.left(&agent),
                None => return Err(ended("the registry")),
            },
        }
        Ok(())
    }

    /// What rules measure now.
    pub(crate) async fn readings(&mut self, rules: &[Rule]) -> Readings {
        if self.skew.1.elapsed() > COMPARE
            && let Ok(skew) = skew(&self.bus).await
        {
            self.skew = (skew, Instant::now());
        }
        let now = self.now();
        for run in std::mem::take(&mut self.to_read) {
            if let Err(error) = read(&self.bus, &mut self.sight, run, now).await {
                tracing::debug!(%error, "a run is read again at the next look");
                self.to_read.insert(run);
            }
        }
        self.sight.forget(now);
        let measured = self.measure(rules, now).await;
        self.sight.readings(rules, &measured, now)
    }

    async fn measure(&self, rules: &[Rule], now: Millis) -> Measured {
        let wants = |when: Condition| rules.iter().any(|rule| rule.when == when);
        let mut measured = Measured::default();
        if wants(Condition::DeadLetters) {
            measured.dead = known(self.dead().await);
        }
        if wants(Condition::RecordFull) {
            measured.fullness = known(self.bus.record().fullness().await);
        }
        if wants(Condition::Budget) && !self.fleet.budget.is_unlimited() {
            let pool = known(self.bus.allowances().pool(&self.fleet.pool(now)).await);
            measured.fleet = pool.map(|pool| (self.fleet.budget, pool.used));
        }
        measured
    }

    async fn dead(&self) -> Result<(u64, String), BusError> {
        let count = self.bus.dead().count().await?;
        let newest = if count == 0 { None } else { self.bus.dead().list(1).await?.pop() };
        Ok((count, newest.map(|letter| letter.reason).unwrap_or_default()))
    }
}

/// What could be read; what could not is not measured this time.
fn known<T>(read: Result<T, BusError>) -> Option<T> {
    read.inspect_err(|error| tracing::debug!(%error, "something could not be measured for alerts")).ok()
}

fn ended(what: &str) -> BusError {
    BusError::Other { what: format!("following {what}"), reason: "it has ended".to_owned() }
}

/// Whether a condition is about what stands in the record of runs.
const fn is_of_record(when: Condition) -> bool {
    match when {
        Condition::ToolFailures
        | Condition::StepTime
        | Condition::Questions
        | Condition::Budget
        | Condition::Stalled
        | Condition::MissingRole => true,
        Condition::Restarts | Condition::DeadLetters | Condition::RecordFull => false,
    }
}

/// The runs that orchestrators have in hand, and the newest.
async fn at_work(bus: &Bus) -> Result<BTreeSet<RunId>, BusError> {
    let leases = bus.leases().list().await?;
    let in_hand = leases.into_iter().flat_map(|lease| lease.note.runs);
    let newest = bus.record().newest_runs(NEWEST).await?.runs;
    Ok(in_hand.chain(newest).collect())
}

/// Reads a run from its beginning. One that cannot be read is left alone.
async fn read(bus: &Bus, sight: &mut Sight, run: RunId, now: Millis) -> Result<(), BusError> {
    match bus.record().read(&RecordFilter::Run(run), Seq(0)).await {
        Ok(entries) => sight.read(run, &entries, now),
        Err(BusError::Unreadable { seq, .. }) => sight.cannot_follow(run, seq, now),
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn skew(bus: &Bus) -> Result<i64, BusError> {
    Ok(bus.server().await?.clock_skew.unwrap_or(0))
}

fn by_broker(skew: i64) -> Millis {
    Millis(app::now().0.saturating_add_signed(skew))
}
