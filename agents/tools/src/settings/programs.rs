//! Settings of the sandbox.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::settings;
use serde::{Deserialize, Serialize};

use crate::ProgramLimits;

/// Most time of the processors that one program and all it starts may use together. As much as one processor gives
/// in its time.
const MAX_CPU: Duration = Duration::from_secs(30);

/// Most processes and threads of one program at once. Enough for an interpreter with a pool, and too few for a
/// fork bomb.
const MAX_PROCESSES: u32 = 64;

/// The most that one program may write to its folder. 64 MiB: it is kept in memory where that is possible.
pub const MAX_DISK: u64 = 64 * 1024 * 1024;

/// The most that is kept of what a program prints, of each of both outputs. One that prints 256 times as much is
/// ended. 256 KiB: more than a model reads.
const MAX_OUTPUT: u64 = 256 * 1024;

settings! {
    /// What programs that tools run may use, and what must keep them in.
    #[derive(PartialEq, Eq)]
    pub struct SandboxSettings {
        /// Longest time of one program, by the clock.
        #[serde(with = "muster_shared::span")]
        pub time: Duration = Duration::from_secs(30) => span(100, HOUR); Fleet Trust,
        /// Most memory of one program and all it starts.
        pub memory: u64 = 1024 * 1024 * 1024 => bytes(16 * MIB, PIB); Fleet Trust,
        /// What must hold on this machine before any program is run. `muster doctor` tells what does.
        pub require: Vec<Part> = vec![Part::Files, Part::Network, Part::Processes] => list_of::<Part>(); Fleet Trust,
        /// Whether namespaces are used where they are to be had. Without them less is promised: `muster doctor` tells.
        pub namespaces: bool = true => flag(); Fleet Trust,
        /// How many sandboxes wait ready for the next program, from the first one on.
        pub pool: u32 = 1 => internal(),
        /// After how long without a program those that wait are ended.
        #[serde(with = "muster_shared::span")]
        pub pool_idle: Duration = Duration::from_secs(120) => internal(),
        /// Where the folders of programs lie, where they are not kept in memory; that for temporary files when absent.
        pub folder: Option<PathBuf> = None => internal(),
        /// Further files and folders that every program may read.
        pub reads: Vec<PathBuf> = Vec::new() => list().example("[\"/opt/python\"]"); Fleet Trust,
        /// Hosts that code may reach, as far as the rights of its task let it: example.org, or *.example.org:443.
        pub hosts: Vec<String> = Vec::new() => list().example("[\"pypi.org:443\"]"); Fleet Trust,
        /// Most connections of one program to hosts.
        pub connections: u32 = 64 => internal(),
        /// Most bytes that one program may send to hosts and get from them.
        pub traffic: u64 = 64 * 1024 * 1024 => internal(),
    }
}

impl SandboxSettings {
    /// What a program may use.
    #[must_use]
    pub fn limits(&self) -> ProgramLimits {
        ProgramLimits {
            time: self.time,
            cpu: MAX_CPU,
            memory: self.memory,
            processes: MAX_PROCESSES,
            disk: MAX_DISK,
            output: usize::try_from(MAX_OUTPUT).unwrap_or(usize::MAX),
        }
    }
}

/// One promise of the sandbox.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Part {
    /// No file outside of what a program is given is read or written.
    Files,
    /// Nothing is reached over a network or a socket.
    Network,
    /// No process outlives the call.
    Processes,
    /// No process outside is sent a signal.
    Signals,
    /// The kernel is asked only for what ordinary programs need.
    Syscalls,
    /// Hosts that were granted are reached, and no others.
    Hosts,
}

impl Part {
    /// Every promise there is.
    pub const ALL: [Self; 6] =
        [Self::Files, Self::Network, Self::Processes, Self::Signals, Self::Syscalls, Self::Hosts];

    /// Its name, as in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What it promises, in words.
    #[must_use]
    pub const fn promise(self) -> &'static str {
        match self {
            Self::Files => "no file outside of what a program is given is read or written",
            Self::Network => "nothing is reached over a network or a socket",
            Self::Processes => "no process outlives the call",
            Self::Signals => "no process outside is sent a signal",
            Self::Syscalls => "the kernel is asked only for what ordinary programs need",
            Self::Hosts => "hosts that were granted are reached, and no others",
        }
    }
}
