//! Models: providers, their retries, and the offline model.

pub mod breaker;
pub mod budget;
pub mod chat;
pub mod error;
pub mod gate;
pub mod offline;
pub mod pacing;
pub mod pricing;
pub mod provider;
pub mod purse;
pub mod retry;
pub mod target;
pub mod turnstile;
