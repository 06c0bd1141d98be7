//! Real programs in the real sandbox.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

mod attempts;
mod calls;
mod escapes;
mod help;
mod hosts;
mod lasting;
mod tools;
mod world;
