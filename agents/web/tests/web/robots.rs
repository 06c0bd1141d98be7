//! robots.txt.

use muster_tools::settings::WebSettings;
use serde_json::json;

use super::support::{Site, Tools, page, redirect, restricted, settings};

fn obeying(port: u16) -> WebSettings {
    WebSettings { robots: true, ..settings(&[port]) }
}

#[tokio::test]
async fn what_a_site_does_not_want_read_is_not_asked_for() {
    let site = Site::start(|request| match request.path() {
        "/robots.txt" => page(200, &[], b"User-agent: *\nDisallow: /private"),
        "/leads" => redirect("/private/b"),
        _ => page(200, &[("content-type", "text/plain")], b"hello"),
    })
    .await;
    let tools = Tools::new(obeying(site.port));
    for path in ["/private/a", "/leads"] {
        let failure = tools.fetch(&site.url(path)).await.unwrap_err().to_string();
        assert!(failure.contains("robots.txt"), "{failure}");
    }
    assert!(tools.fetch(&site.url("/open")).await.unwrap().contains("hello"));
    let asked: Vec<String> = site.requests().iter().map(|request| request.path().to_owned()).collect();
    assert_eq!(asked, ["/robots.txt", "/leads", "/open"]);
}

#[tokio::test]
async fn a_site_of_ones_own_and_a_setting_need_no_leave() {
    let site =
        Site::start(|_| page(200, &[("content-type", "text/plain")], b"User-agent: *\nDisallow: /")).await;
    let own = WebSettings { own_hosts: vec!["site.org".to_owned()], ..obeying(site.port) };
    assert!(Tools::new(own).fetch(&site.url("/")).await.is_ok());
    assert!(Tools::new(settings(&[site.port])).fetch(&site.url("/")).await.is_ok());
    assert!(Tools::new(obeying(site.port)).fetch(&site.url("/")).await.is_err());
}

#[tokio::test]
async fn a_site_without_the_file_is_open_and_one_that_fails_to_give_it_is_closed() {
    for (status, is_open) in [(404, true), (403, true), (500, false), (503, false)] {
        let site = Site::start(move |request| match request.path() {
            "/robots.txt" => page(status, &[], b"User-agent: *\nDisallow: /"),
            _ => page(200, &[("content-type", "text/plain")], b"hello"),
        })
        .await;
        assert_eq!(Tools::new(obeying(site.port)).fetch(&site.url("/")).await.is_ok(), is_open, "{status}");
    }
}

#[tokio::test]
async fn a_file_that_lies_where_the_task_has_no_right_to_go_is_not_got() {
    let far = Site::of("text/plain", "User-agent: *\nDisallow: /").await;
    let to = format!("http://other.org:{}/robots.txt", far.port);
    let site = Site::start(move |request| match request.path() {
        "/robots.txt" => redirect(&to),
        _ => page(200, &[("content-type", "text/plain")], b"hello"),
    })
    .await;
    let mut settings = obeying(site.port);
    settings.ports.push(far.port);
    let ctx = restricted(&["site.org"]);
    assert!(Tools::new(settings).call(&ctx, "fetch", json!({ "url": site.url("/") })).await.is_ok());
    assert_eq!(far.connections(), 0);
}
