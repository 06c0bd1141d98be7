//! The stage: a process that starts a program, keeps it in, and tells what came of it.
//!
//! It is three processes, each of which starts our program anew. The outer one enters namespaces. The inner one is the first
//! process in them (where there are none, it is the outer one): it lays the files in, watches, ends all that is left and
//! gives files back. The last one restricts itself and becomes the program. None of them has another thread, and none reads
//! a setting, a file of ours or the environment.

mod calls;
mod collect;
mod descendants;
mod filter;
mod folder;
mod inner;
mod loopback;
mod outer;
mod places;
mod restrict;
mod user;
mod watch;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};

use crate::wire::Mode;

/// The first argument of a stage.
pub(crate) const HIDDEN_ARGUMENT: &str = "__sandbox";

/// Our program, whatever is visible of the file system.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Which of its processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Outer(Mode),
    Inner,
    Last,
}

impl Step {
    fn read(words: &[OsString]) -> Option<Self> {
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        match words.as_slice() {
            ["outer", mode] if *mode == Mode::Namespaces.as_str() => Some(Self::Outer(Mode::Namespaces)),
            ["outer", mode] if *mode == Mode::Plain.as_str() => Some(Self::Outer(Mode::Plain)),
            ["inner"] => Some(Self::Inner),
            ["last"] => Some(Self::Last),
            // Arguments are open.
            _ => None,
        }
    }
}

/// Is the stage, where the first argument says so. The first thing in `main`, before arguments are read, threads are
/// started or anything is opened: all descriptors but the first three are closed.
///
/// Gives nothing where this is no stage, and `main` goes on.
pub fn child_main(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    if args.next()?.to_str() != Some(HIDDEN_ARGUMENT) {
        return None;
    }
    let rest: Vec<OsString> = args.take(3).collect();
    close_inherited();
    let done = match Step::read(&rest) {
        Some(Step::Outer(mode)) => outer::run(mode),
        Some(Step::Inner) => inner::run(Mode::Namespaces),
        Some(Step::Last) => restrict::run(),
        None => None,
    };
    Some(if done.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whoever started us may have had files and sockets open that programs must not get. Nothing of ours is open yet.
fn close_inherited() {
    /// As far as we look where the list cannot be read.
    const MOST: i32 = 65_536;
    let listed = std::fs::read_dir("/proc/self/fd").map(|list| {
        list.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect::<Vec<i32>>()
    });
    for descriptor in listed.unwrap_or_else(|_| (3..MOST).collect()).into_iter().filter(|one| *one > 2) {
        // The list itself is among them, and is closed by now.
        let _already_closed = nix::unistd::close(descriptor);
    }
}

/// The socket to whoever started this process: it comes as the standard input.
fn control() -> std::io::Result<UnixStream> {
    let own = std::io::stdin().as_fd().try_clone_to_owned()?;
    let nothing = std::fs::File::open("/dev/null")?;
    nix::unistd::dup2_stdin(nothing)?;
    Ok(UnixStream::from(own))
}

/// Our program as another of the processes of a stage.
fn own_program(step: &str, input: impl Into<Stdio>) -> Command {
    let mut command = Command::new(OWN_PROGRAM);
    command.args([HIDDEN_ARGUMENT, step]).env_clear().stdin(input);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_sandbox_writes_is_read_as_a_step() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let table = [
            ("outer namespaces", Some(Step::Outer(Mode::Namespaces))),
            ("outer plain", Some(Step::Outer(Mode::Plain))),
            ("inner", Some(Step::Inner)),
            ("last", Some(Step::Last)),
            ("outer", None),
            ("last plain", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Step::read(&words(text)), expected, "{text}");
        }
        assert!(child_main(words("muster run __sandbox")).is_none());
    }
}
