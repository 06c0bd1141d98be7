mod given;

use std::{borrow::Cow, fs, os::unix::fs::symlink};

use tempfile::TempDir;

use super::*;

/// Folders for documents and for two machines' caches, and the store between the machines.
struct Place {
    dir: TempDir,
    store: MemoryBlobs,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap(), store: MemoryBlobs::default() };
        fs::create_dir(place.docs()).unwrap();
        for (path, text) in files {
            place.write(path, text.as_bytes());
        }
        place
    }

    fn docs(&self) -> PathBuf {
        self.dir.path().join("docs")
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn elsewhere(&self) -> PathBuf {
        self.dir.path().join("elsewhere")
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let file = self.docs().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }

    fn options(&self) -> CorpusOptions {
        CorpusOptions::new(self.cache(), vec![self.docs()])
    }

    async fn open(&self) -> Opened {
        Corpus::open_or_build(self.options(), &self.store).await.unwrap()
    }
}

type Damage = fn(&mut Vec<u8>);

const GUIDE: &str = "# Muster\n\nIntro of the guide.\n\n## Delegation\n\nDelegation loops are limited by depth:\n\
                     `max_depth` is eight.\n\n## Death\n\nA worker that dies is replaced.\n";
const CODE: &str = "/// Settings of a consumer.\npub struct Consumer {\n    pub max_deliver: i64,\n    pub ackWait: u64,\n}\n";

#[tokio::test]
async fn passages_are_found_with_headings_and_true_lines() {
    let place = Place::new(&[("guide.md", GUIDE), ("src/consumer.rs", CODE)]);
    let corpus = place.open().await.corpus;
    for (query, path, line, heading) in [
        ("What limits delegation loops?", "guide.md", 5, "Muster > Delegation"),
        ("max_depth", "guide.md", 5, "Muster > Delegation"),
        ("dying workers", "guide.md", 10, "Muster > Death"),
        ("max_deliver", "src/consumer.rs", 1, ""),
        ("deliver", "src/consumer.rs", 1, ""),
        ("ackWait", "src/consumer.rs", 1, ""),
        ("ack", "src/consumer.rs", 1, ""),
        ("\"limited by depth\"", "guide.md", 5, "Muster > Delegation"),
    ] {
        let hits = corpus.search(query, 3).await.unwrap();
        let best = hits.first().unwrap_or_else(|| panic!("nothing for {query}"));
        assert_eq!(
            (best.path.as_str(), best.start_line, best.heading.as_str()),
            (path, line, heading),
            "{query}"
        );
        assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{query}");
    }
    assert!(corpus.search("zebra", 3).await.unwrap().is_empty());
    assert!(corpus.search("?!", 3).await.unwrap().is_empty());
}

#[tokio::test]
async fn every_line_cited_is_that_line_of_the_original_file() {
    let page = "<html>\n<head><style>\np { color: red }\n</style></head>\n<h1>Zebra\n</h1>\n<p>Stripes &amp; <b>more</b>\n";
    let windows = "first\r\nsecond zebra\r\nthird\r\n";
    let long = format!("start\n{}zebra\nend", "word ".repeat(2_000));
    let place = Place::new(&[
        ("a.md", GUIDE),
        ("b.html", page),
        ("c.txt", windows),
        ("d.log", &long),
        ("e.rs", CODE),
    ]);
    place.write(
        "utf16.txt",
        &[&[0xff, 0xfe], &*"one\ntwo zebra\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()]
            .concat(),
    );
    let corpus = place.open().await.corpus;
    let hits = corpus.search("zebra stripes worker delegation consumer", 50).await.unwrap();
    assert!(hits.len() >= 7, "{hits:?}");
    for hit in hits {
        let bytes = fs::read(place.docs().join(&hit.path)).unwrap();
        let original = super::decode::decode(bytes).unwrap();
        let lines: Vec<&str> = original.lines().collect();
        for (line, shown) in (hit.start_line..).zip(hit.text.lines()) {
            let source = lines[usize::try_from(line).unwrap() - 1];
            for word in shown.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                assert!(source.contains(word), "{}:{line}: `{word}` is not in `{source}`", hit.path);
            }
        }
        assert!(hit.start_line + hit.text.lines().count() as u64 - 1 <= hit.end_line, "{hit:?}");
    }
    let read = corpus.read("c.txt", 2, 9).await.unwrap();
    assert_eq!(
        (read.lines.as_slice(), read.total, read.to()),
        (&["second zebra".to_owned(), "third".to_owned()][..], 3, 3)
    );
}

#[tokio::test]
async fn a_very_long_line_is_shown_around_the_words_that_are_looked_for() {
    let long = format!("{}the key is seven. {}\nshort\n", "word ".repeat(20_000), "word ".repeat(20_000));
    let place = Place::new(&[("one.txt", &long)]);
    let corpus = place.open().await.corpus;
    let start = corpus.read("one.txt", 1, 2).await.unwrap();
    assert!(start.lines[0].starts_with("word word") && start.lines[0].ends_with('…'));
    let found = corpus.read_around("one.txt", 1, 2, Some("the key is seven.")).await.unwrap();
    assert!(
        found.lines[0].contains("the key is seven.") && found.lines[0].len() < 2_100,
        "{:?}",
        found.lines[0]
    );
    assert!(found.lines[0].starts_with('…') && found.lines[0].ends_with('…'));
    assert_eq!(found.lines[1], "short");
    let absent = corpus.read_around("one.txt", 1, 2, Some("nowhere")).await.unwrap();
    assert_eq!(absent, start);
}

