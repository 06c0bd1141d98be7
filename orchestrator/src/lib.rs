//! The orchestrator: pure decisions over a run's record ([`decide`]), the order in which a run is read, decided and written
//! ([`turn`]), and the actors that carry that out ([`drive`]).

pub mod auction;
pub mod decide;
pub mod drive;
pub mod matching;
pub mod replay;
pub mod turn;

pub use drive::{
    Capacity, Holding, OrchestratorError, OrchestratorSettings, Roomed, decide_with_room, run, with_system,
};
