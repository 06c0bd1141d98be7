//! The children that read: a few at once, kept for a while for the next document.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use muster_shared::sync::lock;
use muster_tools::settings::{Part, PoolLimits, ReadLimits};
use nix::libc;

use crate::child::{CHILD_ARGUMENT, in_words};
use crate::found::{Failure, Found};
use crate::pipe::{Patience, PipeFailure, without_waiting};
use crate::protocol::{Answer, Head, framed, most_answer};

/// Most documents that are read at the same time; others wait. Each may take a processor and its memory.
const READERS_AT_ONCE: u64 = 2;

/// Documents after which a process is replaced, together with memory that a reader leaked.
const DOCUMENTS_EACH: u64 = 500;

/// How long a child that closed its output may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Hands documents to children.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    program: PathBuf,
    limits: PoolLimits,
    state: Mutex<State>,
    /// A child was given back, or went.
    changed: Condvar,
    /// Whether it was told what children are not kept in by.
    told: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Those that wait for a document, and since when.
    idle: Vec<(Reader, Instant)>,
    /// How many are reading.
    busy: u64,
    /// Whether somebody sees to it that those that wait too long are ended.
    is_watched: bool,
}

/// A child that reads.
struct Reader {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    memory: u64,
    read: u64,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // One that has ended already is only taken off the list of processes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What became of a document at a child.
enum Outcome {
    Answered(Answer),
    /// It was not waited for any longer.
    GaveUp(Failure),
    /// The child is lost.
    Lost(Failure),
}

impl Pool {
    pub(crate) fn new(program: PathBuf, limits: PoolLimits) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Inner {
            program,
            limits,
            state,
            changed: Condvar::new(),
            told: AtomicBool::new(false),
        }))
    }

    /// Reads a document; waits for a child to be free. Blocks.
    pub(crate) fn read(&self, head: &Head, bytes: &[u8], cancelled: &AtomicBool) -> Result<Found, Failure> {
        let frame = framed(head).ok_or_else(|| Failure::NotNow("its name is too long".to_owned()))?;
        let _place = self.0.place(head.limits.time.saturating_mul(4), cancelled)?;
        let mut again = true;
        loop {
            let mut reader = self.0.reader(&head.limits)?;
            let is_new = reader.read == 0;
            let patience = Patience { until: Instant::now() + head.limits.time, cancelled };
            match reader.ask(&frame, bytes, &head.limits, patience) {
                Outcome::Answered(answer) => {
                    self.0.tell(&answer.missing);
                    self.give_back(reader);
                    return answer.found;
                }
                // One that read others before may be lost for what these left behind, or for having waited.
                Outcome::Lost(_) if !is_new && again => again = false,
                Outcome::Lost(failure) | Outcome::GaveUp(failure) => return Err(failure),
            }
        }
    }

    /// How many children there are that wait for a document.
    pub(crate) fn idle(&self) -> usize {
        self.0.lock().idle.len()
    }

    fn give_back(&self, reader: Reader) {
        let limits = &self.0.limits;
        if reader.read >= DOCUMENTS_EACH || limits.kept_for.is_zero() {
            return;
        }
        let mut state = self.0.lock();
        state.idle.push((reader, Instant::now()));
        if !state.is_watched {
            state.is_watched = true;
            let pool = Arc::downgrade(&self.0);
            let watch = std::thread::Builder::new().name("readers".to_owned()).spawn(move || watch(&pool));
            state.is_watched = watch.is_ok();
            if watch.is_err() {
                // Without anybody to end them none is kept.
                state.idle.clear();
            }
        }
    }
}

/// Ends children that wait too long; done when none waits.
fn watch(pool: &Weak<Inner>) {
    loop {
        let Some(pool) = pool.upgrade() else { return };
        let kept_for = pool.limits.kept_for;
        let mut state = pool.lock();
        let (kept, gone): (Vec<_>, Vec<_>) =
            state.idle.drain(..).partition(|(_, since)| since.elapsed() < kept_for);
        state.idle = kept;
        let oldest = state.idle.iter().map(|(_, since)| kept_for.saturating_sub(since.elapsed())).min();
        state.is_watched = oldest.is_some();
        drop(state);
        drop(gone);
        drop(pool);
        match oldest {
            Some(left) => std::thread::sleep(left.min(Duration::from_secs(1)) + Duration::from_millis(1)),
            None => return,
        }
    }
}

