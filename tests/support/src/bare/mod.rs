//! The bare counterparts that figures are compared with: the same work with nothing kept, and the broker alone.
//!
//! Names the NATS client, as the census does: a bare round trip must not pass through our own code.

pub mod broker;
pub mod model_loop;
