//! Whatever is cited: nothing breaks, and nothing is read that is no document.

use std::path::PathBuf;
use std::sync::OnceLock;

use muster_shared::flow::PlaceFound;
use proptest::prelude::*;

use crate::{CitedPlace, Corpus, CorpusOptions, MemoryBlobs};

const SECRET: &str = "The vault of the harbour office opens with nine turns to the left.";

struct Shelf {
    runtime: tokio::runtime::Runtime,
    corpus: Corpus,
    outside: PathBuf,
    _dir: tempfile::TempDir,
}

fn shelf() -> &'static Shelf {
    static SHELF: OnceLock<Shelf> = OnceLock::new();
    SHELF.get_or_init(|| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (docs, outside) = (dir.path().join("docs"), dir.path().join("secret.txt"));
        std::fs::create_dir_all(docs.join("src")).unwrap();
        std::fs::write(&outside, SECRET).unwrap();
        std::fs::write(
            docs.join("guide.md"),
            "# Limits\n\nAt most 20 levels.\n\n| a | b |\n|---|---|\n| x | 4 |\n",
        )
        .unwrap();
        std::fs::write(docs.join("src/lib.rs"), "pub const MOST: u8 = 20;\n").unwrap();
        std::fs::write(docs.join("data.csv"), "name,value\nalpha,20\nbeta,\u{e9}\u{301}\n").unwrap();
        let options = CorpusOptions::new(dir.path().join("cache"), vec![docs]);
        let corpus =
            runtime.block_on(Corpus::open_or_build(options, &MemoryBlobs::default())).unwrap().corpus;
        Shelf { runtime, corpus, outside, _dir: dir }
    })
}

fn look_up(places: Vec<CitedPlace>) -> Vec<PlaceFound> {
    let Shelf { runtime, corpus, .. } = shelf();
    runtime.block_on(corpus.look_up(places, true)).unwrap()
}

/// Paths of documents and of what is none, as they are, put together, or with anything around.
fn paths() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("guide.md".to_owned()),
        Just("src/lib.rs".to_owned()),
        Just("data.csv".to_owned()),
        Just("..".to_owned()),
        Just("../secret.txt".to_owned()),
        Just("/etc/passwd".to_owned()),
        Just("file:///etc/passwd".to_owned()),
        Just("https://user@example.org:80/guide.md?q=1#L3".to_owned()),
        Just("C:\\docs\\guide.md".to_owned()),
        Just("%2e%2e%2fsecret.txt".to_owned()),
        Just("\0\r\n\u{1b}[2J\u{202e}".to_owned()),
        Just("guide.md' OR 1=1 --".to_owned()),
        any::<String>(),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.join("/"))
}

fn texts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("At most 20 levels.".to_owned()),
        Just("…".to_owned()),
        Just("not".to_owned()),
        Just("twenty-five days".to_owned()),
        Just("99999999999999999999999999999999 % of 1.7e308 and -0.0000000001".to_owned()),
        Just("v1.2.3 at 2024-05-17T10:02:13Z".to_owned()),
        Just("](x) <b> [".to_owned()),
        Just("é́ﬁİßΣς".to_owned()),
        any::<String>(),
    ];
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

fn places() -> impl Strategy<Value = CitedPlace> {
    let line = prop_oneof![any::<u32>(), 0_u32..9, Just(u32::MAX), Just(u32::MAX - 1)];
    let places = (paths(), line.clone(), line, texts(), texts(), 0_u32..3);
    places.prop_map(|(path, line, last, quote, statement, group)| CitedPlace {
        path,
        line,
        last,
        quote,
        statement,
        group,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_cited_is_answered(asked in prop::collection::vec(places(), 1..6)) {
        let found = look_up(asked.clone());
        prop_assert_eq!(found.len(), asked.len());
        prop_assert!(!format!("{found:?}").contains("harbour"), "{:?}", found);
    }

    #[test]
    fn what_is_no_document_is_not_read(lead in paths(), line in 0_u32..3, dots in 0_usize..9) {
        let outside = shelf().outside.display().to_string();
        let relative = format!("{}secret.txt", "../".repeat(dots));
        let named = [outside.clone(), format!("file://{outside}"), relative, format!("{lead}/{outside}")];
        let place = |path: String| CitedPlace { path, line, quote: SECRET.into(), ..CitedPlace::default() };
        for found in look_up(named.into_iter().map(place).collect()) {
            prop_assert!(found.standing().is_none(), "{:?}", found);
            prop_assert!(!format!("{found:?}").contains("harbour"), "{:?}", found);
        }
    }
}

/// What stands in the documents is found by the same way: the tests above do not pass for want of documents.
#[test]
fn documents_are_read() {
    let place = |path: &str, line: u32, quote: &str| CitedPlace {
        path: path.into(),
        line,
        quote: quote.into(),
        ..CitedPlace::default()
    };
    let found =
        look_up(vec![place("guide.md", 3, "At most 20 levels."), place("src/lib.rs", 1, "MOST: u8 = 20")]);
    assert!(found.iter().all(|found| found.standing().is_some()), "{found:?}");
}
