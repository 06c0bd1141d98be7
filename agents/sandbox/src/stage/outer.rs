//! The outer process: it enters namespaces and stays only to wait. With it dies all that is in them.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::unistd::{getgid, getuid, setsid};

use super::{inner, own_program, places, user};
use crate::wire::{self, Failure, Mode, Word};

/// Runs the stage to its end.
pub(super) fn run(mode: Mode) -> Option<()> {
    // No terminal is ours any more, and no signal that is sent to the group we came from.
    let _leads_already = setsid();
    match mode {
        Mode::Plain => inner::run(Mode::Plain),
        Mode::Namespaces => {
            let mut control = super::control().ok()?;
            match enter().and_then(|()| start_inner(&control)) {
                Ok(()) => Some(()),
                Err(failure) => wire::send(&mut control, &Word::Failed(failure)).ok(),
            }
        }
    }
}

fn enter() -> Result<(), Failure> {
    if let Some(user) = user::for_program() {
        user::become_user(user)?;
    }
    // Otherwise nothing of our own in /proc is ours after we became another user.
    prctl::set_dumpable(true).map_err(Failure::of("taking hold of our own process"))?;
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    unshare(all).map_err(|error| Failure::NoNamespaces(error.to_string()))?;
    places::map_user(0, user, group)
}

/// The next process that we start is the first one in the new namespace of processes.
fn start_inner(control: &UnixStream) -> Result<(), Failure> {
    let input = OwnedFd::from(control.try_clone().map_err(Failure::at("handing the socket on"))?);
    let mut child = own_program("inner", input).spawn().map_err(|error| {
        Failure::NoNamespaces(format!(
            "our program cannot be started by the user that programs run as: {error}"
        ))
    })?;
    child.wait().map(drop).map_err(Failure::at("waiting for the stage"))
}
