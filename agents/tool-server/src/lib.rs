//! Tools served over the bus, and tools of one's own by a file.
//!
//! [`ToolServer::begin`] serves any tools under one name: those of a folder of files ([`file`]), those of another protocol, those
//! that somebody lends. What is said on the bus stands in [`muster_shared::wire::tool_server`]; agents call by
//! `muster_agents::tools::remote`.

mod answers;
pub mod file;
#[cfg(feature = "web")]
mod guarded;
mod lending;
mod offering;
mod plain;
mod questions;
mod serve;

#[cfg(feature = "web")]
pub use guarded::GuardedCaller;
pub use lending::LeaseRules;
pub use muster_tools::{LeaseSettings, ToolServerSettings};
pub use offering::under_name;
pub use plain::PlainRunner;
pub use serve::ToolServer;
