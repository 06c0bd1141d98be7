//! How long 100 MB of mixed office documents take, and how much memory. Printed:
//! `cargo nextest run --release -p muster-readers --run-ignored only --no-capture -E 'test(office_documents)'`.

use std::sync::Arc;
use std::time::Instant;

use muster_corpus::{Corpus, CorpusOptions, MemoryBlobs};
use nix::sys::resource::{UsageWho, getrusage};

use super::office::{Words, document};
use super::*;

const MEGABYTES: usize = 100;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_hundred_megabytes_of_office_documents() {
    let folder = tempfile::tempdir().unwrap();
    let docs = folder.path().join("docs");
    std::fs::create_dir(&docs).unwrap();
    let (mut words, mut bytes, mut files) = (Words(7), 0, 0);
    while bytes < MEGABYTES * 1_000_000 {
        let (name, content) = document(files, &mut words);
        bytes += content.len();
        files += 1;
        std::fs::write(docs.join(name), content).unwrap();
    }
    let mut options = CorpusOptions::new(folder.path().join("cache"), vec![docs]);
    options.extractor = Some(Arc::new(readers(ReadLimits::default())));
    let begun = Instant::now();
    let store = MemoryBlobs::default();
    let opened = Corpus::open_or_build(options.clone(), &store).await.unwrap();
    let first = begun.elapsed();
    let begun = Instant::now();
    let again = Corpus::open_or_build(options, &store).await.unwrap();
    let peak = |who| getrusage(who).map(|usage| usage.max_rss() / 1024).unwrap_or(0);
    println!(
        "{files} files, {} MB: {first:?}, again {:?}; {} documents, {} MB of text; most memory {} MB here, {} MB in a child; {}",
        bytes / 1_000_000,
        begun.elapsed(),
        opened.documents,
        opened.bytes / 1_000_000,
        peak(UsageWho::RUSAGE_SELF),
        peak(UsageWho::RUSAGE_CHILDREN),
        opened.skipped,
    );
    assert_eq!(again.corpus.id(), opened.corpus.id());
    assert_eq!(opened.documents as usize, files);
}
