//! A process that computes, and reads and writes what it was born with: it takes everything else from itself, for good. For
//! our own code that is fed with what strangers made, and can do its work so.

use std::collections::BTreeMap;
use std::fmt;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use nix::sys::prctl;
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::report::{Mechanism, Mechanisms};
use muster_tools::settings::Part;

/// What we know of, whatever newer kernels offer.
const KNOWN: ABI = ABI::V9;

/// Calls that compute, ask for memory and time, and use what is open. None of them names a file, a host or another process.
#[rustfmt::skip]
const COMPUTING: &[i64] = &[
    libc::SYS_brk, libc::SYS_clock_getres, libc::SYS_clock_gettime, libc::SYS_clock_nanosleep, libc::SYS_close,
    libc::SYS_exit, libc::SYS_exit_group, libc::SYS_fstat, libc::SYS_futex, libc::SYS_getpid, libc::SYS_getrandom,
    libc::SYS_getrlimit, libc::SYS_getrusage, libc::SYS_gettid, libc::SYS_gettimeofday, libc::SYS_lseek,
    libc::SYS_madvise, libc::SYS_membarrier, libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_mremap, libc::SYS_munmap,
    libc::SYS_nanosleep, libc::SYS_ppoll, libc::SYS_read, libc::SYS_readv, libc::SYS_restart_syscall,
    libc::SYS_rseq, libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity, libc::SYS_sched_yield, libc::SYS_set_robust_list, libc::SYS_setrlimit,
    libc::SYS_sigaltstack, libc::SYS_sysinfo, libc::SYS_write, libc::SYS_writev,
    #[cfg(target_arch = "x86_64")] libc::SYS_poll,
    #[cfg(target_arch = "x86_64")] libc::SYS_time,
];

/// What a process has left, and by what that is kept.
#[derive(Debug, Clone)]
pub struct OnlyComputing {
    at_hand: Mechanisms,
    /// Why something is missing, in words, where the kernel said so.
    reasons: Vec<String>,
}

/// Takes from this thread, and all that come of it, everything but computing and what is open: from now on it opens no file,
/// reaches no host, starts no program, thread or process, and sends no signal but to itself. Limits of resources can only be
/// lowered. What the kernel does not offer is left out: ask [`OnlyComputing::refusal`] before anything is done that counts on it.
#[must_use]
pub fn only_compute() -> OnlyComputing {
    let (mut at_hand, mut reasons) = (Mechanisms::new(), Vec::new());
    let mut noted = |what: &str, error: &dyn fmt::Display| reasons.push(format!("{what}: {error}"));
    // Neither landlock nor the filter can be put on by anybody but root without it.
    if let Err(error) = prctl::set_no_new_privs() {
        noted("giving up what programs can be lent", &error);
    }
    match closed() {
        Ok(status) => at_hand.extend(kept_by(&status)),
        Err(error) => noted("the rules over files", &error),
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    if let Err(error) = rustix::thread::set_capabilities(None, none) {
        noted("giving up capabilities", &error);
    }
    match filter().and_then(|filter| seccompiler::apply_filter(&filter)) {
        Ok(()) => drop(at_hand.insert(Mechanism::Seccomp)),
        Err(error) => noted("the filter of system calls", &error),
    }
    OnlyComputing { at_hand, reasons }
}

impl OnlyComputing {
    /// By which mechanisms a promise is kept; by none where it does not hold.
    #[must_use]
    pub fn kept_by(&self, part: Part) -> Vec<Mechanism> {
        // The filter lets nothing be named, so that it keeps each of them by itself; landlock stands behind it.
        let those: &[Mechanism] = match part {
            Part::Files => &[Mechanism::Seccomp, Mechanism::Landlock],
            Part::Signals => &[Mechanism::Seccomp, Mechanism::LandlockScopes],
            Part::Network | Part::Processes | Part::Syscalls | Part::Hosts => &[Mechanism::Seccomp],
        };
        those.iter().copied().filter(|one| self.at_hand.contains(one)).collect()
    }

    /// The promises that do not hold.
    #[must_use]
    pub fn missing(&self) -> Vec<Part> {
        Part::ALL.into_iter().filter(|part| self.kept_by(*part).is_empty()).collect()
    }

    /// What does not hold of what is required, and why; nothing where all of it does.
    #[must_use]
    pub fn refusal(&self, required: &[Part]) -> Option<String> {
        let missing: Vec<&str> = required
            .iter()
            .filter(|part| self.kept_by(**part).is_empty())
            .map(|part| part.as_str())
            .collect();
        let reasons =
            if self.reasons.is_empty() { String::new() } else { format!(" ({})", self.reasons.join("; ")) };
        (!missing.is_empty()).then(|| format!("this machine cannot promise: {}{reasons}", missing.join(", ")))
    }
}

/// Landlock without a rule: no file, no port, no process outside.
fn closed() -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .restrict_self()
}

/// What landlock keeps, by what of it was put on.
pub(crate) fn kept_by(status: &RestrictionStatus) -> Vec<Mechanism> {
    let abi = match (&status.ruleset, &status.landlock) {
        (RulesetStatus::NotEnforced, _)
        | (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => ABI::Unsupported,
        (_, LandlockStatus::Available { effective_abi, .. }) => *effective_abi,
    };
    let versions = [(ABI::V3, Mechanism::Landlock), (ABI::V6, Mechanism::LandlockScopes)];
    versions.into_iter().filter(|(least, _)| abi >= *least).map(|(_, one)| one).collect()
}

fn filter() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        COMPUTING.iter().map(|call| (*call, Vec::new())).collect();
    let word = |argument, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let only = |conditions| -> Result<Vec<SeccompRule>, seccompiler::Error> {
        Ok(vec![SeccompRule::new(conditions)?])
    };
    // Its own limits; and it may end itself by a signal, as it does when memory runs out.
    rules.insert(libc::SYS_prlimit64, only(vec![word(0, 0)?])?);
    rules.insert(libc::SYS_tgkill, only(vec![word(0, u64::from(std::process::id()))?])?);
    let asked = [libc::F_GETFD, libc::F_GETFL].map(|what| only(vec![word(1, what as u64)?]));
    let asked: Vec<_> = asked.into_iter().collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_fcntl, asked.into_iter().flatten().collect());
    let arch = std::env::consts::ARCH.try_into()?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    Ok(SeccompFilter::new(rules, denied, SeccompAction::Allow, arch)?.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_holds_by_what_keeps_it_and_a_refusal_names_those_that_do_not() {
        let with = |at_hand: &[Mechanism]| OnlyComputing {
            at_hand: at_hand.iter().copied().collect(),
            reasons: vec!["no filter here".to_owned()],
        };
        let all = with(&[Mechanism::Seccomp]);
        assert_eq!((all.missing(), all.refusal(&Part::ALL)), (Vec::new(), None));
        let files = with(&[Mechanism::Landlock]);
        assert_eq!(files.refusal(&[Part::Files]), None);
        let refusal = files.refusal(&[Part::Files, Part::Network, Part::Processes]).unwrap_or_default();
        assert_eq!(refusal, "this machine cannot promise: network, processes (no filter here)");
        assert_eq!(with(&[]).missing(), Part::ALL);
    }
}
