//! Settings of the tools for data.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of `sql`. Unknown fields are refused.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct SqlSettings {
        /// Longest time of one query, with loading the files that it reads.
        #[serde(with = "muster_shared::span")]
        pub time: Duration = Duration::from_secs(10) => span(10, 10 * MINUTE),
        /// Most rows that one query gives; all are counted, and `sql.save` writes up to a hundred times as many.
        pub max_rows: u64 = 200 => whole(1, 10_000).unit("rows"),
        /// Largest cell that a query may make.
        pub max_cell: u64 = 1024 * 1024 => bytes(KIB, 64 * MIB),
        /// How much the memory of the process may grow while a query runs; measured on Linux, and bounded by the time
        /// elsewhere.
        pub memory: u64 = 256 * 1024 * 1024 => bytes(16 * MIB, 64 * GIB),
        /// Largest file that is read as tables.
        pub max_file: u64 = 32 * 1024 * 1024 => bytes(KIB, GIB),
        /// Largest sum of the files that one query reads.
        pub max_total: u64 = 64 * 1024 * 1024 => bytes(KIB, 4 * GIB),
        /// Longest query.
        pub max_query: u64 = 16 * 1024 => bytes(64, MIB),
        /// Queries that run at the same time in one process; more wait their turn.
        pub at_once: u64 = 2 => whole(1, 64),
        /// Whether models may choose DuckDB, where it is installed. It runs in the sandbox.
        pub duckdb: bool = false => flag(),
        /// The program of DuckDB: a name that is looked up on the path, or a path.
        pub duckdb_program: String = "duckdb".to_owned() => text(),
    }
}

settings! {
    /// Settings of `chart`. Unknown fields are refused.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ChartSettings {
        /// Most values of one chart.
        pub max_points: u64 = 5_000 => whole(10, 100_000).unit("values"),
        /// Most series of one chart: more cannot be told apart.
        pub max_series: u64 = 12 => whole(1, 40),
        /// Width of a chart where nothing is said.
        pub width: u64 = 800 => whole(200, 4_000).unit("pixels"),
        /// Height of a chart where nothing is said.
        pub height: u64 = 450 => whole(150, 4_000).unit("pixels"),
    }
}

settings! {
    /// Settings of one database, `[tool.postgres.NAME]`. Unknown fields are refused.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct PostgresSettings {
        /// Where it is, without a password: `postgres://reader@db.example.org:5432/sales?sslmode=require`. Encrypted
        /// unless the URL says `sslmode=disable`, or the server is on this machine.
        pub url: String = String::new() => text().example("\"postgres://reader@db.example.org/sales\""),
        /// A file that holds the password.
        pub password_file: Option<PathBuf> = None => text().example("\"/run/secrets/sales-db\""),
        /// A file with the authorities that may vouch for the server, in PEM; those of the system when absent.
        pub ca_file: Option<PathBuf> = None => text().example("\"/etc/ssl/house-ca.pem\""),
        /// The schemas that may be read.
        pub schemas: Vec<String> = vec!["public".to_owned()] => list().example("[\"public\"]"),
        /// What the database holds, in a sentence for models.
        pub about: String = String::new() => text().example("\"orders and customers since 2019\""),
        /// Longest time of one statement.
        #[serde(with = "muster_shared::span")]
        pub statement_time: Duration = Duration::from_secs(10) => span(10, 10 * MINUTE),
        /// Longest time until a connection is there.
        #[serde(with = "muster_shared::span")]
        pub connect_time: Duration = Duration::from_secs(10) => span(100, MINUTE),
        /// Most rows that one query gives.
        pub max_rows: u64 = 200 => whole(1, 10_000).unit("rows"),
        /// Longest cell; what is longer is cut by the server.
        pub max_cell: u64 = 2_000 => whole(16, 100_000).unit("characters"),
        /// Most queries in a minute, by one process; more are refused.
        pub per_minute: u64 = 60 => whole(1, 10_000),
        /// Queries that run at the same time, by one process; more wait their turn.
        pub at_once: u64 = 2 => whole(1, 64),
        /// Whether a role may be used that could write files or run programs on the server. It never should.
        pub allow_powerful_role: bool = false => flag(),
    }
}

settings! {
    /// Settings of one stream or bucket of NATS, `[tool.nats.NAME]`. Unknown fields are refused.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct NatsSettings {
        /// Where the server is: `nats://nats.example.org:4222`, without user and password. The fleet's own when empty.
        pub server: String = String::new() => text().example("\"nats://nats.example.org:4222\""),
        /// A NATS credentials file (`.creds`) that lets the stream be read; of the fleet's own server, those of the process when
        /// absent.
        pub credentials: Option<PathBuf> = None => text().example("\"/run/secrets/orders.creds\""),
        /// A file with the authorities that may vouch for the server, in PEM; those of the system when absent.
        pub ca_file: Option<PathBuf> = None => text().example("\"/etc/ssl/house-ca.pem\""),
        /// Whether a server on another machine may be spoken to without encryption.
        pub allow_unencrypted: bool = false => flag(),
        /// The stream that is read; either this or `bucket`.
        pub stream: String = String::new() => text().example("\"ORDERS\""),
        /// The key-value bucket that is read.
        pub bucket: String = String::new() => text().example("\"prices\""),
        /// The subjects that may be read, of a bucket the keys: with `*` for a word and `>` for all that follow.
        pub subject: String = ">".to_owned() => text().example("\"own.orders.>\""),
        /// What it holds, in a sentence for models.
        pub about: String = String::new() => text().example("\"orders as they come in\""),
        /// Longest time of one call, without connecting.
        #[serde(with = "muster_shared::span")]
        pub time: Duration = Duration::from_secs(10) => span(100, 10 * MINUTE),
        /// Longest time until a connection is there.
        #[serde(with = "muster_shared::span")]
        pub connect_time: Duration = Duration::from_secs(5) => span(100, MINUTE),
        /// Most entries that one call gives.
        pub max_rows: u64 = 200 => whole(1, 10_000).unit("rows"),
        /// Longest body that is shown; what is longer is cut.
        pub max_cell: u64 = 2_000 => whole(16, 100_000).unit("characters"),
        /// Most bytes of bodies that one call reads.
        pub max_bytes: u64 = 4 * 1024 * 1024 => bytes(KIB, 64 * MIB),
        /// Most calls in a minute, by one process; more are refused.
        pub per_minute: u64 = 60 => whole(1, 10_000),
        /// Calls that run at the same time, by one process; more wait their turn.
        pub at_once: u64 = 2 => whole(1, 64),
        /// Whether this may be a stream of Muster's own, or a copy of one: in them stand the goals, documents and answers of all
        /// runs, whatever the rights of a task.
        pub allow_own_of_muster: bool = false => flag(),
    }
}

/// Longest name of a source, in characters.
const MAX_NAME: usize = 24;

/// Whether a source may have this name, which stands in those of its tools.
pub(crate) fn source_name(name: &str) -> Result<(), String> {
    let is_name = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_name {
        return Ok(());
    }
    Err(format!("a name has up to {MAX_NAME} small letters, digits and `_`, a letter first"))
}
