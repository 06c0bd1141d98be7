//! The lists of files as this process hears of them: read once for each run, then told with every change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_shared::ids::{RunId, Seq};
use muster_shared::sync::lock;
use tokio::task::AbortHandle;

use super::{FileList, listed};
use crate::bus::Core;
use crate::error::BusError;
use crate::topology::FILES_SHOWN;

/// Runs whose files nobody asked for in this time are not listened to any more.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Most runs that are listened to. What asks for more of them reads the list each time.
const MOST_RUNS: usize = 256;

/// The lists of some runs.
#[derive(Debug, Default)]
pub(crate) struct FileLists {
    runs: Mutex<BTreeMap<RunId, Kept>>,
    /// Held while a list is read for the first time: tasks that begin together read it once.
    reading: tokio::sync::Mutex<()>,
}

/// The list of a run, and what listens to its changes.
#[derive(Debug)]
struct Kept {
    list: Arc<Mutex<FileList>>,
    /// Over which connection it is listened: what changed between two of them was not heard.
    connections: u64,
    asked: Instant,
    listener: AbortHandle,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl FileLists {
    /// The list of a run, as far as this process has heard.
    pub(super) async fn glance(&self, core: &Core, run: RunId) -> Result<FileList, BusError> {
        if let Some(list) = self.kept(core, run) {
            return Ok(list);
        }
        let _reading = self.reading.lock().await;
        if let Some(list) = self.kept(core, run) {
            return Ok(list);
        }
        let connections = core.backend.connections();
        // Listened to before it is read: no change falls between.
        let mut changes = core.backend.subscribe(&format!("{FILES_SHOWN}{run}")).await?;
        let read = super::read_list(core, run).await?;
        let list = Arc::new(Mutex::new(read.clone()));
        let heard = Arc::clone(&list);
        let listen = async move {
            while let Some(message) = changes.next().await {
                let version = message.headers.get(SEQUENCE).and_then(|text| text.parse().ok()).map(Seq);
                if let (Some(version), Ok(files)) = (version, listed(&message.payload)) {
                    lock(&heard).replace_by(FileList { files, version });
                }
            }
        };
        let listener = tokio::spawn(listen).abort_handle();
        self.keep(run, Kept { list, connections, asked: Instant::now(), listener });
        Ok(read)
    }

    fn kept(&self, core: &Core, run: RunId) -> Option<FileList> {
        let mut runs = lock(&self.runs);
        let kept = runs.get_mut(&run)?;
        if kept.connections != core.backend.connections() || kept.listener.is_finished() {
            runs.remove(&run);
            return None;
        }
        kept.asked = Instant::now();
        Some(lock(&kept.list).clone())
    }

    fn keep(&self, run: RunId, kept: Kept) {
        let mut runs = lock(&self.runs);
        runs.retain(|_, other| other.asked.elapsed() < FORGOTTEN);
        if runs.len() < MOST_RUNS {
            runs.insert(run, kept);
        }
    }

    /// Listens to none of them any more: whoever asks again reads again.
    pub(crate) fn forget_all(&self) {
        lock(&self.runs).clear();
    }

    /// This process changed a list itself.
    pub(super) fn changed(&self, run: RunId, list: FileList) {
        if let Some(kept) = lock(&self.runs).get(&run) {
            lock(&kept.list).replace_by(list);
        }
    }
}

/// Where a message that was stored says its place.
const SEQUENCE: &str = "Nats-Sequence";

impl FileList {
    /// Takes a newer list in place of this one.
    fn replace_by(&mut self, other: Self) {
        if other.version > self.version {
            *self = other;
        }
    }
}
