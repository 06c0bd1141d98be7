//! What can go wrong on the bus, told apart by what to do about it.

use std::time::Duration;

use muster_shared::ids::Seq;
use muster_shared::wire::CodecError;

/// Why a call on the bus failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BusError {
    /// Nothing answers at the URL.
    #[error(
        "nothing answers at {url} ({reason}). Start a fleet with `muster up`, or point `bus.url` (MUSTER_BUS_URL) at a NATS server that runs"
    )]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What the connection attempt said.
        reason: String,
    },
    /// The connection cannot be encrypted, or the server does not prove that it is the one that is meant.
    #[error("no encrypted connection to {url}: {reason}")]
    Tls {
        /// Where it was looked for.
        url: String,
        /// What is wrong, and how to mend it.
        reason: String,
    },
    /// The server does not know what Muster needs.
    #[error(
        "the NATS server at {url} has version {found}, Muster needs {least} or newer: upgrade it, or unset `bus.url` to let `muster up` start its own"
    )]
    TooOld {
        /// Where it runs.
        url: String,
        /// Its version.
        found: String,
        /// The version that is needed.
        least: String,
    },
    /// The server runs without JetStream, or not for this account.
    #[error(
        "the NATS server at {url} has no JetStream for this account: start it with `-js`, or enable JetStream in its configuration"
    )]
    NoJetStream {
        /// Where it runs.
        url: String,
    },
    /// The server refuses the credentials.
    #[error("the NATS server at {url} lets nobody in {reason}")]
    Unauthorized {
        /// Where it runs.
        url: String,
        /// By what, why that may be, and what to do.
        reason: String,
    },
    /// Another user of this machine listens where the server was looked for.
    #[error(
        "nothing is sent to {url}: {reason}. See who that is, and bring the fleet up elsewhere (`muster down`, `muster up`); where that user runs your server, set bus.server_user"
    )]
    Stranger {
        /// Where it was looked for.
        url: String,
        /// Who listens there.
        reason: String,
    },
    /// The server refused a subject. It drops such messages silently, so nothing sent since can be trusted.
    #[error(
        "the NATS server denied this process a subject: {what}. Its credentials do not allow that: name others with bus.credentials, or give its user the permissions of its role (docs/rights.md)"
    )]
    Denied {
        /// What the server said.
        what: String,
    },
    /// An order would be refused for its time: this machine's clock is wrong, or the server's.
    #[error(
        "this machine's clock is {by} s {way} the server's: an order counts for {most} s from when it is signed, so none was sent. Set the clock by NTP, and give it again"
    )]
    Clock {
        /// By how much, in seconds.
        by: u64,
        /// Behind or ahead of.
        way: &'static str,
        /// The most that it may be, in seconds.
        most: u64,
    },
    /// A call took longer than its limit.
    #[error("{what} got no answer within {limit:?}: the NATS server is away or overloaded")]
    TimedOut {
        /// The call.
        what: String,
        /// Its limit.
        limit: Duration,
    },
    /// A stream, consumer or bucket is missing.
    #[error("{what} does not exist on the bus: provision it (`muster up` and `muster orchestrator` do)")]
    NotProvisioned {
        /// What is missing.
        what: String,
    },
    /// The bus was laid out by a newer build.
    #[error(
        "stream {stream} was laid out by a newer Muster (layout {found}, this build knows {known}): upgrade this program"
    )]
    TopologyNewer {
        /// The stream.
        stream: String,
        /// The version found.
        found: u32,
        /// The version that this build knows.
        known: u32,
    },
    /// The record is in another number of parts.
    #[error(
        "the record on this bus is in {found} part(s), and `bus.partitions` is {wanted}: set it to {found}. The number cannot be changed once there is a record; for another one, begin with an empty store"
    )]
    Parted {
        /// How many there are.
        found: usize,
        /// How many the settings say.
        wanted: usize,
    },
    /// More bytes than may pass.
    #[error("{what} has {bytes} bytes, {most} is the most")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// A stream is full.
    #[error(
        "{what} is full: delete finished runs (`muster runs delete`), or raise its limit in the settings"
    )]
    Full {
        /// What is full.
        what: String,
    },
    /// A message in the record cannot be read. Whoever folds the run must stop.
    #[error("message {seq} of the record ({subject}) cannot be read: {reason}")]
    Unreadable {
        /// Its place.
        seq: Seq,
        /// Its subject.
        subject: String,
        /// What is wrong.
        reason: String,
    },
    /// Somebody else wrote first.
    #[error("somebody else changed {what} first")]
    Conflict {
        /// What was to be changed.
        what: String,
    },
    /// A name that does not fit in a subject.
    #[error("{name:?} is not a name on the bus: {rule}")]
    BadName {
        /// The name.
        name: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// A message could not be encoded.
    #[error("a message could not be encoded: {reason}")]
    Codec {
        /// What is wrong.
        reason: String,
    },
    /// The settings make no sense.
    #[error("bus settings: {reason}")]
    Settings {
        /// What is wrong and what to do.
        reason: String,
    },
    /// The local server could not be started.
    #[error(transparent)]
    Server(#[from] crate::server::ServerError),
    /// This build cannot do it.
    #[error("{what} is not available")]
    Unsupported {
        /// What.
        what: String,
    },
    /// Something else that the server or the client said.
    #[error("{what}: {reason}")]
    Other {
        /// The call.
        what: String,
        /// What was said.
        reason: String,
    },
}

/// Why a request came to nothing at once: there is nobody who could answer.
pub(crate) const NOBODY: &str = "nobody listens there";

impl BusError {
    /// Whether a request was refused at once since nobody serves its subject.
    pub(crate) fn is_nobody(&self) -> bool {
        matches!(self, Self::Other { reason, .. } if reason == NOBODY)
    }

    /// Whether the same call may succeed later without anybody mending anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Full { .. } | Self::Conflict { .. }
        )
    }

    /// Whether the process cannot go on: it may not do what it does.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::Denied { .. }
                | Self::Unauthorized { .. }
                | Self::Stranger { .. }
                | Self::TopologyNewer { .. }
                | Self::Parted { .. }
        )
    }
}

impl From<CodecError> for BusError {
    fn from(error: CodecError) -> Self {
        if let CodecError::TooLarge { bytes } = error {
            Self::TooLarge {
                what: "a message".into(),
                bytes,
                most: muster_shared::wire::codec::MAX_MESSAGE_BYTES,
            }
        } else {
            Self::Codec { reason: error.to_string() }
        }
    }
}

impl From<serde_json::Error> for BusError {
    fn from(error: serde_json::Error) -> Self {
        Self::Codec { reason: error.to_string() }
    }
}

/// Why a write to the record did not happen, or may not have.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// Somebody else wrote since the author last read. Nothing of the write was stored.
    #[error("somebody else wrote to the record first")]
    Conflict,
    /// No answer came: the write may be stored or not. Read again to find out.
    #[error("no answer to a write within {limit:?}: it may be stored or not")]
    Ambiguous {
        /// How long an answer was awaited.
        limit: Duration,
    },
    /// More bytes than the bus keeps. Nothing was stored.
    #[error("the event has {bytes} bytes, {most} is the most")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Nothing was stored, for another reason.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl From<AppendError> for BusError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Conflict => Self::Conflict { what: "the stream".into() },
            AppendError::Ambiguous { limit } => Self::TimedOut { what: "a write".into(), limit },
            AppendError::TooLarge { bytes, most } => Self::TooLarge { what: "a message".into(), bytes, most },
            AppendError::Bus(error) => error,
        }
    }
}
