//! Answers that are made to hurt: slow, endless, packed, cut off, from the wrong host.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use muster_tools::ToolFailure;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::support::{Reply, Site, Tools, page, settings};

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";

fn limited(port: u16) -> muster_tools::settings::WebSettings {
    let mut settings = settings(&[port]);
    (settings.max_bytes, settings.total, settings.idle) =
        (1 << 20, Duration::from_millis(1500), Duration::from_millis(700));
    settings
}

#[tokio::test]
async fn an_answer_that_drips_or_does_not_end_is_given_up_in_time() {
    let drip = Duration::from_millis(50);
    let site = Site::start(move |request| match request.path() {
        "/drips" => Reply::Endless(
            b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n".to_vec(),
            b"x".to_vec(),
            drip,
        ),
        "/drips-head" => Reply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x".to_vec(), drip),
        "/stops" => Reply::Endless(CHUNKED.to_vec(), b"1\r\nx\r\n".to_vec(), Duration::from_secs(60)),
        "/chunks" => Reply::Endless(CHUNKED.to_vec(), b"1\r\nx\r\n".to_vec(), drip),
        _ => Reply::Silence,
    })
    .await;
    for path in ["/drips", "/drips-head", "/stops", "/chunks", "/silence"] {
        let tools = Tools::new(limited(site.port));
        let begun = Instant::now();
        let failure = tools.fetch(&site.url(path)).await.expect_err(path);
        assert!(matches!(failure, ToolFailure::Unavailable(_)), "{path}: {failure}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{path}: {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read_to_its_end() {
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let line = [b"x-".as_slice(), &[b'y'; 5000], b": 1\r\n"].concat();
    let bomb = gzip(&vec![0; 64 << 20]);
    assert!(bomb.len() < 1 << 20);
    let nested = gzip(&bomb);
    let site = Site::start(move |request| match request.path() {
        "/announced" => page(200, &[], &vec![b'x'; (1 << 20) + 1]),
        "/chunks" => Reply::Endless(CHUNKED.to_vec(), chunk.clone(), Duration::ZERO),
        "/bomb" => page(200, &[("content-encoding", "gzip")], &bomb),
        "/nested" => page(200, &[("content-encoding", "gzip, gzip")], &nested),
        "/lines" => Reply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), line.clone(), Duration::ZERO),
        _ => Reply::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'y'; 1 << 16], Duration::ZERO),
    })
    .await;
    let tools = Tools::new(limited(site.port));
    let table = [
        ("/announced", "larger than the limit"),
        ("/chunks", "larger than the limit"),
        ("/bomb", "larger than the limit"),
        ("/nested", "packed as gzip, gzip"),
        ("/lines", "broken"),
        ("/one-line", "broken"),
    ];
    for (path, said) in table {
        let failure = tools.fetch(&site.url(path)).await.expect_err(path);
        assert!(matches!(failure, ToolFailure::Failed(_)), "{path}: {failure}");
        assert!(failure.to_string().contains(said), "{path}: {failure}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_is_said_to_be_broken() {
    let site = Site::start(|request| match request.path() {
        "/short" => Reply::Whole(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this".to_vec()),
        "/nonsense" => Reply::Whole(b"SSH-2.0-OpenSSH_9\r\n\r\n".to_vec()),
        "/nothing" => Reply::Whole(Vec::new()),
        "/two-lengths" => {
            Reply::Whole(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nhello".to_vec())
        }
        "/no-gzip" => page(200, &[("content-encoding", "gzip")], b"this is not packed at all"),
        "/half-gzip" => page(200, &[("content-encoding", "gzip")], &gzip(&[7; 5000])[..20]),
        "/brotli" => page(200, &[("content-encoding", "br")], b"\x0b\x02\x80hello\x03"),
        "/zstd" => page(200, &[("content-encoding", "zstd")], b"\x28\xb5\x2f\xfd"),
        _ => Reply::Whole(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec()),
    })
    .await;
    let tools = Tools::new(limited(site.port));
    for path in ["/short", "/nonsense", "/nothing", "/two-lengths", "/no-gzip", "/half-gzip", "/bad-chunk"] {
        let failure = tools.fetch(&site.url(path)).await.expect_err(path).to_string();
        assert!(failure.contains("its answer is broken"), "{path}: {failure}");
    }
    for (path, packed) in [("/brotli", "packed as br"), ("/zstd", "packed as zstd")] {
        assert!(tools.fetch(&site.url(path)).await.unwrap_err().to_string().contains(packed), "{path}");
    }
}

#[tokio::test]
async fn a_packed_page_is_unpacked() {
    let packed = gzip(b"it was packed");
    let headers = [("content-encoding", "gzip"), ("content-type", "text/plain")];
    let site = Site::start(move |_| page(200, &headers, &packed)).await;
    assert!(
        Tools::new(settings(&[site.port])).fetch(&site.url("/")).await.unwrap().contains("it was packed")
    );
    let asked = site.requests().remove(0);
    assert_eq!(asked.header("accept-encoding").as_deref(), Some("gzip"));
    assert!(asked.header("user-agent").unwrap().starts_with("Muster/"));
}

/// A site with a certificate for this name, that answers everything with this head. Its certificate is given.
async fn secure_site(name: &str, head: &'static str) -> (u16, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(config)), TcpListener::bind(("127.0.0.1", 0)).await.unwrap());
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    let pem = base64::engine::general_purpose::STANDARD.encode(cert.der());
    (port, format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n"))
}

const HELLO: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecure";

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_or_of_another_host_is_refused() {
    let (port, pem) = secure_site("site.org", HELLO).await;
    let url = format!("https://site.org:{port}/");
    let failure = Tools::new(settings(&[port])).fetch(&url).await.unwrap_err().to_string();
    assert!(failure.contains("certificate is not trusted"), "{failure}");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    let mut trusting = settings(&[port]);
    trusting.ca_file = Some(file.path().to_str().unwrap().to_owned());
    let tools = Tools::new(trusting);
    assert!(tools.fetch(&url).await.unwrap().contains("secure"));
    let failure = tools.fetch(&format!("https://other.org:{port}/")).await.unwrap_err().to_string();
    assert!(failure.contains("certificate is not trusted"), "{failure}");
}

#[tokio::test]
async fn a_redirect_from_https_to_http_is_not_followed() {
    let plain = Site::of("text/plain", "in the open").await;
    let head = format!(
        "HTTP/1.1 302 X\r\nlocation: http://site.org:{}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        plain.port
    );
    let (port, pem) = secure_site("site.org", head.leak()).await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    let mut settings = settings(&[port, plain.port]);
    settings.ca_file = Some(file.path().to_str().unwrap().to_owned());
    let failure = Tools::new(settings).fetch(&format!("https://site.org:{port}/")).await.unwrap_err();
    assert!(failure.to_string().contains("from https to http"), "{failure}");
    assert_eq!(plain.connections(), 0);
}

#[tokio::test]
async fn a_site_without_tls_is_no_secure_site() {
    let site = Site::of("text/plain", "plain").await;
    let url = format!("https://site.org:{}/", site.port);
    assert!(Tools::new(settings(&[site.port])).fetch(&url).await.is_err());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}
