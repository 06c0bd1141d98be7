//! What one run of the yardstick workload W sends and keeps. The counts do not depend on the machine, so they may only
//! fall: whoever makes a run say less lowers the bounds.

use std::time::Duration;

use muster_bus::RecordFilter;
use muster_shared::flow::{Goal, RunLimits};
use muster_shared::ids::Seq;
use muster_support::census::{Census, Observer};
use muster_support::fleet::{Fleet, Folder};
use muster_support::model_server::ModelServer;
use muster_support::past;
use muster_support::workload::{Speech, of_leaves, script};

use super::support::{folder, with_model};

/// Messages on the bus because of a run that nobody watches, those of the server among them. Orchestrators hear of the 24
/// steps for the hash chain.
const MOST_MESSAGES: u64 = 324;
/// Of these, what processes of the fleet send.
const MOST_SENT: u64 = 130;
/// Entries of the record.
const MOST_ENTRIES: u64 = 82;
/// Bytes of these entries, without headers.
const MOST_RECORD_BYTES: u64 = 132_000;
/// Messages stored in any stream.
const MOST_WRITES: u64 = 104;
/// Runs that have ended, in the store of the second fleet.
const OLD_RUNS: usize = 200;
/// Runs before the count: first runs make caches and tables of lessons.
const WARM_UP: usize = 2;
/// Runs that are counted. The least of each figure is taken: which of two agents is faster changes a few messages.
const COUNTED: usize = 3;

#[test]
fn a_run_that_nobody_watches_says_and_keeps_no_more_than_it_must() {
    no_more_than_it_must(folder());
}

/// However many runs have ended before.
#[test]
fn a_run_beside_old_ones_says_and_keeps_no_more_than_it_must() {
    let model = ModelServer::start(of_leaves(2)).unwrap();
    let fleet = with_model(&model).up(&["--set", "agent.model=openai/scripted"]).unwrap();
    fleet.folder().output(&["run", "Work out two sums.", "--quiet"]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let full = folder();
    runtime.block_on(async {
        let bus = past::connect(&fleet.url()).await.unwrap();
        let run = bus.record().runs().await.unwrap()[0];
        let entries = bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap();
        past::fill(&full.path().join(".muster/nats"), &entries, OLD_RUNS).await.unwrap();
    });
    // The keys that were made with them are not known to this user yet.
    full.output(&["trust", "--yes"]).unwrap();
    drop(fleet);
    let fleet = no_more_than_it_must(full);
    let found = runtime
        .block_on(async { past::connect(&fleet.url()).await.unwrap().record().runs().await.unwrap().len() });
    assert_eq!(found, OLD_RUNS + WARM_UP + COUNTED, "they were there");
}

fn no_more_than_it_must(folder: Folder) -> Fleet {
    let model = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let fleet = folder
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
    // On a busy machine an orchestrator decides in more and smaller parts: the run that it disturbed least counts.
    let least = |of: fn(&Census) -> u64| counted.iter().map(of).min().unwrap();
    let table = counted.iter().map(Census::table).collect::<Vec<_>>().join("\n");
    for (what, count, most) in [
        ("messages", least(Census::of_work), MOST_MESSAGES),
        ("messages of processes", least(Census::of_processes), MOST_SENT),
        ("entries", least(|census| census.record.entries), MOST_ENTRIES),
        ("bytes of the record", least(|census| census.record.payload), MOST_RECORD_BYTES),
        ("writes", least(Census::all_writes), MOST_WRITES),
    ] {
        assert!(count <= most, "{count} {what} of a run, {most} at the most:\n{table}");
        assert!(count > most / 4, "{count} {what} of a run: was it counted?\n{table}");
    }
    fleet
}

fn goal() -> Goal {
    let limits = RunLimits { max_width: 8, ..RunLimits::default() };
    Goal { limits: Some(limits), ..Goal::new("Work out the eight sums.") }
}
