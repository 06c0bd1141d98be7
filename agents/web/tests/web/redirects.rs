//! Redirects: each hop is judged like the first.

use muster_tools::ToolFailure;
use serde_json::json;

use super::support::{Names, Site, Tools, page, redirect, restricted, settings};

#[tokio::test]
async fn redirects_to_where_nothing_may_be_reached_are_not_followed() {
    let far = Site::of("text/plain", "secret").await;
    let port = far.port;
    let site = Site::start(move |request| {
        let to = percent_decoded(request.path().trim_start_matches("/?"));
        redirect(&to.replace("FAR", &port.to_string()))
    })
    .await;
    let names = Names::default().with("inside.org", &[&["127.0.0.1"]]);
    let tools = Tools::with(settings(&[site.port, far.port]), names, Default::default());
    let table = [
        ("http://127.0.0.1:FAR/", "no public address"),
        ("//127.0.0.1:FAR/", "no public address"),
        ("\\\\127.0.0.1:FAR/", "no public address"),
        ("http://2130706433:FAR/", "no public address"),
        ("http://0x7f.1:FAR/", "no public address"),
        ("http://[::1]:FAR/", "no public address"),
        ("http://[::ffff:127.0.0.1]:FAR/", "no public address"),
        ("http://[64:ff9b::7f00:1]:FAR/", "no public address"),
        ("http://169.254.169.254:FAR/latest/", "no public address"),
        ("http://inside.org:FAR/", "no public address"),
        ("http://localhost:FAR/", "private network"),
        ("http://metadata.google.internal:FAR/", "private network"),
        ("http://user@site.org:FAR/", "user name"),
        ("http://site.org:22/", "port 22"),
        ("file:///etc/passwd", "only http and https"),
        ("gopher://127.0.0.1:FAR/_", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("ftp://site.org:FAR/", "only http and https"),
        ("http://[", "no URL"),
        ("", "without saying where"),
    ];
    for (to, said) in table {
        let failure = tools.fetch(&site.url(&format!("/?{}", encoded(to)))).await.expect_err(to).to_string();
        assert!(failure.contains(said), "{to}: {failure}");
    }
    assert_eq!((site.connections(), far.connections()), (table.len(), 0));
}

#[tokio::test]
async fn a_loop_and_a_chain_that_is_too_long_end() {
    let site = Site::start(|request| match request.path() {
        "/a" => redirect("/b"),
        "/b" => redirect("a"),
        path => match path.trim_start_matches('/').parse::<u32>() {
            Ok(0) | Err(_) => page(200, &[("content-type", "text/plain")], b"the end"),
            Ok(left) => redirect(&format!("/{}", left - 1)),
        },
    })
    .await;
    let tools = Tools::new(settings(&[site.port]));
    for path in ["/a", "/6"] {
        let failure = tools.fetch(&site.url(path)).await.unwrap_err().to_string();
        assert!(failure.contains("more than 5 times"), "{failure}");
    }
    assert_eq!(site.connections(), 12);
    let text = tools.fetch(&site.url("/5")).await.unwrap();
    assert!(text.contains("/0 after 5 redirects;") && text.contains("the end"), "{text}");
}

#[tokio::test]
async fn a_redirect_to_a_host_that_the_task_has_no_right_to_is_not_followed() {
    let far = Site::of("text/plain", "not for this task").await;
    let to = format!("http://other.org:{}/", far.port);
    let site = Site::start(move |_| redirect(&to)).await;
    let tools = Tools::new(settings(&[site.port, far.port]));
    let ctx = restricted(&[&format!("site.org:{}", site.port)]);
    let failure = tools.call(&ctx, "fetch", json!({ "url": site.url("/") })).await.unwrap_err();
    assert!(matches!(failure, ToolFailure::NoRight(_)), "{failure}");
    assert_eq!((site.connections(), far.connections()), (1, 0));
    let failure = tools.call(&ctx, "fetch", json!({ "url": far.url("/") })).await.unwrap_err();
    assert!(matches!(failure, ToolFailure::NoRight(_)), "{failure}");
    assert_eq!(far.connections(), 0);
    assert!(tools.fetch(&site.url("/")).await.unwrap().contains("not for this task"));
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.split('%').skip(1).map(|digits| u8::from_str_radix(digits, 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}
