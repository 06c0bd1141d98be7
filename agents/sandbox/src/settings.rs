//! Settings of the sandbox.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::settings;
use muster_tools::ProgramLimits;
use serde::{Deserialize, Serialize};

use crate::report::Part;

settings! {
    /// What programs that tools run may use, and what must keep them in.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct SandboxSettings {
        /// Longest time of one program, by the clock.
        #[serde(with = "muster_shared::span")]
        pub time: Duration = Duration::from_secs(30) => span(100, HOUR),
        /// Most time of the processors that one program and all it starts may use together.
        #[serde(with = "muster_shared::span")]
        pub cpu: Duration = Duration::from_secs(30) => span(100, HOUR),
        /// Most memory of one program and all it starts.
        pub memory: u64 = 1024 * 1024 * 1024 => bytes(16 * MIB, PIB),
        /// Most processes and threads of one program at once.
        pub processes: u32 = 64 => whole(1, 10_000),
        /// The most that one program may write to its folder.
        pub disk: u64 = 64 * 1024 * 1024 => bytes(MIB, PIB),
        /// The most that is kept of what a program prints, of each of both outputs. One that prints 256 times as much is ended.
        pub output: u64 = 256 * 1024 => bytes(KIB, 64 * MIB),
        /// Most files that are laid into the folder of a program, and most that are taken out of it.
        pub files: u32 = 1_000 => whole(1, 100_000),
        /// Most programs at once in one process; more wait for their turn.
        pub at_once: u32 = 8 => whole(1, 1_000),
        /// What must hold on this machine before any program is run. `muster doctor` tells what does.
        pub require: Vec<Part> = vec![Part::Files, Part::Network, Part::Processes] => list_of::<Part>(),
        /// Whether namespaces are used where they are to be had. Without them less is promised: `muster doctor` tells.
        pub namespaces: bool = true => flag(),
        /// How many sandboxes wait ready for the next program, from the first one on.
        pub pool: u32 = 1 => whole(0, 16),
        /// After how long without a program those that wait are ended.
        #[serde(with = "muster_shared::span")]
        pub pool_idle: Duration = Duration::from_secs(120) => span(1000, DAY),
        /// Where the folders of programs lie, where they are not kept in memory; that for temporary files when absent.
        pub folder: Option<PathBuf> = None => text().example("\"/var/tmp\""),
        /// Further files and folders that every program may read.
        pub reads: Vec<PathBuf> = Vec::new() => list().example("[\"/opt/python\"]"),
        /// Hosts that code may reach, as far as the rights of its task let it: example.org, or *.example.org:443.
        pub hosts: Vec<String> = Vec::new() => list().example("[\"pypi.org:443\"]"),
        /// Most connections of one program to hosts.
        pub connections: u32 = 64 => whole(1, 10_000),
        /// Most bytes that one program may send to hosts and get from them.
        pub traffic: u64 = 64 * 1024 * 1024 => bytes(KIB, PIB),
    }
}

impl SandboxSettings {
    /// What a program may use.
    #[must_use]
    pub fn limits(&self) -> ProgramLimits {
        ProgramLimits {
            time: self.time,
            cpu: self.cpu,
            memory: self.memory,
            processes: self.processes,
            disk: self.disk,
            output: usize::try_from(self.output).unwrap_or(usize::MAX),
        }
    }
}
