//! Suites of goals with checks: read, judged, counted. Pure but for reading files that a suite names.

pub(crate) mod check;
pub(crate) mod citations;
pub(crate) mod results;
pub(crate) mod shipped;
pub(crate) mod stats;
pub(crate) mod suite;

pub(crate) use results::{Row, Summary, summaries};
pub(crate) use suite::{EvalGoal, Suite};
