//! The last stage: it takes from itself what the program must not have, and becomes the program.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, dup2_stdin, getgid, getuid, setgroups, setresgid, setresuid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use super::filter::{self, Kept};
use super::places::{self, Place};
use crate::computing::kept_by;
use crate::report::{Mechanism, Mechanisms, SandboxReport};
use crate::wire::{self, Failure, Limits, Mode};
use muster_tools::settings::Part;

/// Who programs are to themselves, in a user namespace of their own.
const INSIDE_USER: u32 = 1000;

/// Most open files of one process.
const OPEN_FILES: u64 = 512;

/// Largest stack that a program may ask for, in bytes.
const STACK: u64 = 64 * 1024 * 1024;

/// What the last stage is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LastJob {
    pub(super) mode: Mode,
    pub(super) command: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
    /// What the program reads as its input.
    pub(super) input: PathBuf,
    pub(super) reads: Vec<PathBuf>,
    pub(super) proxied: bool,
    pub(super) limits: Limits,
    /// Most processes of the user, however many of them are not of this program.
    pub(super) most_processes: u64,
    pub(super) require: Vec<Part>,
    /// Whom it becomes, where it is root.
    pub(super) user: Option<u32>,
    /// What keeps it in already.
    pub(super) at_hand: Mechanisms,
}

/// What the last stage answers before it is the program; where it is, nothing more comes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LastWord {
    /// What keeps the program in.
    Restricted(Mechanisms),
    /// It did not come to that.
    Failed(Failure),
}

/// Waits for its job, restricts itself and becomes the program. Comes back only where that failed.
pub(super) fn run() -> Option<()> {
    prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).ok()?;
    let mut control = super::control().ok()?;
    let job: LastJob = wire::receive(&mut control).ok()??;
    let failure = become_program(&job, &mut control);
    wire::send(&mut control, &LastWord::Failed(failure)).ok()
}

fn become_program(job: &LastJob, control: &mut UnixStream) -> Failure {
    match restrict(job, control) {
        Err(failure) => failure,
        Ok(mut command) => {
            let error = command.exec();
            let program = job.command.first().map_or("", String::as_str);
            Failure::NoProgram(cannot_be_run(program, &error))
        }
    }
}

/// Why a program cannot be run, and what to do, as far as its path tells: it is looked for as who it would be run by.
fn cannot_be_run(program: &str, error: &io::Error) -> String {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    match is_denied.then(|| closed_folder(Path::new(program))).flatten() {
        Some(folder) => format!(
            "{program} cannot be run: the user that programs run as here may not enter {}. Let everybody enter that folder \
             (chmod o+x), or put the program elsewhere",
            folder.display()
        ),
        None if is_denied => {
            format!("{program} cannot be run ({error}): everybody has to be able to read and execute it")
        }
        None => format!("{program} cannot be run: {error}"),
    }
}

