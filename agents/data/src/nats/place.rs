//! Where a source is, as whom it is asked, and which stream it is: read from its settings once. Pure.

use muster_bus::BusSettings;
use muster_bus::sources::is_of_muster;

use super::subject;
use crate::settings::NatsSettings;

/// What stands before the name of a bucket in that of its stream.
const BUCKET: &str = "KV_";
/// What stands before the name of a bucket in the subjects of its keys.
const KEYS: &str = "$KV.";
/// Where a server listens when nobody says otherwise.
const DEFAULT_PORT: u16 = 4222;

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Stream,
    Bucket,
}

/// Where a source is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) kind: Kind,
    /// The stream, which of a bucket is the one behind it.
    pub(super) stream: String,
    /// What stands before keys in subjects; nothing for streams.
    pub(super) before_key: String,
    /// How the server is reached; nothing where it is the fleet's own and none is known here.
    pub(super) server: Option<BusSettings>,
    /// The hosts with their ports, for the rights of tasks; none of the fleet's own server.
    pub(super) hosts: Vec<String>,
}

impl Place {
    /// Reads where a source is; `own` is how this process reaches the fleet's own server.
    pub(super) fn read(settings: &NatsSettings, own: Option<&BusSettings>) -> Result<Self, String> {
        let (kind, name) = match (settings.stream.as_str(), settings.bucket.as_str()) {
            (stream, "") if !stream.is_empty() => (Kind::Stream, stream.to_owned()),
            ("", bucket) if !bucket.is_empty() => (Kind::Bucket, bucket.to_owned()),
            _ => return Err("name either a stream (`stream`) or a bucket (`bucket`)".to_owned()),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !name.chars().all(is_name) {
            return Err(format!("`{name}` is no name: it has letters, digits, `_` and `-`"));
        }
        let (stream, before_key) = match kind {
            Kind::Stream => (name, String::new()),
            Kind::Bucket => (format!("{BUCKET}{name}"), format!("{KEYS}{name}.")),
        };
        if is_of_muster(&stream) && !settings.allow_own_of_muster {
            return Err(format!(
                "{stream} is Muster's own: in it stand the goals, documents and answers of all runs. Name another, or set \
                 allow_own_of_muster"
            ));
        }
        if let Some(fault) = subject::fault(&settings.subject) {
            return Err(format!("subject = {:?}: {fault}", settings.subject));
        }
        let (server, hosts) = server(settings, own)?;
        Ok(Self { kind, stream, before_key, server, hosts })
    }

    /// A filter as the server knows it: of keys, with what stands before them.
    pub(super) fn filter(&self, subject: &str) -> String {
        format!("{}{subject}", self.before_key)
    }
}

fn server(
    settings: &NatsSettings,
    own: Option<&BusSettings>,
) -> Result<(Option<BusSettings>, Vec<String>), String> {
    let times = |of: BusSettings| BusSettings {
        request_timeout: settings.time,
        connect_timeout: settings.connect_time,
        ..of
    };
    if settings.server.is_empty() {
        let named = settings.credentials.clone();
        let as_named = |own: &BusSettings| match named {
            Some(path) => BusSettings {
                credentials: Some(path),
                user: None,
                password: None,
                token: None,
                ..own.clone()
            },
            None => own.clone(),
        };
        return Ok((own.filter(|own| own.url.is_some()).map(as_named).map(times), Vec::new()));
    }
    let url = settings.server.trim();
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    if rest.contains('@') {
        return Err(
            "the URL has a user in it, which everybody sees: name a credentials file (`credentials`)"
                .to_owned(),
        );
    }
    let (host, port) = host_and_port(rest)
        .ok_or("server: it is no URL such as nats://nats.example.org:4222; one server, without a path")?;
    let is_local = host == "localhost"
        || host.trim_matches(['[', ']']).parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    let scheme = match scheme {
        "tls" => "tls",
        "nats" if is_local || settings.allow_unencrypted => "nats",
        "nats" => "tls",
        other => return Err(format!("server: `{other}://` is not spoken here; write nats:// or tls://")),
    };
    let of = BusSettings {
        url: Some(format!("{scheme}://{host}:{port}")),
        credentials: settings.credentials.clone(),
        tls_ca: settings.ca_file.clone(),
        server_user: own.and_then(|own| own.server_user.clone()),
        ..BusSettings::default()
    };
    Ok((Some(times(of)), vec![format!("{host}:{port}")]))
}

/// The host and port of the rest of a URL.
fn host_and_port(rest: &str) -> Option<(&str, u16)> {
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let end = if rest.starts_with('[') { rest.find(']')? + 1 } else { rest.find(':').unwrap_or(rest.len()) };
    let (host, port) = rest.split_at(end);
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    if host.is_empty() || !host.chars().all(is_host) {
        return None;
    }
    match port.strip_prefix(':') {
        Some(port) => Some((host, port.parse().ok()?)),
        None => port.is_empty().then_some((host, DEFAULT_PORT)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(server: &str, stream: &str, bucket: &str) -> NatsSettings {
        NatsSettings {
            server: server.to_owned(),
            stream: stream.to_owned(),
            bucket: bucket.to_owned(),
            ..NatsSettings::default()
        }
    }

    #[test]
    fn a_server_elsewhere_is_encrypted_and_has_no_user_in_its_url() {
        for (server, url, hosts) in [
            ("nats://n.example.org", "tls://n.example.org:4222", vec!["n.example.org:4222"]),
            ("n.example.org:5000", "tls://n.example.org:5000", vec!["n.example.org:5000"]),
            ("tls://127.0.0.1:4222/", "tls://127.0.0.1:4222", vec!["127.0.0.1:4222"]),
            ("nats://localhost:1", "nats://localhost:1", vec!["localhost:1"]),
            ("nats://[::1]:7", "nats://[::1]:7", vec!["[::1]:7"]),
        ] {
            let place = Place::read(&of(server, "ORDERS", ""), None).unwrap();
            assert_eq!(place.server.unwrap().url.as_deref(), Some(url), "{server}");
            assert_eq!(place.hosts, hosts, "{server}");
        }
        let plain = NatsSettings { allow_unencrypted: true, ..of("nats://n.example.org", "ORDERS", "") };
        assert!(Place::read(&plain, None).unwrap().server.unwrap().url.unwrap().starts_with("nats://"));
        for (server, said) in [
            ("nats://me:hunter2@n.example.org", "has a user in it"),
            ("http://n.example.org", "not spoken here"),
            ("nats://a,b", "no URL"),
            ("nats://n:port", "no URL"),
            ("nats://", "no URL"),
        ] {
            let told = Place::read(&of(server, "ORDERS", ""), None).unwrap_err();
            assert!(told.contains(said) && !told.contains("hunter2"), "{server}: {told}");
        }
    }

    #[test]
    fn the_fleets_own_server_is_reached_as_this_process_does_unless_credentials_are_named() {
        let own = BusSettings {
            url: Some("nats://127.0.0.1:9".to_owned()),
            user: Some("me".to_owned()),
            ..BusSettings::default()
        };
        let as_we_are = Place::read(&of("", "ORDERS", ""), Some(&own)).unwrap().server.unwrap();
        assert_eq!((as_we_are.url, as_we_are.user), (own.url.clone(), own.user.clone()));
        let named = NatsSettings { credentials: Some("r.creds".into()), ..of("", "ORDERS", "") };
        let named = Place::read(&named, Some(&own)).unwrap().server.unwrap();
        assert_eq!((named.user, named.credentials), (None, Some("r.creds".into())));
        assert!(Place::read(&of("", "ORDERS", ""), None).unwrap().server.is_none());
        let nowhere = BusSettings::default();
        assert!(
            Place::read(&of("", "ORDERS", ""), Some(&nowhere)).unwrap().server.is_none(),
            "no port is guessed"
        );
    }

    #[test]
    fn it_is_one_stream_or_bucket_and_none_of_musters_own() {
        let place = Place::read(&of("", "", "prices"), None).unwrap();
        assert_eq!((place.kind, place.stream.as_str()), (Kind::Bucket, "KV_prices"));
        assert_eq!(place.filter("a.>"), "$KV.prices.a.>");
        for (stream, bucket, said) in [
            ("", "", "name either"),
            ("A", "b", "name either"),
            ("A.B", "", "is no name"),
            ("A>", "", "is no name"),
            ("RUNS", "", "Muster's own"),
            ("runs", "", "Muster's own"),
            ("KV_BB", "", "Muster's own"),
            ("", "ANSWERS", "Muster's own"),
            ("OBJ_MUSTER", "", "Muster's own"),
        ] {
            let told = Place::read(&of("", stream, bucket), None).unwrap_err();
            assert!(told.contains(said), "{stream}{bucket}: {told}");
        }
        let meant = NatsSettings { allow_own_of_muster: true, ..of("", "DLQ", "") };
        assert!(Place::read(&meant, None).is_ok());
        let wrong = NatsSettings { subject: "a..b".to_owned(), ..of("", "ORDERS", "") };
        assert!(Place::read(&wrong, None).unwrap_err().contains("subject"));
    }
}
