//! Documents that are no text as documents of a corpus: found, read and cited by page, row, slide and cell.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use muster_corpus::{
    CitedPlace, Corpus, CorpusError, CorpusOptions, ExtractFailure, Extracted, Extractor, MemoryBlobs,
    Opened, SearchKind, SkipReason, Unit,
};
use muster_shared::flow::{PlaceFound, Standing};

use super::*;

/// Readers that count what they read.
struct Counting {
    readers: Readers,
    read: AtomicUsize,
}

impl Extractor for Counting {
    fn version(&self) -> String {
        self.readers.version()
    }

    fn takes(&self, path: &str, beginning: &[u8]) -> bool {
        self.readers.takes(path, beginning)
    }

    fn extract(&self, path: &str, bytes: Vec<u8>) -> Result<Extracted, ExtractFailure> {
        self.read.fetch_add(1, Ordering::SeqCst);
        self.readers.extract(path, bytes)
    }
}

pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    extractor: Arc<Counting>,
    pub(crate) store: MemoryBlobs,
}

impl Place {
    pub(crate) fn new(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        for name in files {
            std::fs::write(folder.path().join("docs").join(name), file(name)).unwrap();
        }
        let extractor = Counting { readers: readers(ReadLimits::default()), read: AtomicUsize::new(0) };
        Self { folder, extractor: Arc::new(extractor), store: MemoryBlobs::default() }
    }

    fn docs(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    pub(crate) fn options(&self, cache: &str) -> CorpusOptions {
        let mut options = CorpusOptions::new(self.folder.path().join(cache), vec![self.docs()]);
        options.extractor = Some(Arc::clone(&self.extractor) as Arc<dyn Extractor>);
        options
    }

    pub(crate) async fn open(&self) -> Opened {
        Corpus::open_or_build(self.options("cache"), &self.store).await.unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.docs().join(name), bytes).unwrap();
    }

