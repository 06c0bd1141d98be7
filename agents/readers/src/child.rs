//! The process that reads documents for another one, and can do nothing else.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};

use crate::found::Failure;
use crate::protocol::{Answer, Head, MOST_HEAD, framed};
use crate::read::{Asked, read};

/// The first argument of a process that reads documents for the one that started it.
pub const CHILD_ARGUMENT: &str = "__read-document";

/// Most open files: those it was born with, and a few that the runtime may want.
const MOST_FILES: u64 = 16;

/// Reads documents for whoever started this process, if that is what it was started for; then this returns when there is
/// nothing more to read. To be called before anything else is done, with the arguments after the program's name.
#[must_use]
pub fn child_main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    if arguments.next()?.to_str() != Some(CHILD_ARGUMENT) {
        return None;
    }
    let memory = arguments.next().and_then(|memory| memory.to_str()?.parse().ok());
    let Some(memory) = memory else { return Some(ExitCode::from(2)) };
    if confine(memory).is_err() {
        // Better no document than one that is read without limits.
        return Some(ExitCode::from(3));
    }
    // What breaks on a document is told in the answer.
    std::panic::set_hook(Box::new(|_| {}));
    let ended = serve(memory, &mut io::stdin().lock(), &mut io::stdout().lock());
    Some(if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Gives up what reading needs not: memory beyond the limit, files, other processes. This is the place where what the
/// kernel offers beyond that (seccomp, landlock, namespaces) is put on, before the first byte of a document is read.
fn confine(memory: u64) -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_AS, memory, memory)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    setrlimit(Resource::RLIMIT_NOFILE, MOST_FILES, MOST_FILES)?;
    // Of its user, not of it alone: with none left it starts nothing.
    setrlimit(Resource::RLIMIT_NPROC, 0, 0)
}

/// Lets this process compute for so long from now on; then it is ended by the kernel.
fn allow_time(more: Duration) -> nix::Result<()> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let used = usage.user_time().tv_sec().saturating_add(usage.system_time().tv_sec());
    // Both count whole seconds: one more for what is begun.
    let until = u64::try_from(used).unwrap_or(0).saturating_add(more.as_secs().max(1)).saturating_add(1);
    let (_, hard) = getrlimit(Resource::RLIMIT_CPU)?;
    setrlimit(Resource::RLIMIT_CPU, until.min(hard), hard)
}

/// Whether so much memory was used that a new process is better.
fn has_grown(memory: u64) -> bool {
    let kibibytes = getrusage(UsageWho::RUSAGE_SELF).map(|usage| usage.max_rss()).unwrap_or(i64::MAX);
    u64::try_from(kibibytes).unwrap_or(u64::MAX).saturating_mul(1024) > memory / 4
}

fn serve(memory: u64, from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        match from.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let length = u32::from_be_bytes(length);
        if length > MOST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut head = vec![0; length as usize];
        from.read_exact(&mut head)?;
        let head: Head = serde_json::from_slice(&head)?;
        let mut bytes = Vec::new();
        from.take(head.bytes).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != head.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        allow_time(head.limits.cpu)?;
        let found = answered(&bytes, &head);
        drop(bytes);
        let answer = Answer { found, ends: has_grown(memory) };
        let frame = framed(&answer).ok_or(io::ErrorKind::InvalidData)?;
        to.write_all(&frame)?;
        to.flush()?;
        if answer.ends {
            return Ok(());
        }
    }
}

fn answered(bytes: &[u8], head: &Head) -> Result<crate::found::Found, Failure> {
    let asked = Asked {
        name: &head.name,
        media_type: head.media_type.as_deref(),
        keeps_source: head.keeps_source,
        limits: &head.limits,
    };
    // Nothing of what was being read is looked at afterwards.
    catch_unwind(AssertUnwindSafe(|| read(bytes, &asked)))
        .unwrap_or_else(|_| Err(Failure::broken("it breaks its reader")))
}
