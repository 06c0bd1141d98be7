//! The processes that come of a program: looked at while it runs, and ended when it is over.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, SysconfVar, getpid, sysconf};
use rustix::process::{PidfdFlags, Signal as RustixSignal, pidfd_open, pidfd_send_signal};

use super::watch::{Process, Sum, descendants, share_of};
use crate::wire::{Failure, Mode};

/// How long those that come of a program are hunted, where there is no namespace that ends them at once.
const HUNT: Duration = Duration::from_secs(5);

/// All that come of this process.
pub(super) fn ours() -> Vec<Process> {
    let Ok(list) = fs::read_dir("/proc") else { return Vec::new() };
    let names = list.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let numbers = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let lines = numbers.filter_map(|pid| fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok());
    let all: Vec<Process> = lines.filter_map(|line| Process::read(&line)).collect();
    descendants(&all, getpid().as_raw())
}

/// What they use together.
pub(super) fn sum(processes: &[Process]) -> Sum {
    let of = |variable, usual: u64| {
        sysconf(variable).ok().flatten().and_then(|n| u64::try_from(n).ok()).unwrap_or(usual)
    };
    Sum::of(processes, of(SysconfVar::CLK_TCK, 100), of(SysconfVar::PAGE_SIZE, 4096))
}

/// The memory that they have together, what they share counted once. Costs more than [`sum`].
pub(super) fn memory(processes: &[Process]) -> u64 {
    let share =
        |one: &Process| share_of(&fs::read_to_string(format!("/proc/{}/smaps_rollup", one.pid)).ok()?);
    processes.iter().filter_map(share).sum()
}

/// Ends all that come of this process and waits until they are gone.
///
/// # Errors
/// When some cannot be ended.
pub(super) fn end_all(mode: Mode) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        match mode {
            // Everything in the namespace but its first process, at one blow. Nowhere else may this be said.
            Mode::Namespaces if getpid().as_raw() == 1 => {
                let _nobody_is_left = kill(Pid::from_raw(-1), Signal::SIGKILL);
            }
            Mode::Namespaces => {
                return Err(Failure::Broken("the stage is not where it should be".to_owned()));
            }
            Mode::Plain => ours().iter().filter(|one| !one.is_dead).for_each(end_one),
        }
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return Ok(()),
            Err(Errno::EINTR) | Ok(_) if begun.elapsed() < HUNT => {
                std::thread::sleep(Duration::from_micros(200))
            }
            Err(error) => return Err(Failure::Broken(format!("waiting for processes to end: {error}"))),
            Ok(_) => return Err(Failure::Broken("some processes of the program do not end".to_owned())),
        }
        while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status.pid().is_some()) {}
    }
}

/// Ends a process and no other: its number may have been given away since we looked, so it is held first and looked at
/// again.
fn end_one(one: &Process) {
    let Some(pid) = rustix::process::Pid::from_raw(one.pid) else { return };
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let again =
        fs::read_to_string(format!("/proc/{}/stat", one.pid)).ok().and_then(|line| Process::read(&line));
    if again.is_some_and(|again| again.parent == one.parent || again.parent == getpid().as_raw()) {
        let _gone_already = pidfd_send_signal(&held, RustixSignal::KILL);
    }
}
