//! What fleets need that are larger than this machine: computed from what the other tables measured, and simulated.

use muster_bus::partition::Partitions;
use muster_support::load::{Fleet, Measured, Traffic, needs, simulate};

use super::sizes;
use super::table::Table;

/// Agents.
const AGENTS: [usize; 7] = [10, 100, 1_000, 3_000, 10_000, 30_000, 100_000];
/// How long a model takes for an answer, in seconds.
const ANSWERS: [f64; 2] = [2.0, 10.0];
/// Cores of a server.
const CORES: f64 = 8.0;
/// The share of agents at work, in whatever is simulated.
const BUSY: f64 = 0.7;
/// From so many agents on, signs of life are given and asked for more rarely.
const LARGE: usize = 1_000;
/// From so many on, more rarely still.
const VERY_LARGE: usize = 10_001;
/// How long it is simulated, in seconds.
const TIME: f64 = 10.0;

/// By the tables of this bench: `disk` (3,500 bytes, every write on disk), `past` and the workload W, `idle`.
const MEASURED: Measured = Measured {
    writes: 80.0,
    bytes: 130_000.0,
    calls: 42.0,
    server_cpu: 0.035,
    orchestrator_cpu: 0.011,
    stream_writes: 4_000.0,
    server_writes: 7_350.0,
    beat: 0.000_62,
    ping: 0.000_21,
    heard: 0.000_17,
    server_memory: 240_000.0,
};

pub(crate) fn measure(wanted: &[usize]) {
    let headings = [
        "agents",
        "answer",
        "runs/s",
        "writes/s",
        "MB/s",
        "parts",
        "servers",
        "bound by",
        "orchestr.",
        "GiB",
        "beats/s",
        "fullest",
        "wait p50",
        "p99",
    ];
    let table =
        Table::begin("fleets at work on W, seven of ten agents busy: computed, waits simulated", &headings);
    for agents in sizes(wanted, &AGENTS) {
        // As docs/scale.md advises.
        let (heartbeat, ping) = match agents {
            ..LARGE => (5.0, 2.0),
            LARGE..VERY_LARGE => (30.0, 20.0),
            VERY_LARGE.. => (300.0, 20.0),
        };
        for answer in ANSWERS {
            #[expect(clippy::cast_precision_loss, reason = "a number of agents")]
            let fleet = Fleet { agents: agents as f64, busy: BUSY, answer, cores: CORES, heartbeat, ping };
            table.line(line(&fleet));
        }
    }
}

fn line(fleet: &Fleet) -> Vec<String> {
    let needs = needs(&MEASURED, fleet);
    let parted = needs.partitions.and_then(|count| Partitions::of_count(count.into()));
    // A plan, four calls of a leaf, reflection and report follow one another.
    let traffic = Traffic { runs: needs.runs, writes: 80, lasts: 7.0 * fleet.answer, time: TIME };
    let waits = parted.map(|parted| simulate(&traffic, parted, 1.0 / MEASURED.stream_writes));
    let of_waits = |show: &dyn Fn(&muster_support::load::Waits) -> String| {
        waits.as_ref().map_or_else(|| "–".to_owned(), show)
    };
    vec![
        format!("{:.0}", fleet.agents),
        format!("{:.0} s", fleet.answer),
        format!("{:.1}", needs.runs),
        format!("{:.0}", needs.writes),
        format!("{:.1}", needs.bytes / 1e6),
        needs.partitions.map_or_else(|| "> 16".to_owned(), |parts| parts.to_string()),
        needs.servers.to_string(),
        needs.bound.to_string(),
        if needs.orchestrators == 0 { "–".to_owned() } else { needs.orchestrators.to_string() },
        format!("{:.1}", needs.memory / f64::from(1 << 30)),
        format!("{:.0}", needs.beats),
        of_waits(&|waits| format!("{:.0} %", waits.fullest * 100.0)),
        of_waits(&|waits| format!("{:.1} ms", waits.p50 * 1e3)),
        of_waits(&|waits| format!("{:.1} ms", waits.p99 * 1e3)),
    ]
}
