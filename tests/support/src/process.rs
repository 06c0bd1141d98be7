//! Processes of tests: their CPU time and memory by `/proc` (Linux only), and their end with the test.

use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The test may have ended it already.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// CPU time and memory of a set of processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Consumption {
    /// User and system time together.
    pub cpu: Duration,
    /// Proportional set size, in bytes: shared pages are split among those who share them.
    pub pss: u64,
    /// Resident set size, in bytes.
    pub rss: u64,
}

/// Adds up what `pids` consumed so far. A process that is gone counts as nothing.
#[must_use]
pub fn consumption(pids: &[u32]) -> Consumption {
    let mut sum = Consumption::default();
    for &pid in pids {
        sum.cpu += cpu_time(pid).unwrap_or_default();
        let memory = memory(pid).unwrap_or_default();
        sum.pss += memory.0;
        sum.rss += memory.1;
    }
    sum
}

/// User and system time of a process with all its threads.
///
/// # Errors
/// When the process is gone or `/proc` cannot be read.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    // schedstat counts nanoseconds, `stat` only clock ticks of 10 ms: too coarse for a run of 20 ms.
    let mut nanos = 0;
    for task in std::fs::read_dir(proc_file(pid, "task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split_whitespace().next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// Whether a process is there and has not ended. One that nobody waited for yet (a zombie) has.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(proc_file(pid, "stat")).unwrap_or_default();
    // A program may bear any name: its state stands behind the last bracket.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Proportional and resident set size in bytes.
fn memory(pid: u32) -> io::Result<(u64, u64)> {
    let text = std::fs::read_to_string(proc_file(pid, "smaps_rollup"))?;
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    Ok((field("Pss:").unwrap_or(0) * 1024, field("Rss:").unwrap_or(0) * 1024))
}

fn proc_file(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::fleet::wait_until;

    #[test]
    fn whoever_ended_is_not_alive_even_while_nobody_waited_for_it() {
        assert!(is_alive(std::process::id()));
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        assert!(is_alive(child.id()));
        child.kill().unwrap();
        wait_until("it has ended", Duration::from_secs(10), || !is_alive(child.id())).unwrap();
        assert!(Path::new(&format!("/proc/{}", child.id())).exists(), "nobody waited for it");
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
