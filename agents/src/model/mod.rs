//! Models: providers, their retries, and the offline model.

pub mod chat;
pub mod error;
pub mod offline;
pub mod pricing;
pub mod provider;
pub mod retry;
pub mod target;
