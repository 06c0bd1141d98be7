//! `http_request`.

use std::collections::BTreeMap;
use std::io::Write;

use muster_tools::ToolFailure;
use muster_tools::settings::{HttpSettings, SecretHeader};
use serde_json::json;

use super::support::{Extra, Names, Reply, Site, Tools, context, page, restricted, settings};

const SECRET: &str = "s3cret-9876543210";

struct Calling {
    site: Site,
    other: Site,
    tools: Tools,
    _file: tempfile::NamedTempFile,
}

/// A service that echoes what it was asked, with a secret of its own, beside another one without.
async fn calling() -> Calling {
    let site = Site::start(|request| match request.path() {
        "/redirects" => page(307, &[("location", "http://elsewhere.org/")], b""),
        "/breaks" => Reply::Whole(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf".to_vec()),
        "/picture" => page(200, &[("content-type", "image/png")], b"\x89\0"),
        _ => {
            let echo = request.header("authorization").unwrap_or_default();
            let body = format!("{}\n\n{}", request.head, request.body);
            page(201, &[("content-type", "text/plain"), ("x-echo", &echo)], body.as_bytes())
        }
    })
    .await;
    let other =
        Site::start(|request| page(200, &[("content-type", "text/plain")], request.head.as_bytes())).await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{SECRET}").unwrap();
    let (here, there) = (format!("127.0.0.1:{}", site.port), format!("127.0.0.1:{}", other.port));
    let secret = SecretHeader {
        host: here.clone(),
        prefix: "Bearer ".to_owned(),
        file: file.path().to_str().unwrap().to_owned(),
        ..SecretHeader::default()
    };
    let http = HttpSettings {
        hosts: vec![here.clone(), there.clone(), "public.org".to_owned()],
        secrets: BTreeMap::from([
            ("api".to_owned(), secret.clone()),
            ("open".to_owned(), SecretHeader { host: "public.org:8080".to_owned(), ..secret }),
        ]),
    };
    let mut settings = settings(&[443, 8080]);
    settings.allow_hosts = vec![here, there];
    let tools = Tools::with(settings, Names::default(), Extra { http, ..Extra::default() });
    Calling { site, other, tools, _file: file }
}

#[tokio::test]
async fn a_service_is_called_with_its_secret_which_is_not_shown() {
    let calling = calling().await;
    assert_eq!(calling.tools.names(), ["fetch", "fetch_file", "http_request"]);
    let url = format!("http://127.0.0.1:{}/things?a=1", calling.site.port);
    let arguments =
        json!({ "method": "POST", "url": url, "headers": {"X-Mine": "yes"}, "body": "{\"n\": 1}" });
    let ctx = context().under_key("run/task/1/2");
    let text = calling.tools.call(&ctx, "http_request", arguments).await.unwrap().content;
    assert!(
        text.contains("answers with status 201")
            && text.contains("{\"n\": 1}")
            && text.contains("x-mine: yes"),
        "{text}"
    );
    assert!(!text.contains(SECRET) && text.contains("x-echo: Bearer [secret api]"), "{text}");
    let asked = calling.site.requests().remove(0);
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {SECRET}")));
    assert_eq!(asked.header("idempotency-key").as_deref(), Some("run/task/1/2"));
}

#[tokio::test]
async fn a_secret_goes_to_its_host_alone_and_a_reading_call_has_no_name() {
    let calling = calling().await;
    let url = format!("http://127.0.0.1:{}/", calling.other.port);
    let ctx = context().under_key("run/task/1/2");
    let text = calling.tools.call(&ctx, "http_request", json!({ "url": url })).await.unwrap().content;
    assert!(text.contains("GET / HTTP/1.1"), "{text}");
    let asked = calling.other.requests().remove(0);
    assert_eq!((asked.header("authorization"), asked.header("idempotency-key")), (None, None));
    let open = json!({ "url": "http://public.org:8080/" });
    let failure = calling.tools.call(&ctx, "http_request", open).await.unwrap_err().to_string();
    assert!(failure.contains("by https only"), "{failure}");
}

#[tokio::test]
async fn hosts_that_are_not_listed_and_headers_that_are_ours_are_refused() {
    let calling = calling().await;
    let here = format!("http://127.0.0.1:{}/", calling.site.port);
    let call = async |arguments| calling.tools.call(&context(), "http_request", arguments).await.unwrap_err();
    for url in
        ["https://elsewhere.org/", "http://127.0.0.1:8080/", "file:///etc/passwd", "https://x.public.org/"]
    {
        assert!(matches!(call(json!({ "url": url })).await, ToolFailure::Refused(_)), "{url}");
    }
    for header in [
        "Authorization",
        "authorization",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Proxy-Authorization",
        "a b",
    ] {
        let failure = call(json!({ "url": here, "headers": {header: "x"} })).await;
        assert!(matches!(failure, ToolFailure::InvalidArguments(_)), "{header}: {failure}");
    }
    let failure = call(json!({ "url": here, "headers": {"X-A": "a\r\nX-B: b"} })).await;
    assert!(matches!(failure, ToolFailure::InvalidArguments(_)), "{failure}");
    let refused = calling.tools.call(&restricted(&["a.org"]), "http_request", json!({ "url": here })).await;
    assert!(matches!(refused, Err(ToolFailure::NoRight(_))));
    assert_eq!((calling.site.connections(), calling.other.connections()), (0, 0));
}

#[tokio::test]
async fn a_call_whose_end_is_not_known_says_that_it_may_have_taken_effect() {
    let calling = calling().await;
    let base = format!("http://127.0.0.1:{}", calling.site.port);
    let call = async |method: &str, url: String| {
        calling.tools.call(&context(), "http_request", json!({ "method": method, "url": url })).await
    };
    let failure = call("POST", format!("{base}/breaks")).await.unwrap_err();
    assert!(
        matches!(failure, ToolFailure::Failed(_)) && failure.to_string().contains("may have taken effect"),
        "{failure}"
    );
    assert_eq!(calling.site.connections(), 1);
    let failure = call("GET", format!("{base}/breaks")).await.unwrap_err();
    assert!(!failure.to_string().contains("may have taken effect"), "{failure}");
    let text = call("GET", format!("{base}/redirects")).await.unwrap().content;
    assert!(text.contains("status 307") && text.contains("location: http://elsewhere.org/"), "{text}");
    assert!(
        call("GET", format!("{base}/picture")).await.unwrap().content.contains("2 bytes that are no text")
    );
    let gone = format!("http://127.0.0.1:{}/", calling.other.port);
    let Calling { other, tools, .. } = calling;
    drop(other);
    let failure =
        tools.call(&context(), "http_request", json!({ "method": "POST", "url": gone })).await.unwrap_err();
    assert!(matches!(failure, ToolFailure::Unavailable(_)), "{failure}");
}
