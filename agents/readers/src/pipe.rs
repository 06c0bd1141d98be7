//! Writing to a child and reading from it, no longer than until a moment, and only as long as somebody wants it.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How often it is looked whether anybody still wants it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why nothing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeFailure {
    /// The other end is closed.
    Closed,
    /// The time is up.
    TimedOut,
    /// Nobody wants it any more.
    Cancelled,
}

/// How long something may take.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    pub(crate) until: Instant,
    pub(crate) cancelled: &'a AtomicBool,
}

/// Lets neither reading nor writing wait by itself.
pub(crate) fn without_waiting(pipe: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(pipe, FcntlArg::F_GETFL)?);
    fcntl(pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

impl Patience<'_> {
    /// Waits until something can be done with the pipe.
    fn wait(&self, pipe: &impl AsFd, what: PollFlags) -> Result<(), PipeFailure> {
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(PipeFailure::Cancelled);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(PipeFailure::TimedOut);
            }
            let slice = u16::try_from(left.min(LOOK_EVERY).as_millis().max(1)).unwrap_or(u16::MAX);
            let mut one = [PollFd::new(pipe.as_fd(), what)];
            match poll(&mut one, PollTimeout::from(slice)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(_) => return Err(PipeFailure::Closed),
            }
        }
    }

    /// Writes all of it.
    pub(crate) fn write(&self, pipe: &mut (impl Write + AsFd), mut bytes: &[u8]) -> Result<(), PipeFailure> {
        while !bytes.is_empty() {
            match pipe.write(bytes) {
                Ok(0) => return Err(PipeFailure::Closed),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(pipe, PollFlags::POLLOUT)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(PipeFailure::Closed),
            }
        }
        Ok(())
    }

    /// Reads so many bytes.
    pub(crate) fn read(&self, pipe: &mut (impl Read + AsFd), bytes: usize) -> Result<Vec<u8>, PipeFailure> {
        /// Room is made as bytes come: a length is only a claim.
        const AT_ONCE: usize = 256 * 1024;
        let mut all = Vec::new();
        while all.len() < bytes {
            let had = all.len();
            all.resize((had + AT_ONCE).min(bytes), 0);
            let read = pipe.read(&mut all[had..]);
            all.truncate(had + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Err(PipeFailure::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(pipe, PollFlags::POLLIN)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(PipeFailure::Closed),
            }
        }
        Ok(all)
    }
}
