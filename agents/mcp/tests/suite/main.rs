//! Scripted and real MCP servers, over standard streams and HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod common;
mod http;
mod real;
mod scripted;
