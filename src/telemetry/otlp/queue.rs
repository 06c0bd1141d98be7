//! The queue of spans before a receiver: bounded, off the path of everything else. What a receiver does not take in time is
//! dropped, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use muster_shared::traces::Span;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::send::TIMEOUT;
use super::{SendError, Sender};

/// Spans that wait.
const MAX_WAITING: usize = 2048;

/// Spans of one request.
const MAX_BATCH: usize = 512;

/// How often a batch is tried.
const TRIES: u32 = 5;

/// Wait before the second try; twice as long before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// How often at most is said that spans are dropped.
const WORD: Duration = Duration::from_secs(60);

/// How many spans went which way.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Taken by the receiver.
    pub(crate) sent: AtomicU64,
    /// Dropped: the receiver was away, too slow, or refused them.
    pub(crate) dropped: AtomicU64,
}

/// The end at which spans are put in.
#[derive(Clone)]
pub(crate) struct Queue {
    spans: mpsc::Sender<Span>,
    counts: Arc<Counts>,
}

impl Queue {
    /// Begins to send. What waits when the queue is dropped is sent before the task ends.
    pub(crate) fn begin(sender: Sender, counts: Arc<Counts>) -> (Self, tokio::task::JoinHandle<()>) {
        let (spans, waiting) = mpsc::channel(MAX_WAITING);
        let sending = tokio::spawn(work(sender, waiting, Arc::clone(&counts)));
        (Self { spans, counts }, sending)
    }

    /// Puts spans in. Waits for room for as long as a request may take; what finds none then is dropped.
    pub(crate) async fn put(&self, spans: Vec<Span>) {
        let until = Instant::now() + TIMEOUT;
        let mut spans = spans.into_iter();
        while let Some(span) = spans.next() {
            let sent = timeout(until.saturating_duration_since(Instant::now()), self.spans.send(span)).await;
            if !matches!(sent, Ok(Ok(()))) {
                let lost = 1 + spans.len() as u64;
                self.counts.dropped.fetch_add(lost, Ordering::Relaxed);
                return;
            }
        }
    }
}

async fn work(sender: Sender, mut waiting: mpsc::Receiver<Span>, counts: Arc<Counts>) {
    let (most, delay) = (MAX_BATCH, sender.settings().delay);
    let mut said = None;
    while let Some(first) = waiting.recv().await {
        let mut batch = vec![first];
        let full = async { while batch.len() < most && waiting.recv_many(&mut batch, most).await > 0 {} };
        // What comes within the delay goes along.
        let _ = timeout(delay, full).await;
        let rest = batch.split_off(batch.len().min(most));
        send(&sender, &batch, &counts, &mut said).await;
        if !rest.is_empty() {
            send(&sender, &rest, &counts, &mut said).await;
        }
    }
}

async fn send(sender: &Sender, batch: &[Span], counts: &Counts, said: &mut Option<Instant>) {
    let count = batch.len() as u64;
    let mut wait = FIRST_WAIT;
    for tried in 1..=TRIES {
        match sender.send(batch).await {
            Ok(refused) => {
                let lost = refused.as_ref().map_or(0, |refused| refused.spans.min(count));
                counts.sent.fetch_add(count - lost, Ordering::Relaxed);
                counts.dropped.fetch_add(lost, Ordering::Relaxed);
                if let Some(refused) = refused {
                    tell(said, lost, &format!("the receiver refused them: {}", refused.reason));
                }
                return;
            }
            Err(SendError { is_transient: true, after, .. }) if tried < TRIES => {
                sleep(after.unwrap_or(wait)).await;
                wait *= 2;
            }
            Err(SendError { reason, .. }) => {
                counts.dropped.fetch_add(count, Ordering::Relaxed);
                tell(said, count, &reason);
                return;
            }
        }
    }
}

/// Says that spans are lost, now and then.
fn tell(said: &mut Option<Instant>, count: u64, reason: &str) {
    if said.is_none_or(|at| at.elapsed() >= WORD) {
        *said = Some(Instant::now());
        tracing::warn!(
            count,
            reason,
            "spans are dropped; the record has everything: `muster trace RUN --otlp URL` sends them again"
        );
    }
}
