//! A program that is nothing but a stage, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    muster_sandbox::child_main(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
