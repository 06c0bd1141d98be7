//! What one run of W sends and keeps, counted.

use std::time::Duration;

use muster_shared::flow::{Goal, RunLimits};
use muster_support::census::{Census, Observer};
use muster_support::figures::{Aim, Figure, Measured};
use muster_support::model_server::ModelServer;
use muster_support::workload::{Speech, script};

use crate::runs;

/// Runs before the count.
const WARM_UP: usize = 2;
/// Runs that are counted; their middle one is taken.
const COUNTED: usize = 3;

pub(crate) fn measure() -> Vec<Figure> {
    let model = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let fleet = runs::fleet(&model, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut counted = runtime.block_on(async {
        let mut observer = Observer::connect(&fleet.url()).await.unwrap();
        let mut counted = Vec::new();
        for _ in 0..WARM_UP + COUNTED {
            counted.push(observer.count(goal()).await.unwrap());
        }
        counted.split_off(WARM_UP)
    });
    counted.sort_by_key(Census::of_work);
    let census = &counted[COUNTED / 2];
    println!("\nmessages of a W by class, nobody watching\n{}", census.table());
    let count = |what: &str, count: u64| Figure::new(what, Measured::count(count));
    vec![
        count("W: messages of a run that nobody watches", census.of_work()).aiming(Aim::AtMost(130.0)),
        count("W: bytes of these messages", census.bytes),
        count("W: record entries of a run", census.record.entries).aiming(Aim::AtMost(90.0)),
        count("W: record bytes of a run", census.record.payload).aiming(Aim::AtMost(138_000.0)),
        count("W: bytes of headers in the record of a run", census.record.headers),
        count("W: writes of a run, all streams", census.all_writes()),
    ]
}

fn goal() -> Goal {
    let limits = RunLimits { max_width: 8, ..RunLimits::default() };
    Goal { limits: Some(limits), ..Goal::new("Work out the eight sums.") }
}
