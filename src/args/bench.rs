//! Arguments of `muster bench`.

use clap::{Args, Subcommand, ValueEnum};

/// Run chaos tests and benchmarks on a private fleet.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Run many short runs while killing and freezing random processes; check that no work is lost or done twice.
    Chaos {
        /// Number of runs.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        runs: u32,
        /// Number of differently shaped fleets to spread the runs over.
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        shapes: u32,
        /// Number of the first shape; use it to repeat one.
        #[arg(long, default_value_t = 0, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..1_000))]
        first: u32,
        /// Keep the folder (records, logs, `muster ps`) of each fleet with a slow or failed run, or without a write for 5 s.
        #[arg(long)]
        keep: bool,
        /// Number of concurrent runs.
        #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=64))]
        at_once: u32,
        /// NATS servers: 1, or a cluster of 3 with three replicas, of which one at a time is killed.
        #[arg(long, value_enum, default_value = "1")]
        servers: Servers,
        /// Seed of the random faults.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measure how the cost of a step grows over a long task.
    Steps {
        /// Number of steps.
        #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(200..=990))]
        steps: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a suite of goals against a scripted model that answers in good faith, with mistakes by a seed.
    Eval {
        /// Suite: a TOML file, or the name of one that comes with Muster.
        #[arg(default_value = "basics")]
        suite: String,
        /// Share of the answers that have a mistake, in percent.
        #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
        mistakes: u8,
        /// Seed of the mistakes.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How often each goal is run.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        repeat: u32,
        /// Setting to compare, as for `muster eval`; repeatable.
        #[arg(long, value_name = "NAME=KEY=VALUE,…")]
        compare: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Serve the scripted model of `muster bench eval` until Ctrl-C, for fleets started elsewhere; prints its address.
    Model {
        /// Share of the answers that have a mistake, in percent.
        #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
        mistakes: u8,
        /// Seed of the mistakes.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// A weak model instead: no native tools, one action as text, mistakes of small models, a short context. Name it
        /// as one, such as openai/weak-3b.
        #[arg(long)]
        weak: bool,
    },
    /// Measure the recovery time after killing an agent, an orchestrator and the server.
    Recovery {
        /// Number of processes to kill of each of the three kinds.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        kills: u32,
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
