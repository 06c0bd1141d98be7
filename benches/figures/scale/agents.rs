//! What W costs as agents grow in number.

use std::time::Duration;

use muster_support::model_server::ModelServer;
use muster_support::workload::{Speech, script};

use super::cost::{HEADINGS, of_w};
use super::sizes;
use super::table::Table;
use crate::runs;

/// Workers of the fleet.
const WORKERS: [usize; 3] = [1, 10, 100];

pub(crate) fn measure(wanted: &[usize]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let model = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let headings = [&["workers"][..], &HEADINGS].concat();
    let table = Table::begin("one W as agents grow in number (what idle ones use is in it)", &headings);
    for workers in sizes(wanted, &WORKERS) {
        let scale = format!("worker={workers}");
        let fleet = runs::fleet(&model, &["--scale", &scale, "--set", "fleet.start_limit=5m"]);
        let cost = runtime.block_on(of_w(&fleet));
        table.line([workers.to_string()].into_iter().chain(cost.cells()));
    }
}
