//! Programs that tools run, with little around them. What runs them is elsewhere: tools only say what is to run, and what
//! it may use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::TaskRights;
use tokio_util::sync::CancellationToken;

use crate::spec::ToolFailure;
use crate::workspace::Workspace;

/// A program that is to run.
#[derive(Clone)]
pub struct Program {
    /// The command, the program first: an absolute path, or a name that is looked up on the path.
    pub command: Vec<String>,
    /// What it is given to read.
    pub input: Bytes,
    /// Its environment, beside what every program has (`PATH`, `HOME`, `TMPDIR`, `LANG`). Nothing of ours is passed on.
    pub environment: BTreeMap<String, String>,
    /// The files that it finds in the folder where it starts. Those that it changes or makes are written back.
    pub workspace: Option<Arc<dyn Workspace>>,
    /// Further files and folders that it may read.
    pub reads: Vec<PathBuf>,
    /// What it may reach.
    pub network: ProgramNetwork,
    /// What it may use.
    pub limits: ProgramLimits,
}

/// What a program may reach.
#[derive(Debug, Clone, Default)]
pub enum ProgramNetwork {
    /// Nothing.
    #[default]
    Nothing,
    /// These hosts (`example.org`, `*.example.org:443`), as far as the rights of the task let it.
    Hosts {
        /// The hosts.
        hosts: Vec<String>,
        /// What the task may use.
        rights: Arc<TaskRights>,
    },
}

/// The most that a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramLimits {
    /// By the clock.
    pub time: Duration,
    /// Of the processors, by all its processes together.
    pub cpu: Duration,
    /// Memory, in bytes.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u32,
    /// What it may write to its folder, in bytes.
    pub disk: u64,
    /// What is kept of what it prints, in bytes, of each of both outputs.
    pub output: usize,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            cpu: Duration::from_secs(30),
            memory: 1024 * 1024 * 1024,
            processes: 64,
            disk: 64 * 1024 * 1024,
            output: 256 * 1024,
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramStatus {
    /// By itself, with this code; 0 is success.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Its time was up.
    TimedOut,
    /// It used more than it may of this.
    Exceeded(&'static str),
}

/// What came of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramEnd {
    /// How it ended.
    pub status: ProgramStatus,
    /// What it printed.
    pub output: Bytes,
    /// What it complained of.
    pub errors: Bytes,
    /// Whether any of it was cut.
    pub cut: bool,
    /// The files of the workspace that it made or changed.
    pub written: Vec<String>,
    /// What it tried and was not let, in words for a model, such as hosts that it may not reach.
    pub refused: Vec<String>,
}

/// Runs programs.
#[async_trait]
pub trait ProgramRunner: Send + Sync + 'static {
    /// Runs a program to its end; it and all that it started are gone when this is done or dropped.
    ///
    /// # Errors
    /// When it cannot be run: [`ToolFailure::Refused`] where this machine lacks what keeps programs in,
    /// [`ToolFailure::NotFound`] where there is no such program.
    async fn run(&self, program: Program, cancel: &CancellationToken) -> Result<ProgramEnd, ToolFailure>;
}
