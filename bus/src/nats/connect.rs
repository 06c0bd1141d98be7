//! Connecting: to whom, and by what.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_nats::{Auth, AuthError, ConnectErrorKind, ConnectOptions, jetstream};
use muster_shared::backoff::Backoff;
use muster_shared::ids::AgentId;
use secrecy::ExposeSecret;

use super::link::Link;
use super::listener::Expected;
use super::pinned::Pinned;
use super::{Nats, tls};
use crate::bus::ServerInfo;
use crate::credentials::rights::inbox;
use crate::credentials::{CredentialsError, HolderKind, Identity, Proof, identity, proof};
use crate::error::BusError;
use crate::server::{is_recent, least};
use crate::settings::{BusSettings, SUBSCRIPTION_BUFFER};

/// Where a server listens when nobody says otherwise.
const DEFAULT_URL: &str = "nats://127.0.0.1:4222";

/// How often the client asks the server for a sign of life: a connection that is dead without a word is made again before
/// anybody misses an answer for long.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// How long JetStream may take until it is there: servers of a cluster let clients in before they have agreed on who leads.
const STARTING: Duration = Duration::from_secs(2);
/// Between two looks at whether it is.
const LOOK: Duration = Duration::from_millis(100);

impl Nats {
    pub(crate) async fn connect(settings: &BusSettings, who: &AgentId) -> Result<Self, BusError> {
        let url = settings.url.clone().unwrap_or_else(|| DEFAULT_URL.to_owned());
        let link = Link::new(&url, settings);
        let (who, kind) = speaker(settings, who)?;
        let caller = Caller { settings, url: &url, inbox: inbox(&who), pinned: None };
        let client = client(&caller, who.as_str(), &link).await?;
        let version = client.server_info().version;
        if !is_recent(&version) {
            return Err(BusError::TooOld { url: shown(&url), found: version, least: least() });
        }
        let mut context = jetstream::new(client.clone());
        // Our own limit decides first: it tells a time-out from other failures.
        context.set_timeout(settings.request_timeout * 2);
        let (parted, system) = (Arc::default(), Arc::default());
        let settings = Arc::new(settings.clone());
        let nats = Self { client, context, link, settings, who, kind, url, parted, system };
        nats.check_jetstream().await?;
        Ok(nats)
    }

    /// A server without JetStream does not answer, or says so. What is asked is what has to be known anyway.
    async fn check_jetstream(&self) -> Result<(), BusError> {
        if !self.client.server_info().jetstream {
            return Err(BusError::NoJetStream { url: shown(&self.url) });
        }
        let begun = Instant::now();
        loop {
            match self.within("JetStream", self.settings.request_timeout, self.ask_how_parted()).await? {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() < STARTING => {
                    tracing::debug!(%error, "JetStream does not answer so far");
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "JetStream does not answer");
                    return Err(BusError::NoJetStream { url: shown(&self.url) });
                }
            }
        }
    }
}

/// In whose name a process speaks, and what its credentials are for, if these say it: rights hang on the name in them.
pub(super) fn speaker(
    settings: &BusSettings,
    wanted: &AgentId,
) -> Result<(AgentId, Option<HolderKind>), BusError> {
    let Some(path) = &settings.credentials else { return Ok((wanted.clone(), None)) };
    let found = identity(path).map_err(|error| of_file(&error))?;
    Ok(match found {
        Some(Identity { name, kind }) if kind.binds_the_name() => (name, Some(kind)),
        Some(Identity { kind, .. }) => (wanted.clone(), Some(kind)),
        None => (wanted.clone(), None),
    })
}

/// What connections of a process have in common.
pub(super) struct Caller<'a> {
    pub(super) settings: &'a BusSettings,
    pub(super) url: &'a str,
    /// Under what answers come in: no other process may listen there.
    pub(super) inbox: String,
    /// By what the server is known, where nothing else is known of it.
    pub(super) pinned: Option<&'a Arc<Pinned>>,
}

