//! Whoever looks on in this process: begun with it, and ended in good order.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use muster_bus::{Bus, DecisionSeen, Observer, RunProgress};
use muster_shared::flow::{Hook, Ruling};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{AgentEvent, AgentKey};
use muster_shared::wire::TraceContext;
use muster_shared::wire::tool_server::ServedStatus;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::door::{accepted, listen, serve, told, unknown};
use super::follow::{Follower, News};
use super::metrics::{self, Figures};
use super::otlp::{self, Counts, OtlpSettings, Queue, Sender};
use crate::app::{App, variables};
use crate::exit::Failure;

/// Time for what waits to be sent when the process ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What the process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It decides: it sends spans.
    Orchestrator,
    /// It works.
    Agent,
    /// It is asked whether runs may go on.
    Guard,
    /// It carries calls of tools out.
    ToolServer,
}

/// Looks on.
struct Onlooker {
    figures: Option<Arc<Figures>>,
    news: Option<Arc<News>>,
    address: String,
}

impl Observer for Onlooker {
    fn decided(&self, run: RunId, seq: Seq, decision: &DecisionSeen) {
        if let Some(figures) = &self.figures {
            figures.decided(run, decision);
        }
        if let Some(news) = &self.news {
            news.decided(run, seq);
        }
    }

    fn progressed(&self, run: RunId, progress: RunProgress) {
        if let Some(figures) = &self.figures {
            figures.progressed(run, progress);
        }
    }

    fn left(&self, run: RunId) {
        if let Some(figures) = &self.figures {
            figures.left(run);
        }
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn reported(&self, run: RunId, key: &AgentKey, event: &AgentEvent, trace: Option<&TraceContext>) {
        if let Some(figures) = &self.figures {
            figures.reported(run, key, event, trace);
        }
    }

    fn judged(&self, hook: Hook, verdict: Ruling, took: Duration) {
        if let Some(figures) = &self.figures {
            figures.judged(hook, verdict, took);
        }
    }

    fn served(&self, tool: &str, status: ServedStatus, took: Duration) {
        if let Some(figures) = &self.figures {
            figures.served(tool, status, took);
        }
    }
}

/// What was begun.
pub(crate) struct Telemetry {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Telemetry {
    /// Begins what settings and the usual variables ask for, and gives the bus that is looked at. What is wrong with the
    /// variables is told and switches off what they ask for: nobody's work stops for it.
    ///
    /// # Errors
    /// When there is no listening at the address that is set.
    pub(crate) async fn begin(app: &App, bus: Bus, role: Role) -> Result<(Bus, Self), Failure> {
        let mut this = Self { stop: CancellationToken::new(), tasks: Vec::new() };
        let counts = Arc::new(Counts::default());
        let news = (role == Role::Orchestrator).then(|| this.follow(&bus, &counts)).flatten();
        let (figures, address) = match app.settings().metrics.listen {
            Some(at) => {
                this.tell_figures(at, role, &counts).await.map(|(figures, at)| (Some(figures), at))?
            }
            None => (None, String::new()),
        };
        if figures.is_none() && news.is_none() {
            return Ok((bus, this));
        }
        let onlooker: Arc<dyn Observer> = Arc::new(Onlooker { figures, news, address });
        Ok((bus.observed_by(Some(onlooker)), this))
    }

    /// Follows runs and sends their spans, where the variables ask for that.
    fn follow(&mut self, bus: &Bus, counts: &Arc<Counts>) -> Option<Arc<News>> {
        let all = variables();
        if !otlp::is_on(&all) {
            return None;
        }
        let sender = otlp::read(&all, None).and_then(|read| match read {
            Some((settings, wrong)) => {
                wrong.iter().for_each(|said| tracing::warn!("{said}"));
                Sender::new(settings).map(Some)
            }
            None => Ok(None),
        });
        let sender = match sender {
            Ok(sender) => sender?,
            Err(why) => {
                tracing::warn!("no spans are sent: {why}");
                return None;
            }
        };
        let OtlpSettings { content, delay, .. } = *sender.settings();
        let (queue, sending) = Queue::begin(sender, Arc::clone(counts));
        let news = Arc::new(News::default());
        let overlap = delay + Duration::from_secs(1);
        let follower = Follower { bus: bus.clone(), news: Arc::clone(&news), queue, content, overlap, delay };
        self.tasks.extend([tokio::spawn(follower.follow(self.stop.clone())), sending]);
        Some(news)
    }

    /// Serves figures at an address, and says where that is.
    async fn tell_figures(
        &mut self,
        at: SocketAddr,
        role: Role,
        counts: &Arc<Counts>,
    ) -> Result<(Arc<Figures>, String), Failure> {
        metrics::begin();
        let listener = listen(at).await.map_err(|why| {
            Failure::failed(why)
                .help("metrics.listen names an address of this machine; port 0 takes any that is free")
        })?;
        let address = listener.local_addr().map_or_else(|_| at.to_string(), |at| at.to_string());
        let figures = Arc::new(Figures::new());
        let (own, counts) = (Arc::clone(&figures), Arc::clone(counts));
        let tell = move |headers: HeaderMap| {
            let form = accepted(&headers);
            let all = own.all(role, Some(&counts));
            ready(told(form.name(), form.write(all.into_iter())))
        };
        let paths = Router::new().route("/metrics", get(tell)).fallback(|| ready(unknown("/metrics")));
        self.tasks.push(tokio::spawn(serve(listener, paths, self.stop.clone())));
        Ok((figures, address))
    }

    /// Ends: what waits is sent, as far as a receiver takes it soon.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        let all = async {
            for task in self.tasks {
                let _ended = task.await;
            }
        };
        if tokio::time::timeout(LAST_WORDS, all).await.is_err() {
            tracing::warn!("spans that wait are not sent: the receiver does not take them in time");
        }
    }
}
