//! This process's part of the fleet's budget: borrowed in chunks, and what was used is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_bus::allowance::pool::LoanRequest;
use muster_bus::{Allowances, BrokerClock, BusError};
use muster_shared::flow::{Budget, Usage};
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

/// How long a loan lasts.
const LOAN: Duration = Duration::from_secs(60);
/// A loan is renewed when less than this is left of its time.
const RENEW: Duration = Duration::from_secs(5);
/// What was used is told at the latest after this time.
const TELL: Duration = Duration::from_secs(2);
const DAY: u64 = 24 * 3600 * 1000;

/// The most that the whole fleet may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetBudget {
    /// The limits.
    pub budget: Budget,
    /// For which time.
    pub per: Period,
}

impl FleetBudget {
    /// The name of the pool that it is at a time, by the broker's clock.
    #[must_use]
    pub fn pool(&self, now: Millis) -> String {
        match self.per {
            Period::Day => format!("day-{}", now.0 / DAY),
            Period::Total => "total".to_owned(),
        }
    }
}

/// The time for which a budget of the fleet is.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// Each day, by UTC.
    #[default]
    Day,
    /// All time.
    Total,
}

/// Why nothing can be had.
#[derive(Debug, thiserror::Error)]
pub enum BudgetLeaseError {
    /// The fleet has used its budget.
    #[error(
        "the fleet's budget ({0}) does not allow another call: raise `fleet.budget`, or wait for the next day if \
             it is a daily one"
    )]
    UsedUp(Budget),
    /// The bus failed.
    #[error("the fleet's budget cannot be looked at: {0}")]
    Bus(#[from] BusError),
}

/// This process's part of the fleet's budget.
pub struct BudgetLease {
    allowances: Allowances,
    who: String,
    fleet: FleetBudget,
    held: tokio::sync::Mutex<Held>,
}

#[derive(Default)]
struct Held {
    clock: Option<BrokerClock>,
    /// The pool, what was lent, and until when.
    loan: Option<(String, Budget, Instant)>,
    /// Used, and not told yet.
    untold: Usage,
    /// Set aside for calls under way.
    under_way: Usage,
    telling: bool,
}

impl BudgetLease {
    /// The part of `who` in the fleet's budget.
    #[must_use]
    pub fn new(allowances: Allowances, who: String, fleet: FleetBudget) -> Self {
        Self { allowances, who, fleet, held: tokio::sync::Mutex::default() }
    }

    /// Whether tokens matter to it, directly or by their cost.
    #[must_use]
    pub const fn counts_tokens(&self) -> bool {
        self.fleet.budget.tokens.is_some() || self.fleet.budget.cost_micros.is_some()
    }

    /// Whether the cost is limited.
    #[must_use]
    pub const fn limits_cost(&self) -> bool {
        self.fleet.budget.cost_micros.is_some()
    }

    /// Sets aside what a call needs at most.
    ///
    /// # Errors
    /// When the fleet has used its budget, or the bus fails.
    pub async fn take(&self, needs: Usage) -> Result<(), BudgetLeaseError> {
        let mut held = self.held.lock().await;
        let mut wanted = held.under_way;
        wanted += needs;
        if !held.covers(&wanted) {
            self.borrow(&mut held, &wanted).await?;
        }
        held.under_way = wanted;
        Ok(())
    }

    /// A call has ended: what it used takes the place of what was set aside for it.
    pub async fn settle(self: Arc<Self>, needs: Usage, used: Usage) {
        let mut held = self.held.lock().await;
        held.under_way = held.under_way.without(needs);
        held.untold += used;
        if !std::mem::replace(&mut held.telling, true) {
            drop(held);
            tokio::time::sleep(TELL).await;
            if let Err(error) = self.tell().await {
                tracing::warn!(%error, "what was used of the fleet's budget could not be told; it is told later");
            }
        }
    }

    async fn tell(&self) -> Result<(), BudgetLeaseError> {
        let mut held = self.held.lock().await;
        held.telling = false;
        let untold = held.untold;
        let Some((pool, ..)) = held.loan.clone().filter(|_| untold != Usage::default()) else {
            return Ok(());
        };
        self.allowances
            .change_pool(&pool, |pool| {
                pool.report(&self.who, untold);
                Some(())
            })
            .await?;
        held.untold = Usage::default();
        if let Some((_, budget, _)) = &mut held.loan {
            *budget = budget.left(&untold);
        }
        Ok(())
    }

    async fn borrow(&self, held: &mut Held, wanted: &Usage) -> Result<(), BudgetLeaseError> {
        let clock = match held.clock {
            Some(clock) => clock,
            None => *held.clock.insert(self.allowances.clock().await?),
        };
        let (now, until) = (clock.now(), clock.now().after(LOAN));
        let pool = self.fleet.pool(now);
        let request = LoanRequest { who: &self.who, used: held.untold, needs: as_budget(wanted), now, until };
        let limit = self.fleet.budget;
        let lent = self.allowances.change_pool(&pool, |pool| pool.borrow(&limit, &request));
        let ends = Instant::now() + LOAN;
        let lent = lent.await?.ok_or(BudgetLeaseError::UsedUp(limit))?;
        held.untold = Usage::default();
        held.loan = Some((pool, lent, ends));
        Ok(())
    }
}

impl Held {
    fn covers(&self, wanted: &Usage) -> bool {
        let now = Instant::now();
        self.loan.as_ref().is_some_and(|(_, budget, until)| {
            *until > now + RENEW && budget.left(&self.untold).covers(&as_budget(wanted))
        })
    }
}

const fn as_budget(usage: &Usage) -> Budget {
    Budget {
        model_calls: Some(usage.calls()),
        tokens: Some(usage.tokens()),
        cost_micros: Some(usage.cost_micros),
        steps: None,
    }
}

#[cfg(test)]
mod tests {
    use muster_bus::Bus;
    use muster_shared::ids::AgentId;

    use super::*;

    fn budget_lease(bus: &Bus, name: &str, calls: u64) -> Arc<BudgetLease> {
        let who: AgentId = name.parse().unwrap();
        let budget = Budget { model_calls: Some(calls), ..Budget::UNLIMITED };
        let fleet = FleetBudget { budget, per: Period::Total };
        Arc::new(BudgetLease::new(bus.as_agent(&who).allowances(), who.to_string(), fleet))
    }

    const CALL: Usage = Usage {
        model_calls: 1,
        tool_calls: 0,
        input_tokens: 0,
        output_tokens: 0,
        cost_micros: 0,
        cached_tokens: 0,
        saved_micros: 0,
        wasted_calls: 0,
        reused_calls: 0,
        reused_micros: 0,
        steps: 0,
    };

    #[tokio::test]
    async fn processes_share_one_budget_and_none_goes_beyond_it() {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        let purses = [budget_lease(&bus, "worker-1", 10), budget_lease(&bus, "worker-2", 10)];
        let mut made = 0;
        for turn in 0..30 {
            let budget_lease = &purses[turn % 2];
            if budget_lease.take(CALL).await.is_ok() {
                made += 1;
                // Told with the next loan at the latest.
                tokio::spawn(Arc::clone(budget_lease).settle(CALL, CALL));
                tokio::task::yield_now().await;
            }
        }
        assert!(made <= 10, "{made} calls");
        assert!(made >= 9, "{made} calls: what is lent to one is at most a chunk");
        let refused = purses[0].take(CALL).await.unwrap_err();
        assert!(refused.to_string().contains("fleet.budget"), "{refused}");
    }
}
