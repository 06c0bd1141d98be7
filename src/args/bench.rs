//! Arguments of `muster bench`.

use clap::{Args, Subcommand, ValueEnum};

/// What is measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: Bench,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Bench {
    /// Many short runs while processes are killed and frozen at random: nothing may be lost, doubled or repeated.
    Chaos {
        /// How many runs.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        runs: u32,
        /// Over how many fleets of different shapes the runs are spread.
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        shapes: u32,
        /// The number of the first shape, to try one again.
        #[arg(long, default_value_t = 0, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..1_000))]
        first: u32,
        /// Leave the folders of fleets in which some run was slow or went wrong, or nothing was written for 5 s: records,
        /// logs and `muster ps`.
        #[arg(long)]
        keep: bool,
        /// Runs at once.
        #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=64))]
        at_once: u32,
        /// Servers of the bus: one, or three that keep three copies and of which one at a time is killed.
        #[arg(long, value_enum, default_value = "1")]
        servers: Servers,
        /// What the choice of victims begins with.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// One task of very many steps: what a step costs at the end, by what it costs at the beginning.
    Steps {
        /// How many steps.
        #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(200..=5_000))]
        steps: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// How long it takes to go on after the kill of an agent, an orchestrator and the server.
    Recovery {
        /// How many runs go on meanwhile, for each of the three.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        runs: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Servers of the bus.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Servers {
    #[value(name = "1")]
    One,
    #[value(name = "3")]
    Three,
}
