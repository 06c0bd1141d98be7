//! Settings of the tools for data.

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
    }
}
