//! Encrypted connections: to the server that is meant and to no other, or none.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use muster_bus::credentials::FleetTls;
use muster_bus::server::{LocalServer, Machine, ServerSettings, keys_of_server, reload};
use muster_bus::{Bus, BusError, BusSettings};
use muster_shared::secret::Redactor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

use crate::fixture::{agent, server_settings, settings, until};

fn tls_settings(folder: &Path) -> ServerSettings {
    ServerSettings { tls: true, ..server_settings(folder, 0) }
}

/// A server with these settings, and what must live as long as it does.
async fn encrypted(change: impl FnOnce(ServerSettings) -> ServerSettings) -> (LocalServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let server = LocalServer::start(&change(tls_settings(folder.path()))).await.unwrap();
    (server, folder)
}

/// The owner's own way, which knows the authority.
fn own(server: &LocalServer) -> BusSettings {
    BusSettings { credentials: Some(server.keys().operator_file()), ..settings() }.at(server)
}

async fn connect(settings: &BusSettings) -> Result<Bus, BusError> {
    Bus::connect(settings, &agent("tester"), Arc::new(Redactor::default())).await
}

/// Why there is no connection, which is told as TLS in one sentence.
async fn refused(settings: &BusSettings) -> String {
    match connect(settings).await {
        Err(BusError::Tls { reason, .. }) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("let in"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_knows_the_authority_comes_in_and_nobody_else() {
    let (server, _folder) = encrypted(|settings| settings).await;
    assert!(server.url().starts_with("tls://127.0.0.1:"), "{}", server.url());
    let bus = connect(&own(&server)).await.unwrap();
    bus.provision().await.unwrap();

    let unknown = BusSettings { tls_ca: None, ..own(&server) };
    assert!(refused(&unknown).await.contains("bus.tls_ca"));
    // Who does not ask for TLS is led to it.
    let plain = BusSettings { url: Some(server.url().replace("tls://", "nats://")), ..unknown };
    assert!(refused(&plain).await.contains("bus.tls_ca"));

    let elsewhere = tempfile::tempdir().unwrap();
    let (other, _) = FleetTls::open_or_make(elsewhere.path(), &["127.0.0.1".to_owned()]).unwrap();
    let wrong = BusSettings { tls_ca: Some(other.ca_file()), ..own(&server) };
    let said = refused(&wrong).await;
    assert!(said.contains("not of the authority in") && said.contains("ca.pem"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_holds_no_certificate_is_said_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        Some(folder.path().join(name))
    };
    let url = Some("tls://127.0.0.1:1".to_owned());
    for (name, text) in [("none.pem", "hello"), ("torn.pem", "-----BEGIN CERTIFICATE-----\nMII")] {
        let wrong = BusSettings { url: url.clone(), tls_ca: at(name, text), ..settings() };
        let error = connect(&wrong).await.unwrap_err();
        assert!(matches!(&error, BusError::Settings { reason } if reason.contains(name)), "{error}");
    }
    let missing =
        BusSettings { url: url.clone(), tls_ca: Some(folder.path().join("missing.pem")), ..settings() };
    assert!(matches!(connect(&missing).await.unwrap_err(), BusError::Settings { .. }));
    let half = BusSettings { url, tls_cert: at("c.pem", "x"), ..settings() };
    assert!(matches!(connect(&half).await.unwrap_err(), BusError::Settings { .. }));
}

/// What a stand-in for a server heard, by a line that says what it would have to be.
fn stand_in(
    info: &'static str,
    serve: impl FnOnce(TcpStream) -> Vec<u8> + Send + 'static,
) -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(info.as_bytes()).unwrap();
        serve(stream)
    });
    (at, heard)
}

const INFO: &str = "INFO {\"server_id\":\"X\",\"version\":\"2.15.1\",\"headers\":true,\"max_payload\":1048576,\"jetstream\":true,\"auth_required\":true,\"nonce\":\"abcdefgh\"}\r\n";
const INFO_TLS: &str = "INFO {\"server_id\":\"X\",\"version\":\"2.15.1\",\"headers\":true,\"max_payload\":1048576,\"jetstream\":true,\"auth_required\":true,\"nonce\":\"abcdefgh\",\"tls_required\":true}\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_encrypt_is_sent_nothing() {
    let (server, _folder) = encrypted(|settings| settings).await;
    for scheme in ["tls", "nats"] {
        let (at, heard) = stand_in(INFO, |mut stream| {
            let mut greeting = [0; 512];
            let read = stream.read(&mut greeting).unwrap();
            stream.write_all(b"-ERR 'Unknown Protocol Operation'\r\n").unwrap();
            greeting[..read].to_vec()
        });
        // By nats://, it is the authority that is named which asks for it.
        let led_astray = BusSettings { url: Some(format!("{scheme}://{at}")), ..own(&server) };
        let said = refused(&led_astray).await;
        assert!(said.contains("speaks no TLS"), "{said}");
        let heard = heard.join().unwrap();
        assert_eq!(heard.first(), Some(&0x16), "the first greeting of TLS, and nothing else");
        assert!(!String::from_utf8_lossy(&heard).contains("CONNECT"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_authority_is_sent_no_credentials() {
    let (server, _folder) = encrypted(|settings| settings).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let (other, _) = FleetTls::open_or_make(elsewhere.path(), &["127.0.0.1".to_owned()]).unwrap();
    let (at, heard) = stand_in(INFO_TLS, move |mut stream| {
        let chain: Vec<_> =
            CertificateDer::pem_file_iter(other.certificate_file()).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(other.key_file()).unwrap();
        let rules = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(rules)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let mut session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut words = Vec::new();
        let _ = rustls::Stream::new(&mut session, &mut stream).read_to_end(&mut words);
        words
    });
    let led_astray = BusSettings { url: Some(format!("tls://{at}")), ..own(&server) };
    assert!(refused(&led_astray).await.contains("not of the authority in"));
    let heard = heard.join().unwrap();
    assert!(heard.is_empty(), "{}", String::from_utf8_lossy(&heard));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_want_certificates_of_its_clients() {
    let (server, _folder) = encrypted(|settings| ServerSettings { tls_verify: true, ..settings }).await;
    let with = own(&server);
    assert!(with.tls_cert.is_some() && with.tls_key.is_some());
    connect(&with).await.unwrap();
    let without = BusSettings { tls_cert: None, tls_key: None, ..with.clone() };
    assert!(refused(&without).await.contains("bus.tls_cert"));
    let elsewhere = tempfile::tempdir().unwrap();
    let (other, _) = FleetTls::open_or_make(elsewhere.path(), &["127.0.0.1".to_owned()]).unwrap();
    let client = other.client().unwrap();
    let wrong = BusSettings { tls_cert: Some(client.certificate), tls_key: Some(client.key), ..with };
    assert!(refused(&wrong).await.contains("bus.tls_cert"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_all_addresses_is_reached_by_those_that_its_certificate_bears() {
    let everywhere = |settings| ServerSettings { tls: false, listen: Some("0.0.0.0".into()), ..settings };
    let (server, folder) = encrypted(everywhere).await;
    assert_eq!(server.listens_on().unwrap().to_string(), format!("0.0.0.0:{}", server.port()));
    let (store, port) = (folder.path().join("nats"), server.port());
    let at = |host: &str| BusSettings { url: Some(format!("tls://{host}:{port}")), ..own(&server) };
    let mut hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let v4 = Machine::here().addresses.into_iter().filter(std::net::IpAddr::is_ipv4);
    hosts.extend(v4.map(|address| address.to_string()));
    for host in &hosts {
        connect(&at(host)).await.unwrap();
        assert!(keys_of_server(&store, host, port).is_some(), "{host} is this machine");
    }
    assert!(keys_of_server(&store, "127.0.0.1", port.wrapping_add(1)).is_none());
    assert!(keys_of_server(&store, "192.0.2.250", port).is_none());
    // An address that leads there too, and that the certificate does not bear.
    assert!(refused(&at("127.0.0.2")).await.contains("server.names"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_not_ours_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (listen, wanted) in [("198.51.100.77:4222", "198.51.100.77"), ("a b", "0.0.0.0")] {
        let wrong = ServerSettings { listen: Some(listen.into()), ..server_settings(folder.path(), 0) };
        let error = LocalServer::start(&wrong).await.unwrap_err().to_string();
        assert!(error.contains(wanted) && error.contains("--listen"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_is_shown_to_whoever_comes_and_cuts_nobody_off() {
    let (server, folder) = encrypted(|settings| settings).await;
    let bus = connect(&own(&server)).await.unwrap();
    let shown = || leaf_shown_at(server.port());
    let before = shown();
    let tls = FleetTls::renew(server.keys().folder()).unwrap().unwrap();
    assert_eq!(shown(), before, "nobody has told the server");
    assert!(reload(&folder.path().join("nats")).unwrap());
    until("the new certificate", async || shown() != before).await;
    let ours = CertificateDer::pem_file_iter(tls.certificate_file()).unwrap().next().unwrap().unwrap();
    assert_eq!(shown(), ours.to_vec());
    bus.ping().await.unwrap();
    connect(&own(&server)).await.unwrap();
    assert_eq!(bus.record().connections(), 0, "the one that was there is there still");
}

/// The first certificate that a server shows, whoever may have made it.
fn leaf_shown_at(port: u16) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut byte = [0; 1];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).unwrap();
    }
    let rules = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(rules)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
    let mut session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut stream).unwrap();
    }
    session.peer_certificates().unwrap()[0].to_vec()
}

/// Takes whatever is shown.
#[derive(Debug)]
struct Anybody;

impl rustls::client::danger::ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
