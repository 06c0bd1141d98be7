//! Composite tools: a file, `NAME.composite.toml`, that says which other tools are called, with what, in which order, and what
//! is done when one of them fails.
//!
//! [`Composite::parse`] reads one with line and column, [`together`] finds those that call themselves, [`Composites`] makes
//! tools of them as soon as an agent has the tools that they call. What is called next is decided by [`course`], which is pure;
//! [`tool`] carries it out by the engine of the agent. `docs/own-tools.md` has all of it.

mod condition;
mod course;
mod file;
mod library;
mod report;
mod scope;
mod spec;
mod template;
mod together;
mod tool;
mod written;

pub use file::Composite;
pub use library::Composites;
pub use muster_shared::text::Fault;
pub use together::together;

/// How the names of files with composite tools end.
pub const ENDING: &str = ".composite.toml";
/// The largest such file, in bytes.
pub const MAX_BYTES: u64 = 64 * 1024;
/// The name before those of composite tools: that of the folder's other tools.
pub const NAMESPACE: &str = "own";

/// Most steps of one composite.
pub(crate) const MOST_STEPS: usize = 32;
/// Most calls of one step.
pub(crate) const MOST_ITERATIONS: usize = 100;
/// Most calls that run at the same time.
pub(crate) const MOST_AT_ONCE: usize = 8;
/// Most levels: a composite whose tools are no composites is one.
pub(crate) const MOST_LEVELS: usize = 2;
