//! What happens to a connection, and what follows from it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::{ClientError, ConnectErrorKind, Event, ServerError};
use muster_shared::sync::lock;
use tokio::sync::watch;

use super::connect::shown;
use crate::credentials::{ended_at, jwt_in};
use crate::error::BusError;
use crate::settings::BusSettings;

/// Refusals in a row after which credentials are of no use any more: some two seconds of trying.
const MOST_REFUSALS: u32 = 20;

/// A connection that ends sooner was hardly one: it is made again more slowly each time.
const SHORT: Duration = Duration::from_secs(1);

/// What to do without credentials that count.
const NEW: &str = "ask whoever runs the fleet for new ones (`muster keys issue`)";

/// By what a process shows who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    File(PathBuf),
    User(String),
    Token,
    Nothing,
}

impl By {
    fn of(settings: &BusSettings) -> Self {
        match (&settings.credentials, &settings.user, &settings.token) {
            (Some(path), _, _) => Self::File(path.clone()),
            (None, Some(user), _) => Self::User(user.clone()),
            (None, None, Some(_)) => Self::Token,
            (None, None, None) => Self::Nothing,
        }
    }

    /// Why a server may have refused it, and what to do.
    fn refused(&self) -> String {
        match self {
            Self::File(path) => match ended_at(path) {
                Some(until) => format!("by the credentials in {}: they ended at {until} UTC; {NEW}", path.display()),
                None => format!(
                    "by the credentials in {}: they were revoked, or are those of another fleet; name others with bus.credentials \
                     (MUSTER_BUS_CREDENTIALS), or {NEW}",
                    path.display()
                ),
            },
            Self::User(user) => format!("as {user}: check bus.user and MUSTER_BUS_PASSWORD"),
            Self::Token => "by this token: check MUSTER_BUS_TOKEN".to_owned(),
            Self::Nothing => "without credentials: name a credentials file with bus.credentials (MUSTER_BUS_CREDENTIALS; `muster keys \
                              issue` where the fleet runs makes one), or set bus.user and MUSTER_BUS_PASSWORD"
                .to_owned(),
        }
    }

    /// Why a server cut off who had shown this.
    fn cut_off(&self, end: End) -> String {
        let Self::File(path) = self else { return self.refused() };
        let what = match end {
            End::Revoked => "were revoked".to_owned(),
            End::Over => ended_at(path)
                .map_or_else(|| "have ended".to_owned(), |until| format!("ended at {until} UTC")),
        };
        format!("any more by the credentials in {}: they {what}; {NEW}", path.display())
    }
}

/// How credentials come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Revoked,
    Over,
}

impl End {
    /// By what a server says when it cuts somebody off.
    fn said_by(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let all =
            [("user authentication revoked", Self::Revoked), ("user authentication expired", Self::Over)];
        all.into_iter().find(|(words, _)| text.contains(words)).map(|(_, end)| end)
    }
}

/// What happened to a connection.
pub(super) struct Link {
    /// Shared by all connections of a process.
    fatal: watch::Sender<Option<BusError>>,
    /// Rises with every connection made again: what hung on the one before must be asked for again.
    epoch: watch::Sender<u64>,
    /// The first connection breaks nothing off; it may be told when requests are under way already.
    was_connected: AtomicBool,
    /// Where the server is, as it is told.
    server: String,
    by: By,
    /// How often in a row nobody was let in.
    refusals: AtomicU32,
    /// How many connections in a row ended at once.
    short: AtomicU32,
    /// What the last attempts left behind.
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    /// Since when there is a connection.
    since: Option<Instant>,
    /// What was shown.
    jwt: Option<String>,
    /// Why nothing was shown.
    held_back: Option<BusError>,
}

impl Link {
    pub(super) fn new(url: &str, settings: &BusSettings) -> Arc<Self> {
        Self::with(watch::Sender::new(None), shown(url), By::of(settings))
    }

    /// The link of another connection of the same process: it is cut off and connected again by itself.
    pub(super) fn apart(&self) -> Arc<Self> {
        Self::with(self.fatal.clone(), self.server.clone(), self.by.clone())
    }

    fn with(fatal: watch::Sender<Option<BusError>>, server: String, by: By) -> Arc<Self> {
        let (was_connected, last) = (AtomicBool::new(false), Mutex::default());
        let (refusals, short) = (AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Self {
            fatal,
            epoch: watch::Sender::new(0),
            was_connected,
            server,
            by,
            refusals,
            short,
            last,
        })
    }

