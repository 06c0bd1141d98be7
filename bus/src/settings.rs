//! Settings of the bus. Every limit has a default that suits one machine and a fleet of dozens of processes.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::setting::{Secret, out_of_bounds};
use muster_shared::settings;
use muster_shared::wire::Encoding;

use crate::credentials::FleetTls;
use crate::partition::Partitions;

/// Encoding of messages without one. MessagePack takes half the size of JSON.
pub(crate) const ENCODING: Encoding = Encoding::MessagePack;

/// Longest time between the signature of an order and its arrival, in both directions; other orders become dead
/// letters. It exceeds the error of clocks with NTP, and bounds the time for a replay.
pub(crate) const SIGNATURE_MAX_AGE: Duration = Duration::from_secs(300);

/// Messages that wait in a subscription; more are dropped by the client. Enough for whoever is busy for a second while a
/// whole fleet writes, and a few megabytes at the most.
pub(crate) const SUBSCRIPTION_BUFFER: usize = 4096;

settings! {
    /// How to reach the bus, and its limits. Spans of time are written `500ms`, `30s`, `10m`, `2h` or `30d`.
    pub struct BusSettings {
        /// Where the NATS server listens, such as `nats://127.0.0.1:4222`; several separated by commas. `tls://` where
        /// connections are encrypted.
        pub url: Option<String> = None => text().example("\"nats://127.0.0.1:4222\""); User Trust,
        /// User name.
        pub user: Option<String> = None => text().example("\"muster\""); User Trust,
        /// Password of the user.
        pub password: Option<Secret> = None => secret(); User Trust,
        /// Token, when the server asks for one.
        pub token: Option<Secret> = None => secret(); User Trust,
        /// User of the server's system account. Orchestrators learn by it at once when an agent dies; without it, when the
        /// registry forgets the agent (three times `heartbeat`) or its tasks' time is up (`ack_wait`). Its password is set by
        /// MUSTER_BUS_SYSTEM_PASSWORD. A local fleet has its own.
        pub system_user: Option<String> = None => text().example("\"sys\""); User Trust,
        /// Password of the system account's user.
        pub system_password: Option<Secret> = None => secret(); User Trust,
        /// A credentials file of the server's system account, in place of user and password. A local fleet has its own.
        pub system_credentials: Option<PathBuf> = None => text().example("\"/etc/muster/presence.creds\""); User Trust,
        /// A NATS credentials file (`.creds`). `muster keys issue` makes one; a local fleet gives each process its own.
        pub credentials: Option<PathBuf> = None => text().example("\"/etc/muster/agent.creds\""); User Trust,
        /// Another user of this machine who may run the server, by name or number, besides you and root: without TLS nothing is
        /// sent to whoever else listens at an address of this machine.
        pub server_user: Option<String> = None => text().example("\"nats\""); User Trust,
        /// A file of root certificates, for servers with a certificate of one's own authority. With it, connections are
        /// encrypted or not made.
        pub tls_ca: Option<PathBuf> = None => text().example("\"/etc/muster/ca.pem\""); User Trust,
        /// A certificate to show, for servers that want one of whoever connects; its key is bus.tls_key.
        pub tls_cert: Option<PathBuf> = None => text().example("\"/etc/muster/client.pem\""); User Trust,
        /// The key of bus.tls_cert.
        pub tls_key: Option<PathBuf> = None => text().example("\"/etc/muster/client.key\""); User Trust,
        /// Longest wait for the answer to any call.
        #[serde(with = "muster_shared::span")]
        pub request_timeout: Duration = Duration::from_secs(5) => internal(),
        /// Longest wait for a connection.
        #[serde(with = "muster_shared::span")]
        pub connect_timeout: Duration = Duration::from_secs(3) => internal(),
        /// Copies that the cluster keeps of every stream (1, 3 or 5).
        pub replicas: u8 = 1 => one_of(&[1, 3, 5]); Fleet Harmless,
        /// Parts of the record (1, 2, 4, 8 or 16), each a stream of its own: several servers then share its writes. It cannot be
        /// changed once there is a record.
        pub partitions: u8 = 1 => one_of(&[1, 2, 4, 8, 16]); Fleet Harmless,
        /// Most bytes of the record, all parts together. New goals are refused at 80 %, writes at 100 %.
        pub record_bytes: u64 = 4096 * MIB => bytes(MIB, PIB); Fleet Harmless,
        /// Whether the fleet's owner can remove runs from the record (`muster runs delete`, `muster gc`). It counts when the record
        /// is set up, and cannot be changed after that: without it the server keeps all of it for good, whoever asks.
        pub removable: bool = false => flag(); Fleet Harmless,
        /// Most bytes of dead letters; the oldest go first.
        pub dead_bytes: u64 = 64 * MIB => internal(),
        /// Most bytes of the object store.
        pub objects_bytes: u64 = 8192 * MIB => bytes(MIB, PIB); Fleet Harmless,
        /// Largest body or object that is taken.
        pub object_limit: usize = 64 * 1024 * 1024 => internal(),
        /// How long a task may be held without a sign of progress before another agent gets it.
        #[serde(with = "muster_shared::span")]
        pub ack_wait: Duration = Duration::from_secs(30) => span(SECOND, DAY); Fleet Harmless,
        // The broker's expiry is counted in whole seconds.
        /// How long an orchestrator's lease lasts without renewal; its runs then go to others. 15s or more on a cluster.
        #[serde(with = "muster_shared::span")]
        pub lease_ttl: Duration = Duration::from_secs(2) => span(SECOND, HOUR); Fleet Harmless,
        /// How often an agent says that it lives.
        #[serde(with = "muster_shared::span")]
        pub heartbeat: Duration = Duration::from_secs(5) => span(100, HOUR); Fleet Harmless,
    }
}

impl BusSettings {
    /// The settings of whoever runs the fleet of a server that was started here.
    #[must_use]
    pub fn of_server(server: &crate::server::LocalServer) -> Self {
        Self { credentials: Some(server.keys().operator_file()), ..Self::default() }.at(server)
    }

    /// The same at a server that was started here, by its own authority.
    #[must_use]
    pub fn at(self, server: &crate::server::LocalServer) -> Self {
        let client = server.tls().filter(|_| server.wants_certificates()).and_then(|tls| tls.client().ok());
        let (tls_cert, tls_key) = client.map(|client| (client.certificate, client.key)).unzip();
        let tls_ca = server.tls().map(FleetTls::ca_file);
        Self { url: Some(server.url()), tls_ca, tls_cert, tls_key, ..self }
    }

    /// How the record is parted.
    #[must_use]
    pub fn parted(&self) -> Partitions {
        Partitions::of_count(self.partitions.into()).unwrap_or_default()
    }

    /// After how long without a heartbeat the registry forgets an agent: three of them, in whole seconds, in which the broker
    /// counts expiry.
    #[must_use]
    pub fn registry_ttl(&self) -> Duration {
        let millis = self.heartbeat.saturating_mul(3).as_millis();
        Duration::from_secs(u64::try_from(millis.div_ceil(1000)).unwrap_or(u64::MAX))
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first setting that makes no sense.
    pub fn check(&self) -> Result<(), crate::BusError> {
        let wrong = |reason: String| Err(crate::BusError::Settings { reason });
        let held = serde_json::to_value(self).unwrap_or_default();
        if let Some((setting, value)) = out_of_bounds(&held, Self::SETTINGS) {
            return wrong(format!("{} = {value} must be {}", setting.name(), setting.takes));
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return wrong("tls_cert and tls_key go together: name both, or none".into());
        }
        Ok(())
    }
}