#[tokio::test]
async fn another_machine_gets_the_same_from_the_store() {
    let place = Place::new(&[("guide.md", GUIDE), ("src/consumer.rs", CODE)]);
    let opened = place.open().await;
    let id = opened.corpus.id().clone();
    fs::remove_dir_all(place.docs()).unwrap();
    let there = Corpus::open_or_fetch(&place.elsewhere(), &id, &place.store, None).await.unwrap();
    assert_eq!(
        there.search("delegation", 5).await.unwrap(),
        opened.corpus.search("delegation", 5).await.unwrap()
    );
    // What is here needs no store.
    let empty = MemoryBlobs::default();
    let again = Corpus::open_or_fetch(&place.elsewhere(), &id, &empty, None).await.unwrap();
    assert_eq!(again.read("guide.md", 1, 1).await.unwrap().path, "guide.md");
    let unknown = CorpusId::parse(&"0".repeat(64)).unwrap();
    let missing = Corpus::open_or_fetch(&place.elsewhere(), &unknown, &empty, None).await;
    assert!(matches!(missing, Err(CorpusError::Missing(_))), "{missing:?}");
}

#[tokio::test]
async fn unchanged_files_are_not_sent_again() {
    let place = Place::new(&[]);
    for n in 0..50 {
        place.write(&format!("{n}.md"), format!("# Part {n}\n{}", "word ".repeat(200)).as_bytes());
    }
    let first = place.open().await;
    assert_eq!(first.sent.packs, 1);
    let same = place.open().await;
    assert_eq!((same.sent, same.corpus.id()), (SentPack::default(), first.corpus.id()));

    place.write("7.md", b"# Part 7\nall new\n");
    fs::rename(place.docs().join("8.md"), place.docs().join("eight.md")).unwrap();
    let changed = place.open().await;
    assert_ne!(changed.corpus.id(), first.corpus.id());
    assert_eq!(changed.sent, SentPack { packs: 1, bytes: "# Part 7\nall new\n".len() as u64 });
    assert_eq!(changed.corpus.manifest().await.unwrap().packs.len(), 2);

    let there =
        Corpus::open_or_fetch(&place.elsewhere(), changed.corpus.id(), &place.store, None).await.unwrap();
    assert_eq!(there.read("7.md", 2, 2).await.unwrap().lines, ["all new"]);
    assert_eq!(there.read("eight.md", 1, 1).await.unwrap().lines, ["# Part 8"]);
}

#[tokio::test]
async fn packs_that_hold_little_of_use_are_left_behind() {
    let place = Place::new(&[]);
    let open = || {
        let options = CorpusOptions { pack_bytes: 10_000, ..place.options() };
        Corpus::open_or_build(options, &place.store)
    };
    for n in 0..24 {
        place.write(&format!("{n}.txt"), format!("{n} ").repeat(1_000).as_bytes());
    }
    let many = open().await.unwrap().corpus;
    assert!(many.manifest().await.unwrap().packs.len() > 4);
    for n in (0..24).filter(|n| n % 4 != 0) {
        fs::remove_file(place.docs().join(format!("{n}.txt"))).unwrap();
    }
    // The packs are worth keeping judged by what was in use before, then no more.
    open().await.unwrap();
    place.write("new.txt", b"something new");
    let few = open().await.unwrap().corpus.manifest().await.unwrap();
    let size = |pack: &String| fs::metadata(place.cache().join("packs").join(pack)).unwrap().len();
    let held: u64 = few.packs.iter().map(size).sum();
    assert_eq!(held, few.bytes());
}

