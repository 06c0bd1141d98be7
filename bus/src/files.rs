//! The files of a run: what its tasks write for each other and for whoever asked (R9), wherever they work.
//!
//! A list for each run says which files there are, and changes by compare-and-set; what stands in them are objects named
//! by their hash.

mod glance;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use muster_shared::flow::Artifact;
use muster_shared::ids::{RunId, Seq};
use serde::{Deserialize, Serialize};

use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::kv::Bucket;
use crate::store::{Store, hash};
use crate::topology::FILES;
pub(crate) use glance::FileLists;

const BUCKET: Bucket = Bucket(FILES);

/// How often a change is made anew because somebody else changed the list first.
const MOST_ATTEMPTS: u32 = 64;

/// A file as a task writes it.
#[derive(Debug, Clone, Copy)]
pub struct FilePlace<'a> {
    /// The run.
    pub run: RunId,
    /// Where it stands among the files of the run.
    pub path: &'a str,
    /// The task that writes it.
    pub task: &'a str,
}

/// The files of runs.
#[derive(Clone)]
pub struct Files {
    core: Arc<Core>,
    store: Store,
}

/// The files of a run as they were, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileList {
    /// The files.
    pub files: Vec<Artifact>,
    version: Seq,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    files: Vec<Artifact>,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// Whoever made the new content refused.
    #[error("refused")]
    Refused(E),
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// The key of the bucket that is written to see whether the store takes anything; no run is called so.
const PROBE: &str = "probe";

/// Writes to the bucket and says how long that took: its writes wait for the disk, and take the place of the one before.
pub(crate) async fn probe(core: &Core) -> Result<Duration, BusError> {
    let began = Instant::now();
    BUCKET.set(core, PROBE, &crate::bus::now().0).await?;
    Ok(began.elapsed())
}