/// The first folder above a path that this process may not enter.
fn closed_folder(path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    let is_closed = |path: &&Path| {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    above.into_iter().find(is_closed)?.parent().map(Path::to_path_buf)
}

fn restrict(job: &LastJob, control: &mut UnixStream) -> Result<Command, Failure> {
    let input = fs::File::open(&job.input).map_err(Failure::at("opening the input"))?;
    dup2_stdin(input).map_err(Failure::of("giving the input"))?;
    std::env::set_current_dir(&job.folder).map_err(Failure::at("going to the folder"))?;
    // When memory runs out on the machine, programs go first. Some kernels do not let us say so.
    let _unsaid = fs::write("/proc/self/oom_score_adj", "1000");
    limit(job)?;
    let mut at_hand = job.at_hand.clone();
    let capabilities = leave_user(job, &mut at_hand)?;
    prctl::set_no_new_privs().map_err(Failure::of("giving up what programs can be lent"))?;
    let program = job.command.first().map(PathBuf::from).unwrap_or_default();
    confine(job, &program, &mut at_hand)?;
    drop_capabilities(capabilities)?;
    let mut command = Command::new(&program);
    command.args(job.command.get(1..).unwrap_or_default()).env_clear().envs(&job.environment);
    let kept = match (job.mode, job.proxied, job.user) {
        (Mode::Namespaces, false, _) => Kept::Alone,
        (Mode::Namespaces, true, _) => Kept::Proxied,
        (Mode::Plain, _, Some(_)) => Kept::AsOtherUser,
        (Mode::Plain, _, None) => Kept::AsUser,
    };
    let reasons = match filter::apply(kept) {
        Ok(()) => {
            at_hand.insert(Mechanism::Seccomp);
            Vec::new()
        }
        Err(failure) => vec![failure.to_string()],
    };
    if let Some(refusal) = SandboxReport::of(&at_hand, reasons).refusal(&job.require) {
        return Err(Failure::Refused(refusal));
    }
    wire::send(control, &LastWord::Restricted(at_hand)).map_err(Failure::at("telling what holds"))?;
    control.flush().map_err(Failure::at("telling what holds"))?;
    Ok(command)
}

/// Limits of the kernel. They stand behind the counting of the stage, which holds for all processes together.
fn limit(job: &LastJob) -> Result<(), Failure> {
    let seconds = job.limits.cpu.div_ceil(1000).max(1);
    let limits = [
        (Resource::RLIMIT_CORE, 0, 0),
        (Resource::RLIMIT_CPU, seconds, seconds + 1),
        // What a process may write to, and not what it may reserve: some interpreters reserve far more than they use.
        (Resource::RLIMIT_DATA, job.limits.memory, job.limits.memory),
        (Resource::RLIMIT_FSIZE, job.limits.disk, job.limits.disk),
        (Resource::RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES),
        (Resource::RLIMIT_STACK, 8 * 1024 * 1024, STACK),
        (Resource::RLIMIT_MEMLOCK, 64 * 1024, 64 * 1024),
        (Resource::RLIMIT_MSGQUEUE, 0, 0),
        (Resource::RLIMIT_NPROC, job.most_processes, job.most_processes),
    ];
    for (resource, soft, hard) in limits {
        setrlimit(resource, soft, hard)
            .map_err(|error| Failure::Broken(format!("limiting {resource:?}: {error}")))?;
    }
    Ok(())
}

/// Whether there are capabilities to be given up after this.
fn leave_user(job: &LastJob, at_hand: &mut Mechanisms) -> Result<bool, Failure> {
    match (job.mode, job.user) {
        (Mode::Namespaces, _) => {
            // In a namespace below that of the mounts, nobody has a say in those, whatever he becomes.
            let (user, group) = (getuid(), getgid());
            unshare(CloneFlags::CLONE_NEWUSER).map_err(Failure::of("a user namespace for the program"))?;
            places::map_user(INSIDE_USER, user.as_raw(), group.as_raw())?;
            Ok(true)
        }
        (Mode::Plain, Some(user)) => {
            drop_bounding()?;
            let failed = Failure::of("becoming another user");
            setgroups(&[]).map_err(&failed)?;
            setresgid(Gid::from_raw(user), Gid::from_raw(user), Gid::from_raw(user)).map_err(&failed)?;
            setresuid(Uid::from_raw(user), Uid::from_raw(user), Uid::from_raw(user)).map_err(&failed)?;
            at_hand.insert(Mechanism::OtherUser);
            Ok(true)
        }
        (Mode::Plain, None) => Ok(false),
    }
}

/// No program that is started later can come to them.
fn drop_bounding() -> Result<(), Failure> {
    for one in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(one) {
            // Older kernels know fewer of them.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(Failure::Broken(format!("giving up capabilities: {error}"))),
        }
    }
    Ok(())
}

fn drop_capabilities(have_some: bool) -> Result<(), Failure> {
    if have_some && rustix::thread::capabilities(None).is_ok_and(|sets| !sets.effective.is_empty()) {
        drop_bounding()?;
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
    .map_err(|error| Failure::Broken(format!("giving up capabilities: {error}")))
}

/// Landlock over files, signals and abstract sockets.
fn confine(job: &LastJob, program: &Path, at_hand: &mut Mechanisms) -> Result<(), Failure> {
    let status =
        ruleset(job, program).map_err(|error| Failure::Broken(format!("the rules over files: {error}")))?;
    at_hand.extend(kept_by(&status));
    Ok(())
}

fn ruleset(job: &LastJob, program: &Path) -> Result<RestrictionStatus, landlock::RulesetError> {
    /// What we know of, whatever newer kernels offer.
    const KNOWN: ABI = ABI::V9;
    let all = AccessFs::from_all(KNOWN);
    let read: BitFlags<AccessFs> = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let own = [Path::new("/proc"), program].into_iter().map(Path::to_path_buf);
    let mut granted: Vec<(PathBuf, BitFlags<AccessFs>)> = Vec::new();
    for Place { path, writable } in places::of_the_system() {
        granted.push((path, if writable { device } else { read }));
    }
    granted.extend(
        own.filter(|path| job.mode == Mode::Namespaces || path != Path::new("/proc"))
            .map(|path| (path, read)),
    );
    granted.extend(job.reads.iter().cloned().map(|path| (path, read)));
    granted.push((job.folder.clone(), all & !(AccessFs::MakeChar | AccessFs::MakeBlock)));
    if job.mode == Mode::Namespaces {
        granted.extend(
            places::SCRATCH
                .iter()
                .map(|(path, _)| (PathBuf::from(path), all & !(AccessFs::MakeChar | AccessFs::MakeBlock))),
        );
    }
    for (path, access) in granted {
        // What is not there needs no rule. Rights over folders mean nothing for a file.
        let Ok(at) = PathFd::new(&path) else { continue };
        let is_file = fs::metadata(&path).is_ok_and(|meta| !meta.is_dir());
        let access = if is_file { access & AccessFs::from_file(KNOWN) } else { access };
        rules = rules.add_rule(PathBeneath::new(at, access))?;
    }
    rules.restrict_self()
}
