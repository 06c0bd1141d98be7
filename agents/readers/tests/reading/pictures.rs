//! Pictures as documents of a corpus: a line of text that is found and cited, and bytes that travel with it.

use std::sync::Arc;

use muster_corpus::{Corpus, CorpusError, PictureKind, SkipReason};
use muster_shared::flow::{Grantor, Rights, TaskRights};

use super::corpus::Place;
use super::made::png;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_found_read_and_had_on_other_machines() {
    let place = Place::new(&["report.pdf"]);
    let site = png(640, 480, b"one");
    place.write("site.png", &site);
    place.write("named-as-text.md", &site);
    let opened = place.open().await;
    let line =
        "site.png:1-1 of 1 lines\n1| [picture: PNG, 640 x 480, 32 bytes; corpus.look shows it to a model]";
    assert_eq!(opened.corpus.read("site.png", 1, 9).await.unwrap().shown(), line);
    let hits = opened.corpus.search("site", 5).await.unwrap();
    assert_eq!(hits.first().map(muster_corpus::Hit::citation).as_deref(), Some("site.png:1"), "{hits:?}");
    let outlines = opened.corpus.outlines(9).await.unwrap();
    let listed = muster_corpus::in_words(&outlines, 500);
    assert!(listed.contains("site.png (1 lines): a picture, PNG"), "{listed}");
    assert_eq!(opened.documents, 3);
    assert_eq!(opened.sent.packs, 2, "one of texts, and the bytes of both pictures once");
    assert_eq!(place.open().await.sent.packs, 0);

    let elsewhere = place.folder.path().join("elsewhere");
    let id = opened.corpus.id();
    let fetched = Corpus::open_or_fetch(&elsewhere, id, &place.store, None).await.unwrap();
    for corpus in [&opened.corpus, &fetched] {
        assert!(corpus.has_pictures().await.unwrap());
        for path in ["site.png", "./site.png", "named-as-text.md"] {
            let picture = corpus.picture(path).await.unwrap();
            assert_eq!((picture.kind, &picture.bytes), (PictureKind::Png, &site), "{path}");
        }
        let text = corpus.picture("report.pdf").await;
        assert!(matches!(text, Err(CorpusError::NoPicture(path)) if path == "report.pdf"));
        let unknown = corpus.picture("sites.png").await.unwrap_err().to_string();
        assert!(unknown.contains("did you mean `site.png`?"), "{unknown}");
    }
    let rights: Rights = serde_json::from_str(r#"{"documents": ["report.pdf"]}"#).unwrap();
    let within = fetched.within(&Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &rights)));
    assert!(!within.has_pictures().await.unwrap());
    assert!(matches!(within.picture("site.png").await, Err(CorpusError::UnknownPath { .. })));

    let packs = std::fs::read_dir(elsewhere.join("packs")).unwrap().flatten();
    let bytes = packs.map(|entry| entry.path()).find(|path| std::fs::read(path).unwrap() == site).unwrap();
    std::fs::write(bytes, png(640, 480, b"two")).unwrap();
    let damaged = fetched.picture("site.png").await;
    assert!(matches!(damaged, Err(CorpusError::Damaged(_))), "its digest tells: {damaged:?}");

    place.write("site.png", &png(640, 480, b"two"));
    let changed = place.open().await;
    assert_ne!(changed.corpus.id(), id, "told in the same words, and another picture");
    assert_eq!(changed.corpus.picture("site.png").await.unwrap().bytes, png(640, 480, b"two"));
    assert_eq!(changed.sent.packs, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_that_are_broken_too_large_or_too_many_are_told() {
    let place = Place::new(&["report.pdf", "cube.eml"]);
    place.write("a-large.png", &png(640, 480, &[7; 3_000]));
    place.write("b-broken.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0");
    place.write("c-hostile.png", &png(u32::MAX, 1, b""));
    place.write("d-one.gif", b"GIF89a\x01\0\x01\0\0\0\0");
    place.write("e-two.webp", b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x01\0\0\x02\0\0");
    place.write("f-three.png", &png(1, 1, b""));
    let pictures = made::zip(&[("inner.png", png(1, 1, b"")), ("inner.txt", b"A text.".to_vec())]);
    place.write("g-bundle.zip", &pictures);
    let mut options = place.options("cache");
    (options.limits.max_picture, options.limits.max_pictures) = (2_000, 2);
    let opened = Corpus::open_or_build(options, &place.store).await.unwrap();
    let told: Vec<(SkipReason, u64, &str)> = opened
        .skipped
        .0
        .iter()
        .map(|(reason, files)| (*reason, files.count, files.example.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (SkipReason::TooLarge, 2, "a-large.png"),
            (SkipReason::OverLimit, 1, "f-three.png"),
            (SkipReason::Broken, 1, "b-broken.jpg"),
            (SkipReason::Partly, 1, "g-bundle.zip: inner.png: nothing reads files like inner.png"),
        ]
    );
    let webp = opened.corpus.read("e-two.webp", 1, 1).await.unwrap();
    assert!(webp.shown().contains("WebP, 2 x 3, 30 bytes"), "{}", webp.shown());
    assert_eq!(opened.corpus.picture("d-one.gif").await.unwrap().kind, PictureKind::Gif);
}
