//! Models: providers, their retries, and the offline model.

pub mod breaker;
pub mod budget;
pub mod budget_lease;
pub mod call_admission;
pub mod chat;
pub mod error;
pub mod gate;
pub mod offline;
pub mod pacing;
pub mod pricing;
pub mod provider;
pub mod retry;
pub mod target;
