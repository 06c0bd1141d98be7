//! The bare counterparts that figures are compared with: the same work with nothing kept, and the broker alone.
//!
//! The one place besides `bus` that names the NATS client: a bare round trip must not pass through our own code.

pub mod broker;
pub mod model_loop;
