//! What a process tells of itself to others: figures for Prometheus, spans for OpenTelemetry. Off unless asked for, and then
//! off the path of messages.

mod door;
mod fleet;
mod follow;
mod metrics;
pub(crate) mod otlp;
mod watch;

pub(crate) use door::{listen, serve};
pub(crate) use fleet::{figures as fleet_figures, paths as fleet_paths, targets};
pub(crate) use metrics::Form;
pub(crate) use watch::{Role, Telemetry};
