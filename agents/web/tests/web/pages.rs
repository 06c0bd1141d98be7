//! What a model sees of pages, data and documents.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::{DocumentPart, DocumentReader, DocumentText, ToolFailure, UnreadableDocument};
use serde_json::json;

use super::support::{Extra, Files, Names, Site, Tools, context, page, settings};

const ARTICLE: &str = "<!doctype html><title>On &amp; off</title><nav><a href=/>Home</a></nav><main><h1>Rivers</h1>\
    <p>The Aare is <a href='/aare?a=1&amp;b=2#top'>288 km</a> long, and the longest river that begins and ends within \
    the country; it is fed by glaciers and by lakes.</p><table><tr><th>River<th>km<tr><td>Aare<td>288</table></main>\
    <script>alert('x')</script><footer><a href=/imprint>Imprint</a></footer>";

#[tokio::test]
async fn a_page_is_shown_as_its_article_with_where_it_is_from() {
    let site = Site::of("text/html; charset=utf-8", ARTICLE).await;
    let tools = Tools::new(settings(&[site.port]));
    let output = tools.call(&context(), "fetch", json!({ "url": site.url("/r#part") })).await.unwrap();
    let text = &output.content;
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(
        first.starts_with(&format!("From {}; 20", site.url("/r")))
            && first.ends_with("status 200; from the site."),
        "{first}"
    );
    assert!(rest.starts_with("Title: On & off\n\n# Rivers\n\nThe Aare is 288 km long"), "{rest}");
    assert!(rest.contains("| River | km |\n| --- | --- |\n| Aare | 288 |"), "{rest}");
    assert!(!rest.contains("Imprint") && !rest.contains("alert"), "{rest}");
    let data = output.data.unwrap();
    assert_eq!(
        (&data["status"], &data["origin"], &data["title"]),
        (&json!(200), &json!("site"), &json!("On & off"))
    );
    let with_links = json!({ "url": site.url("/r"), "links": true });
    let text = tools.call(&context(), "fetch", with_links).await.unwrap().content;
    assert!(text.contains(&format!("Links:\n- 288 km <{}>", site.url("/aare?a=1&b=2"))), "{text}");
    assert!(!text.contains("imprint"), "{text}");
    let whole = json!({ "url": site.url("/r"), "links": true, "whole": true });
    let text = tools.call(&context(), "fetch", whole).await.unwrap().content;
    assert!(text.contains("Imprint") && text.contains("/imprint>"), "{text}");
}

#[tokio::test]
async fn a_long_text_is_shown_in_parts_that_join() {
    let long: String = (0..4000).map(|n| format!("word{n} ")).collect();
    let body = long.clone();
    let site = Site::start(move |_| page(200, &[("content-type", "text/plain")], body.as_bytes())).await;
    let tools = Tools::new(settings(&[site.port]));
    let (mut read, mut from, mut parts) = (String::new(), 0, 0);
    loop {
        let arguments = json!({ "url": site.url("/"), "from": from });
        let output = tools.call(&context(), "fetch", arguments).await.unwrap();
        let (_, text) = output.content.split_once("\n\n").unwrap();
        let (text, mark) = text.rsplit_once("\n\n[").unwrap();
        read.push_str(text);
        read.push(' ');
        parts += 1;
        match output.data.unwrap()["next"].as_u64() {
            Some(next) => {
                assert!(mark.contains(&format!("go on with from: {next}]")), "{mark}");
                from = next;
            }
            None => break,
        }
    }
    assert_eq!((read, parts), (long, 3));
    let beyond = json!({ "url": site.url("/"), "from": 1_000_000 });
    assert!(matches!(tools.call(&context(), "fetch", beyond).await, Err(ToolFailure::InvalidArguments(_))));
}

#[tokio::test]
async fn text_is_read_in_its_encoding() {
    let site = Site::start(|request| match request.path() {
        "/header" => page(200, &[("content-type", "text/plain; charset=iso-8859-1")], b"caf\xe9"),
        "/meta" => page(
            200,
            &[("content-type", "text/html")],
            b"<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2",
        ),
        "/xml" => page(
            200,
            &[("content-type", "text/xml")],
            b"<?xml version='1.0' encoding='ISO-8859-1'?><a>caf\xe9</a>",
        ),
        "/bom" => page(200, &[("content-type", "text/plain; charset=utf-8")], b"\xff\xfec\0a\0f\0\xe9\0"),
        "/unsaid" => page(200, &[("content-type", "text/plain")], b"caf\xe9"),
        "/untyped" => page(200, &[], "caf\u{e9}".as_bytes()),
        "/wrong" => page(200, &[("content-type", "text/plain; charset=utf-8")], b"caf\xe9 broken"),
        "/unknown" => page(200, &[("content-type", "text/plain; charset=klingon")], "caf\u{e9}".as_bytes()),
        _ => page(200, &[("content-type", "application/json")], b"{\"a\": [1, 2]}"),
    })
    .await;
    let tools = Tools::new(settings(&[site.port]));
    for path in ["/header", "/xml", "/bom", "/unsaid", "/untyped", "/unknown"] {
        let text = tools.fetch(&site.url(path)).await.unwrap();
        assert!(text.contains("café"), "{path}: {text}");
    }
    assert!(tools.fetch(&site.url("/meta")).await.unwrap().contains("Привет"));
    assert!(tools.fetch(&site.url("/json")).await.unwrap().ends_with("{\"a\": [1, 2]}"));
    let text = tools.fetch(&site.url("/wrong")).await.unwrap();
    assert!(text.contains("caf\u{fffd} broken") && text.contains("no UTF-8"), "{text}");
}

