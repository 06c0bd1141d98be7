//! Settings of the bus. Every limit has a default that suits one machine and a fleet of dozens of processes.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::wire::Encoding;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// How to reach the bus, and its limits. Spans of time are written `500ms`, `30s`, `10m`, `2h` or `30d`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BusSettings {
    /// Where the NATS server listens, such as `nats://127.0.0.1:4222`; several separated by commas.
    pub url: Option<String>,
    /// User name.
    pub user: Option<String>,
    /// Password of the user.
    #[serde(skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub password: Option<SecretString>,
    /// Token, when the server asks for one.
    #[serde(skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// User of the server's system account. Orchestrators learn by it at once when an agent dies; without it, when the
    /// registry forgets the agent (`registry_ttl`) or its tasks' time is up (`ack_wait`). A local fleet has its own.
    pub system_user: Option<String>,
    /// Password of the system account's user.
    #[serde(skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub system_password: Option<SecretString>,
    /// A NATS credentials file (`.creds`).
    pub credentials: Option<PathBuf>,
    /// A file of root certificates, for servers with a certificate of one's own authority.
    pub tls_ca: Option<PathBuf>,
    /// Longest wait for the answer to any call.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub request_timeout: Duration,
    /// Longest wait for a connection.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub connect_timeout: Duration,
    /// How often the client asks the server for a sign of life.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub ping_interval: Duration,
    /// How messages are encoded that have no encoding of their own.
    pub encoding: Encoding,
    /// Copies that the cluster keeps of every stream (1, 3 or 5).
    pub replicas: u8,
    /// Most bytes of the record. New goals are refused at 80 %, writes at 100 %.
    pub record_bytes: u64,
    /// Most bytes of queued offers.
    pub tasks_bytes: u64,
    /// Most bytes of waiting commands.
    pub commands_bytes: u64,
    /// Most bytes of dead letters; the oldest go first.
    pub dead_bytes: u64,
    /// How long dead letters are kept.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub dead_age: Duration,
    /// How far ahead of the broker's clock a command may say that it was sent. One further ahead becomes a dead letter:
    /// order comes from positions alone, and such a clock says nothing of how long a goal has time.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub clock_ahead: Duration,
    /// Most bytes of the object store.
    pub objects_bytes: u64,
    /// Most bytes of the shared context.
    pub context_bytes: u64,
    /// Most bytes of what runs taught; the oldest goes first.
    pub lessons_bytes: u64,
    /// Most bytes of the lists of runs' files; the files themselves are objects.
    pub files_bytes: u64,
    /// Most bytes of what agents and tools did in earlier runs; the oldest goes first.
    pub track_record_bytes: u64,
    /// Largest body or object that is taken.
    pub object_limit: usize,
    /// How long a task may be held without a sign of progress before another agent gets it.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub ack_wait: Duration,
    /// How long an orchestrator's lease lasts without renewal; its runs then go to others. 15s or more on a cluster.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub lease_ttl: Duration,
    /// How often an agent says that it lives.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub heartbeat: Duration,
    /// After how long without a heartbeat the registry forgets an agent.
    #[serde(with = "muster_shared::span")]
    #[schemars(with = "String")]
    pub registry_ttl: Duration,
    /// Live messages that wait to be sent; more are dropped.
    pub live_buffer: usize,
    /// Messages that wait in a subscription; more are dropped by the client.
    pub subscription_buffer: usize,
}

const MIB: u64 = 1024 * 1024;

impl Default for BusSettings {
    fn default() -> Self {
        Self {
            url: None,
            user: None,
            password: None,
            token: None,
            system_user: None,
            system_password: None,
            credentials: None,
            tls_ca: None,
            request_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            ping_interval: Duration::from_secs(5),
            encoding: Encoding::MessagePack,
            replicas: 1,
            record_bytes: 4096 * MIB,
            tasks_bytes: 256 * MIB,
            commands_bytes: 64 * MIB,
            dead_bytes: 64 * MIB,
            dead_age: Duration::from_secs(30 * 24 * 3600),
            clock_ahead: Duration::from_secs(3600),
            objects_bytes: 8192 * MIB,
            context_bytes: 64 * MIB,
            lessons_bytes: 2 * MIB,
            files_bytes: 64 * MIB,
            track_record_bytes: 2 * MIB,
            object_limit: 64 * 1024 * 1024,
            ack_wait: Duration::from_secs(30),
            lease_ttl: Duration::from_secs(2),
            heartbeat: Duration::from_secs(5),
            registry_ttl: Duration::from_secs(15),
            live_buffer: 256,
            subscription_buffer: 4096,
        }
    }
}

impl BusSettings {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first setting that makes no sense.
    pub fn check(&self) -> Result<(), crate::BusError> {
        let wrong = |reason: String| Err(crate::BusError::Settings { reason });
        if !matches!(self.replicas, 1 | 3 | 5) {
            return wrong(format!("replicas = {} must be 1, 3 or 5", self.replicas));
        }
        // The broker's expiry is counted in whole seconds.
        if self.lease_ttl < Duration::from_secs(1) || self.registry_ttl < Duration::from_secs(1) {
            return wrong("lease_ttl and registry_ttl must be at least 1s".into());
        }
        if self.heartbeat >= self.registry_ttl {
            return wrong("heartbeat must be shorter than registry_ttl (a third of it is good)".into());
        }
        if self.request_timeout.is_zero() || self.connect_timeout.is_zero() || self.ack_wait.is_zero() {
            return wrong("request_timeout, connect_timeout and ack_wait must be above zero".into());
        }
        Ok(())
    }
}
