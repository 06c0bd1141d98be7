//! Models: providers and their retries. The offline model is the crate `muster-offline`.

pub mod breaker;
pub mod budget;
pub mod budget_lease;
pub mod call_admission;
pub mod capability;
pub mod chat;
pub mod error;
mod fleet_clock;
pub mod gate;
pub(crate) mod json;
pub mod kept;
mod named;
pub mod pacing;
pub mod picture;
pub mod pricing;
pub mod provider;
pub(crate) mod random;
pub mod retry;
mod sight;
pub mod target;
pub mod trial;
