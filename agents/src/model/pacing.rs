//! Waiting for one's turn: the fleet shares a provider's rate, and a provider that asks to wait is heard by everybody.
//!
//! Where settings name a rate (`agent.rates`), every call has a turn in a row that all processes form. Where they do
//! not, calls go at once until a provider answers "too many requests"; then all wait as long as it asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::allowance::rate::{Demand, Rate, RateState};
use muster_bus::{Allowances, BrokerClock, BusError};
use muster_shared::sync::lock;
use muster_shared::time::Millis;

use super::fleet_clock::FleetClock;
use super::random::fraction;

/// How long all wait when a provider refuses and does not say for how long.
const USUAL_CLOSURE: Duration = Duration::from_secs(1);
/// The longest closure that is believed.
const LONGEST_CLOSURE: Duration = Duration::from_secs(3600);
/// After a closure calls without a rate begin again within this time, not all at once.
const SPREAD: Duration = Duration::from_secs(1);
/// Pause before the bus is asked again that did not answer.
const PAUSE: Duration = Duration::from_millis(250);
/// What was lent for a second is used within this time, else it is void.
const CHUNK_LIFE: Duration = Duration::from_secs(1);
/// Most models whose pace is kept by one process.
const MOST_LANES: usize = 64;

/// The pace of all calls of one process.
pub struct Pacer {
    allowances: Allowances,
    rates: BTreeMap<String, Rate>,
    patience: Duration,
    clock: FleetClock,
    lanes: Mutex<BTreeMap<String, Arc<ModelPace>>>,
}

/// No turn came in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "its turn would not come within {patience:?}: raise the rate in `agent.rates` if the \
     provider allows more"
)]
pub struct TooLong {
    patience: Duration,
}

/// The pace of one model.
struct ModelPace {
    rate: Rate,
    /// Nobody asks before then.
    closed: Mutex<Option<Instant>>,
    chunk: tokio::sync::Mutex<Chunk>,
    /// Tokens set aside and not used, or used and not set aside.
    credit: Mutex<i64>,
}

/// What was lent and is not used yet.
#[derive(Default)]
struct Chunk {
    requests: u32,
    from: Option<Instant>,
}

impl Pacer {
    /// A pacer with these rates by `provider` or `provider/model`. A call waits for its turn at most `patience`.
    #[must_use]
    pub fn new(allowances: Allowances, rates: BTreeMap<String, Rate>, patience: Duration) -> Self {
        let (clock, lanes) = (FleetClock::default(), Mutex::default());
        Self { allowances, rates, patience, clock, lanes }
    }

    /// Waits until the rates of the provider and of the model permit a call of about this many tokens. Calls `waits` before the
    /// first wait.
    ///
    /// # Errors
    /// If the turn would come too late.
    pub async fn turn(
        self: &Arc<Self>,
        model: &str,
        tokens: u64,
        waits: &(dyn Fn() + Sync),
    ) -> Result<(), TooLong> {
        let latest = Instant::now() + self.patience;
        let mut told = false;
        for name in self.provider_rate(model).into_iter().chain([model]) {
            self.turn_in(name, tokens, (latest, &mut told), waits).await?;
        }
        Ok(())
    }

