//! Settings of reading documents.

use std::time::Duration;

use muster_shared::settings;

use super::programs::Part;

settings! {
    /// Documents that are no text: what reading one of them may take, and the processes that do it.
    #[derive(PartialEq, Eq)]
    pub struct DocumentSettings {
        /// What the reading of one document may take. A document that takes more is left out, or cut, and that is said.
        pub reading: ReadLimits = ReadLimits::default() => internal(),
        /// The processes that read documents: how many, and what must keep them in.
        pub readers: PoolLimits,
    }
}

settings! {
    /// What the reading of one document may take.
    #[derive(PartialEq, Eq)]
    pub struct ReadLimits {
        /// Largest document.
        pub max_bytes: u64 = 128 * MIB => internal(),
        /// Most text of a document; the rest is left out, and that is said.
        pub max_text: u64 = 32 * MIB => internal(),
        /// Most pages, slides or cells that are read of a document.
        pub max_pages: u64 = 20_000 => internal(),
        /// Most entries of an archive.
        pub max_entries: u64 = 20_000 => internal(),
        /// Most that archives and office documents may unpack to.
        pub max_unpacked: u64 = 512 * MIB => internal(),
        /// Longest reading.
        #[serde(with = "muster_shared::span")]
        pub time: Duration = Duration::from_secs(60) => internal(),
        /// Most time of processors.
        #[serde(with = "muster_shared::span")]
        pub cpu: Duration = Duration::from_secs(60) => internal(),
        /// Most memory of the process that reads.
        pub memory: u64 = GIB => internal(),
    }
}

settings! {
    /// The processes that read documents: how many, and what must keep them in.
    #[derive(PartialEq, Eq)]
    pub struct PoolLimits {
        /// How long a process that read a document is kept for the next one.
        #[serde(with = "muster_shared::span")]
        pub kept_for: Duration = Duration::from_secs(5) => internal(),
        /// What must hold on this machine before such a process reads anything, as of [tool.sandbox]. What does not is told in
        /// the log.
        pub require: Vec<Part> = vec![Part::Files, Part::Network, Part::Processes] => list_of::<Part>(); Fleet Trust,
    }
}
