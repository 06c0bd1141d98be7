//! The dashboard: a page in the browser, served on this machine alone, and kept up to date by the bus.
//!
//! What it shows comes from the record by the same functions as the commands' `--json`. [`door`] stands before everything:
//! who calls, and whether he may ([`rights`]). [`hub`] follows the fleet and tells pages what changed. What is done is done in
//! the name of whoever asks ([`login`]).

mod api;
mod assets;
mod briefs;
mod door;
mod hub;
mod login;
mod records;
mod reply;
mod rights;
mod server;
mod session;
mod sse;
mod state;
mod timeline;
mod watcher;
mod zip;

pub(crate) use server::listen;
