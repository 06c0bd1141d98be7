//! Reads documents for whoever started it: what `muster` does when it starts itself for that, for the tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    muster_readers::child_main(std::env::args_os().skip(1)).unwrap_or(ExitCode::FAILURE)
}
