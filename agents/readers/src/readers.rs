//! Reads documents in processes of their own.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use muster_corpus::{ExtractFailure, Extracted, Extractor};
use muster_tools::{DocumentReader, DocumentText, UnreadableDocument};

use crate::found::{Failure, Found};
use crate::kind::Kind;
use crate::pool::Pool;
use crate::protocol::Head;
use muster_tools::settings::DocumentSettings;
use muster_tools::settings::PoolLimits;
use muster_tools::settings::ReadLimits;

/// Raised with every change of what the same document gives.
const VERSION: u32 = 1;

/// Longest name that is handed on, in characters.
const LONGEST_NAME: usize = 1_000;

/// Reads documents. Nothing is started before the first of them. Cheap to clone.
#[derive(Clone)]
pub struct Readers {
    pool: Pool,
    limits: Arc<ReadLimits>,
}

impl Readers {
    /// Reads with this very program, whose `main` has to call [`child_main`](crate::child_main) first.
    ///
    /// # Errors
    /// When the system does not say which program this is.
    pub fn of_this_program(settings: DocumentSettings) -> io::Result<Self> {
        // The program as it runs, also after its file was replaced: both sides speak the protocol of one version.
        let itself = PathBuf::from("/proc/self/exe");
        let program = if itself.exists() { itself } else { std::env::current_exe()? };
        Ok(Self::with_program(program, settings.reading, settings.readers))
    }

    /// Reads with another program that calls [`child_main`](crate::child_main) first.
    #[must_use]
    pub fn with_program(program: impl Into<PathBuf>, limits: ReadLimits, pool: PoolLimits) -> Self {
        Self { pool: Pool::new(program.into(), pool), limits: Arc::new(limits) }
    }

    /// How many processes wait for a document.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pool.idle()
    }

    fn ask(&self, request: &Request<'_>, cancelled: &AtomicBool) -> Result<Found, Failure> {
        let bytes = request.bytes;
        if bytes.len() as u64 > self.limits.max_bytes {
            return Err(Failure::TooLarge(format!("{} bytes", self.limits.max_bytes)));
        }
        if Kind::of(request.name, request.media_type, bytes).is_none() {
            return Err(Failure::Unknown(format!("files like {}", short(request.name))));
        }
        let head = Head {
            name: short(request.name),
            media_type: request.media_type.map(short),
            keeps_source: request.keeps_source,
            limits: (*self.limits).clone(),
            bytes: bytes.len() as u64,
        };
        self.pool.read(&head, bytes, cancelled)
    }
}

struct Request<'a> {
    bytes: &'a [u8],
    name: &'a str,
    media_type: Option<&'a str>,
    keeps_source: bool,
}

/// The end of a name: its ending tells the kind.
fn short(name: &str) -> String {
    let skipped = name.chars().count().saturating_sub(LONGEST_NAME);
    name.chars().skip(skipped).collect()
}

/// Ends the reading when nobody waits for it any more.
struct CancelWhenDropped(Arc<AtomicBool>);

impl Drop for CancelWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl DocumentReader for Readers {
    async fn read(
        &self,
        bytes: Bytes,
        name: &str,
        media_type: Option<&str>,
    ) -> Result<DocumentText, UnreadableDocument> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let _end = CancelWhenDropped(Arc::clone(&cancelled));
        let (readers, name, media_type) = (self.clone(), name.to_owned(), media_type.map(str::to_owned));
        let reading = tokio::task::spawn_blocking(move || {
            let request = Request {
                bytes: &bytes,
                name: &name,
                media_type: media_type.as_deref(),
                keeps_source: false,
            };
            readers.ask(&request, &cancelled)
        });
        let found = reading.await.map_err(|error| UnreadableDocument::Broken(error.to_string()))?;
        found.map(DocumentText::from).map_err(UnreadableDocument::from)
    }
}

impl Extractor for Readers {
    fn version(&self) -> String {
        let limits = &self.limits;
        format!(
            "readers {VERSION}: {} {} {} {}",
            limits.max_text,
            limits.max_pages,
            crate::limits::MAX_DOCUMENTS,
            crate::limits::MAX_DEPTH
        )
    }

    fn takes(&self, path: &str, beginning: &[u8]) -> bool {
        Kind::by_beginning(path, None, beginning).is_some_and(Kind::is_for_corpus)
    }

    fn extract(&self, path: &str, bytes: Vec<u8>) -> Result<Extracted, ExtractFailure> {
        let request = Request { bytes: &bytes, name: path, media_type: None, keeps_source: true };
        let found = self.ask(&request, &AtomicBool::new(false));
        found.map(Extracted::from).map_err(ExtractFailure::from)
    }
}
