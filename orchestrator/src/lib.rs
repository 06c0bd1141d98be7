//! The orchestrator: pure decisions over a run's record ([`decide`]), and the actors that carry them out
//! ([`drive`]).

pub mod auction;
pub mod decide;
pub mod drive;
pub mod matching;
pub mod replay;

pub use drive::{
    Capacity, Holding, OrchestratorError, OrchestratorSettings, Roomed, decide_with_room, run, with_system,
};
