//! Test support: fleets of real processes, a scripted model server, and faults.

/// For tests that speak to a bus as nobody of ours does.
pub use async_nats;

pub mod bare;
pub mod bidder;
pub mod browser;
pub mod census;
pub mod chaos;
pub mod cluster;
pub mod dashboard;
pub mod figures;
pub mod fleet;
pub mod foreign;
pub mod go;
pub mod good_model;
pub mod growth;
pub mod load;
pub mod model_server;
pub mod node;
pub mod past;
pub mod process;
pub mod python;
pub mod skip;
pub mod takeover;
pub mod traffic;
pub mod way;
pub mod workload;