/// Makes a connection of this name.
pub(super) async fn client(
    caller: &Caller<'_>,
    name: &str,
    link: &Arc<Link>,
) -> Result<async_nats::Client, BusError> {
    install_tls();
    let Caller { settings, url, .. } = caller;
    let unreachable = |reason: String| BusError::Unreachable { url: shown(url), reason };
    let servers: Vec<&str> = url.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    // Large, and soon over: kept by itself, it does not stay on the stack.
    let connect = Box::pin(options(caller, name, link)?.connect(servers));
    let limit = settings.connect_timeout * 2;
    let connected = tokio::time::timeout(limit, connect).await;
    let connected =
        connected.map_err(|_| unreachable(format!("no NATS server answered within {limit:?}")))?;
    connected.map_err(|error| match error.kind() {
        _ if let Some(reason) = tls::why_not(&error, settings, url) => {
            BusError::Tls { url: shown(url), reason }
        }
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => link.refused(),
        ConnectErrorKind::ServerParse => BusError::Settings {
            reason: format!("{:?} is not a URL such as nats://127.0.0.1:4222", shown(url)),
        },
        ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Tls
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => unreachable(error.to_string()),
    })
}

/// Makes a connection to the server's system account; nothing when none is set. What is denied to it concerns nobody
/// else.
pub(super) async fn system_client(nats: &Nats) -> Result<Option<(async_nats::Client, Arc<Link>)>, BusError> {
    let own = &nats.settings;
    let named = own.system_user.clone().zip(own.system_password.clone());
    if own.system_credentials.is_none() && named.is_none() {
        return Ok(None);
    }
    let (user, password) = named.filter(|_| own.system_credentials.is_none()).unzip();
    let settings = BusSettings {
        user,
        password,
        token: None,
        credentials: own.system_credentials.clone(),
        ..(**own).clone()
    };
    let name = format!("{} presence", nats.who);
    let (holder, _) = speaker(&settings, &nats.who)?;
    let link = Link::new(&nats.url, &settings);
    // A user in the URL would come before this one.
    let caller = Caller { settings: &settings, url: &shown(&nats.url), inbox: inbox(&holder), pinned: None };
    let client = client(&caller, &name, &link).await?;
    Ok(Some((client, link)))
}

fn options(caller: &Caller<'_>, name: &str, link: &Arc<Link>) -> Result<ConnectOptions, BusError> {
    let settings = caller.settings;
    let (events, delays) = (Arc::clone(link), Arc::clone(link));
    let called = name.to_owned();
    let options = shows_who_we_are(caller, link)?
        .name(name)
        .custom_inbox_prefix(caller.inbox.clone())
        .connection_timeout(settings.connect_timeout)
        .request_timeout(Some(settings.request_timeout))
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(SUBSCRIPTION_BUFFER)
        .reconnect_delay_callback(move |attempts| reconnect_delay(attempts.saturating_add(delays.short())))
        .event_callback(move |event| {
            events.note(&called, &event);
            std::future::ready(())
        });
    let options = tls::encrypted(options, settings, caller.url)?;
    let Some(pinned) = caller.pinned else { return Ok(options) };
    let config = pinned.config().map_err(|error| BusError::Settings { reason: error.to_string() })?;
    Ok(options.require_tls(true).tls_client_config(config))
}

/// Shows who we are to the server, and nothing to anybody else: whoever listens in its place on this machine is looked at before
/// anything is sent, at each connection. A credentials file is read anew for each: it is written anew when the fleet's keys
/// change.
fn shows_who_we_are(caller: &Caller<'_>, link: &Arc<Link>) -> Result<ConnectOptions, BusError> {
    let settings = caller.settings;
    let expected = match caller.pinned {
        Some(_) => Expected::default(),
        None => Expected::at(caller.url, settings)?,
    };
    if let Some(path) = &settings.credentials {
        ordinary("credentials", path)?;
        // Said at once and by its name; later it is one refusal of many.
        proof(path, b"").map_err(|error| of_file(&error))?;
    }
    let (path, link) = (settings.credentials.clone(), Arc::clone(link));
    let named = settings.user.clone().zip(settings.password.clone());
    let token = settings.token.clone();
    let show = move |nonce: &[u8]| {
        if let Some(stranger) = expected.stranger() {
            link.holds_back(stranger.to_string());
            return Err(AuthError::new(stranger));
        }
        let mut auth = Auth::new();
        if let Some(path) = &path {
            let Proof { jwt, signature } = proof(path, nonce).map_err(AuthError::new)?;
            (auth.jwt, auth.signature) = (Some(jwt), Some(signature));
        }
        if let Some((user, password)) = &named {
            auth.username = Some(user.clone());
            auth.password = Some(password.expose_secret().to_owned());
        }
        auth.token = token.as_ref().map(|token| token.expose_secret().to_owned());
        link.shows(auth.jwt.clone());
        Ok(auth)
    };
    Ok(ConnectOptions::with_auth_callback(move |nonce| std::future::ready(show(&nonce))))
}

