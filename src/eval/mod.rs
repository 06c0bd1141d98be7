//! Suites of goals with checks: read, judged, counted. Pure, but that the documents of shipped suites are
//! written to a folder.

pub(crate) mod check;
pub(crate) mod citations;
pub(crate) mod results;
pub(crate) mod shipped;
pub(crate) mod stats;
pub(crate) mod suite;

pub(crate) use results::{Row, Summary, summaries};
pub(crate) use suite::{EvalGoal, Suite};
