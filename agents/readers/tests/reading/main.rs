//! Documents are read by real processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod broken;
mod corpus;
mod files;
mod hostile;
mod made;
mod pictures;

use std::path::PathBuf;
use std::time::Duration;

use muster_readers::Readers;
use muster_tools::settings::{PoolLimits, ReadLimits};
use muster_tools::{DocumentReader, DocumentText, UnreadableDocument};

fn readers(limits: ReadLimits) -> Readers {
    Readers::with_program(env!("CARGO_BIN_EXE_read-document"), limits, PoolLimits::default())
}

/// Limits that hostile files reach soon.
fn tight() -> ReadLimits {
    ReadLimits {
        time: Duration::from_secs(20),
        cpu: Duration::from_secs(10),
        memory: 512 * 1024 * 1024,
        ..ReadLimits::default()
    }
}

fn file(name: &str) -> Vec<u8> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "files"].iter().collect();
    std::fs::read(folder.join(name)).unwrap()
}

async fn read(readers: &Readers, name: &str, bytes: Vec<u8>) -> Result<DocumentText, UnreadableDocument> {
    DocumentReader::read(readers, bytes.into(), name, None).await
}

/// That a document which is well is read: whatever came before did no harm.
async fn still_reads(readers: &Readers) {
    let found = read(readers, "report.pdf", file("report.pdf")).await.unwrap();
    assert_eq!(found.parts.len(), 3);
}
