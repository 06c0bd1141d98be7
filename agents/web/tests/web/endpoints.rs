//! Endpoints that a file names, with names, addresses and answers that are hostile.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use muster_shared::flow::rights::HostPattern;
use muster_tools::settings::WebSettings;
use muster_web::{EndpointAnswer, EndpointCall, EndpointFailure, Endpoints, Resolver};

use super::support::{Names, Reply, Site, page, redirect};

const PUBLIC: &str = "93.184.215.14";

fn endpoints(names: &Arc<Names>, allow: &[&str]) -> Endpoints {
    let allow_hosts = allow.iter().map(|host| (*host).to_owned()).collect();
    let settings = WebSettings { allow_hosts, ..WebSettings::default() };
    Endpoints::new(settings, Arc::clone(names) as Arc<dyn Resolver>)
}

async fn get(endpoints: &Endpoints, url: &str, private: &[&str]) -> Result<EndpointAnswer, EndpointFailure> {
    let private: Vec<HostPattern> = private.iter().map(|host| HostPattern::read(host).unwrap()).collect();
    let headers = [("x-key".to_owned(), "k".to_owned())];
    let asked =
        EndpointCall { method: "GET", url, headers: &headers, body: None, private: &private, most: 1_000 };
    endpoints.call(asked).await
}

fn is_refused(answer: &Result<EndpointAnswer, EndpointFailure>) -> bool {
    matches!(answer, Err(EndpointFailure::Refused(_)))
}

#[tokio::test]
async fn an_endpoint_is_at_a_public_address_unless_its_file_or_a_setting_names_it() {
    let far = Site::of("text/plain", "hello").await;
    let names =
        Arc::new(Names::default().with("inner.org", &[&["10.0.0.1"]]).with("both.org", &[&[PUBLIC, "::1"]]));
    let (plain, port) = (endpoints(&names, &[]), far.port);
    let private =
        ["http://inner.org", "http://both.org", "http://127.0.0.1", "http://[::1]", "http://localhost"];
    for url in private {
        let answer = get(&plain, &format!("{url}:{port}/"), &[]).await;
        assert!(is_refused(&answer), "{url}: {answer:?}");
    }
    let beside = get(&plain, &format!("http://127.0.0.1:{port}/"), &["inner.org", "127.0.0.1:1"]).await;
    assert!(is_refused(&beside), "another host or port of the file lets nothing through: {beside:?}");
    assert_eq!(far.connections(), 0);
    for named in ["inner.org".to_owned(), format!("inner.org:{port}"), "*.org".to_owned()] {
        let answer = get(&plain, &format!("http://inner.org:{port}/"), &[&named]).await.unwrap();
        assert_eq!((answer.status, &*answer.body), (200, b"hello".as_slice()), "{named}");
    }
    let by_setting = endpoints(&names, &[&format!("inner.org:{port}")]);
    assert!(get(&by_setting, &format!("http://inner.org:{port}/"), &[]).await.is_ok());
    assert!(is_refused(&get(&by_setting, &format!("http://both.org:{port}/"), &[]).await));
    let public = get(&plain, &format!("http://site.org:{port}/"), &[]).await;
    assert!(public.is_ok(), "at whatever port the file names: {public:?}");
}

#[tokio::test]
async fn a_name_that_is_rebound_is_judged_at_each_connection_and_looked_up_once_for_it() {
    let far = Site::of("text/plain", "hello").await;
    let names = Arc::new(Names::default().with("site.org", &[&[PUBLIC], &["127.0.0.1"]]));
    let endpoints = endpoints(&names, &[]);
    assert!(get(&endpoints, &far.url("/"), &[]).await.is_ok());
    assert_eq!((names.lookups(), far.connections()), (1, 1));
    assert!(is_refused(&get(&endpoints, &far.url("/"), &[]).await));
    assert_eq!((names.lookups(), far.connections()), (2, 1));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let secret = Site::of("text/plain", "secret").await;
    let to = secret.url("/");
    let far = Site::start(move |_| redirect(&to)).await;
    let answer = get(&endpoints(&Arc::default(), &[]), &far.url("/"), &[]).await.unwrap();
    assert_eq!((answer.status, far.connections(), secret.connections()), (302, 1, 0));
}

#[tokio::test]
async fn of_a_huge_or_packed_answer_no_more_is_kept_than_may_be() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![b'x'; 10_000_000]).unwrap();
    let packed = packed.finish().unwrap();
    let far = Site::start(move |request| match request.path() {
        "/packed" => page(200, &[("content-encoding", "gzip")], &packed),
        "/announced" => Reply::Whole(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999999\r\n\r\nxx".to_vec()),
        "/exact" => page(200, &[], &[b'x'; 1_000]),
        _ => Reply::Endless(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
            format!("64\r\n{}\r\n", "x".repeat(100)).into_bytes(),
            Duration::ZERO,
        ),
    })
    .await;
    let endpoints = endpoints(&Arc::default(), &[]);
    for path in ["/packed", "/endless"] {
        let answer = get(&endpoints, &far.url(path), &[]).await.unwrap();
        assert_eq!((answer.body.len(), answer.cut), (1_000, true), "{path}");
    }
    let exact = get(&endpoints, &far.url("/exact"), &[]).await.unwrap();
    assert_eq!((exact.body.len(), exact.cut), (1_000, false));
    let broken = get(&endpoints, &far.url("/announced"), &[]).await;
    assert!(matches!(broken, Err(EndpointFailure::Lost(_))), "{broken:?}");
}

#[tokio::test]
async fn what_cannot_be_sent_is_not_and_shows_no_secret() {
    let far = Site::of("text/plain", "hello").await;
    let endpoints = endpoints(&Arc::default(), &[]);
    let headers = [("x-key".to_owned(), "s3cret\nvalue".to_owned())];
    let url = far.url("/");
    let asked =
        EndpointCall { method: "GET", url: &url, headers: &headers, body: None, private: &[], most: 1 };
    let failure = endpoints.call(asked).await.unwrap_err();
    assert!(
        matches!(failure, EndpointFailure::NotSent(_)) && !failure.to_string().contains("s3cret"),
        "{failure}"
    );
    let nobody = get(&endpoints, "http://unknown.net/", &[]).await;
    assert!(matches!(nobody, Err(EndpointFailure::NotSent(_))), "{nobody:?}");
    assert_eq!(far.connections(), 0);
}