/// A place among those that read at once.
struct Place<'a>(&'a Inner);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
        self.0.changed.notify_one();
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn place(&self, longest: Duration, cancelled: &AtomicBool) -> Result<Place<'_>, Failure> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let begun = Instant::now();
        let mut state = self.lock();
        while state.busy >= READERS_AT_ONCE {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Failure::NotNow("nobody waits for it".to_owned()));
            }
            if begun.elapsed() > longest {
                return Err(Failure::NotNow("too many documents are being read".to_owned()));
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy += 1;
        Ok(Place(self))
    }

    /// Says once what nothing on this machine keeps children from.
    fn tell(&self, missing: &[Part]) {
        if !missing.is_empty() && !self.told.swap(true, Ordering::Relaxed) {
            let missing = in_words(missing);
            tracing::warn!(missing, "the kernel cannot keep in all that reads documents");
        }
    }

    /// A child that waits, or a new one.
    fn reader(&self, limits: &ReadLimits) -> Result<Reader, Failure> {
        let mut state = self.lock();
        while let Some((reader, _)) = state.idle.pop() {
            if reader.memory == limits.memory {
                return Ok(reader);
            }
        }
        drop(state);
        Reader::start(&self.program, limits, &self.limits.require).map_err(|error| {
            Failure::NotNow(format!("{} cannot be started: {error}", self.program.display()))
        })
    }
}

impl Reader {
    fn start(program: &Path, limits: &ReadLimits, required: &[Part]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(CHILD_ARGUMENT)
            .arg(limits.memory.to_string())
            .arg(in_words(required))
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let reader = Self { child, input, output, memory: limits.memory, read: 0 };
        without_waiting(&reader.input)?;
        without_waiting(&reader.output)?;
        Ok(reader)
    }

    fn ask(&mut self, head: &[u8], bytes: &[u8], limits: &ReadLimits, patience: Patience<'_>) -> Outcome {
        let answer = self.exchange(head, bytes, limits, patience);
        self.read += 1;
        match answer {
            Ok(answer) => {
                if answer.ends {
                    self.read = u64::MAX;
                }
                Outcome::Answered(answer)
            }
            Err(PipeFailure::TimedOut) => {
                Outcome::GaveUp(Failure::TooLarge(format!("{} s of time", limits.time.as_secs_f32())))
            }
            Err(PipeFailure::Cancelled) => Outcome::GaveUp(Failure::NotNow("nobody waits for it".to_owned())),
            Err(PipeFailure::Closed) => Outcome::Lost(self.why_lost()),
        }
    }

    fn exchange(
        &mut self,
        head: &[u8],
        bytes: &[u8],
        limits: &ReadLimits,
        patience: Patience<'_>,
    ) -> Result<Answer, PipeFailure> {
        patience.write(&mut self.input, head)?;
        patience.write(&mut self.input, bytes)?;
        let length = patience.read(&mut self.output, 4)?;
        let length = length.try_into().map(u32::from_be_bytes).map_err(|_| PipeFailure::Closed)?;
        if u64::from(length) > most_answer(limits) {
            return Err(PipeFailure::Closed);
        }
        let answer = patience.read(&mut self.output, length as usize)?;
        serde_json::from_slice(&answer).map_err(|_| PipeFailure::Closed)
    }

    /// Why a child that closed its output is gone.
    fn why_lost(&mut self) -> Failure {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if begun.elapsed() < ENDS_WITHIN => std::thread::sleep(Duration::from_millis(2)),
                _ => break None,
            }
        };
        match status.and_then(|status| status.signal().or(status.code().map(|code| -code))) {
            Some(libc::SIGXCPU) => Failure::TooLarge("time of processors".to_owned()),
            // Memory that is not to be had, and a stack that is too deep, both end in an abort.
            Some(libc::SIGABRT | libc::SIGSEGV | libc::SIGBUS) => {
                Failure::TooLarge("memory or depth".to_owned())
            }
            Some(libc::SIGKILL) => Failure::NotNow("what read it was killed".to_owned()),
            Some(code) if code <= 0 => Failure::NotNow(format!("what reads it ended with {}", -code)),
            _ => Failure::Broken("it breaks its reader".to_owned()),
        }
    }
}
