//! Files that are cut or damaged: each is answered, and the next one is read.

use std::sync::LazyLock;

use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::*;

const ALL: [&str; 14] = [
    "report.pdf",
    "owned.pdf",
    "text.docx",
    "text.odt",
    "sales.xlsx",
    "sums.ods",
    "old.xls",
    "talk.pptx",
    "book.epub",
    "tides.ipynb",
    "cube.eml",
    "box.mbox",
    "bundle.zip",
    "bundle.tar.gz",
];

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static READERS: LazyLock<Readers> = LazyLock::new(|| readers(tight()));

/// What took longer than a damaged file of a few KB may, or was read by no process.
fn is_harm(answer: &Result<DocumentText, UnreadableDocument>) -> bool {
    match answer {
        Ok(_) => false,
        Err(UnreadableDocument::TooLarge(limit)) => limit.contains(" s of time"),
        Err(UnreadableDocument::Broken(why)) => why.contains("killed") || why.contains("cannot be started"),
        Err(UnreadableDocument::Encrypted | UnreadableDocument::UnknownKind(_)) => false,
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_answered() {
    for name in ALL {
        let whole = file(name);
        for part in 0..60 {
            let cut = whole[..whole.len() * part / 60].to_vec();
            let answer = RUNTIME.block_on(read(&READERS, name, cut));
            assert!(!is_harm(&answer), "{name} cut at {part}/60: {answer:?}");
        }
    }
    RUNTIME.block_on(still_reads(&READERS));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_files_are_answered(
        at in 0..ALL.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let name = ALL[at];
        let mut bytes = file(name);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] ^= byte;
        }
        let answer = RUNTIME.block_on(read(&READERS, name, bytes));
        prop_assert!(!is_harm(&answer), "{name}: {answer:?}");
    }
}
