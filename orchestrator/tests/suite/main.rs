//! Whole runs with simulated agents, in memory and on a real server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod drive;
mod nats;
mod owners;
mod support;
