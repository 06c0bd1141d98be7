//! Keeping away from a provider that does not answer: what one process meets, all know, and one at a time tries again.
//!
//! The state is a key of the allowances on the bus. A call asks it nothing: each process keeps what it heard last, and
//! only failures, the first answer after them and tries are told.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use futures::StreamExt;
use muster_bus::allowance::breaker::{Admission, BreakerRules, BreakerState, Outage, OutageKind};
use muster_bus::{Allowances, BrokerClock, BusError};
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use tokio::sync::{Notify, OnceCell};

use super::chat::{ModelError, ModelErrorKind};
use super::fleet_clock::FleetClock;
use super::random::fraction;

/// The answer to a try is waited for no longer than this until another tries too: whoever tries may be killed at any
/// moment, and the whole fleet waits for it. A provider that is slow then gets one more call each time.
const LONGEST_TRY: Duration = Duration::from_secs(10);
/// How often somebody who waits is told of it.
const TELL: Duration = Duration::from_secs(5);
/// Those who waited do not all come back at the same moment.
const SPREAD: Duration = Duration::from_millis(200);
/// How long the bus is waited for when a process asks for the first time.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Most providers that one process keeps in mind.
const MOST_LANES: usize = 32;

/// What this process knows of providers that do not answer.
pub struct Breakers {
    allowances: Allowances,
    who: String,
    rules: BreakerRules,
    /// How long the answer to a try is waited for, until another tries.
    trial: Duration,
    clock: FleetClock,
    lanes: Mutex<BTreeMap<String, Arc<ProviderState>>>,
}

/// A provider does not answer, and was waited for long enough.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{said}. It was waited for long enough (`agent.breaker.patience`); name others in `agent.fallback_models`"
)]
pub struct Down {
    said: String,
}

/// What is known of one provider.
#[derive(Default)]
struct ProviderState {
    state: Mutex<BreakerState>,
    changed: Notify,
    /// Whether what others know was looked at.
    looked: OnceCell<()>,
}

impl Breakers {
    /// What the process `who` knows; the answer to a try is waited for as long as a call may take, `call`, and 10 s at
    /// most.
    #[must_use]
    pub fn new(allowances: Allowances, who: String, rules: BreakerRules, call: Duration) -> Self {
        let trial = call.min(LONGEST_TRY);
        Self { allowances, who, rules, trial, clock: FleetClock::default(), lanes: Mutex::default() }
    }

