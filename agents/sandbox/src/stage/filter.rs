//! The filter over system calls. What is not listed is not allowed: what the kernel learns next year is closed until
//! somebody has looked at it.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::calls;
use crate::wire::Failure;

/// What else than the filter keeps a program in, on which depends what the filter can let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// Namespaces: sockets within the machine reach nobody but the program.
    Alone,
    /// The same, and those of the internet reach nothing but the proxy.
    Proxied,
    /// No namespaces: a socket with a name reaches who else is on the machine, and every file has a path.
    AsOtherUser,
    /// No namespaces and no user of its own either: processes of the user can be called upon by their numbers.
    AsUser,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Flags of `clone` that make namespaces.
const NEW_NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32 as u64;

/// Puts characters into a terminal as if they had been typed there.
const TYPE_INTO_TERMINAL: u64 = 0x5412;
/// Reads and pastes what is selected on a console.
const CONSOLE_SELECTION: u64 = 0x541C;

/// Puts the filter on this process and all that come of it, for good.
///
/// # Errors
/// When the kernel has none.
pub(super) fn apply(kept: Kept) -> Result<(), Failure> {
    // In this order: the second one does not let a third be put on.
    for program in [hiding(), allowing(kept)] {
        let program =
            program.map_err(|error| Failure::Broken(format!("the filter of system calls: {error}")))?;
        seccompiler::apply_filter(&program)
            .map_err(|error| Failure::Broken(format!("putting on the filter of system calls: {error}")))?;
    }
    Ok(())
}

/// Lets pass what is listed; the rest is not permitted. What is hidden passes here: where two filters deny a call, the one
/// put on last has the word, and it is to be that of the other.
fn allowing(kept: Kept) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: Rules = calls::ORDINARY
        .iter()
        .chain(calls::OF_THIS_MACHINE)
        .chain(calls::HIDDEN)
        .map(|call| (*call, Vec::new()))
        .collect();
    conditional(&mut rules, kept)?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    compile(rules, denied, SeccompAction::Allow)
}

/// Says of some calls that the kernel does not have them: libraries then take the older way, which the other filter can
/// look into.
fn hiding() -> Result<BpfProgram, seccompiler::Error> {
    let rules: Rules = calls::HIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    compile(rules, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))
}

fn compile(
    rules: Rules,
    other: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    let arch = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, other, listed, arch)?.try_into()?)
}

/// Calls that depend on what they are called with.
fn conditional(rules: &mut Rules, kept: Kept) -> Result<(), seccompiler::Error> {
    rules.insert(libc::SYS_clone, vec![rule(vec![masked(0, NEW_NAMESPACES, 0)?])?]);
    rules.insert(
        libc::SYS_ioctl,
        vec![rule(vec![
            word(1, SeccompCmpOp::Ne, TYPE_INTO_TERMINAL)?,
            word(1, SeccompCmpOp::Ne, CONSOLE_SELECTION)?,
        ])?],
    );
    // As it is already, or only asked for.
    let personality = [0, 0xffff_ffff].map(|kind| rule(vec![word(0, SeccompCmpOp::Eq, kind)?]));
    rules.insert(libc::SYS_personality, personality.into_iter().collect::<Result<_, _>>()?);
    let kinds = [libc::S_IFIFO, libc::S_IFREG, libc::S_IFSOCK].map(u64::from);
    let made = |argument| -> Result<Vec<SeccompRule>, seccompiler::Error> {
        kinds.iter().map(|kind| rule(vec![masked(argument, u64::from(libc::S_IFMT), *kind)?])).collect()
    };
    rules.insert(libc::SYS_mknodat, made(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_mknod, made(1)?);
    let families: &[i32] = match kept {
        Kept::AsUser | Kept::AsOtherUser => &[],
        Kept::Alone => &[libc::AF_UNIX],
        Kept::Proxied => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6],
    };
    let family = |family: &i32| rule(vec![word(0, SeccompCmpOp::Eq, *family as u64)?]);
    if !families.is_empty() {
        rules.insert(libc::SYS_socket, families.iter().map(family).collect::<Result<_, _>>()?);
    }
    if kept == Kept::AsUser {
        only_on_itself(rules)?;
    }
    if matches!(kept, Kept::AsUser | Kept::AsOtherUser) {
        // Landlock does not look at rights, owners and times of files. Where a file is open, its times may be set.
        calls::OF_FILES_BY_NAME.iter().for_each(|call| drop(rules.remove(call)));
        let open = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
        rules.insert(libc::SYS_utimensat, vec![rule(vec![open])?]);
    }
    rules.insert(libc::SYS_socketpair, vec![family(&libc::AF_UNIX)?]);
    Ok(())
}

/// Without a namespace of processes, others of the same user could be given limits that end them, or be slowed down.
fn only_on_itself(rules: &mut Rules) -> Result<(), seccompiler::Error> {
    let itself = |argument| word(argument, SeccompCmpOp::Eq, 0);
    let asked = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![itself(0)?])?, rule(vec![asked])?]);
    for call in [libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam] {
        rules.insert(call, vec![rule(vec![itself(0)?])?]);
    }
    // One process, and not all of a group or of a user.
    rules.insert(libc::SYS_setpriority, vec![rule(vec![itself(0)?, itself(1)?])?]);
    rules.insert(libc::SYS_ioprio_set, vec![rule(vec![word(0, SeccompCmpOp::Eq, 1)?, itself(1)?])?]);
    Ok(())
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions)?)
}

fn word(argument: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)?)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    word(argument, SeccompCmpOp::MaskedEq(mask), value)
}
