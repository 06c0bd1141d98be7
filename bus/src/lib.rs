//! The bus: all messages between Muster processes, on NATS. Tests also use a bus in memory with the same behavior.
//!
//! [`Bus`] is one process's access; its methods give the services. The services are written once, above a small
//! trait with two implementations. [`subject`] is the only place where subjects are built and parsed, and only this
//! crate names the NATS client.

pub mod allowance;
pub mod answers;
pub mod asks;
mod auctions;
mod backend;
mod bus;
pub mod commands;
pub mod control;
pub mod credentials;
pub mod dead;
mod error;
pub mod files;
pub mod gateway;
pub mod guards;
pub mod hosts;
#[cfg(any(test, feature = "testing"))]
mod in_memory;
pub mod kept;
mod kv;
pub mod leases;
pub mod lessons;
pub mod live;
pub mod memory;
mod nats;
mod observer;
pub mod orders;
pub mod partition;
mod places;
pub mod presence;
pub mod queue;
pub mod record;
pub mod registry;
mod seal;
pub mod server;
mod settings;
pub mod signatures;
pub mod store;
pub mod subject;
pub mod tap;
pub mod tool_servers;
pub mod topology;
pub mod track_record;
pub mod trials;
mod vouched;
mod watchers;

pub use allowance::{Allowances, BrokerClock};
pub use answers::{Answers, KeptAnswer};
pub use asks::{Asked, Asks, NewRun};
pub use auctions::Auctions;
pub use backend::Appended;
pub use bus::{Bus, ServerInfo, now};
pub use commands::{CommandQueue, Commands, TakenCommand};
pub use control::{Control, ControlTarget, ReceivedControl};
pub use dead::{DeadLetter, DeadLetters, Origin};
pub use error::{AppendError, BusError};
pub use files::{FileList, FilePlace, Files, WriteError};
pub use gateway::{Delivered, GatewayDoor, GatewayRequest, PassedBack};
pub use guards::{GuardDoor, GuardedThing, OpenRequest};
pub use hosts::HostDoor;
pub use kept::{ImportNote, ImportedRecord, KeepNote, Kept, Outside, Removal, RemovalNote};
pub use leases::{Lease, LeaseChange, LeaseNote, Leases, SeenLease};
pub use lessons::Lessons;
pub use live::LiveFeed;
pub use nats::{Asker, Reply, without_user};
pub use observer::{DecisionSeen, Observer, RunProgress};
pub use places::Places;
pub use presence::{Instance, Presence};
pub use queue::{TakenTask, TaskQueue, Tasks};
pub use record::{
    AppendedDecision, Heard, KeptMessage, LinkedDecision, Named, NewestRuns, Record, RecordFilter,
    RecordLine, RunRecord, Unreadable,
};
pub use registry::{Announced, Registry, RegistryChange, host_name};
pub use settings::BusSettings;
pub use signatures::Signatures;
pub use store::{ListedObject, Store};
pub use tap::{Tap, Tapped};
pub use track_record::TrackRecord;
pub use trials::Trials;
pub use vouched::RIGHTS;
