//! Spans while runs go on: whoever decides sends what its decisions closed.
//!
//! An orchestrator has to know all of a run anyway, and each decision has one author: so each span has one sender, whichever
//! agents died meanwhile, and programs in other languages are traced without knowing of it. Nothing is made on the path of a
//! decision: it is noted that there was one, and now and then the record is read from where it was read last. Whoever takes a
//! run over also sends what the one before closed in its last moments, which may have died before it was sent; the ids are the
//! same, so that a receiver has it once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_bus::{Bus, RecordFilter};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::Entry;
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use muster_shared::traces::{Span, Tracer};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::otlp::Queue;

/// How long a run is remembered of which nothing was heard: somebody else has it.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// How often the record is read at least, else as often as spans are sent: each look costs the server a consumer.
const LOOK: Duration = Duration::from_secs(2);

/// Runs that were decided upon since they were looked at, and since where. As many as this orchestrator has in hand.
#[derive(Debug, Default)]
pub(crate) struct News {
    runs: Mutex<HashMap<RunId, Seq>>,
}

impl News {
    /// A run was decided upon.
    pub(crate) fn decided(&self, run: RunId, seq: Seq) {
        let mut runs = lock(&self.runs);
        let since = runs.entry(run).or_insert(seq);
        *since = (*since).min(seq);
    }

    fn take(&self) -> HashMap<RunId, Seq> {
        std::mem::take(&mut *lock(&self.runs))
    }
}

/// How far a run was followed.
struct Followed {
    tracer: Tracer,
    read: Seq,
    /// The first decision of ours that was heard of: what was closed before is for others to send.
    since: Seq,
    heard: Instant,
}

/// Which spans of a run are for whom to send. Pure but for the record that it is given.
impl Followed {
    fn new(content: bool, since: Seq) -> Self {
        Self { tracer: Tracer::new(content), read: Seq(0), since, heard: Instant::now() }
    }

    /// Takes entries, and gives the spans that are ours to send: closed by our decisions, or by the last ones of whoever had the
    /// run before, up to `overlap` before our first.
    fn read(&mut self, entries: &[Entry], us: &AgentId, overlap: Duration) -> (Vec<Span>, bool) {
        let began = entries.iter().find(|entry| entry.seq >= self.since).map(|entry| entry.at);
        let (mut ours, mut has_ended) = (Vec::new(), false);
        let read = self.read;
        for entry in entries.iter().filter(|entry| entry.seq > read) {
            let closed = self.tracer.read(entry);
            self.read = entry.seq;
            has_ended |= closed.has_ended;
            let Some(by) = closed.by else { continue };
            let is_left = |began: Millis| by != *us && began.since(entry.at) <= overlap;
            let is_ours = if entry.seq >= self.since { by == *us } else { began.is_some_and(is_left) };
            if is_ours {
                ours.extend(closed.spans);
            }
        }
        (ours, has_ended)
    }
}

/// Follows the runs that this orchestrator decides upon, and puts their spans into the queue.
pub(crate) struct Follower {
    pub(crate) bus: Bus,
    pub(crate) news: Arc<News>,
    pub(crate) queue: Queue,
    pub(crate) content: bool,
    /// How long spans may wait in the queue of somebody who dies.
    pub(crate) overlap: Duration,
    /// How long after a decision the record is read.
    pub(crate) delay: Duration,
}

impl Follower {
    /// Follows until told to stop, and then once more.
    pub(crate) async fn follow(self, stop: CancellationToken) {
        let mut runs: HashMap<RunId, Box<Followed>> = HashMap::new();
        let pause = self.delay.min(LOOK);
        loop {
            let is_over = stop.run_until_cancelled(sleep(pause)).await.is_none();
            for (run, since) in self.news.take() {
                self.look(&mut runs, run, since).await;
            }
            runs.retain(|_, followed| followed.heard.elapsed() < FORGOTTEN);
            if is_over {
                return;
            }
        }
    }

    async fn look(&self, runs: &mut HashMap<RunId, Box<Followed>>, run: RunId, since: Seq) {
        let mut followed = runs.remove(&run).unwrap_or_else(|| Box::new(Followed::new(self.content, since)));
        followed.heard = Instant::now();
        let entries = match self.bus.record().read(&RecordFilter::Run(run), followed.read).await {
            Ok(entries) => entries,
            Err(error) => {
                // With the next decision it is read again, from where it was read last.
                tracing::debug!(%run, %error, "the record of a run could not be read for its spans");
                runs.insert(run, followed);
                return;
            }
        };
        let (spans, has_ended) = followed.read(&entries, self.bus.who(), self.overlap);
        if followed.tracer.is_sampled() {
            self.queue.put(spans).await;
        }
        if !has_ended {
            runs.insert(run, followed);
        }
    }
}