    /// Waits until `target` (`provider/model`) may be asked for a task that has to end by `deadline`; `tell` is told in
    /// words while it has to wait.
    ///
    /// # Errors
    /// When the provider has not answered for too long.
    pub async fn admit(
        self: &Arc<Self>,
        target: &str,
        deadline: Option<Millis>,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), Down> {
        let provider = provider_of(target);
        let Some(lane) = self.lane(provider).await else { return Ok(()) };
        loop {
            let mut changed = pin!(lane.changed.notified());
            changed.as_mut().enable();
            let state = lane.state().clone();
            if !state.is_open() {
                return Ok(());
            }
            // Without the bus nobody knows better than the provider itself.
            let Ok(clock) = self.clock().await else { return Ok(()) };
            let now = clock.now();
            match state.admit(now, &self.rules, deadline) {
                Admission::Go => return Ok(()),
                Admission::Try => {
                    if self.take_try(provider, &lane, now).await {
                        return Ok(());
                    }
                }
                Admission::GivenUp => return Err(Down { said: state.in_words(now) }),
                Admission::Wait(until) => {
                    tell(&state.in_words(now));
                    let wait = until.since(now).saturating_add(SPREAD.mul_f64(fraction())).min(TELL);
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Whether they keep away from anybody.
    #[must_use]
    pub const fn are_on(&self) -> bool {
        self.rules.failures > 0
    }

    /// Why `target` is not to be asked now, as far as this process knows.
    #[must_use]
    pub fn shut(&self, target: &str) -> Option<String> {
        let lane = self.known(provider_of(target))?;
        let now = self.clock.kept()?.now();
        let state = lane.state();
        match state.admit(now, &self.rules, None) {
            Admission::Go | Admission::Try => None,
            Admission::Wait(_) | Admission::GivenUp => Some(state.in_words(now)),
        }
    }

    /// Takes note of how a call ended: an outage is told to all, and so is the first answer after one.
    pub fn ended(self: &Arc<Self>, target: &str, failed: Option<&ModelError>) {
        let provider = provider_of(target);
        let Some(lane) = self.known(provider) else { return };
        match failed.map(read) {
            Some(Sign::Nothing) => self.let_go(provider, lane),
            Some(Sign::Outage(outage)) => {
                if let Some(clock) = self.clock.kept() {
                    lane.state().fail(provider, &outage, clock.now(), &self.rules);
                }
                self.tell(provider, lane, Some(outage));
            }
            None | Some(Sign::Alive) => {
                let was_news = lane.state().succeed().is_some();
                if was_news {
                    lane.changed.notify_waiters();
                    self.tell(provider, lane, None);
                }
            }
        }
    }

    /// Gives a try back that came to nothing, so that another may try at once.
    fn let_go(self: &Arc<Self>, provider: &str, lane: Arc<ProviderState>) {
        if lane.state().let_go(&self.who).is_none() {
            return;
        }
        let (this, provider) = (Arc::clone(self), provider.to_owned());
        tokio::spawn(async move {
            let change = |state: &mut BreakerState| state.let_go(&this.who).map(|()| state.clone());
            match this.allowances.change_breaker(&provider, change).await {
                Ok(Some(state)) => lane.put(state),
                Ok(None) => {}
                Err(error) => tracing::debug!(provider, %error, "a try that came to nothing is not told of"),
            }
        });
    }

    fn tell(self: &Arc<Self>, provider: &str, lane: Arc<ProviderState>, outage: Option<Outage>) {
        let (this, provider) = (Arc::clone(self), provider.to_owned());
        tokio::spawn(async move {
            let told = async {
                let now = this.clock().await?.now();
                let change = |state: &mut BreakerState| match &outage {
                    Some(outage) => {
                        state.fail(&provider, outage, now, &this.rules);
                        Some(state.clone())
                    }
                    None => state.succeed().map(|()| state.clone()),
                };
                this.allowances.change_breaker(&provider, change).await
            };
            match told.await {
                Ok(Some(state)) => lane.put(state),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(provider, %error, "the others do not hear whether a provider answers");
                }
            }
        });
    }

    /// Whether this process is the one that tries.
    async fn take_try(&self, provider: &str, lane: &ProviderState, now: Millis) -> bool {
        let until = now.after(self.trial);
        let mut found = None;
        let taken = self.allowances.change_breaker(provider, |state| {
            let taken = state.take_try(&self.who, now, until, &self.rules);
            found = Some(state.clone());
            taken
        });
        let taken = taken.await;
        if let Some(found) = found {
            lane.put(found);
        }
        // Where the bus fails, trying is the only way to know.
        !matches!(taken, Ok(None))
    }

    async fn clock(&self) -> Result<BrokerClock, BusError> {
        self.clock.get(&self.allowances).await
    }

    fn known(&self, provider: &str) -> Option<Arc<ProviderState>> {
        lock(&self.lanes).get(provider).cloned()
    }

    /// What is known of a provider, kept and listened for from its first call on. Nothing above the most that are
    /// kept, or where breakers are off.
    async fn lane(self: &Arc<Self>, provider: &str) -> Option<Arc<ProviderState>> {
        let lane = self.begin(provider)?;
        lane.looked
            .get_or_init(|| async {
                let looked = async {
                    // Listened for before it is looked at, so that nothing is missed in between.
                    let changes = self.allowances.watch_breaker(provider).await?;
                    lane.put(self.allowances.breaker(provider).await?);
                    tokio::spawn(listen(Arc::downgrade(&lane), changes));
                    Ok::<(), BusError>(())
                };
                if !matches!(tokio::time::timeout(FIRST_LOOK, looked).await, Ok(Ok(()))) {
                    tracing::debug!(provider, "what others know of a provider is not known here");
                }
            })
            .await;
        Some(lane)
    }

    fn begin(&self, provider: &str) -> Option<Arc<ProviderState>> {
        let mut lanes = lock(&self.lanes);
        if let Some(lane) = lanes.get(provider) {
            return Some(Arc::clone(lane));
        }
        if lanes.len() >= MOST_LANES || self.rules.failures == 0 {
            return None;
        }
        let lane = Arc::<ProviderState>::default();
        lanes.insert(provider.to_owned(), Arc::clone(&lane));
        Some(lane)
    }
}

impl ProviderState {
    fn state(&self) -> MutexGuard<'_, BreakerState> {
        lock(&self.state)
    }

    fn put(&self, state: BreakerState) {
        *self.state() = state;
        self.changed.notify_waiters();
    }
}

/// Hears what others know while somebody wants to know it.
async fn listen(lane: Weak<ProviderState>, mut changes: futures::stream::BoxStream<'static, BreakerState>) {
    while let Some(change) = changes.next().await {
        let Some(lane) = lane.upgrade() else { return };
        lane.put(change);
    }
}

/// What a failed call says of its provider.
enum Sign {
    /// It does not answer.
    Outage(Outage),
    /// It answers, if not as was hoped.
    Alive,
    /// Nothing.
    Nothing,
}

fn read(error: &ModelError) -> Sign {
    let outage = |why: &str, kind| Sign::Outage(Outage { why: why.to_owned(), kind });
    match error.kind {
        ModelErrorKind::RateLimited { retry_after } => {
            outage("429 too many requests", OutageKind::Refused(retry_after))
        }
        ModelErrorKind::Overloaded { retry_after } => {
            let why = error.message.split(':').next().unwrap_or_default();
            outage(why, OutageKind::Down(retry_after))
        }
        ModelErrorKind::Timeout => outage("no answer in time", OutageKind::Silent),
        ModelErrorKind::Unreachable => outage("it cannot be reached", OutageKind::Down(None)),
        ModelErrorKind::Unauthorized
        | ModelErrorKind::BadRequest
        | ModelErrorKind::ContextTooLong
        | ModelErrorKind::Refused => Sign::Alive,
        ModelErrorKind::BadAnswer
        | ModelErrorKind::Cancelled
        | ModelErrorKind::BudgetExhausted
        | ModelErrorKind::Superseded => Sign::Nothing,
    }
}

/// The provider of a `provider/model`.
pub(super) fn provider_of(target: &str) -> &str {
    target.split_once('/').map_or(target, |(provider, _)| provider)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use muster_bus::Bus;

    use super::*;

    const MODEL: &str = "openai/house";

    fn breakers(bus: &Bus, name: &str, rules: BreakerRules) -> Arc<Breakers> {
        breakers_of_calls(bus, name, rules, Duration::from_secs(60))
    }

    /// The same where a call may take so long.
    fn breakers_of_calls(bus: &Bus, name: &str, rules: BreakerRules, call: Duration) -> Arc<Breakers> {
        let allowances = bus.as_agent(&name.parse().unwrap()).allowances();
        Arc::new(Breakers::new(allowances, name.to_owned(), rules, call))
    }

    fn rules() -> BreakerRules {
        BreakerRules { failures: 3, pause: Duration::from_millis(300), ..BreakerRules::default() }
    }

    fn error(kind: ModelErrorKind) -> ModelError {
        ModelError::new(kind, MODEL, "the server failed (503): all of it")
    }

    const QUIET: &(dyn Fn(&str) + Sync) =
        &|text: &str| assert!(text.is_empty(), "nobody has to wait: {text}");

    /// Waits until the process knows that the provider is left alone.
    async fn heard(breakers: &Breakers) {
        let begun = Instant::now();
        while !breakers.known("openai").unwrap().state().is_open() {
            assert!(begun.elapsed() < Duration::from_secs(5), "it was not heard of");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    #[tokio::test]
    async fn what_one_process_meets_all_know_and_one_at_a_time_tries() {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        let all: Vec<_> = (0..4).map(|n| breakers(&bus, &format!("worker-{n}"), rules())).collect();
        for process in &all {
            process.admit(MODEL, None, QUIET).await.unwrap();
        }
        let down = error(ModelErrorKind::Overloaded { retry_after: None });
        (0..3).for_each(|_| all[0].ended(MODEL, Some(&down)));
        for process in &all {
            heard(process).await;
        }
        // Who begins now knows it at once.
        let late = breakers(&bus, "worker-9", rules());
        let asked = Arc::new(AtomicUsize::new(0));
        let begun = Instant::now();
        let calls = all.iter().chain([&late]).cloned().map(|process| {
            let asked = Arc::clone(&asked);
            tokio::spawn(async move {
                let told = AtomicUsize::new(0);
                let tell = |text: &str| {
                    assert!(text.starts_with("openai does not answer (the server failed (503)"), "{text}");
                    told.fetch_add(1, Ordering::SeqCst);
                };
                process.admit(MODEL, None, &tell).await.unwrap();
                let before = asked.fetch_add(1, Ordering::SeqCst);
                let waited = (begun.elapsed(), told.load(Ordering::SeqCst));
                if before == 0 {
                    // The others wait for what comes of the try.
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    assert_eq!(asked.load(Ordering::SeqCst), 1, "one at a time tries");
                    process.ended(MODEL, None);
                }
                waited
            })
        });
        for call in futures::future::join_all(calls).await {
            let (waited, told) = call.unwrap();
            assert!(waited >= Duration::from_millis(250) && told > 0, "{waited:?}, told {told} times");
        }
        for state in bus.allowances().breakers().await.unwrap() {
            assert!(!state.is_open() && state.provider == "openai", "{state:?}");
        }
    }

    #[tokio::test]
    async fn who_waited_long_enough_is_told_so_and_another_provider_is_free() {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        let rules =
            BreakerRules { patience: Duration::from_millis(400), pause: Duration::from_secs(30), ..rules() };
        let process = breakers(&bus, "worker-1", rules);
        process.admit(MODEL, None, QUIET).await.unwrap();
        (0..3).for_each(|_| process.ended(MODEL, Some(&error(ModelErrorKind::Unreachable))));
        heard(&process).await;
        assert!(process.shut(MODEL).is_some());
        let refused = process.admit(MODEL, None, &|_| {}).await.unwrap_err();
        assert!(refused.to_string().contains("it cannot be reached, 3 times"), "{refused}");
        process.admit("anthropic/other", None, QUIET).await.unwrap();
        assert_eq!(process.shut("anthropic/other"), None);
    }

    #[tokio::test]
    async fn a_try_that_was_cut_off_keeps_nobody_waiting() {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        let (one, other) = (breakers(&bus, "worker-1", rules()), breakers(&bus, "worker-2", rules()));
        for process in [&one, &other] {
            process.admit(MODEL, None, QUIET).await.unwrap();
        }
        (0..3).for_each(|_| one.ended(MODEL, Some(&error(ModelErrorKind::Unreachable))));
        heard(&other).await;
        one.admit(MODEL, None, &|_| {}).await.unwrap();
        let begun = Instant::now();
        one.ended(MODEL, Some(&error(ModelErrorKind::Cancelled)));
        other.admit(MODEL, None, &|_| {}).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn whoever_is_killed_while_it_tries_keeps_the_others_for_seconds_only() {
        const CALL: Duration = Duration::from_secs(1);
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        let rules = BreakerRules { failures: 1, pause: Duration::from_millis(1), ..BreakerRules::default() };
        assert_eq!(breakers(&bus, "worker-3", rules).trial, LONGEST_TRY, "however long a call may take");
        let [dies, lives] = ["worker-1", "worker-2"].map(|name| breakers_of_calls(&bus, name, rules, CALL));
        for process in [&dies, &lives] {
            process.admit(MODEL, None, QUIET).await.unwrap();
        }
        dies.ended(MODEL, Some(&error(ModelErrorKind::Unreachable)));
        for process in [&dies, &lives] {
            heard(process).await;
        }
        let told = &|_: &str| {};
        dies.admit(MODEL, None, told).await.unwrap();
        // It is heard of no more.
        let begun = Instant::now();
        lives.admit(MODEL, None, told).await.unwrap();
        let waited = begun.elapsed();
        assert!(waited > CALL / 2 && waited < CALL * 4, "{waited:?}");
    }

    #[tokio::test]
    async fn answers_that_are_wrong_are_answers() {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        let process = breakers(&bus, "worker-1", rules());
        process.admit(MODEL, None, QUIET).await.unwrap();
        for _ in 0..10 {
            process.ended(MODEL, Some(&error(ModelErrorKind::Unreachable)));
            process.ended(MODEL, Some(&error(ModelErrorKind::BadAnswer)));
            process.ended(MODEL, Some(&error(ModelErrorKind::Unreachable)));
            process.ended(MODEL, Some(&error(ModelErrorKind::BadRequest)));
        }
        assert_eq!(process.shut(MODEL), None);
        process.admit(MODEL, None, QUIET).await.unwrap();
    }
}
