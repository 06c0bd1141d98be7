//! What looking on costs: W beside a dashboard that somebody looks at, traces that are sent and figures that are scraped, and
//! the dashboard itself while much passes.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use muster_shared::ids::RunId;
use muster_support::dashboard::Dashboard;
use muster_support::figures::{Aim, Figure, Measured};
use muster_support::fleet::Fleet;
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::traffic::{Traffic, send};
use muster_support::workload::{Speech, script};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::beside::{figures, in_turn};
use crate::runs::{connect, fleet_in, folder};
use crate::workload::run;

/// How often each process is asked for its figures, as in `deploy/telemetry`.
const SCRAPED_EVERY: Duration = Duration::from_secs(15);
/// Messages a second.
const RATE: u16 = 500;
/// For how long.
const WATCH: Duration = Duration::from_secs(10);

pub(crate) fn measure() -> Vec<Figure> {
    // As the program does first of all.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let receiver = runtime.block_on(receiver());
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let seen = folder().with("OTEL_EXPORTER_OTLP_ENDPOINT", receiver);
    let seen = fleet_in(seen, &server, &["--set", &format!("metrics.listen={at}")]);
    let plain = fleet_in(folder(), &server, &[]);
    let dashboard = Dashboard::start(seen.folder(), &[]).unwrap();
    let page = runtime.block_on(Page::log_in(&dashboard));
    let mut figures = workload(&runtime, &seen, &plain, &dashboard, &page, at);
    drop(plain);
    for (what, traffic) in [("words of a task", Traffic::Words), ("entries of the record", Traffic::Entries)]
    {
        let used = runtime.block_on(much(&seen, &dashboard, &page, traffic));
        figures.push(
            Figure::new(format!("dashboard, {RATE} {what} a second: of a core"), used)
                .aiming(Aim::AtMost(20.0)),
        );
    }
    figures
}

/// Takes whatever is sent.
async fn receiver() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(|_: Bytes| async {});
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// W beside a page that is open and a Prometheus that asks each process.
fn workload(
    runtime: &Runtime,
    seen: &Fleet,
    plain: &Fleet,
    dashboard: &Dashboard,
    page: &Page,
    at: String,
) -> Vec<Figure> {
    let mut looked_at = seen.pids();
    looked_at.push(("dashboard".to_owned(), dashboard.pid()));
    let scraping = runtime.spawn(scrape(at));
    let looking = {
        let _inside = runtime.enter();
        page.look("")
    };
    let [with, without] = in_turn(runtime, [(seen, &looked_at), (plain, &plain.pids())]);
    looking.abort();
    scraping.abort();
    let mut figures =
        figures("W: CPU per run with dashboard, traces and metrics", "without", &with, &without);
    figures[0] = figures[0].clone().aiming(Aim::TimesBare(1.05));
    figures
}

/// Every process is asked for its figures, as by Prometheus.
async fn scrape(at: String) {
    let client = Client::new();
    let read = async |url: String| client.get(url).send().await.unwrap().text().await.unwrap();
    let mut clock = tokio::time::interval(SCRAPED_EVERY);
    loop {
        clock.tick().await;
        let targets: Value = serde_json::from_str(&read(format!("http://{at}/targets")).await).unwrap();
        let targets = targets.as_array().unwrap().iter().flat_map(|one| one["targets"].as_array().unwrap());
        for target in targets {
            read(format!("http://{}/metrics", target.as_str().unwrap())).await;
        }
    }
}

/// The share of a core that the dashboard uses while a page shows a run of which so much is told.
async fn much(fleet: &Fleet, dashboard: &Dashboard, page: &Page, what: Traffic) -> Measured {
    let bus = connect(&fleet.url()).await;
    let run: RunId = run(&bus).await[0].run;
    let looking = page.look(&format!("?run={run}&tap=1"));
    let before = (Instant::now(), consumption(&[dashboard.pid()]).cpu);
    let sent = send(&fleet.url(), run, what, RATE, WATCH).await.unwrap();
    let used = consumption(&[dashboard.pid()]).cpu - before.1;
    looking.abort();
    assert!(sent > 0.9 * f64::from(RATE), "only {sent:.0} a second were sent");
    Measured::percent(used.as_secs_f64() / before.0.elapsed().as_secs_f64() * 100.0)
}

/// Somebody who looks at the dashboard.
struct Page {
    client: Client,
    base: String,
    cookie: String,
}

impl Page {
    async fn log_in(dashboard: &Dashboard) -> Self {
        let (client, base) = (Client::new(), dashboard.base().to_owned());
        let body = json!({ "token": dashboard.token() }).to_string();
        let asked = client.post(format!("{base}/api/login")).header("content-type", "application/json");
        let answer = asked.body(body).send().await.unwrap();
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { client, base, cookie }
    }

    /// Reads what is told, until it is stopped.
    fn look(&self, query: &str) -> tokio::task::JoinHandle<()> {
        let asked =
            self.client.get(format!("{}/api/events{query}", self.base)).header("cookie", &self.cookie);
        tokio::spawn(async move {
            let mut told = asked.send().await.unwrap().error_for_status().unwrap();
            while told.chunk().await.unwrap().is_some() {}
        })
    }
}
