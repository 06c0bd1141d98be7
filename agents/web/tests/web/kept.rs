//! Answers that were kept.

use muster_tools::ToolFailure;
use muster_tools::settings::WebSettings;
use serde_json::json;

use super::support::{Names, Site, Tools, call, context, page, redirect, restricted, settings};

fn keeping(ports: &[u16]) -> WebSettings {
    WebSettings { cache: 1 << 24, ..settings(ports) }
}

#[tokio::test]
async fn a_fresh_answer_is_given_to_all_agents_of_a_host_without_asking() {
    let headers = [("cache-control", "max-age=600"), ("content-type", "text/plain"), ("age", "120")];
    let site = Site::start(move |_| page(200, &headers, b"kept")).await;
    let tools = Tools::new(keeping(&[site.port]));
    assert!(tools.fetch(&site.url("/")).await.unwrap().contains("from the site"));
    let other = tools.beside(keeping(&[site.port]));
    let text = call(&other, &context(), "fetch", json!({ "url": site.url("/") })).await.unwrap().content;
    assert!(text.contains("kept, 2 min old, still fresh") && text.ends_with("kept"), "{text}");
    assert_eq!((site.connections(), tools.names.lookups()), (1, 1));
}

#[tokio::test]
async fn a_kept_answer_gives_nobody_what_he_has_no_right_to() {
    let site = Site::start(|request| match request.path() {
        "/to" => page(301, &[("location", "/end"), ("cache-control", "max-age=600")], b""),
        _ => page(200, &[("cache-control", "max-age=600"), ("content-type", "text/plain")], b"kept"),
    })
    .await;
    let tools = Tools::new(keeping(&[site.port]));
    assert!(tools.fetch(&site.url("/to")).await.unwrap().contains("kept"));
    assert!(tools.fetch(&site.url("/to")).await.unwrap().contains("after a redirect"));
    let refused = tools.call(&restricted(&["other.org"]), "fetch", json!({ "url": site.url("/to") })).await;
    assert!(matches!(refused, Err(ToolFailure::NoRight(_))));
    assert_eq!(site.connections(), 2);
}

#[tokio::test]
async fn what_was_found_at_a_private_address_is_not_given_to_those_who_may_not_reach_it() {
    let headers = [("cache-control", "max-age=600"), ("content-type", "text/plain")];
    let site = Site::start(move |_| page(200, &headers, b"inside")).await;
    let names = Names::default().with("site.org", &[&["10.0.0.1"]]);
    let named = WebSettings { allow_hosts: vec!["site.org".to_owned()], ..keeping(&[site.port]) };
    let tools = Tools::with(named, names, Default::default());
    assert!(tools.fetch(&site.url("/")).await.unwrap().contains("inside"));
    let other = tools.beside(keeping(&[site.port]));
    let refused = call(&other, &context(), "fetch", json!({ "url": site.url("/") })).await;
    assert!(matches!(refused, Err(ToolFailure::Refused(_))), "{refused:?}");
    assert_eq!(site.connections(), 1);
}

#[tokio::test]
async fn a_stale_answer_is_confirmed_by_its_site_or_replaced() {
    let site = Site::start(|request| {
        let headers = [("etag", "\"v1\""), ("cache-control", "no-cache"), ("content-type", "text/plain")];
        match (request.path(), request.header("if-none-match").as_deref()) {
            ("/same", Some("\"v1\"")) => page(304, &[("etag", "\"v1\"")], b""),
            (_, Some(_)) => page(200, &[("content-type", "text/plain")], b"new"),
            (_, None) => page(200, &headers, b"first"),
        }
    })
    .await;
    let tools = Tools::new(keeping(&[site.port]));
    for path in ["/same", "/other"] {
        assert!(tools.fetch(&site.url(path)).await.unwrap().ends_with("first"));
    }
    let text = tools.fetch(&site.url("/same")).await.unwrap();
    assert!(text.contains("the site says it is unchanged") && text.ends_with("first"), "{text}");
    assert!(tools.fetch(&site.url("/other")).await.unwrap().ends_with("new"));
    assert_eq!(site.connections(), 4);
}

#[tokio::test]
async fn what_may_not_be_kept_is_asked_for_each_time() {
    let site = Site::start(|request| {
        let control = if request.path() == "/a" { "no-store, max-age=600" } else { "private, max-age=600" };
        page(200, &[("cache-control", control), ("content-type", "text/plain")], b"x")
    })
    .await;
    let tools = Tools::new(keeping(&[site.port]));
    for path in ["/a", "/a", "/b", "/b"] {
        assert!(tools.fetch(&site.url(path)).await.unwrap().contains("from the site"));
    }
    assert_eq!(site.connections(), 4);
}

#[tokio::test]
async fn an_answer_stands_in_for_a_site_that_fails_and_is_marked() {
    let site = Site::start(|request| match request.header("if-none-match") {
        Some(_) => page(500, &[], b""),
        None => page(200, &[("etag", "\"1\""), ("content-type", "text/plain")], b"last good"),
    })
    .await;
    let tools = Tools::new(keeping(&[site.port]));
    let url = site.url("/");
    tools.fetch(&url).await.unwrap();
    let text = tools.fetch(&url).await.unwrap();
    assert!(text.contains("the site does not answer now") && text.ends_with("last good"), "{text}");
    drop(site);
    let text = tools.fetch(&url).await.unwrap();
    assert!(text.contains("the site does not answer now") && text.ends_with("last good"), "{text}");
    let none = WebSettings { cache_stale: std::time::Duration::ZERO, ..keeping(&[80]) };
    let other = tools.beside(WebSettings { ports: vec![url_port(&url)], ..none });
    assert!(call(&other, &context(), "fetch", json!({ "url": url })).await.is_err());
}

#[tokio::test]
async fn a_redirect_that_was_kept_is_judged_again() {
    let site = Site::start(|_| redirect("x")).await;
    let tools = Tools::new(keeping(&[site.port]));
    assert!(tools.fetch(&site.url("/")).await.unwrap_err().to_string().contains("more than 5 times"));
}

fn url_port(url: &str) -> u16 {
    url.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap()
}