/// What is wrong with the credentials that the settings name.
fn of_file(error: &CredentialsError) -> BusError {
    let reason = match error {
        CredentialsError::Expired { .. }
        | CredentialsError::Missing { .. }
        | CredentialsError::Name { .. } => error.to_string(),
        CredentialsError::Open { .. } | CredentialsError::File { .. } | CredentialsError::Key { .. } => {
            format!("the credentials file {error}")
        }
    };
    BusError::Settings { reason }
}

/// Refuses what is no ordinary file of some size: a pipe would be waited for, and a device never ends.
pub(super) fn ordinary(what: &str, path: &Path) -> Result<(), BusError> {
    const MOST: u64 = 1024 * 1024;
    let wrong =
        |why: &str| BusError::Settings { reason: format!("the {what} file {}: {why}", path.display()) };
    let found = std::fs::metadata(path).map_err(|error| wrong(&error.to_string()))?;
    if !found.is_file() {
        return Err(wrong("it is no ordinary file"));
    }
    if found.len() > MOST {
        return Err(wrong("it is too large to be one"));
    }
    Ok(())
}

/// At once, then often for as long as a server takes that is started again, then slower, two seconds at most.
fn reconnect_delay(attempts: usize) -> Duration {
    const OFTEN: u32 = 30;
    const SOON: Backoff = Backoff::new(Duration::from_millis(60), Duration::from_millis(150));
    const LATER: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));
    let failures = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    match failures.checked_sub(OFTEN) {
        None | Some(0) => SOON.after(failures),
        Some(more) => LATER.after(more),
    }
}

/// TLS needs a provider for the whole process. Whoever installs one first wins, which is fine.
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// A URL without the user and password that may stand in it.
#[must_use]
pub fn shown(url: &str) -> String {
    let clean = |one: &str| match (one.find("://"), one.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}{}", &one[..scheme + 3], &one[at + 1..]),
        (None, Some(at)) => one[at + 1..].to_owned(),
        (_, None) | (Some(_), Some(_)) => one.to_owned(),
    };
    url.split(',').map(str::trim).map(clean).collect::<Vec<_>>().join(",")
}

pub(super) async fn server(nats: &Nats) -> Result<ServerInfo, BusError> {
    let round_trip = nats.round_trip(&nats.client).await?;
    let info = nats.client.server_info();
    Ok(ServerInfo {
        url: shown(&nats.url),
        version: info.version,
        name: info.server_name,
        jetstream: info.jetstream,
        max_payload: info.max_payload,
        round_trip,
        clock_skew: clock_skew(nats).await,
    })
}

/// The server's clock minus ours, by the time stamp of an API answer; unknown when there is none.
pub(super) async fn clock_skew(nats: &Nats) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Stamped {
        ts: String,
    }
    let subject = format!("$JS.API.STREAM.INFO.{}", crate::topology::COMMANDS);
    let answer =
        nats.limited("the server's clock", nats.client.request(subject, bytes::Bytes::new())).await.ok()?;
    let stamped: Stamped = serde_json::from_slice(&answer.payload).ok()?;
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_millis();
    let theirs: jiff::Timestamp = stamped.ts.parse().ok()?;
    Some(theirs.as_millisecond() - i64::try_from(ours).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_are_not_shown() {
        assert_eq!(shown("nats://user:pass@host:4222"), "nats://host:4222");
        assert_eq!(shown("nats://a:1,nats://token@b:2"), "nats://a:1,nats://b:2");
        assert_eq!(shown("user:pass@host"), "host");
    }

    #[test]
    fn reconnects_slow_down_to_a_limit() {
        assert_eq!(reconnect_delay(1), Duration::ZERO);
        assert!(reconnect_delay(2) < reconnect_delay(4));
        let first: Duration = (1..=31).map(reconnect_delay).sum();
        assert!(first > Duration::from_secs(4) && first < Duration::from_secs(5), "{first:?}");
        assert!(reconnect_delay(31) < reconnect_delay(32));
        assert!(reconnect_delay(usize::MAX) <= Duration::from_secs(2));
    }
}
