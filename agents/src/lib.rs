//! The agents: the ReAct loop, the roles, their models and their tools.
//!
//! [`host::run_agent`] runs an agent process. Read [`react::decide`] for what happens in a task and
//! [`react::drive`] for how it is carried out.

pub mod definition;
pub mod guards;
pub mod host;
pub mod library;
pub mod model;
pub mod prompts;
pub mod react;
pub mod roles;
pub mod settings;
pub mod tools;

pub use host::{AgentError, run_agent, run_specialist};
pub use muster_corpus::input;
pub use settings::AgentSettings;

#[cfg(test)]
mod testing;
