//! How many durable writes a second one stream takes on this disk, and several: what bounds the record of a fleet.

use std::time::{Duration, Instant};

use muster_bus::server::{LocalServer, ServerSettings};
use muster_support::bare::broker::{self, Writing};

use super::table::Table;

/// Bytes of a write: about what an entry of a W has.
const SIZES: [usize; 2] = [512, 3_500];
/// Writers at once, and the streams over which they are spread.
const WRITERS: [(usize, usize); 5] = [(1, 1), (16, 1), (256, 1), (16, 4), (256, 4)];
/// How long each of them is measured.
const WATCH: Duration = Duration::from_secs(3);

pub(crate) fn measure(_: &[usize]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let headings = ["sync", "bytes", "writers", "streams", "writes/s", "MB/s", "server CPU of a write"];
    let table = Table::begin("writes with acknowledgement to streams of one server", &headings);
    for (sync_always, sync) in [(true, "always"), (false, "default")] {
        let store = tempfile::tempdir().unwrap();
        let settings =
            ServerSettings { store_dir: store.path().to_owned(), sync_always, ..ServerSettings::default() };
        runtime.block_on(async {
            let server = LocalServer::start(&settings).await.unwrap();
            muster_support::way::remember(&server.url(), store.path());
            let all = SIZES
                .into_iter()
                .flat_map(|bytes| WRITERS.map(|(writers, streams)| Writing { writers, bytes, streams }));
            for writing @ Writing { writers, bytes, streams } in all {
                let (before, began) = (cpu(server.pid()), Instant::now());
                let writes = broker::writes_of_many(&server.url(), writing, WATCH).await.unwrap();
                let (took, used) = (began.elapsed(), cpu(server.pid()).saturating_sub(before));
                let rate = writes as f64 / took.as_secs_f64();
                table.line([
                    sync.to_owned(),
                    bytes.to_string(),
                    writers.to_string(),
                    streams.to_string(),
                    format!("{rate:.0}"),
                    format!("{:.1}", rate * bytes as f64 / 1e6),
                    format!("{:.0} µs", used.as_secs_f64() * 1e6 / writes as f64),
                ]);
            }
            server.stop().await.unwrap();
        });
    }
}

fn cpu(pid: u32) -> Duration {
    muster_support::process::cpu_time(pid).unwrap_or_default()
}
