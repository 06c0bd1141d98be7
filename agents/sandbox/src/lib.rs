//! Runs programs so that they reach nothing but what they are given.
//!
//! [`Sandbox`] is the [`ProgramRunner`](muster_tools::ProgramRunner). For each program it starts a stage: our own program
//! once more, with a hidden first argument ([`child_main`]). [`probe`] tells what holds on this machine.

#![cfg(target_os = "linux")]

mod call;
mod computing;
mod output;
mod paths;
mod prepare;
mod probe;
mod proxy;
mod reading;
mod report;
mod sandbox;
mod stage;
mod start;
mod talk;
mod tools;
mod wire;

pub use self::{
    computing::{OnlyComputing, only_compute},
    paths::find_program,
    probe::{probe, probe_with},
    report::{Mechanism, Mechanisms, PartReport, SandboxReport},
    sandbox::Sandbox,
    stage::child_main,
    tools::{CodeTool, Language},
};
