//! Settings of the bus. Every limit has a default that suits one machine and a fleet of dozens of processes.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::setting::{Secret, out_of_bounds};
use muster_shared::settings;
use muster_shared::wire::Encoding;
use serde::{Deserialize, Serialize};

use crate::credentials::FleetTls;
use crate::partition::Partitions;

/// Messages that wait in a subscription; more are dropped by the client. Enough for whoever is busy for a second while a
/// whole fleet writes, and a few megabytes at the most.
pub(crate) const SUBSCRIPTION_BUFFER: usize = 4096;

settings! {
    /// How to reach the bus, and its limits. Spans of time are written `500ms`, `30s`, `10m`, `2h` or `30d`.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct BusSettings {
        /// Where the NATS server listens, such as `nats://127.0.0.1:4222`; several separated by commas. `tls://` where
        /// connections are encrypted.
        pub url: Option<String> = None => text().example("\"nats://127.0.0.1:4222\""),
        /// User name.
        pub user: Option<String> = None => text().example("\"muster\""),
        /// Password of the user.
        pub password: Option<Secret> = None => secret(),
        /// Token, when the server asks for one.
        pub token: Option<Secret> = None => secret(),
        /// User of the server's system account. Orchestrators learn by it at once when an agent dies; without it, when the
        /// registry forgets the agent (`registry_ttl`) or its tasks' time is up (`ack_wait`). Its password is set by
        /// MUSTER_BUS_SYSTEM_PASSWORD. A local fleet has its own.
        pub system_user: Option<String> = None => text().example("\"sys\""),
        /// Password of the system account's user.
        pub system_password: Option<Secret> = None => secret(),
        /// A credentials file of the server's system account, in place of user and password. A local fleet has its own.
        pub system_credentials: Option<PathBuf> = None => text().example("\"/etc/muster/presence.creds\""),
        /// A NATS credentials file (`.creds`). `muster keys issue` makes one; a local fleet gives each process its own.
        pub credentials: Option<PathBuf> = None => text().example("\"/etc/muster/agent.creds\""),
        /// Another user of this machine who may run the server, by name or number, besides you and root: without TLS nothing is
        /// sent to whoever else listens at an address of this machine.
        pub server_user: Option<String> = None => text().example("\"nats\""),
        /// A file of root certificates, for servers with a certificate of one's own authority. With it, connections are
        /// encrypted or not made.
        pub tls_ca: Option<PathBuf> = None => text().example("\"/etc/muster/ca.pem\""),
        /// A certificate to show, for servers that want one of whoever connects; its key is bus.tls_key.
        pub tls_cert: Option<PathBuf> = None => text().example("\"/etc/muster/client.pem\""),
        /// The key of bus.tls_cert.
        pub tls_key: Option<PathBuf> = None => text().example("\"/etc/muster/client.key\""),
        /// Longest wait for the answer to any call.
        #[serde(with = "muster_shared::span")]
        pub request_timeout: Duration = Duration::from_secs(5) => span(100, HOUR),
        /// Longest wait for a connection.
        #[serde(with = "muster_shared::span")]
        pub connect_timeout: Duration = Duration::from_secs(3) => span(100, HOUR),
        /// How messages are encoded that have no encoding of their own.
        pub encoding: Encoding = Encoding::MessagePack => words::<Encoding>(),
        /// Copies that the cluster keeps of every stream (1, 3 or 5).
        pub replicas: u8 = 1 => one_of(&[1, 3, 5]),
        /// Parts of the record (1, 2, 4, 8 or 16), each a stream of its own: several servers then share its writes. It cannot be
        /// changed once there is a record.
        pub partitions: u8 = 1 => one_of(&[1, 2, 4, 8, 16]),
        /// Most bytes of the record, all parts together. New goals are refused at 80 %, writes at 100 %.
        pub record_bytes: u64 = 4096 * MIB => bytes(MIB, PIB),
        /// Whether the fleet's owner can remove runs from the record (`muster runs delete`, `muster gc`). It counts when the record
        /// is set up, and cannot be changed after that: without it the server keeps all of it for good, whoever asks.
        pub removable: bool = false => flag(),
        /// Most bytes of queued offers.
        pub tasks_bytes: u64 = 256 * MIB => bytes(MIB, PIB),
        /// Most bytes of waiting commands.
        pub commands_bytes: u64 = 64 * MIB => bytes(MIB, PIB),
        /// Most bytes of dead letters; the oldest go first.
        pub dead_bytes: u64 = 64 * MIB => bytes(MIB, PIB),
        /// How long dead letters are kept.
        #[serde(with = "muster_shared::span")]
        pub dead_age: Duration = Duration::from_secs(30 * 24 * 3600) => span(MINUTE, 3650 * DAY),
        /// How far ahead of the broker's clock a command may say that it was sent. One further ahead becomes a dead letter:
        /// order comes from positions alone, and such a clock says nothing of how long a goal has time.
        #[serde(with = "muster_shared::span")]
        pub clock_ahead: Duration = Duration::from_secs(3600) => span(SECOND, 30 * DAY),
        /// How long after it was signed an order is taken, by the broker's stamp, and how long before. Any other becomes a dead
        /// letter: it may be a replay, or would be good for longer.
        #[serde(with = "muster_shared::span")]
        pub orders_within: Duration = Duration::from_secs(300) => span(SECOND, DAY),
        /// Most bytes of the object store.
        pub objects_bytes: u64 = 8192 * MIB => bytes(MIB, PIB),
        /// Most bytes of answers that may serve again, of models (`agent.reuse_answers`) and of tools (`tool.cache`); the oldest give
        /// way.
        pub answers_bytes: u64 = 64 * MIB => bytes(MIB, PIB),
        /// Most bytes of the lists of runs' files; the files themselves are objects.
        pub files_bytes: u64 = 64 * MIB => bytes(MIB, PIB),
        /// Largest body or object that is taken.
        pub object_limit: usize = 64 * 1024 * 1024 => bytes(64 * KIB, 4 * GIB),
        /// How long a task may be held without a sign of progress before another agent gets it.
        #[serde(with = "muster_shared::span")]
        pub ack_wait: Duration = Duration::from_secs(30) => span(SECOND, DAY),
        // The broker's expiry is counted in whole seconds.
        /// How long an orchestrator's lease lasts without renewal; its runs then go to others. 15s or more on a cluster.
        #[serde(with = "muster_shared::span")]
        pub lease_ttl: Duration = Duration::from_secs(2) => span(SECOND, HOUR),
        /// How often an agent says that it lives.
        #[serde(with = "muster_shared::span")]
        pub heartbeat: Duration = Duration::from_secs(5) => span(100, HOUR),
        // As for lease_ttl.
        /// After how long without a heartbeat the registry forgets an agent.
        #[serde(with = "muster_shared::span")]
        pub registry_ttl: Duration = Duration::from_secs(15) => span(SECOND, DAY),
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
        if self.heartbeat >= self.registry_ttl {
            return wrong("heartbeat must be shorter than registry_ttl (a third of it is good)".into());
        }
        Ok(())
    }
}