#[tokio::test]
async fn a_broken_old_or_foreign_index_is_built_again() {
    let place = Place::new(&[("guide.md", GUIDE)]);
    let id = place.open().await.corpus.id().clone();
    let index = place.cache().join("corpora").join(id.as_str()).join("index.sqlite");
    let whole = fs::read(&index).unwrap();
    let damages: [(&str, Damage); 4] = [
        ("no database", |bytes| bytes.splice(.., *b"garbage").for_each(drop)),
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("noise", |bytes| bytes[8_192..].iter_mut().for_each(|byte| *byte ^= 0x5a)),
        ("other version", |bytes| bytes[63] = 99),
    ];
    for (name, damage) in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        fs::write(&index, bytes).unwrap();
        let corpus = Corpus::open_or_fetch(&place.cache(), &id, &place.store, None).await.unwrap();
        let hits = corpus.search("delegation", 1).await;
        assert!(hits.as_ref().is_ok_and(|hits| hits.len() == 1), "{name}: {hits:?}");
    }
    fs::remove_file(&index).unwrap();
    let corpus = Corpus::open_or_fetch(&place.cache(), &id, &place.store, None).await.unwrap();
    assert_eq!(corpus.search("delegation", 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn damaged_blobs_are_refused() {
    let place = Place::new(&[("guide.md", GUIDE)]);
    let id = place.open().await.corpus.id().clone();
    for key in place.store.keys() {
        let good = place.store.get(&key).await.unwrap().unwrap();
        place.store.put(&key, bytes::Bytes::from_static(b"{}")).await.unwrap();
        let opened = Corpus::open_or_fetch(&place.elsewhere(), &id, &place.store, None).await;
        assert!(matches!(opened, Err(CorpusError::Damaged(_))), "{key}: {opened:?}");
        place.store.remove(&key);
        let opened = Corpus::open_or_fetch(&place.elsewhere(), &id, &place.store, None).await;
        assert!(matches!(opened, Err(CorpusError::Missing(_))), "{key}: {opened:?}");
        place.store.put(&key, good).await.unwrap();
    }
    let opened = Corpus::open_or_fetch(&place.elsewhere(), &id, &place.store, None).await.unwrap();

    // A pack with other content, in a cache, and named by a manifest of the same id.
    let (pack, other) = (opened.manifest().await.unwrap().packs[0].clone(), GUIDE.replace("eight", "three"));
    let (again, third) = (place.dir.path().join("again"), place.dir.path().join("third"));
    fs::create_dir_all(again.join("packs")).unwrap();
    fs::write(again.join("packs").join(&pack), &other).unwrap();
    let refused = Corpus::open_or_fetch(&again, &id, &place.store, None).await;
    assert!(matches!(refused, Err(CorpusError::Damaged(_))), "{refused:?}");
    let fetched = Corpus::open_or_fetch(&again, &id, &place.store, None).await.unwrap();
    assert!(fetched.text("guide.md").await.unwrap().contains("eight"), "the pack was fetched");
    let (key, hash) = (format!("corpus/manifest/{id}"), manifest::hash_of(other.as_bytes()));
    let manifest = String::from_utf8(place.store.get(&key).await.unwrap().unwrap().to_vec()).unwrap();
    place.store.put(&key, manifest.replace(&pack, &hash).into()).await.unwrap();
    place.store.put(&format!("corpus/pack/{hash}"), other.into()).await.unwrap();
    let refused = Corpus::open_or_fetch(&third, &id, &place.store, None).await;
    assert!(matches!(refused, Err(CorpusError::Damaged(_))), "{refused:?}");
}

#[tokio::test]
async fn many_at_once_make_one_index() {
    let place = Place::new(&[("guide.md", GUIDE)]);
    let id = place.open().await.corpus.id().clone();
    let index = place.cache().join("corpora").join(id.as_str()).join("index.sqlite");
    fs::remove_file(&index).unwrap();
    let built = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let opening = (0..16).map(|_| {
        let built = Arc::clone(&built);
        let sink: ProgressSink = Arc::new(move |progress| {
            if progress.phase == Phase::Indexing {
                built.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        let (cache, id, store) = (place.cache(), id.clone(), &place.store);
        async move { Corpus::open_or_fetch(&cache, &id, store, Some(sink)).await.unwrap() }
    });
    let all = futures::future::join_all(opening).await;
    assert_eq!(built.load(std::sync::atomic::Ordering::SeqCst), 1);
    for corpus in all {
        assert_eq!(corpus.search("delegation", 1).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn reading_is_limited_and_says_where_to_go_on() {
    let text: String = (1..=1_000).map(|n| format!("line {n}\n")).collect();
    let wide = format!("{}\nsecond\n", "ü".repeat(5_000));
    let place = Place::new(&[("long.txt", &text), ("wide.txt", &wide)]);
    let corpus = place.open().await.corpus;
    let read = corpus.read("long.txt", 500, 5_000).await.unwrap();
    assert_eq!((read.lines.len() as u64, read.to(), read.cut), (MAX_LINES, 899, true));
    assert_eq!(read.lines[0], "line 500");
    let read = corpus.read("wide.txt", 1, 2).await.unwrap();
    assert!(read.lines[0].len() <= 2_003 && read.lines[0].ends_with('…'));
    assert_eq!(read.lines[1], "second");
}

#[tokio::test]
async fn the_cache_forgets_what_is_old() {
    let place = Place::new(&[("a.md", "first")]);
    let mut ids = Vec::new();
    for n in 0..4 {
        place.write("a.md", format!("version {n}").as_bytes());
        ids.push(place.open().await.corpus.id().clone());
    }
    let limits = CacheLimits { keep: 2, keep_used_within: Duration::ZERO };
    assert_eq!(prune(&place.cache(), &CacheLimits::default()), 0);
    assert_eq!(prune(&place.cache(), &limits), 2);
    let left = fs::read_dir(place.cache().join("corpora")).unwrap().count();
    assert_eq!((left, fs::read_dir(place.cache().join("packs")).unwrap().count()), (2, 2));
    let again = Corpus::open_or_fetch(&place.cache(), &ids[0], &place.store, None).await.unwrap();
    assert_eq!(again.search("version", 1).await.unwrap().len(), 1);
}
