//! What the kernel says of processes, and how they are told to end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::trust::is_own_process;

/// How often the end of a process that is not our child is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Path of this program. `main` resolves it first: after the file was replaced, the system no longer knows the path.
///
/// # Errors
/// When the system does not know the path at the first call.
pub(crate) fn own_program() -> io::Result<&'static Path> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if let Some(known) = PROGRAM.get() {
        return Ok(known);
    }
    let found = std::env::current_exe()?;
    Ok(PROGRAM.get_or_init(|| found))
}

/// Begins this program anew in this process, with these words, and variables besides its own. Only returns when that failed.
pub(crate) fn begin_anew(words: impl Iterator<Item = OsString>, variables: &[(&str, &str)]) -> io::Error {
    match own_program() {
        Ok(program) => std::process::Command::new(program).args(words).envs(variables.iter().copied()).exec(),
        Err(error) => error,
    }
}

/// A process, told apart from a later one with the same number by when it started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessRef {
    /// Its number.
    pub(crate) pid: u32,
    /// When it started, in clock ticks since the machine did; 0 where the system does not say.
    pub(crate) started: u64,
}

impl ProcessRef {
    /// The process with this number, as it is now.
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, started: start_ticks(pid).unwrap_or(0) }
    }

    /// Whether this very process still runs.
    pub(crate) fn is_alive(&self) -> bool {
        // Where the system says when it started, one of which that is not known is not this one.
        exists(self.pid) && start_ticks(self.pid).unwrap_or(0) == self.started
    }

    /// Whether it runs and belongs to the user.
    pub(crate) fn is_ours(&self) -> bool {
        let may_signal = || kill(nix_pid(self.pid), None).is_ok();
        self.is_alive() && is_own_process(self.pid).unwrap_or_else(may_signal)
    }

    /// Sends a signal, unless the process is gone or somebody else's.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_ours() {
            let _ = kill(nix_pid(self.pid), signal);
        }
    }

    /// Waits until the process is gone; `false` when the time limit came first.
    pub(crate) async fn gone_within(&self, limit: Duration) -> bool {
        let wait = async {
            while self.is_alive() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }
}

/// Resident memory in bytes, where the system says.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page).ok()?)
}

fn exists(pid: u32) -> bool {
    // A zombie exists for the kernel and for nobody else.
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => {
            !matches!(after_name(&stat).and_then(|rest| rest.split_whitespace().next()), Some("Z" | "X"))
        }
        Err(_) if cfg!(target_os = "linux") => false,
        Err(_) => kill(nix_pid(pid), None).is_ok(),
    }
}

fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The 22nd field; the state, which follows the name, is the third.
    after_name(&stat)?.split_whitespace().nth(19)?.parse().ok()
}

/// The fields after the name, which may itself hold spaces and brackets.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, rest)| rest)
}

fn nix_pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_with_its_number_is_not() {
        let me = ProcessRef::of(std::process::id());
        assert!(me.is_alive());
        if cfg!(target_os = "linux") {
            let earlier = ProcessRef { started: me.started + 1, ..me.clone() };
            assert!(!earlier.is_alive());
            let unknown = ProcessRef { started: 0, ..me.clone() };
            assert!(me.is_ours() && !unknown.is_alive(), "nobody is signalled by a number alone");
            assert!(resident_bytes(me.pid).unwrap() > 100_000);
        }
    }

    #[test]
    fn a_child_that_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = ProcessRef::of(child.id());
        child.wait().unwrap();
        assert!(!process.is_alive());
    }

    #[test]
    fn names_with_brackets_do_not_confuse() {
        assert_eq!(after_name("12 (a) b) c) S 1 2"), Some(" S 1 2"));
    }
}
