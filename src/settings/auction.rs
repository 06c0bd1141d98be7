//! Settings of auctions, as people write them.

use std::time::Duration;

use muster_shared::flow::AuctionRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How auctions of tasks are held: [`AuctionRules`] as people write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuctionSettings {
    /// How long bids are taken.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub(crate) window: Duration,
    /// Most bids that are looked at; the first to come count.
    pub(crate) max_bids: u16,
    /// How much time counts against cost when bids are compared, in percent.
    pub(crate) time_weight: u8,
    /// By how much a bid's time may be overrun before it counts as broken, in percent.
    pub(crate) overrun: u16,
}

impl Default for AuctionSettings {
    fn default() -> Self {
        Self::from(&AuctionRules::USUAL)
    }
}

impl From<&AuctionRules> for AuctionSettings {
    fn from(rules: &AuctionRules) -> Self {
        let AuctionRules { window_ms, max_bids, time_weight, overrun } = *rules;
        Self { window: Duration::from_millis(window_ms), max_bids, time_weight, overrun }
    }
}

impl From<&AuctionSettings> for AuctionRules {
    fn from(settings: &AuctionSettings) -> Self {
        let AuctionSettings { window, max_bids, time_weight, overrun } = *settings;
        Self {
            window_ms: u64::try_from(window.as_millis()).unwrap_or(u64::MAX),
            max_bids,
            time_weight,
            overrun,
        }
    }
}
