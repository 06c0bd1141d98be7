//! What travels on the bus: envelopes, their encoding, and the messages that are not part of the record.

pub mod ask;
pub mod codec;
pub mod envelope;
mod fault;
pub mod gateway;
pub mod lending;
pub mod message;
pub mod schema;
pub mod tool_question;
pub mod tool_server;

pub use codec::{CodecError, Encoding, decode, encode};
pub use envelope::{Body, Envelope, MessageKind, StoredBody, TraceContext};
pub use message::{
    Advertised, Command, ControlMessage, ExcludedAgent, Heartbeat, Live, LiveKind, OwnerAnswer, OwnerMessage,
    Profile, SetAside, UNANSWERED,
};
