//! The figures of a fleet, measured on real processes, each with the ratio to its bare counterpart in the same run.
//!
//! `cargo bench --bench figures [-- NAME…]` with names from: up, delegation, idle, matching, auction, crowd, workload,
//! documents, office, takeover, tls, tools, census, eval, seeing, beside, scale. Without a name all but the last. `-- series` measures those of `make figures`
//! and compares them with the kept ones; `--keep` keeps them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::print_stderr, clippy::panic)]

mod at_hand;
mod auction;
mod bare;
mod beside;
mod census;
mod crowd;
mod delegation;
mod documents;
mod eval;
mod idle;
mod matching;
mod office;
mod print;
mod runs;
mod scale;
mod seeing;
mod series;
mod takeover;
mod tls;
mod tools;
mod up;
mod workload;

use std::process::ExitCode;

use muster_support::figures::Figure;

/// A measurement by name.
type Measurement = (&'static str, fn() -> Vec<Figure>);

const ALL: [Measurement; 16] = [
    ("up", up::measure),
    ("delegation", delegation::measure),
    ("idle", idle::measure),
    ("matching", matching::measure),
    ("auction", auction::measure),
    ("crowd", crowd::measure),
    ("workload", workload::measure),
    ("documents", documents::measure),
    ("office", office::measure),
    ("takeover", takeover::measure),
    ("tls", tls::measure),
    ("tools", tools::measure),
    ("census", census::measure),
    ("eval", eval::measure),
    ("seeing", seeing::measure),
    ("beside", beside::measure),
];

fn main() -> ExitCode {
    let (options, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with('-'));
    if wanted.first().is_some_and(|name| name == "series") {
        return series::measure(&wanted[1..], options.iter().any(|option| option == "--keep"));
    }
    if wanted.first().is_some_and(|name| name == "scale") {
        scale::measure(&wanted[1..]);
        return ExitCode::SUCCESS;
    }
    let unknown = wanted.iter().find(|name| ALL.iter().all(|(known, _)| known != name));
    if let Some(name) = unknown {
        let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        panic!("there is no figure {name:?}; there are {}", known.join(", "));
    }
    print::head();
    for (name, measure) in ALL {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            measure().iter().for_each(print::figure);
        }
    }
    ExitCode::SUCCESS
}