    fn read(&self) -> usize {
        self.extractor.read.swap(0, Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_any_document_is_found_at_its_place() {
    let place = Place::new(&[
        "report.pdf",
        "text.docx",
        "sales.xlsx",
        "talk.pptx",
        "book.epub",
        "tides.ipynb",
        "cube.eml",
        "box.mbox",
        "bundle.zip",
        "bundle.tar.gz",
        "text.odt",
        "old.xls",
    ]);
    let corpus = place.open().await.corpus;
    for (words, citation, unit) in [
        ("revenue million", "report.pdf:2", Unit::Page),
        ("thirty seconds", "text.docx:1", Unit::Line),
        ("wages", "sales.xlsx/Budget_2026:1", Unit::Row),
        ("turbines hertz", "talk.pptx:1", Unit::Slide),
        ("storm lasted", "book.epub/2:1", Unit::Line),
        ("tides analysis", "tides.ipynb:1", Unit::Cell),
        ("cube kilograms", "cube.eml:1", Unit::Line),
        ("third message", "box.mbox/2.eml:1", Unit::Line),
        ("valve opens bar", "bundle.zip/docs/guide.md:1", Unit::Line),
        ("pump green", "bundle.tar.gz/notes/a.txt:1", Unit::Line),
        ("bridge metres", "text.odt:1", Unit::Line),
        ("coal", "old.xls/Old:1", Unit::Row),
    ] {
        let hits = corpus.search(words, 20).await.unwrap();
        let hit = hits.iter().find(|hit| hit.citation() == citation);
        let hit = hit.unwrap_or_else(|| panic!("{words}: {hits:?}"));
        assert_eq!(hit.unit, unit, "{words}");
    }
    let hits = corpus.search_in("revenue grew", SearchKind::Exact, Some("report.pdf"), 5).await.unwrap();
    let hit = hits.iter().find(|hit| hit.path == "report.pdf").unwrap();
    assert_eq!((hit.start_line, hit.end_line), (2, 2));
    assert!(
        hit.shown().contains("\n2| Revenue grew by 12 percent to 4.8 million.\n2| Costs"),
        "{}",
        hit.shown()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_rows_are_read_by_their_numbers() {
    let place = Place::new(&["report.pdf", "sales.xlsx", "tides.ipynb"]);
    let corpus = place.open().await.corpus;
    let pages = corpus.read("report.pdf", 2, 3).await.unwrap();
    assert_eq!((pages.from, pages.to(), pages.total, pages.unit, pages.cut), (2, 3, 3, Unit::Page, false));
    assert!(
        pages.shown().starts_with("report.pdf:2-3 of 3 pages\n2| Results\n2| \n2| Revenue"),
        "{}",
        pages.shown()
    );
    assert!(pages.shown().ends_with("3| The plant in Köln opens in May."));
    let rows = corpus.read("sales.xlsx/Budget_2026", 7, 7).await.unwrap();
    assert_eq!(rows.shown(), "sales.xlsx/Budget_2026:7-7 of 8 rows\n7| Wages\t23000\t24500");
    let beyond = corpus.read("report.pdf", 4, 9).await.unwrap_err();
    assert!(matches!(beyond, CorpusError::BadRange { .. }));
    assert_eq!(beyond.to_string(), "`report.pdf` has 3 pages; ask for pages from 1 to 3");
    let outlines = corpus.outlines(9).await.unwrap();
    let told = muster_corpus::in_words(&outlines, 500);
    assert!(told.starts_with("report.pdf (3 pages)\nsales.xlsx/Budget_2026 (8 rows)\n"), "{told}");
    assert!(told.ends_with("tides.ipynb (2 cells): Analysis"), "{told}");
    assert_eq!(corpus.section("tides.ipynb", "Analysis").await.unwrap(), Some((1, 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_page_is_shown_around_the_words_that_are_looked_for() {
    let place = Place::new(&[]);
    let long: Vec<String> =
        (0..1_000).map(|n| format!("Line {n} of the long cell, of sixty bytes or so.\\n")).collect();
    let source: String = long.concat();
    let cell = |source: &str| format!("{{\"cell_type\": \"markdown\", \"source\": \"{source}\"}}");
    let cells = [cell("short"), cell(&source), cell("the last")].join(",");
    place.write("long.ipynb", format!("{{\"cells\": [{cells}]}}").as_bytes());
    let corpus = place.open().await.corpus;
    let first = corpus.read("long.ipynb", 1, 3).await.unwrap();
    assert_eq!((first.from, first.to(), first.cut), (1, 1, true));
    assert!(
        first.shown().ends_with("is longer; `find` shows what stands around words of it]")
            || first.shown().ends_with("go on from cell 2]")
    );
    let second = corpus.read("long.ipynb", 2, 2).await.unwrap();
    assert!(
        second.cut
            && second.lines[0].starts_with("Line 0 ")
            && second.shown().contains("this cell is longer")
    );
    let found = corpus.read_around("long.ipynb", 2, 2, Some("Line 900 of")).await.unwrap();
    assert!(found.lines.iter().any(|line| line.starts_with("Line 900 of")), "{found:?}");
    assert_eq!((found.from, found.to()), (2, 2));
}

fn cited(path: &str, line: u32, quote: &str, statement: &str) -> CitedPlace {
    CitedPlace {
        path: path.into(),
        line,
        last: 0,
        quote: quote.into(),
        statement: statement.into(),
        group: 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn citations_are_looked_up_by_page_row_and_cell() {
    let place = Place::new(&["report.pdf", "sales.xlsx", "talk.pptx", "book.epub"]);
    let corpus = place.open().await.corpus;
    let stands = PlaceFound::Stands(Standing::default());
    let at = |line| PlaceFound::Stands(Standing { line: Some(line), ..Standing::default() });
    for (asked, expected) in [
        (cited("report.pdf", 2, "Revenue grew by 12 percent to 4.8 million", ""), stands.clone()),
        (cited("report.pdf", 2, "", "Revenue grew by 12 percent, to 4.8 million."), stands.clone()),
        (cited("report.pdf", 2, "", "Costs for rent and wages fell to 3.1 million."), stands.clone()),
        (cited("report.pdf", 1, "Revenue grew by 12 percent to 4.8 million", ""), at(2)),
        (cited("talk.pptx", 1, "Turbines turn at 50 hertz", ""), stands.clone()),
        (cited("sales.xlsx/Budget_2026", 7, "", "Wages were 23000 and are 24500."), stands.clone()),
        (cited("book.epub/1", 3, "The keeper came by boat", ""), stands.clone()),
        (cited("report.pdf", 9, "Something that stands nowhere at all", ""), PlaceFound::NoLine { lines: 3 }),
    ] {
        let found = corpus.look_up(vec![asked.clone()], false).await.unwrap();
        assert_eq!(found, [expected], "{asked:?}");
    }
    for wrong in [
        cited("report.pdf", 2, "", "Revenue grew by 19 percent."),
        cited("talk.pptx", 2, "Revenue grew by 12 percent to 4.8 million", ""),
    ] {
        let found = corpus.look_up(vec![wrong.clone()], false).await.unwrap();
        assert_eq!(found[0].standing(), None, "{wrong:?}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_documents_have_the_same_id_and_are_read_once() {
    let files = ["report.pdf", "sales.xlsx", "bundle.zip", "talk.pptx"];
    let place = Place::new(&files);
    place.write("plain.md", b"# Plain\n");
    let first = place.open().await;
    assert_eq!(place.read(), 4);
    let again = place.open().await;
    assert_eq!((place.read(), again.corpus.id(), again.sent.packs), (0, first.corpus.id(), 0));
    let other = Corpus::open_or_build(place.options("other"), &MemoryBlobs::default()).await.unwrap();
    assert_eq!((place.read(), other.corpus.id()), (4, first.corpus.id()));
    // Another machine has neither files nor readers.
    let elsewhere = place.folder.path().join("elsewhere");
    let there = Corpus::open_or_fetch(&elsewhere, first.corpus.id(), &place.store, None).await.unwrap();
    assert_eq!(
        there.read("report.pdf", 3, 3).await.unwrap(),
        first.corpus.read("report.pdf", 3, 3).await.unwrap()
    );
    place.write("report.pdf", &made::pages(2, |page| format!("Other words on {page}.")));
    let changed = place.open().await;
    assert_eq!(place.read(), 1);
    assert_ne!(changed.corpus.id(), first.corpus.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_text_are_told_with_the_reason() {
    let place = Place::new(&["locked.pdf", "report.pdf", "bundle.zip"]);
    place.write("picture.tif", b"II*\0\0\0");
    place.write("scan.pdf", &made::pages(2, |_| String::new()));
    place.write("cut.docx", b"PK\x03\x04 no more");
    place.write("large.zip", &vec![b'P'; 3_000]);
    let mut options = place.options("cache");
    options.limits.max_extracted = 2_500;
    place.write("large.zip", &[b"PK\x03\x04".to_vec(), vec![0; 3_000]].concat());
    let opened = Corpus::open_or_build(options, &place.store).await.unwrap();
    let told: Vec<(SkipReason, &str)> =
        opened.skipped.0.iter().map(|(reason, files)| (*reason, files.example.as_str())).collect();
    assert_eq!(
        told,
        [
            (SkipReason::TooLarge, "large.zip"),
            (SkipReason::Encrypted, "locked.pdf"),
            (SkipReason::Broken, "cut.docx"),
            (SkipReason::Picture, "picture.tif"),
            (SkipReason::NoText, "scan.pdf"),
            (SkipReason::Partly, "bundle.zip: blob.bin: nothing reads files like blob.bin"),
        ]
    );
    assert!(
        opened
            .skipped
            .to_string()
            .contains("1 pictures of kinds that no model is shown (such as picture.tif)")
    );
    assert_eq!(opened.skipped.missed().total(), 5);
    let without = CorpusOptions { extractor: None, ..place.options("without") };
    let without = Corpus::open_or_build(without, &place.store).await.unwrap();
    assert_eq!(without.skipped.0[&SkipReason::Binary].count, 6, "nothing reads them");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_in_documents_are_taken_out_before_anything_is_kept() {
    let place = Place::new(&["report.pdf", "sales.xlsx"]);
    let mut options = place.options("cache");
    options.redact = Some(Arc::new(|text: &str| text.replace("4.8 million", "[removed]").into()));
    let corpus = Corpus::open_or_build(options, &place.store).await.unwrap().corpus;
    assert!(corpus.read("report.pdf", 2, 2).await.unwrap().shown().contains("to [removed]."));
    let mut looked = BTreeSet::new();
    holds_nowhere(&place.folder.path().join("cache"), b"4.8 million", &mut looked);
    assert!(looked.len() > 3, "{looked:?}");
}

fn holds_nowhere(folder: &Path, secret: &[u8], looked: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            holds_nowhere(&path, secret, looked);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", path.display());
        looked.insert(path);
    }
}
