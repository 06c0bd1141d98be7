//! What one run of the yardstick workload W sends and keeps. The counts do not depend on the machine, so they may only
//! fall: whoever makes a run say less lowers the bounds.

use std::time::Duration;

use muster_shared::flow::{Goal, RunLimits};
use muster_support::census::{Census, Observer};
use muster_support::model_server::ModelServer;
use muster_support::workload::{Speech, script};

use super::support::folder;

/// Messages on the bus because of a run that nobody watches, those of the server among them.
const MOST_MESSAGES: u64 = 300;
/// Of these, what processes of the fleet send.
const MOST_SENT: u64 = 130;
/// Entries of the record.
const MOST_ENTRIES: u64 = 82;
/// Bytes of these entries, without headers.
const MOST_RECORD_BYTES: u64 = 132_000;
/// Messages stored in any stream.
const MOST_WRITES: u64 = 104;
/// Runs before the count: first runs make caches and tables of lessons.
const WARM_UP: usize = 2;
/// Runs that are counted. Their middle one is taken: which of two agents is faster changes a few messages.
const COUNTED: usize = 3;

#[test]
fn a_run_that_nobody_watches_says_and_keeps_no_more_than_it_must() {
    let model = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let fleet = folder()
        .with("OPENAI_API_KEY", "test-key")
        .with("OPENAI_BASE_URL", model.openai_url())
        .up(&["--set", "agent.model=openai/scripted"])
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let counted = runtime.block_on(async {
        let mut observer = Observer::connect(&fleet.url()).await.unwrap();
        let mut counted = Vec::new();
        for _ in 0..WARM_UP + COUNTED {
            counted.push(observer.count(goal()).await.unwrap());
        }
        counted.split_off(WARM_UP)
    });
    let middle = |of: fn(&Census) -> u64| {
        let mut all: Vec<u64> = counted.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let table = counted.iter().map(Census::table).collect::<Vec<_>>().join("\n");
    for (what, count, most) in [
        ("messages", middle(Census::of_work), MOST_MESSAGES),
        ("messages of processes", middle(Census::of_processes), MOST_SENT),
        ("entries", middle(|census| census.record.entries), MOST_ENTRIES),
        ("bytes of the record", middle(|census| census.record.payload), MOST_RECORD_BYTES),
        ("writes", middle(Census::all_writes), MOST_WRITES),
    ] {
        assert!(count <= most, "{count} {what} of a run, {most} at the most:\n{table}");
        assert!(count > most / 4, "{count} {what} of a run: was it counted?\n{table}");
    }
}

fn goal() -> Goal {
    let limits = RunLimits { max_width: 8, ..RunLimits::default() };
    Goal { limits: Some(limits), ..Goal::new("Work out the eight sums.") }
}