impl Files {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core), store: Store::new(core) }
    }

    /// The files that a run has.
    ///
    /// # Errors
    /// When the list cannot be read, or the bus fails.
    pub async fn list(&self, run: RunId) -> Result<FileList, BusError> {
        read_list(&self.core, run).await
    }

    /// The files that a run has, as far as this process has heard: what another one writes is known here a moment later.
    /// Only the first glance at a run asks the server.
    ///
    /// # Errors
    /// When the list cannot be read, or the bus fails.
    pub async fn glance(&self, run: RunId) -> Result<FileList, BusError> {
        self.core.files.glance(&self.core, run).await
    }

    /// What stands in a file; nothing when it is not there.
    ///
    /// # Errors
    /// When it has more bytes than `object_limit`, or the bus fails.
    pub async fn read(&self, run: RunId, path: &str) -> Result<Option<Bytes>, BusError> {
        // Somebody may write between the look into the list and the one at the object.
        for _ in 0..MOST_ATTEMPTS {
            let list = self.list(run).await?;
            let Some(file) = list.find(path) else { return Ok(None) };
            if let Some(bytes) = self.store.get(&object(run, &file.hash)).await? {
                return Ok(Some(bytes));
            }
        }
        Err(BusError::Conflict { what: format!("the file {path}") })
    }

    /// The same without secrets. Nothing can be taken out of what is no text, such as a picture.
    fn without_secrets(&self, path: &str, bytes: Bytes) -> Result<Bytes, BusError> {
        let redactor = &self.core.redactor;
        match std::str::from_utf8(&bytes).map(|text| redactor.redact(text)) {
            Ok(Cow::Borrowed(_)) => Ok(bytes),
            Ok(Cow::Owned(text)) => Ok(Bytes::from(text)),
            Err(_) if redactor.hits(&bytes) => Err(BusError::Other {
                what: "a file".to_owned(),
                reason: format!("{path} is no text and has a secret in it: it is not kept"),
            }),
            Err(_) => Ok(bytes),
        }
    }

    /// Writes a file as `make` has it from what there is: the list, and what stands in the file now. Readers see the
    /// old content or the new. Secrets are taken out of text.
    ///
    /// # Errors
    /// What `make` refuses with; when there is a secret in what is no text; [`BusError::Conflict`] when others kept writing; else when the bus fails.
    pub async fn write<E: Send>(
        &self,
        place: FilePlace<'_>,
        make: impl Fn(&FileList, Option<&Bytes>) -> Result<Bytes, E> + Send + Sync,
        needs_content: bool,
    ) -> Result<Artifact, WriteError<E>> {
        let FilePlace { run, path, task } = place;
        for _ in 0..MOST_ATTEMPTS {
            let list = self.list(run).await?;
            let before = list.find(path).cloned();
            let content = match &before {
                Some(file) if needs_content => match self.store.get(&object(run, &file.hash)).await? {
                    Some(content) => Some(content),
                    // Replaced since the list was read.
                    None => continue,
                },
                Some(_) | None => None,
            };
            let bytes = make(&list, content.as_ref()).map_err(WriteError::Refused)?;
            let bytes = self.without_secrets(path, bytes)?;
            let file = Artifact {
                path: path.to_owned(),
                bytes: bytes.len() as u64,
                hash: hash(&bytes),
                task: task.to_owned(),
            };
            self.store.put_named(&object(run, &file.hash), bytes).await?;
            let listed = match self.replace(run, &list, &file).await {
                Ok(version) => {
                    self.core.files.changed(run, FileList { files: list.with(&file), version });
                    true
                }
                Err(AppendError::Conflict) => false,
                // Whether it landed shows in the list.
                Err(AppendError::Ambiguous { .. }) => self.list(run).await?.find(path) == Some(&file),
                Err(error) => return Err(WriteError::Bus(error.into())),
            };
            if listed {
                self.forget(run, before.as_ref(), &list.with(&file)).await;
                return Ok(file);
            }
        }
        Err(WriteError::Bus(BusError::Conflict { what: format!("the file {path}") }))
    }

    /// The list of a run that came from elsewhere, in place of what there is. What stands in the files is there already.
    ///
    /// # Errors
    /// [`BusError::Conflict`] when others kept changing it; else when the bus fails.
    pub(crate) async fn adopt(&self, run: RunId, files: Vec<Artifact>) -> Result<(), BusError> {
        for _ in 0..MOST_ATTEMPTS {
            let list = self.list(run).await?;
            if list.files == files {
                return Ok(());
            }
            let listed = Listed { files: files.clone() };
            if BUCKET.replace(&self.core, &run.to_string(), &listed, list.version).await? {
                return Ok(());
            }
        }
        Err(BusError::Conflict { what: format!("the list of files of run {}", run.short()) })
    }

    /// Removes the list of a run; what stands in the files is removed apart.
    ///
    /// # Errors
    /// When the bus fails.
    pub(crate) async fn forget_list(&self, run: RunId) -> Result<(), BusError> {
        if self.list(run).await?.files.is_empty() {
            return Ok(());
        }
        BUCKET.remove(&self.core, &run.to_string(), None).await.map_err(BusError::from)
    }

    async fn replace(&self, run: RunId, list: &FileList, file: &Artifact) -> Result<Seq, AppendError> {
        let message = BUCKET.json(&run.to_string(), &Listed { files: list.with(file) })?;
        BUCKET.put(&self.core, message, None, Some(list.version)).await
    }

    /// Removes what a file held before, unless another file of the run holds the same.
    async fn forget(&self, run: RunId, before: Option<&Artifact>, now: &[Artifact]) {
        let Some(before) = before.filter(|before| now.iter().all(|file| file.hash != before.hash)) else {
            return;
        };
        if let Err(error) = self.store.delete(&object(run, &before.hash)).await {
            tracing::debug!(%error, path = before.path, "the old content of a file stays in the store");
        }
    }
}

/// The list as the leader has it.
async fn read_list(core: &Core, run: RunId) -> Result<FileList, BusError> {
    let Some(entry) = BUCKET.last(core, &run.to_string()).await? else {
        return Ok(FileList::default());
    };
    let Some(message) = entry.message else {
        return Ok(FileList { files: Vec::new(), version: entry.revision });
    };
    let unreadable = |error: serde_json::Error| BusError::Unreadable {
        seq: entry.revision,
        subject: message.subject.clone(),
        reason: error.to_string(),
    };
    let files = listed(&message.payload).map_err(unreadable)?;
    Ok(FileList { files, version: entry.revision })
}

fn listed(payload: &[u8]) -> Result<Vec<Artifact>, serde_json::Error> {
    serde_json::from_slice(payload).map(|Listed { files }| files)
}

impl FileList {
    /// The file of this path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Artifact> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files with this one in place of the one with its path, by path.
    fn with(&self, file: &Artifact) -> Vec<Artifact> {
        let others = self.files.iter().filter(|other| other.path != file.path).cloned();
        let mut files: Vec<Artifact> = others.chain([file.clone()]).collect();
        files.sort();
        files
    }
}

fn object(run: RunId, hash: &str) -> String {
    format!("file/{run}/{hash}")
}
