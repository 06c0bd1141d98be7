//! Submitting runs and following the record while the fleet is tormented.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::{Bus, RecordFilter};
use muster_shared::flow::Goal;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{Entry, RecordEvent, RunEvent};
use muster_shared::secret::Redactor;
use muster_shared::wire::{Command, Encoding};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Longest wait for a goal to be taken while the bus comes and goes.
const SEND: Duration = Duration::from_secs(60);

/// What was seen of the record while it was written.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// A hash of every entry, by its place.
    pub(super) entries: BTreeMap<Seq, u64>,
    /// The runs, each with whether it has ended.
    pub(super) runs: BTreeMap<RunId, bool>,
    /// Why goals could not be sent.
    pub(super) unsent: Vec<String>,
}

/// How many runs are begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    /// At least so many.
    pub(super) runs: usize,
    /// At most so many: until it is said that [no more](Traffic::begin_no_more) are wanted.
    pub(super) most: usize,
    /// So many at once.
    pub(super) at_once: usize,
}

/// Runs that are going on.
pub(super) struct Traffic {
    runtime: Runtime,
    seen: Arc<Mutex<Seen>>,
    is_enough: Arc<AtomicBool>,
    begun: JoinHandle<()>,
}

impl Traffic {
    pub(super) fn begin(url: &str, amount: Amount) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let bus = runtime.block_on(connect(url))?;
        let ended = Arc::new(Notify::new());
        let entries = runtime
            .block_on(bus.record().follow(&RecordFilter::Everything, Seq(0)))
            .map_err(|error| io::Error::other(error.to_string()))?;
        runtime.spawn({
            let (seen, ended) = (Arc::clone(&seen), Arc::clone(&ended));
            let mut entries = entries;
            async move {
                while let Some(Ok(entry)) = entries.next().await {
                    note(&mut lock(&seen), &entry);
                    ended.notify_waiters();
                }
            }
        });
        let is_enough = Arc::new(AtomicBool::new(false));
        let begun = runtime.spawn(submit_all(bus, Arc::clone(&seen), ended, amount, Arc::clone(&is_enough)));
        Ok(Self { runtime, seen, is_enough, begun })
    }

    /// Runs beyond the least number are not begun any more.
    pub(super) fn begin_no_more(&self) {
        self.is_enough.store(true, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) -> usize {
        lock(&self.seen).runs.values().filter(|ended| **ended).count()
    }

    pub(super) fn is_over(&self) -> bool {
        self.begun.is_finished() && in_work(&self.seen) == 0
    }

    pub(super) fn finish(self) -> Seen {
        self.runtime.shutdown_background();
        std::mem::take(&mut *lock(&self.seen))
    }
}

pub(crate) async fn connect(url: &str) -> io::Result<Bus> {
    let other = |error: String| io::Error::other(error);
    let who: AgentId = "ordeal".parse().map_err(|_| other("a bad name".to_owned()))?;
    let settings = crate::way::settings(url);
    Bus::connect(&settings, &who, Arc::new(Redactor::default()))
        .await
        .map_err(|error| other(error.to_string()))
}

async fn submit_all(
    bus: Bus,
    seen: Arc<Mutex<Seen>>,
    ended: Arc<Notify>,
    amount: Amount,
    is_enough: Arc<AtomicBool>,
) {
    for number in 0..amount.most {
        if number >= amount.runs && is_enough.load(Ordering::Relaxed) {
            return;
        }
        while in_work(&seen) >= amount.at_once {
            // Told of every entry; the limit is for the one told just before.
            let _ = tokio::time::timeout(Duration::from_millis(100), ended.notified()).await;
        }
        let run = RunId::from_uuid(Uuid::now_v7());
        lock(&seen).runs.insert(run, false);
        if let Err(error) = submit(&bus, run, number).await {
            let mut seen = lock(&seen);
            seen.runs.remove(&run);
            seen.unsent.push(error);
        }
    }
}

fn in_work(seen: &Mutex<Seen>) -> usize {
    lock(seen).runs.values().filter(|ended| !**ended).count()
}

/// Sends a goal; the same one again until the bus has it.
async fn submit(bus: &Bus, run: RunId, number: usize) -> Result<(), String> {
    let goal = Box::new(Goal::new(format!("Ordeal {number}: work out the sums of three lists.")));
    let command = Command::Submit { run, goal };
    let begun = Instant::now();
    loop {
        match bus.commands().send(&command, Encoding::MessagePack).await {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() > SEND => return Err(error.to_string()),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

fn note(seen: &mut Seen, entry: &Entry) {
    seen.entries.insert(entry.seq, hash(entry));
    if let RecordEvent::Decided(decided) = &entry.event
        && decided.events.iter().any(RunEvent::ends_run)
        && let Some(ended) = seen.runs.get_mut(&entry.run)
    {
        *ended = true;
    }
}

/// What an entry says, in short.
pub(super) fn hash(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{entry:?}").hash(&mut hasher);
    hasher.finish()
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
