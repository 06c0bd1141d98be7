//! Fleets of real processes on a real NATS server, driven from the command line as a person would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auctions;
mod bad_input;
mod blueprints;
mod budgets;
mod bus_loss;
mod chaos;
mod children;
mod citizens;
mod cluster;
mod conflicts;
mod control;
mod deaths;
mod documents;
mod foreign;
mod groups;
mod help;
mod joining;
mod lessons;
mod loops;
mod matching;
mod models;
mod orchestrators;
mod planning;
mod plans;
mod prompts;
mod refinements;
mod review;
mod scenarios;
mod secrets;
mod specialists;
mod supervision;
mod support;
mod teams;
mod uncertain;
