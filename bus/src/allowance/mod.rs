//! Allowances: what the whole fleet shares and may use only so much of. A provider's rate, and a budget for all runs
//! together. Both are lent to processes in chunks, by compare-and-set, and what a process that died had left comes
//! back by itself.
//!
//! Times in here are the broker's: each process learns once how far its own clock is from the broker's stamps
//! ([`Allowances::clock`]) and counts on from there.

pub mod breaker;
pub mod pool;
pub mod rate;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::Seq;
use muster_shared::time::Millis;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::backend::{Headers, Message};
use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::kv::Bucket;
use crate::seal::CONTENT_TYPE;
use crate::topology::{ALLOWANCE, ALLOWANCE_SHOWN};
use breaker::BreakerState;
use pool::Pool;
use rate::RateState;

const BUCKET: Bucket = Bucket(ALLOWANCE);

/// How often a change is tried again because others changed the same at the same time.
const TRIES: u32 = 64;
/// Longest wait between two of these tries.
const TRY_PAUSE: Duration = Duration::from_millis(20);
/// How long what is not used any more stays.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long the stamp by which a clock is set stays.
const STAMP_KEPT: Duration = Duration::from_secs(60);

/// What the whole fleet shares.
#[derive(Clone)]
pub struct Allowances {
    pub(crate) core: Arc<Core>,
}

/// The broker's time, counted on by this process's own steady clock.
#[derive(Debug, Clone, Copy)]
pub struct BrokerClock {
    stamp: Millis,
    seen: Instant,
}

impl BrokerClock {
    /// The broker's time now, as exact as one round trip.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.stamp.after(self.seen.elapsed())
    }

    /// How long ago the clock was set.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.seen.elapsed()
    }
}