    pub(super) fn fatal(&self) -> watch::Receiver<Option<BusError>> {
        self.fatal.subscribe()
    }

    pub(super) fn epoch(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    /// How often the connection was made again.
    pub(super) fn connections(&self) -> u64 {
        *self.epoch.borrow()
    }

    /// The error that made this connection useless, if any.
    pub(super) fn check(&self) -> Result<(), BusError> {
        self.fatal.borrow().clone().map_or(Ok(()), Err)
    }

    /// Runs a call within a time limit, unless the connection is of no use any more.
    pub(super) async fn limited<T, E: std::fmt::Display>(
        &self,
        what: &str,
        limit: Duration,
        call: impl IntoFuture<Output = Result<T, E>, IntoFuture: Send> + Send,
    ) -> Result<T, BusError> {
        self.check()?;
        self.within(what, limit, call.into_future())
            .await?
            .map_err(|error| BusError::Other { what: what.to_owned(), reason: error.to_string() })
    }

    /// Waits for an answer within a limit. A denied request has no answer but an event: that is told instead.
    pub(super) async fn within<T>(
        &self,
        what: &str,
        limit: Duration,
        call: impl Future<Output = T> + Send,
    ) -> Result<T, BusError> {
        let timed_out = || BusError::TimedOut { what: what.to_owned(), limit };
        let mut fatal = self.fatal();
        tokio::select! {
            biased;
            answer = call => Ok(answer),
            Ok(error) = fatal.wait_for(Option::is_some) => Err(error.clone().unwrap_or_else(timed_out)),
            () = tokio::time::sleep(limit) => Err(timed_out()),
        }
    }

    /// How many connections in a row ended as soon as they were made.
    pub(super) fn short(&self) -> usize {
        usize::try_from(self.short.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Takes note of what is shown to a server now.
    pub(super) fn shows(&self, jwt: Option<String>) {
        let mut last = self.last();
        (last.jwt, last.held_back) = (jwt, None);
    }

    /// Takes note of why nothing is shown to whoever answers.
    pub(super) fn holds_back(&self, why: String) {
        let why = BusError::Stranger { url: self.server.clone(), reason: why };
        let mut last = self.last();
        if last.held_back.is_none() {
            tracing::error!("{why}");
        }
        last.held_back = Some(why);
    }

    /// Why nobody is let in.
    pub(super) fn refused(&self) -> BusError {
        let held_back = self.last().held_back.clone();
        held_back.unwrap_or_else(|| self.unauthorized(self.by.refused()))
    }

    fn unauthorized(&self, reason: String) -> BusError {
        BusError::Unauthorized { url: self.server.clone(), reason }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Last> {
        lock(&self.last)
    }

    pub(super) fn note(&self, name: &str, event: &Event) {
        match event {
            Event::Connected => {
                self.refusals.store(0, Ordering::Relaxed);
                self.last().since = Some(Instant::now());
                if self.was_connected.swap(true, Ordering::Relaxed) {
                    self.epoch.send_modify(|epoch| *epoch += 1);
                }
                tracing::debug!(name, "connected to NATS");
            }
            Event::Disconnected => {
                match self.last().since.take().is_some_and(|since| since.elapsed() < SHORT) {
                    true => self.short.fetch_add(1, Ordering::Relaxed),
                    false => self.short.swap(0, Ordering::Relaxed),
                };
                tracing::warn!(name, "cut off from NATS");
            }
            Event::ServerError(ServerError::Other(text))
                if text.to_ascii_lowercase().contains("permissions violation") =>
            {
                tracing::error!(name, what = text, "NATS denied a subject");
                self.fail(BusError::Denied { what: text.clone() });
            }
            Event::ServerError(ServerError::Other(text)) if let Some(end) = End::said_by(text) => {
                self.ended(name, end);
            }
            // Credentials that count no more may count again once a server has read its configuration to the end.
            Event::ClientError(ClientError::Other(text)) if is_refusal(text) => {
                if self.refusals.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_REFUSALS {
                    self.fail(self.refused());
                }
            }
            Event::SlowConsumer(_) | Event::ServerError(_) | Event::ClientError(_) => {
                tracing::warn!(name, %event, "NATS complains");
            }
            Event::LameDuckMode | Event::Draining | Event::Closed => tracing::debug!(name, %event, "NATS"),
        }
    }

    /// The server says that what was shown counts no more. Unless there is something else to show by now, nothing can follow.
    fn ended(&self, name: &str, end: End) {
        let shown = self.last().jwt.clone();
        let now = if let By::File(path) = &self.by { jwt_in(path).ok() } else { None };
        if now.is_some() && now != shown {
            tracing::info!(name, "the credentials were made anew, and are shown from now on");
            return;
        }
        self.fail(self.unauthorized(self.by.cut_off(end)));
    }

    /// Makes the connection useless, for the first reason that there is.
    fn fail(&self, error: BusError) {
        self.fatal.send_if_modified(|fatal| {
            let first = fatal.is_none();
            fatal.get_or_insert(error);
            first
        });
    }
}

/// Whether the client says that it was not let in, by the words of its `ConnectErrorKind`.
fn is_refusal(text: &str) -> bool {
    [ConnectErrorKind::AuthorizationViolation, ConnectErrorKind::Authentication]
        .iter()
        .any(|kind| text == kind.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Arc<Link> {
        Link::new("nats://ann:secret@127.0.0.1:1", &BusSettings::default())
    }

    fn said(text: &str) -> Event {
        Event::ServerError(ServerError::Other(text.to_owned()))
    }

    /// Once, a goal lay untouched for 30 s because the connection for control came up while it was on its way.
    #[test]
    fn only_the_same_connection_made_again_breaks_requests_off() {
        let link = link();
        let mut epoch = link.epoch();
        link.note("main", &Event::Connected);
        link.apart().note("control", &Event::Connected);
        let other = link.apart();
        other.note("control", &Event::Connected);
        other.note("control", &Event::Connected);
        assert!(!epoch.has_changed().unwrap());
        link.note("main", &Event::Disconnected);
        link.note("main", &Event::Connected);
        assert!(epoch.has_changed().unwrap());
        epoch.mark_unchanged();
        other.note("control", &said("Permissions Violation for x"));
        assert!(link.check().is_err(), "what is denied to one is told to all");
    }

    #[test]
    fn credentials_that_are_refused_again_and_again_are_of_no_use() {
        let link = link();
        let kind = ConnectErrorKind::AuthorizationViolation;
        let refused = Event::ClientError(ClientError::Other(kind.to_string()));
        let refuse = |times: u32| (0..times).for_each(|_| link.note("main", &refused));
        refuse(MOST_REFUSALS - 1);
        link.note("main", &Event::Connected);
        refuse(MOST_REFUSALS - 1);
        assert!(link.check().is_ok(), "it was let in between");
        link.note("main", &Event::ClientError(ClientError::Other("IO error".into())));
        refuse(1);
        let error = link.check().unwrap_err();
        assert!(
            matches!(&error, BusError::Unauthorized { url, .. } if url == "nats://127.0.0.1:1"),
            "{error}"
        );
        assert!(error.to_string().contains("without credentials"), "{error}");
    }

    #[test]
    fn what_a_server_ends_is_ended_unless_there_is_something_new_to_show() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.creds");
        let write = |jwt: &str| {
            std::fs::write(&path, format!("-----BEGIN NATS USER JWT-----\n{jwt}\n------END\n")).unwrap();
        };
        let settings = BusSettings { credentials: Some(path.clone()), ..BusSettings::default() };
        for (words, wanted) in [("Revoked", "they were revoked"), ("Expired", "they have ended")] {
            let link = Link::new("nats://127.0.0.1:1", &settings);
            let end = said(&format!("User Authentication {words}"));
            link.shows(Some("before".to_owned()));
            write("after");
            link.note("main", &end);
            assert!(link.check().is_ok(), "they were made anew");
            write("before");
            link.note("main", &end);
            let error = link.check().unwrap_err().to_string();
            assert!(error.contains(wanted) && error.contains("worker.creds"), "{error}");
        }
    }

    #[test]
    fn connections_that_end_at_once_are_counted() {
        let link = link();
        for n in 0..3 {
            assert_eq!(link.short(), n);
            link.note("main", &Event::Connected);
            link.note("main", &Event::Disconnected);
        }
        link.last().since = Some(Instant::now() - SHORT);
        link.note("main", &Event::Disconnected);
        assert_eq!(link.short(), 0);
    }

    #[test]
    fn nothing_is_shown_to_a_stranger_and_it_is_said_who_that_is() {
        let link = link();
        link.holds_back("it is run by eve".to_owned());
        let error = link.refused();
        assert!(matches!(error, BusError::Stranger { .. }) && error.to_string().contains("eve"), "{error}");
        link.shows(None);
        assert!(matches!(link.refused(), BusError::Unauthorized { .. }));
    }
}
