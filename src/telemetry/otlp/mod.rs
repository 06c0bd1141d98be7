//! Spans on their way to a receiver of OTLP: what the usual variables say, how a batch is sent, and the queue before it.

mod queue;
mod send;
mod settings;

pub(crate) use queue::{Counts, Queue};
pub(crate) use send::{SendError, Sender};
pub(crate) use settings::{OtlpSettings, is_on, read, resource};