    /// Returns the name of the model's provider if it has a rate.
    fn provider_rate<'a>(&self, model: &'a str) -> Option<&'a str> {
        let (provider, _) = model.split_once('/')?;
        self.rates.contains_key(provider).then_some(provider)
    }

    async fn turn_in(
        self: &Arc<Self>,
        model: &str,
        tokens: u64,
        (latest, told): (Instant, &mut bool),
        waits: &(dyn Fn() + Sync),
    ) -> Result<(), TooLong> {
        let Some(lane) = self.lane(model) else { return Ok(()) };
        loop {
            let at = if lane.rate.is_limited() {
                self.reserve(model, &lane, tokens, latest).await?
            } else {
                lane.closed().map_or_else(Instant::now, |until| until + SPREAD.mul_f64(fraction()))
            };
            if at > latest {
                return Err(TooLong { patience: self.patience });
            }
            if at > Instant::now() {
                if !std::mem::replace(told, true) {
                    waits();
                }
                tokio::time::sleep_until(at.into()).await;
            }
            // Closed in the meantime, the turn is over before it came.
            if lane.closed().is_none() {
                return Ok(());
            }
        }
    }

    /// Takes note of the tokens that a call really took.
    pub fn took(&self, model: &str, expected: u64, tokens: u64) {
        let more = i64::try_from(expected).unwrap_or(i64::MAX) - i64::try_from(tokens).unwrap_or(i64::MAX);
        let lanes = self.provider_rate(model).into_iter().chain([model]).filter_map(|name| self.known(name));
        for lane in lanes.filter(|lane| lane.rate.tokens_per_minute.is_some()) {
            let mut credit = lock(&lane.credit);
            *credit = credit.saturating_add(more);
        }
    }

    /// A provider asks to wait: this process does at once, the others as soon as they hear of it.
    pub fn refused(self: &Arc<Self>, model: &str, wait: Option<Duration>) {
        let Some(lane) = self.lane(model) else { return };
        let wait = wait.unwrap_or(USUAL_CLOSURE).min(LONGEST_CLOSURE);
        lane.close(wait);
        let (this, model) = (Arc::clone(self), model.to_owned());
        tokio::spawn(async move {
            let closed = async {
                let until = this.clock().await?.now().after(wait);
                this.allowances.change_rate(&model, |state| state.close(until)).await
            };
            if let Err(error) = closed.await {
                tracing::debug!(model, %error, "the others do not hear that a provider asks to wait");
            }
        });
    }

    /// A place in the row; the bus is asked again until it answers or the time is up.
    async fn reserve(
        &self,
        model: &str,
        lane: &ModelPace,
        tokens: u64,
        latest: Instant,
    ) -> Result<Instant, TooLong> {
        let mut chunk = lane.chunk.lock().await;
        if let Some(from) = chunk.take() {
            return Ok(from);
        }
        let (requests, tokens) = (lane.rate.chunk(), lane.owed(tokens * u64::from(lane.rate.chunk())));
        loop {
            match self.ask(model, &lane.rate, Demand { requests, tokens }, latest).await {
                Ok(Some(at)) => {
                    *chunk = Chunk { requests: requests - 1, from: Some(at) };
                    return Ok(at);
                }
                Ok(None) => return Err(TooLong { patience: self.patience }),
                Err(error) if Instant::now() + PAUSE < latest => {
                    tracing::debug!(model, %error, "no turn can be had; asking again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(_) => return Err(TooLong { patience: self.patience }),
            }
        }
    }

    async fn ask(
        &self,
        model: &str,
        rate: &Rate,
        demand: Demand,
        latest: Instant,
    ) -> Result<Option<Instant>, BusError> {
        let clock = self.clock().await?;
        let now = clock.now();
        let last = now.after(latest.saturating_duration_since(Instant::now()));
        let turn = |state: &mut RateState| state.reserve(rate, demand, now, last);
        let at = self.allowances.change_rate(model, turn).await?;
        Ok(at.map(|at| Instant::now() + at.since(clock.now())))
    }

    async fn clock(&self) -> Result<BrokerClock, BusError> {
        self.clock.get(&self.allowances).await
    }

    fn known(&self, model: &str) -> Option<Arc<ModelPace>> {
        lock(&self.lanes).get(model).cloned()
    }

    /// The pace of a model, kept from its first call on. Nothing above the most that are kept.
    fn lane(self: &Arc<Self>, model: &str) -> Option<Arc<ModelPace>> {
        let mut lanes = lock(&self.lanes);
        if let Some(lane) = lanes.get(model) {
            return Some(Arc::clone(lane));
        }
        if lanes.len() >= MOST_LANES {
            return None;
        }
        let lane = Arc::new(ModelPace::new(self.rates.get(model).copied().unwrap_or_default()));
        lanes.insert(model.to_owned(), Arc::clone(&lane));
        tokio::spawn(listen(Arc::downgrade(self), model.to_owned(), Arc::downgrade(&lane)));
        Some(lane)
    }
}

impl ModelPace {
    fn new(rate: Rate) -> Self {
        Self {
            rate,
            closed: Mutex::default(),
            chunk: tokio::sync::Mutex::default(),
            credit: Mutex::default(),
        }
    }

    /// Until when the model is not asked, if that is not over.
    fn closed(&self) -> Option<Instant> {
        let closed = lock(&self.closed);
        closed.filter(|until| *until > Instant::now())
    }

    fn close(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut closed = lock(&self.closed);
        *closed = Some(closed.map_or(until, |before| before.max(until)));
    }

    /// Tokens to set aside now: what is needed, with what earlier calls took more or less than was set aside.
    fn owed(&self, tokens: u64) -> u64 {
        let mut credit = lock(&self.credit);
        let owed = i64::try_from(tokens).unwrap_or(i64::MAX).saturating_sub(*credit);
        *credit = owed.min(0).saturating_neg();
        u64::try_from(owed).unwrap_or(0)
    }
}

impl Chunk {
    fn take(&mut self) -> Option<Instant> {
        let from = self.from.filter(|from| *from + CHUNK_LIFE > Instant::now())?;
        self.requests = self.requests.checked_sub(1)?;
        Some(from)
    }
}

/// Hears of closures by others while the pacer lives.
async fn listen(pacer: std::sync::Weak<Pacer>, model: String, lane: std::sync::Weak<ModelPace>) {
    let Some(allowances) = pacer.upgrade().map(|pacer| pacer.allowances.clone()) else { return };
    let heard = async {
        let mut changes = allowances.watch_rate(&model).await?;
        let known = allowances.rate(&model).await?;
        note(&pacer, &lane, known.closed_until).await?;
        while let Some(change) = changes.next().await {
            note(&pacer, &lane, change.closed_until).await?;
        }
        Ok::<(), BusError>(())
    };
    if let Err(error) = heard.await {
        tracing::debug!(model, %error, "what other processes hear of a provider's rate is not heard here");
    }
}

async fn note(
    pacer: &std::sync::Weak<Pacer>,
    lane: &std::sync::Weak<ModelPace>,
    until: Millis,
) -> Result<(), BusError> {
    let (Some(pacer), Some(lane)) = (pacer.upgrade(), lane.upgrade()) else { return Ok(()) };
    if until > Millis(0) {
        let wait = until.since(pacer.clock().await?.now());
        if !wait.is_zero() {
            lane.close(wait.min(LONGEST_CLOSURE));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "pacing_tests.rs"]
mod tests;
