//! Counting what a program and all that it started use together, and what is too much.

use crate::wire::{Excess, Limits};

/// What one process uses, as the kernel tells it in `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// Time of the processors, its own and that of those it waited for, in ticks.
    pub(super) ticks: u64,
    pub(super) threads: u32,
    /// Memory it has in hand, shared parts included, in pages.
    pub(super) pages: u64,
    /// Whether it is gone, and only waits to be waited for.
    pub(super) is_dead: bool,
}

impl Process {
    /// Reads a line of `/proc/PID/stat`, see proc_pid_stat(5). The name in brackets may hold anything, brackets too.
    pub(super) fn read(line: &str) -> Option<Self> {
        let pid = line.split(' ').next()?.parse().ok()?;
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of these is the third of the line.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(14)? + number(15)? + number(16)? + number(17)?,
            threads: u32::try_from(number(20)?).ok()?,
            pages: number(24)?,
            is_dead: matches!(fields.first(), Some(&("Z" | "X"))),
        })
    }
}

/// The processes that come of this one, and not itself.
pub(super) fn descendants(all: &[Process], of: i32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|one| one.parent == parent && one.pid != of) {
            if found.iter().all(|known| known.pid != child.pid) {
                parents.push(child.pid);
                found.push(child.clone());
            }
        }
    }
    found
}

/// What all of them use together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Time of the processors, in milliseconds.
    pub(super) cpu: u64,
    /// Memory, in bytes. What several share is counted for each.
    pub(super) memory: u64,
    pub(super) processes: u32,
}

impl Sum {
    /// The sum over processes, on a machine with so many ticks a second and pages of this size.
    pub(super) fn of(processes: &[Process], ticks_a_second: u64, page: u64) -> Self {
        let ticks: u64 = processes.iter().map(|one| one.ticks).sum();
        Self {
            cpu: ticks.saturating_mul(1000) / ticks_a_second.max(1),
            memory: processes.iter().map(|one| one.pages).sum::<u64>().saturating_mul(page),
            processes: processes.iter().filter(|one| !one.is_dead).map(|one| one.threads).sum(),
        }
    }

    /// What of it is too much, `gone` being the time in milliseconds of those that are gone. Memory is not among it: what
    /// is shared has to be looked at first.
    pub(super) fn excess(self, gone: u64, limits: &Limits) -> Option<Excess> {
        if self.cpu.saturating_add(gone) > limits.cpu {
            Some(Excess::Cpu)
        } else if self.processes > limits.processes {
            Some(Excess::Processes)
        } else {
            None
        }
    }
}

/// The proportional share of memory in `/proc/PID/smaps_rollup`, in bytes: what several share is divided by them.
pub(super) fn share_of(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, ticks: 10, threads: 2, pages: 3, is_dead: false }
    }

    #[test]
    fn a_line_is_read_whatever_the_process_calls_itself() {
        let rest = "S 7 1 1 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 5 0 100 1000000 250 18446744073709551615";
        for name in ["(sh)", "(a b)", "(x) S 1)", "())"] {
            let read = Process::read(&format!("42 {name} {rest}")).unwrap();
            let expected = Process { pid: 42, parent: 7, ticks: 110, threads: 5, pages: 250, is_dead: false };
            assert_eq!(read, expected, "{name}");
        }
        for broken in ["", "42", "42 (sh", "42 (sh) S", "x (sh) S 7 1"] {
            assert_eq!(Process::read(broken), None, "{broken}");
        }
    }

    #[test]
    fn descendants_are_found_however_deep_and_in_whatever_order() {
        let all = [process(5, 4), process(1, 0), process(4, 2), process(9, 1), process(2, 1), process(3, 2)];
        let mut found: Vec<i32> = descendants(&all, 2).into_iter().map(|one| one.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4, 5]);
        assert!(descendants(&all, 5).is_empty());
        // A ring cannot be, and would not hold us up.
        assert_eq!(descendants(&[process(1, 2), process(2, 1)], 1).len(), 1);
    }

    #[test]
    fn what_is_gone_counts_for_time_and_what_is_dead_not_for_processes() {
        let limits = Limits { time: 0, cpu: 1000, memory: 0, processes: 4, disk: 0 };
        let dead = Process { is_dead: true, ..process(3, 1) };
        let sum = Sum::of(&[process(1, 0), process(2, 1), dead], 100, 4096);
        assert_eq!(sum, Sum { cpu: 300, memory: 9 * 4096, processes: 4 });
        assert_eq!(sum.excess(700, &limits), None);
        assert_eq!(sum.excess(701, &limits), Some(Excess::Cpu));
        assert_eq!(Sum { processes: 5, ..sum }.excess(0, &limits), Some(Excess::Processes));
    }

    #[test]
    fn the_share_of_memory_is_read() {
        assert_eq!(
            share_of("00-ff ---p [rollup]\nRss: 90 kB\nPss:   12 kB\nPss_Dirty: 1 kB\n"),
            Some(12 * 1024)
        );
        assert_eq!(share_of("Pss_Anon: 1 kB"), None);
    }
}
