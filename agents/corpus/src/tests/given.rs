//! What folders give: documents, what is left out of them, and within which limits.

use super::*;

#[tokio::test]
async fn what_is_no_document_is_left_out_and_counted() {
    let place = Place::new(&[
        ("good.md", "fine"),
        ("empty.txt", " \n"),
        (".hidden/x.md", "no"),
        ("skip/me.md", "no"),
    ]);
    place.write(".gitignore", b"skip/\n");
    place.write("image.png", b"\x89PNG\0\0");
    place.write("paper.pdf", b"%PDF-1.7 text");
    place.write("large.txt", &vec![b'x'; 3_000]);
    place.write("bad\nname.md", b"text");
    symlink("/etc/hostname", place.docs().join("link.md")).unwrap();
    let mut options = place.options();
    options.limits.max_file = 2_000;
    let opened = Corpus::open_or_build(options, &place.store).await.unwrap();
    let counts: Vec<_> = opened.skipped.0.iter().map(|(reason, files)| (*reason, files.count)).collect();
    assert_eq!(
        counts,
        [
            (SkipReason::Binary, 2),
            (SkipReason::Empty, 1),
            (SkipReason::TooLarge, 1),
            (SkipReason::Special, 1),
            (SkipReason::BadName, 1)
        ]
    );
    assert_eq!(opened.documents, 1);
    for absent in ["image.png", "link.md", "skip/me.md", ".hidden/x.md"] {
        assert!(opened.corpus.read(absent, 1, 1).await.is_err(), "{absent}");
    }
}

#[tokio::test]
async fn limits_on_number_and_sum_hold() {
    let place = Place::new(&[("a.md", "aaaa"), ("b.md", "bbbb"), ("c.md", "cccc")]);
    for (max_files, max_total, documents) in [(2, 100, 2), (9, 9, 2), (1, 4, 1)] {
        let mut options = place.options();
        options.limits = ScanLimits { max_files, max_total, ..ScanLimits::default() };
        let opened = Corpus::open_or_build(options, &place.store).await.unwrap();
        assert_eq!((opened.documents, opened.skipped.total()), (documents, 3 - documents));
    }
}

#[tokio::test]
async fn unusable_folders_are_told_apart() {
    let place = Place::new(&[]);
    let open = |folders: Vec<PathBuf>| {
        let options = CorpusOptions::new(place.cache(), folders);
        let store = &place.store;
        async move { Corpus::open_or_build(options, store).await.unwrap_err() }
    };
    assert!(matches!(open(vec![]).await, CorpusError::NoFolder));
    let missing = place.dir.path().join("absent");
    assert!(matches!(open(vec![missing.clone()]).await, CorpusError::FolderMissing(path) if path == missing));
    assert!(matches!(open(vec![place.docs()]).await, CorpusError::NothingUsable { .. }));
    place.write("x.bin", b"\0\0");
    let nothing = open(vec![place.docs()]).await.to_string();
    assert!(nothing.contains("1 not text (such as x.bin)"), "{nothing}");
    if !nix::unistd::geteuid().is_root() {
        let closed = place.dir.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        assert!(matches!(open(vec![closed]).await, CorpusError::FolderUnreadable { .. }));
    }
}

#[tokio::test]
async fn several_folders_are_told_apart_by_their_names() {
    let place = Place::new(&[("a.md", "alpha")]);
    for (folder, text) in [("x/docs", "beta"), ("notes", "gamma")] {
        fs::create_dir_all(place.dir.path().join(folder)).unwrap();
        fs::write(place.dir.path().join(folder).join("a.md"), text).unwrap();
    }
    fs::write(place.dir.path().join("single.txt"), "delta").unwrap();
    let folders = ["docs", "x/docs", "notes", "single.txt", "docs"].map(|name| place.dir.path().join(name));
    let opened = Corpus::open_or_build(CorpusOptions::new(place.cache(), folders.to_vec()), &place.store)
        .await
        .unwrap();
    for (word, citation) in [
        ("alpha", "docs/a.md:1"),
        ("beta", "docs-2/a.md:1"),
        ("gamma", "notes/a.md:1"),
        ("delta", "single.txt:1"),
    ] {
        let hits = opened.corpus.search(word, 5).await.unwrap();
        assert_eq!(hits.iter().map(Hit::citation).collect::<Vec<_>>(), [citation]);
    }
}

#[tokio::test]
async fn secrets_are_taken_out_before_anything_is_stored() {
    let place =
        Place::new(&[("a.md", "key sk-12345 here\nsecond line"), ("b.md", "gone"), ("c.md", "clean")]);
    let mut options = place.options();
    options.redact = Some(Arc::new(|text| match text {
        "gone" => Cow::Borrowed("two\nlines"),
        other if other.contains("sk-12345") => Cow::Owned(other.replace("sk-12345", "[redacted]")),
        other => Cow::Borrowed(other),
    }));
    let opened = Corpus::open_or_build(options, &place.store).await.unwrap();
    assert_eq!(opened.skipped.0[&SkipReason::NotRedactable].count, 1);
    assert_eq!(opened.corpus.read("a.md", 1, 1).await.unwrap().lines, ["key [redacted] here"]);
    for key in place.store.keys() {
        let blob = place.store.get(&key).await.unwrap().unwrap();
        assert!(!blob.windows(8).any(|part| part == b"sk-12345"), "{key}");
    }
}
