use std::os::unix::fs::PermissionsExt;

use muster_shared::time::Millis;

use super::certificate::{authority, fingerprint, holds, leaf, will_do};
use super::*;

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
/// Some time in 2026.
const NOW: Millis = Millis(1_790_000_000_000);

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn wanted(purpose: Use, names: &[String], at: u64) -> Wanted<'_> {
    Wanted { purpose, called: "muster", names, now: Millis(at) }
}

#[test]
fn a_certificate_holds_for_its_names_and_for_clocks_that_are_a_day_behind() {
    let (ca, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let root = authority(&ca, NOW).unwrap();
    let both = names(&["127.0.0.1", "::1", "bus.example.org"]);
    let made = leaf(&ca, &key, &wanted(Use::Server, &both, NOW.0)).unwrap();
    for at in [NOW.0 - 25 * HOUR, NOW.0 - HOUR, NOW.0, NOW.0 + HOUR, NOW.0 + 390 * DAY] {
        holds(&root, &made, &wanted(Use::Server, &both, at), Millis(at)).unwrap();
    }
    for at in [NOW.0 - 60 * HOUR, NOW.0 + 398 * DAY] {
        assert!(holds(&root, &made, &wanted(Use::Server, &both, at), Millis(at)).is_err(), "{at}");
    }
    let elsewhere = names(&["10.0.0.9"]);
    assert!(holds(&root, &made, &wanted(Use::Server, &elsewhere, NOW.0), NOW).is_err());
    assert!(holds(&root, &made, &wanted(Use::Client, &[], NOW.0), NOW).is_err(), "a server's is no client's");
    let other = authority(&KeyPair::generate().unwrap(), NOW).unwrap();
    assert!(holds(&other, &made, &wanted(Use::Server, &both, NOW.0), NOW).is_err());
    assert!(leaf(&ca, &key, &wanted(Use::Server, &names(&["b\u{e4}d"]), NOW.0)).is_err());
}

#[test]
fn what_is_near_its_end_or_of_a_clock_that_was_ahead_will_not_do() {
    let (ca, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let root = authority(&ca, Millis(NOW.0 - 30 * DAY)).unwrap();
    let here = names(&["127.0.0.1"]);
    let made = |at: u64| leaf(&ca, &key, &wanted(Use::Server, &here, at)).unwrap();
    let now = wanted(Use::Server, &here, NOW.0);
    assert!(will_do(&root, &made(NOW.0), &now));
    assert!(will_do(&root, &made(NOW.0 - 300 * DAY), &now));
    assert!(!will_do(&root, &made(NOW.0 - 310 * DAY), &now));
    assert!(!will_do(&root, &made(NOW.0 + 2 * DAY), &now));
}

#[test]
fn certificates_are_made_once_for_the_owner_alone_and_anew_for_more_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(FleetTls::open(folder.path()).unwrap().is_none());
    let here = names(&["127.0.0.1", "localhost"]);
    let (tls, is_new) = FleetTls::open_or_make(folder.path(), &here).unwrap();
    assert!(is_new);
    let first = fs::read(tls.certificate_file()).unwrap();
    for file in ["ca.pem", "ca.key", "server.pem", "server.key"] {
        let mode = fs::metadata(at(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}");
    }
    let (again, is_new) = FleetTls::open_or_make(folder.path(), &here).unwrap();
    assert!(!is_new && again.fingerprint() == tls.fingerprint());
    assert_eq!(fs::read(tls.certificate_file()).unwrap(), first);
    // Whoever is shown the chain finds the authority in it.
    let chain = certificates(&tls.certificate_file()).unwrap();
    assert_eq!(chain.iter().map(fingerprint).nth(1), Some(tls.fingerprint()));
    assert_eq!(FleetTls::open(folder.path()).unwrap().unwrap().fingerprint(), tls.fingerprint());
    assert_eq!(tls.fingerprint().len(), 64);

    let more = names(&["127.0.0.1", "localhost", "192.0.2.7"]);
    let (tls, is_new) = FleetTls::open_or_make(folder.path(), &more).unwrap();
    assert!(is_new && again.fingerprint() == tls.fingerprint());
    assert_ne!(fs::read(tls.certificate_file()).unwrap(), first);
    // Somebody was killed between key and certificate.
    fs::remove_file(tls.key_file()).unwrap();
    assert!(FleetTls::open_or_make(folder.path(), &more).unwrap().1);
    let other = KeyPair::generate().unwrap();
    replace(&tls.key_file(), armoured("PRIVATE KEY", other.serialized_der()).expose_secret()).unwrap();
    assert!(FleetTls::open_or_make(folder.path(), &more).unwrap().1, "a key of another certificate");
}

#[test]
fn renewed_are_the_certificates_and_not_the_authority() {
    let folder = tempfile::tempdir().unwrap();
    let here = names(&["127.0.0.1"]);
    assert!(FleetTls::renew(folder.path()).unwrap().is_none());
    let (tls, _) = FleetTls::open_or_make(folder.path(), &here).unwrap();
    let client = tls.client().unwrap();
    assert_eq!(tls.client().unwrap(), client);
    let read = || {
        [&tls.certificate_file(), &tls.key_file(), &client.certificate, &client.key]
            .map(|f| fs::read(f).unwrap())
    };
    let before = read();
    let renewed = FleetTls::renew(folder.path()).unwrap().unwrap();
    assert_eq!(renewed.fingerprint(), tls.fingerprint());
    for (old, new) in before.iter().zip(read()) {
        assert_ne!(*old, new);
    }
}

#[test]
fn what_is_open_torn_or_of_another_authority_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = names(&["127.0.0.1"]);
    let (tls, _) = FleetTls::open_or_make(folder.path(), &here).unwrap();
    let key = folder.path().join("ca.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let open = FleetTls::open_or_make(folder.path(), &here).unwrap_err();
    assert!(matches!(open, CredentialsError::Open { .. }), "{open}");
    fs::remove_file(&key).unwrap();
    let other = FleetTls::open_or_make(folder.path(), &here).unwrap_err().to_string();
    assert!(other.contains("ca.pem") && other.contains("its key is not"), "{other}");
    fs::write(tls.ca_file(), "nonsense").unwrap();
    assert!(FleetTls::open(folder.path()).unwrap_err().to_string().contains("no certificate"));
}

#[test]
fn a_certificate_for_a_server_of_a_cluster_is_a_servers_and_a_clients_and_leaves_the_fleets_own_alone() {
    let (keys, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (own, _) = FleetTls::open_or_make(keys.path(), &names(&["127.0.0.1"])).unwrap();
    let before = fs::read(own.certificate_file()).unwrap();
    let there = out.path().join("nats-0");
    let three = names(&["nats-0.nats", "10.0.0.5", "localhost"]);
    let made = FleetTls::for_server(keys.path(), &three, &there).unwrap();
    assert_eq!(made.fingerprint(), own.fingerprint(), "by the same authority");
    assert_eq!(fs::read(own.certificate_file()).unwrap(), before);
    let found = certificates(&there.join("server.pem")).unwrap();
    assert_eq!(found.len(), 2, "the certificate, and the authority's after it");
    let (leaf, authority) = (&found[0], &found[1]);
    for purpose in [Use::Server, Use::Client, Use::Member] {
        holds(authority, leaf, &wanted(purpose, &three, 0), crate::bus::now()).unwrap();
    }
    assert!(certificate::is_of(leaf, &key_in(&there.join("server.key")).unwrap().unwrap()));
    assert_eq!(certificates(&there.join("ca.pem")).unwrap()[0], *authority);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&there), mode(&there.join("server.key"))), (0o700, 0o600));
    assert!(FleetTls::for_server(keys.path(), &names(&["no name"]), &there).is_err());
    assert_eq!(certificates(&there.join("server.pem")).unwrap(), found, "what was there stays");
}
