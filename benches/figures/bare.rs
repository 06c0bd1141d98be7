//! The bare loop: workload W with nothing kept and nothing checked, in this process.

use std::time::{Duration, Instant};

use muster_support::bare::model_loop;
use muster_support::model_server::ModelServer;

/// What the bare loop needs for one run.
pub(crate) struct Bare {
    /// CPU time of its own thread.
    pub(crate) cpu: Duration,
    /// Runs a second, many at once.
    pub(crate) rate: f64,
}

/// Rounds of `crowd` runs at once, on a thread of its own, so that its CPU time can be told from the model server's.
pub(crate) fn measure(server: &ModelServer, crowd: usize, rounds: usize) -> Bare {
    let endpoint = server.openai_url();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = reqwest::Client::new();
        let runs = || {
            runtime.block_on(async {
                for run in
                    futures::future::join_all((0..crowd).map(|_| model_loop::run(&client, &endpoint))).await
                {
                    run.unwrap();
                }
            });
        };
        runs();
        let (began, before) = (Instant::now(), thread_cpu());
        (0..rounds).for_each(|_| runs());
        let all = u32::try_from(crowd * rounds).unwrap();
        let each = began.elapsed() / all;
        Bare { cpu: (thread_cpu() - before) / all, rate: 1.0 / each.as_secs_f64() }
    };
    std::thread::spawn(work).join().unwrap()
}

/// One run after the other: how long each takes.
pub(crate) async fn one_by_one(server: &ModelServer, rounds: usize) -> Vec<Duration> {
    let client = reqwest::Client::new();
    let endpoint = server.openai_url();
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        model_loop::run(&client, &endpoint).await.unwrap();
        times.push(began.elapsed());
    }
    times
}

fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}