impl Allowances {
    /// Sets a clock by the broker's stamp of a message of ours.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn clock(&self) -> Result<BrokerClock, BusError> {
        let key = format!("clock.{}", self.core.who);
        let begun = Instant::now();
        BUCKET.put(&self.core, message(&key, Bytes::new()), Some(STAMP_KEPT), None).await?;
        // The stamp lies between asking and the answer.
        let seen = begun + begun.elapsed() / 2;
        let stored = BUCKET.last(&self.core, &key).await?;
        let missing = || BusError::Other {
            what: "reading the broker's clock".to_owned(),
            reason: "the stamp is gone".to_owned(),
        };
        let stamp = stored.ok_or_else(missing)?.at;
        Ok(BrokerClock { stamp, seen })
    }

    /// Changes the state of a model's rate, and gives what the change gives. A change that gives nothing is not
    /// written. `model` is `provider/model`.
    ///
    /// # Errors
    /// When others keep changing it, or the bus fails.
    pub async fn change_rate<T: Send>(
        &self,
        model: &str,
        change: impl FnMut(&mut RateState) -> Option<T> + Send,
    ) -> Result<Option<T>, BusError> {
        self.change(&rate_key(model), change).await
    }

    /// Changes a budget of the fleet in the same way. `name` is letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// As for [`Allowances::change_rate`].
    pub async fn change_pool<T: Send>(
        &self,
        name: &str,
        change: impl FnMut(&mut Pool) -> Option<T> + Send,
    ) -> Result<Option<T>, BusError> {
        self.change(&format!("pool.{name}"), change).await
    }

    /// Counts one more under a name unless there are `most` already; gives whether there was room. The count stands for
    /// `kept` after the last one. `name` is letters, digits, `-`, `_` and dots.
    ///
    /// # Errors
    /// As for [`Allowances::change_rate`].
    pub async fn count(&self, name: &str, most: u64, kept: Duration) -> Result<bool, BusError> {
        let one_more = |counted: &mut u64| {
            let has_room = *counted < most;
            *counted += u64::from(has_room);
            has_room.then_some(())
        };
        Ok(self.change_kept(&format!("count.{name}"), kept, one_more).await?.is_some())
    }

    /// A budget of the fleet as it stands.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn pool(&self, name: &str) -> Result<Pool, BusError> {
        Ok(self.read(&format!("pool.{name}")).await?.0)
    }

    /// The rate of a model as it stands.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn rate(&self, model: &str) -> Result<RateState, BusError> {
        Ok(self.read(&rate_key(model)).await?.0)
    }

    /// Changes of a model's rate by anybody, from now on. May miss some while the bus is away.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch_rate(&self, model: &str) -> Result<BoxStream<'static, RateState>, BusError> {
        self.watch(&rate_key(model)).await
    }

    /// Changes what is known of a provider, in the same way as [`Allowances::change_rate`].
    ///
    /// # Errors
    /// As for [`Allowances::change_rate`].
    pub async fn change_breaker<T: Send>(
        &self,
        provider: &str,
        change: impl FnMut(&mut BreakerState) -> Option<T> + Send,
    ) -> Result<Option<T>, BusError> {
        self.change(&breaker_key(provider), change).await
    }

    /// What is known of a provider.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn breaker(&self, provider: &str) -> Result<BreakerState, BusError> {
        Ok(self.read(&breaker_key(provider)).await?.0)
    }

    /// What is known of every provider that failed at some time.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn breakers(&self) -> Result<Vec<BreakerState>, BusError> {
        BUCKET.values(&self.core, &breaker_key("*")).await
    }

    /// Changes of what is known of a provider by anybody, from now on; of all providers for `*`. May miss some while
    /// the bus is away.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn watch_breaker(&self, provider: &str) -> Result<BoxStream<'static, BreakerState>, BusError> {
        self.watch(&breaker_key(provider)).await
    }

    async fn watch<S>(&self, key: &str) -> Result<BoxStream<'static, S>, BusError>
    where
        S: DeserializeOwned + Send + 'static,
    {
        let messages = self.core.backend.subscribe(&format!("{ALLOWANCE_SHOWN}{key}")).await?;
        let states =
            messages.filter_map(|message| async move { serde_json::from_slice(&message.payload).ok() });
        Ok(states.boxed())
    }

    async fn change<S, T>(
        &self,
        key: &str,
        change: impl FnMut(&mut S) -> Option<T> + Send,
    ) -> Result<Option<T>, BusError>
    where
        S: Serialize + DeserializeOwned + Default + Send,
        T: Send,
    {
        self.change_kept(key, KEPT, change).await
    }

    async fn change_kept<S, T>(
        &self,
        key: &str,
        kept: Duration,
        mut change: impl FnMut(&mut S) -> Option<T> + Send,
    ) -> Result<Option<T>, BusError>
    where
        S: Serialize + DeserializeOwned + Default + Send,
        T: Send,
    {
        for attempt in 1..=TRIES {
            let (mut state, revision) = self.read::<S>(key).await?;
            let Some(given) = change(&mut state) else { return Ok(None) };
            match BUCKET.put(&self.core, BUCKET.json(key, &state)?, Some(kept), Some(revision)).await {
                Ok(_) => return Ok(Some(given)),
                Err(AppendError::Conflict) => {}
                // It may have landed: then what was lent is lost to us and comes back by itself.
                Err(error) => return Err(error.into()),
            }
            // Whoever began later waits longer, so that not all of them come back at once.
            tokio::time::sleep(TRY_PAUSE * attempt.min(8) / 8).await;
        }
        Err(BusError::Conflict { what: format!("the allowance {key}") })
    }

    /// What cannot be read (a newer build's) counts as not there.
    async fn read<S: DeserializeOwned + Default>(&self, key: &str) -> Result<(S, Seq), BusError> {
        let Some(entry) = BUCKET.last(&self.core, key).await? else { return Ok((S::default(), Seq(0))) };
        let state = entry.message.and_then(|message| serde_json::from_slice(&message.payload).ok());
        Ok((state.unwrap_or_default(), entry.revision))
    }
}

fn message(key: &str, payload: Bytes) -> Message {
    let mut headers = Headers::default();
    headers.add(CONTENT_TYPE, "application/json");
    Message { subject: BUCKET.subject(key), headers, payload }
}

/// The key of a model's rate: what no key may hold becomes a line.
fn rate_key(model: &str) -> String {
    format!("rate.{}", plain(model))
}

/// The key of what is known of a provider; `*` stands for all.
fn breaker_key(provider: &str) -> String {
    if provider == "*" { "breaker.*".to_owned() } else { format!("breaker.{}", plain(provider)) }
}

fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().take(100).map(plain).collect()
}
