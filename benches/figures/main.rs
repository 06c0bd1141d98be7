//! The figures of a fleet, measured on real processes, each with the ratio to its bare counterpart in the same run.
//!
//! `cargo bench --bench figures [-- NAME…]` with names from: up, delegation, idle, matching,
//! auction, crowd, workload, documents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::panic)]

mod auction;
mod crowd;
mod delegation;
mod documents;
mod idle;
mod matching;
mod print;
mod runs;
mod up;
mod workload;

use print::Figure;

/// A measurement by name.
type Measurement = (&'static str, fn() -> Vec<Figure>);

const ALL: [Measurement; 8] = [
    ("up", up::measure),
    ("delegation", delegation::measure),
    ("idle", idle::measure),
    ("matching", matching::measure),
    ("auction", auction::measure),
    ("crowd", crowd::measure),
    ("workload", workload::measure),
    ("documents", documents::measure),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let unknown = wanted.iter().find(|name| ALL.iter().all(|(known, _)| known != name));
    if let Some(name) = unknown {
        let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        panic!("there is no figure {name:?}; there are {}", known.join(", "));
    }
    print::head();
    for (name, measure) in ALL {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            for figure in measure() {
                figure.print();
            }
        }
    }
}
