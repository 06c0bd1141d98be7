//! The tools of the web against servers on the loopback, scripted and counting. Public addresses are there only for the
//! guard: the resolver of the tests leads them to the loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod broken_answers;
mod dns;
mod downloads;
mod endpoints;
mod hostile_urls;
mod kept;
mod pages;
mod redirects;
mod robots;
mod search;
mod services;
mod support;
