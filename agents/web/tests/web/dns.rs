//! Names whose answers are hostile.

use muster_tools::ToolFailure;

use super::support::{Names, Site, Tools, settings};

const PUBLIC: &str = "93.184.215.14";

#[tokio::test]
async fn a_name_at_any_private_address_is_not_connected_to() {
    let far = Site::of("text/plain", "secret").await;
    let many: Vec<&str> = std::iter::repeat_n(PUBLIC, 40).chain(["10.0.0.1"]).collect();
    let table: [&[&str]; 12] = [
        &["127.0.0.1"],
        &["::1"],
        &["0.0.0.0"],
        &["169.254.169.254"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::a9fe:a9fe"],
        &["2002:7f00:1::"],
        &["fd00:ec2::254"],
        &["fe80::1"],
        &[PUBLIC, "192.168.0.1"],
        &["2606:4700::1111", "::1"],
        &many,
    ];
    for answer in table {
        let names = Names::default().with("site.org", &[answer]);
        let tools = Tools::with(settings(&[far.port]), names, Default::default());
        let failure = tools.fetch(&far.url("/")).await.unwrap_err();
        assert!(matches!(failure, ToolFailure::Refused(_)), "{answer:?}: {failure}");
        assert!(failure.to_string().contains("no public address"), "{answer:?}: {failure}");
    }
    assert_eq!(far.connections(), 0);
}

#[tokio::test]
async fn a_name_that_is_rebound_is_connected_to_at_what_was_judged_and_refused_the_next_time() {
    let far = Site::of("text/plain", "hello").await;
    let names = Names::default().with("site.org", &[&[PUBLIC], &["127.0.0.1"]]);
    let tools = Tools::with(settings(&[far.port]), names, Default::default());
    // One look-up for one connection: there is no second answer that could be another.
    assert!(tools.fetch(&far.url("/")).await.unwrap().contains("hello"));
    assert_eq!((tools.names.lookups(), far.connections()), (1, 1));
    assert!(matches!(tools.fetch(&far.url("/")).await, Err(ToolFailure::Refused(_))));
    assert_eq!((tools.names.lookups(), far.connections()), (2, 1));
}

#[tokio::test]
async fn a_name_that_has_no_address_may_have_one_later() {
    let tools = Tools::with(settings(&[80]), Names::default().with("none.org", &[&[]]), Default::default());
    for url in ["http://unknown.net/", "http://none.org/"] {
        let failure = tools.fetch(url).await.unwrap_err();
        assert!(matches!(failure, ToolFailure::Unavailable(_)), "{failure}");
    }
}

#[tokio::test]
async fn a_named_host_may_be_at_a_private_address_and_no_host_beside_it() {
    let far = Site::of("text/plain", "intranet").await;
    let mut settings = settings(&[far.port]);
    settings.allow_hosts = vec!["*.corp.org".to_owned()];
    let names = Names::default().with("wiki.corp.org", &[&["10.0.0.1"]]).with("corp.org", &[&["10.0.0.1"]]);
    let tools = Tools::with(settings, names, Default::default());
    assert!(tools.fetch(&format!("http://wiki.corp.org:{}/", far.port)).await.unwrap().contains("intranet"));
    assert!(tools.fetch(&format!("http://corp.org:{}/", far.port)).await.is_err());
    assert_eq!(far.connections(), 1);
}
