//! What a person has fetched: by the guard of the tools, with what is known of it.

use std::sync::Arc;

use muster_web::Downloader;

use super::support::{Names, Site, page, redirect, settings};

#[tokio::test]
async fn a_person_has_a_document_fetched_with_what_is_known_of_it() {
    let changed = "Sun, 22 Nov 2026 10:00:00 GMT";
    let site = Site::start(move |request| match request.path() {
        "/old" => redirect("/guide.pdf"),
        "/missing" => page(404, &[], b"no"),
        "/inside" => redirect("http://169.254.169.254/"),
        _ => page(200, &[("content-type", "application/pdf; v=1"), ("last-modified", changed)], b"%PDF"),
    })
    .await;
    let (folder, names) = (tempfile::tempdir().unwrap(), Names::default().with("home.org", &[&["10.0.0.1"]]));
    let downloader = Downloader::new(settings(&[site.port]), folder.path(), Arc::new(names));

    let got = downloader.get(&site.url("/old")).await.unwrap();
    assert_eq!((got.url, &got.bytes[..]), (site.url("/guide.pdf"), &b"%PDF"[..]));
    assert_eq!(
        (got.media_type.as_deref(), got.modified.as_deref()),
        (Some("application/pdf"), Some(changed))
    );
    assert!(got.came_ms > 0 && !got.is_stand_in);

    for (url, said) in [
        (site.url("/missing"), "404"),
        (site.url("/inside"), "is not reached"),
        (format!("http://127.0.0.1:{}/", site.port), "no public address"),
        (format!("http://home.org:{}/", site.port), "no public address"),
        ("file:///etc/passwd".to_owned(), "only http and https"),
    ] {
        let told = downloader.get(&url).await.unwrap_err();
        assert!(told.contains(said) && !told.contains("another source"), "{url}: {told}");
    }
    let judged = downloader.judged(&site.url("/repo")).await.unwrap();
    assert_eq!((judged.name.as_str(), judged.port, judged.addresses.len()), ("site.org", site.port, 1));
    for url in [format!("http://home.org:{}/r", site.port), format!("http://127.0.0.1:{}/r", site.port)] {
        assert!(downloader.judged(&url).await.unwrap_err().contains("no public address"), "{url}");
    }
}