struct Reader;

#[async_trait]
impl DocumentReader for Reader {
    async fn read(
        &self,
        bytes: Bytes,
        name: &str,
        media_type: Option<&str>,
    ) -> Result<DocumentText, UnreadableDocument> {
        match media_type {
            Some("application/pdf") => Ok(DocumentText {
                kind: "pdf".to_owned(),
                title: Some(name.to_owned()),
                parts: vec![DocumentPart { place: "1".to_owned(), text: format!("{} bytes", bytes.len()) }],
                left_out: vec!["a picture".to_owned()],
            }),
            Some("application/zip") => Err(UnreadableDocument::Encrypted),
            _ => Err(UnreadableDocument::UnknownKind("that".to_owned())),
        }
    }
}

#[tokio::test]
async fn documents_are_read_by_the_reader_of_documents() {
    let site = Site::start(|request| {
        let kind = match request.path() {
            "/a/report.pdf" => "application/pdf",
            "/locked" => "application/zip",
            "/odd-text" => "application/x-odd",
            _ => "image/png",
        };
        page(
            200,
            &[("content-type", kind)],
            if request.path() == "/odd-text" { b"plain" } else { b"\x89\0\x01" },
        )
    })
    .await;
    let extra = Extra { reader: Some(Arc::new(Reader)), ..Extra::default() };
    let tools = Tools::with(settings(&[site.port]), Names::default(), extra);
    let text = tools.fetch(&site.url("/a/report.pdf")).await.unwrap();
    assert!(text.ends_with("Title: report.pdf\nleft out: a picture\n\n[1]\n3 bytes"), "{text}");
    assert!(tools.fetch(&site.url("/odd-text")).await.unwrap().ends_with("plain"));
    for (path, said) in [("/locked", "it is encrypted"), ("/picture", "image/png with 3 bytes")] {
        let failure = tools.fetch(&site.url(path)).await.unwrap_err().to_string();
        assert!(failure.contains(said) && failure.contains("fetch_file"), "{failure}");
    }
    let without = Tools::new(settings(&[site.port]));
    assert!(
        without
            .fetch(&site.url("/a/report.pdf"))
            .await
            .unwrap_err()
            .to_string()
            .contains("nothing here makes text")
    );
}

#[tokio::test]
async fn a_site_that_has_no_page_says_so() {
    let site = Site::start(|request| {
        let status = request.path().trim_start_matches('/').parse().unwrap();
        page(status, &[], b"sorry")
    })
    .await;
    let tools = Tools::new(settings(&[site.port]));
    for status in [404, 410] {
        assert!(matches!(tools.fetch(&site.url(&format!("/{status}"))).await, Err(ToolFailure::NotFound(_))));
    }
    for status in [401, 403, 451] {
        assert!(matches!(tools.fetch(&site.url(&format!("/{status}"))).await, Err(ToolFailure::Refused(_))));
    }
    for status in [429, 500, 502, 503] {
        assert!(matches!(
            tools.fetch(&site.url(&format!("/{status}"))).await,
            Err(ToolFailure::Unavailable(_))
        ));
    }
    for status in [400, 418] {
        assert!(matches!(tools.fetch(&site.url(&format!("/{status}"))).await, Err(ToolFailure::Failed(_))));
    }
}

#[tokio::test]
async fn a_site_that_says_when_to_come_back_is_asked_again() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let site = Site::start(move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => page(503, &[("retry-after", "0")], b""),
        1 => page(429, &[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], b""),
        2 => page(200, &[("content-type", "text/plain")], b"at last"),
        _ => page(429, &[("retry-after", "3600")], b""),
    })
    .await;
    let tools = Tools::new(settings(&[site.port]));
    assert!(tools.fetch(&site.url("/")).await.unwrap().contains("at last"));
    let failure = tools.fetch(&site.url("/")).await.unwrap_err();
    assert!(failure.to_string().contains("after 3600"), "{failure}");
    assert_eq!(site.connections(), 4);
}

#[tokio::test]
async fn a_file_is_saved_as_it_is_by_tasks_that_may_write() {
    let site = Site::of("application/octet-stream", "a\0b").await;
    let tools = Tools::new(settings(&[site.port]));
    let files = Arc::new(Files::default());
    let ctx = context().with_workspace(Arc::clone(&files) as _);
    let arguments = json!({ "url": site.url("/x"), "save_as": "data/x.bin" });
    let said = tools.call(&ctx, "fetch_file", arguments.clone()).await.unwrap().content;
    assert!(said.ends_with("Saved as data/x.bin: 3 bytes of type application/octet-stream."), "{said}");
    assert_eq!(files.0.lock().unwrap()["data/x.bin"], Bytes::from_static(b"a\0b"));
    let outside = json!({ "url": site.url("/x"), "save_as": "../x" });
    assert!(matches!(tools.call(&ctx, "fetch_file", outside).await, Err(ToolFailure::Refused(_))));
    let rights = Rights { write_files: false, ..Rights::default() };
    let ctx = ctx.within(Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &rights)));
    assert!(matches!(tools.call(&ctx, "fetch_file", arguments).await, Err(ToolFailure::NoRight(_))));
    assert_eq!(site.connections(), 1);
}
