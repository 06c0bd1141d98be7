//! Runs while processes are killed and frozen at random. `muster bench chaos` does it a thousand times.
#![allow(clippy::print_stderr)]

use std::sync::atomic::AtomicBool;

use muster_support::chaos::{Ordeal, Servers, Targets};

/// As many as `CHAOS_RUNS` says, else a number that fits into an ordinary test run.
fn runs() -> usize {
    std::env::var("CHAOS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// A few fleets of different shapes: each takes some seconds to come up. `muster bench chaos` draws all.
const SHAPES: usize = 4;

#[test]
fn nothing_is_lost_doubled_or_paid_for_twice_under_random_kills() {
    let ordeal = Ordeal {
        program: env!("CARGO_BIN_EXE_muster").to_owned(),
        server: None,
        servers: Servers::One,
        targets: Targets::All,
        runs: runs(),
        kills: 0,
        shapes: SHAPES,
        first: 0,
        keep: false,
        at_once: 16,
        seed: 7,
    };
    let verdict = ordeal.undergo(&AtomicBool::new(false), |_| {}).unwrap();
    eprintln!("{verdict:#?}");
    assert!(verdict.is_good(), "{verdict:#?}");
    assert!(verdict.faults.all() > 10, "too little happened: {:?}", verdict.faults);
    assert!(verdict.calls_in_record >= verdict.calls_needed, "every answer is in the record");
}
