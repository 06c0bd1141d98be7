//! What other crates rely on: encodings, plans, blueprints, folding, explanations and spans.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blueprints;
mod codec;
mod examples;
mod explain;
mod fold;
mod golden;
mod plans;
mod small_run;
mod traces;
