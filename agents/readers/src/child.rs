//! The process that reads documents for another one, and can do nothing else: what is made to break its reader finds no
//! file, no host and no program there.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use muster_sandbox::{OnlyComputing, only_compute};
use muster_tools::settings::Part;
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
    let required = arguments.next().and_then(|parts| parts_in(parts.to_str()?));
    let (Some(memory), Some(required)) = (memory, required) else { return Some(ExitCode::from(2)) };
    // What breaks on a document is told in the answer.
    std::panic::set_hook(Box::new(|_| {}));
    let Ok(kept) = confine(memory) else {
        // Better no document than one that is read without limits.
        return Some(ExitCode::from(3));
    };
    let child = Child { memory, missing: kept.missing(), refusal: kept.refusal(&required) };
    let ended = child.serve(&mut io::stdin().lock(), &mut io::stdout().lock());
    Some(if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What must hold before anything is read, in the words of settings, as an argument.
pub(crate) fn in_words(required: &[Part]) -> String {
    required.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(",")
}

fn parts_in(words: &str) -> Option<Vec<Part>> {
    let part = |word: &str| Part::ALL.into_iter().find(|part| part.as_str() == word);
    words.split(',').filter(|word| !word.is_empty()).map(part).collect()
}

/// Gives up what reading needs not, before the first byte of a document is read: memory beyond the limit, and everything
/// but computing and the pipes that it was born with.
fn confine(memory: u64) -> nix::Result<OnlyComputing> {
    setrlimit(Resource::RLIMIT_AS, memory, memory)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    setrlimit(Resource::RLIMIT_NOFILE, MOST_FILES, MOST_FILES)?;
    // Of its user, not of it alone: with none left it starts nothing.
    setrlimit(Resource::RLIMIT_NPROC, 0, 0)?;
    Ok(only_compute())
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

/// This process, as it reads.
struct Child {
    memory: u64,
    /// What the kernel has nothing to keep it in by.
    missing: Vec<Part>,
    /// Why it reads nothing, where that is required.
    refusal: Option<String>,
}

impl Child {
    fn serve(&self, from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
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
            let found = self.answered(&bytes, &head);
            drop(bytes);
            let answer = Answer { found, ends: has_grown(self.memory), missing: self.missing.clone() };
            let frame = framed(&answer).ok_or(io::ErrorKind::InvalidData)?;
            to.write_all(&frame)?;
            to.flush()?;
            if answer.ends {
                return Ok(());
            }
        }
    }

    fn answered(&self, bytes: &[u8], head: &Head) -> Result<crate::found::Found, Failure> {
        if let Some(refusal) = &self.refusal {
            return Err(Failure::NotNow(format!(
                "nothing keeps in what reads it: {refusal}. An operator can allow it all the same by `require` of \
                 [documents.readers]"
            )));
        }
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
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
