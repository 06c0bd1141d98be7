//! Settings of the tools for data.

use std::time::Duration;

use muster_shared::settings;

settings! {
    /// Settings of `sql`. Unknown fields are refused.
    #[derive(PartialEq)]
    pub struct SqlSettings {
        /// Longest time of one query, with loading the files that it reads.
        #[serde(with = "muster_shared::span")]
        pub time: Duration = Duration::from_secs(10) => internal(),
        /// Most rows that one query gives; all are counted, and `sql.save` writes up to a hundred times as many.
        pub max_rows: u64 = 200 => internal(),
        /// How much the memory of the process may grow while a query runs; measured on Linux, and bounded by the time
        /// elsewhere.
        pub memory: u64 = 256 * 1024 * 1024 => internal(),
        /// Largest file that is read as tables.
        pub max_file: u64 = 32 * 1024 * 1024 => internal(),
        /// Largest sum of the files that one query reads.
        pub max_total: u64 = 64 * 1024 * 1024 => internal(),
        /// Queries that run at the same time in one process; more wait their turn.
        pub at_once: u64 = 2 => internal(),
    }
}
