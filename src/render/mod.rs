//! Text for people, made from data. Nothing here reads a clock, a terminal or the bus.

pub(crate) mod artifacts;
pub(crate) mod audit;
pub(crate) mod blueprints;
pub(crate) mod checks;
pub(crate) mod compare;
pub(crate) mod conflicts;
pub(crate) mod dead;
pub(crate) mod doing;
pub(crate) mod drafts;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod fault;
pub(crate) mod figures;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "golden_tests.rs"]
pub(crate) mod golden;
pub(crate) mod graph;
pub(crate) mod json;
pub(crate) mod kept;
pub(crate) mod leases;
pub(crate) mod live;
pub(crate) mod markdown;
#[cfg(feature = "bench")]
pub(crate) mod ordeal;
pub(crate) mod orders;
pub(crate) mod paint;
pub(crate) mod processes;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod questions;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod safe;
pub(crate) mod settings;
pub(crate) mod table;
pub(crate) mod tap;
pub(crate) mod tools;
pub(crate) mod trace;
pub(crate) mod trials;
pub(crate) mod trust;
