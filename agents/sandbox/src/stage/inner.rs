//! The inner process: it prepares, waits for a job, starts the program, watches it, ends what is left, and gives back.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, sethostname};

use super::collect::{self, Most};
use super::folder::{self, Folder};
use super::restrict::{LastJob, LastWord};
use super::{descendants, loopback, own_program, places, user};
use crate::report::{Mechanism, Mechanisms};
use crate::wire::{self, Ending, Excess, Failure, Job, Limits, Mode, Order, Word};

/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(15);

/// How often its folder is, where nothing else limits that.
const MEASURE: Duration = Duration::from_millis(100);

/// Most entries of a folder to each file that may be given back.
const ENTRIES: u64 = 8;

/// Runs the stage to its end.
pub(super) fn run(mode: Mode) -> Option<()> {
    let mut control = super::control().ok()?;
    match prepare(mode).and_then(|stage| stage.work(&mut control)) {
        Ok(()) => Some(()),
        Err(failure) => wire::send(&mut control, &Word::Failed(failure)).ok(),
    }
}

/// A stage that waits for its job.
struct Stage {
    mode: Mode,
    user: Option<u32>,
    last: UnixStream,
    program: Pid,
    children: SignalFd,
}

/// A program that runs.
struct Running<'a> {
    stage: &'a Stage,
    folder: &'a Folder,
    limits: Limits,
    /// What was laid into the folder, in bytes.
    laid: u64,
    most_entries: u64,
    until: Instant,
}

fn prepare(mode: Mode) -> Result<Stage, Failure> {
    match mode {
        Mode::Namespaces => {
            // With the outer process this one ends, and with it all of its namespace.
            prctl::set_pdeathsig(Signal::SIGKILL).map_err(Failure::of("tying the stage to its parent"))?;
            places::enter()?;
            sethostname("sandbox").map_err(Failure::of("naming the namespace"))?;
        }
        Mode::Plain => prctl::set_child_subreaper(true).map_err(Failure::of("taking orphans in"))?,
    }
    let children = watch_children()?;
    let (own, other) = UnixStream::pair().map_err(Failure::at("a socket to the program"))?;
    let program = own_program("last", OwnedFd::from(other))
        .spawn()
        .map_err(|error| Failure::Broken(format!("starting the last stage: {error}")))?;
    let program = Pid::from_raw(i32::try_from(program.id()).unwrap_or_default());
    // From here on nobody looks into this process, root aside.
    prctl::set_dumpable(false).map_err(Failure::of("hiding the stage"))?;
    let user = if mode == Mode::Plain { user::for_program() } else { None };
    Ok(Stage { mode, user, last: own, program, children })
}

/// Ends of children are read like a file from now on.
fn watch_children() -> Result<SignalFd, Failure> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block().map_err(Failure::of("watching processes"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&mask, flags).map_err(Failure::of("watching processes"))
}

impl Stage {
    /// Does one job. A stage is never used twice.
    fn work(mut self, control: &mut UnixStream) -> Result<(), Failure> {
        let gone = Failure::at("talking to the sandbox");
        wire::send(control, &Word::Ready).map_err(&gone)?;
        let Some(job) = wire::receive::<Job>(control).map_err(&gone)? else { return Ok(()) };
        let folder = Folder::make(&job, self.mode, self.user, control)?;
        let ending = self.run(&job, &folder, control);
        // Whatever went wrong: nothing that was started is left behind.
        descendants::end_all(self.mode)?;
        wire::send(control, &Word::Ended(ending?)).map_err(&gone)?;
        let most = Most { files: job.most_files, bytes: job.limits.disk.saturating_add(job.laid) };
        collect::give_back(&folder, &most, control).map_err(&gone)?;
        drop(folder);
        wire::send(control, &Word::Done).map_err(&gone)
    }

    fn run(&mut self, job: &Job, folder: &Folder, control: &mut UnixStream) -> Result<Ending, Failure> {
        let last = self.prepare_last(job, folder, control)?;
        let at_hand = self.start(&last)?;
        let _gone_already = fs::remove_file(&folder.input);
        wire::send(control, &Word::Started(at_hand)).map_err(Failure::at("talking to the sandbox"))?;
        let running = Running {
            stage: self,
            folder,
            limits: job.limits,
            laid: job.laid.saturating_add(job.input),
            most_entries: u64::from(job.most_files).saturating_mul(ENTRIES).saturating_add(64),
            until: Instant::now() + Duration::from_millis(job.limits.time),
        };
        let ending = running.watch(control)?;
        // Between two looks much can be written.
        let is_over = matches!(ending, Ending::Exited(_)) && running.is_folder_too_large();
        Ok(if is_over { Ending::Exceeded(Excess::Disk) } else { ending })
    }

    fn prepare_last(&self, job: &Job, folder: &Folder, control: &mut UnixStream) -> Result<LastJob, Failure> {
        let mut environment = job.environment.clone();
        let home = folder.path.join(".home");
        environment.insert("HOME".to_owned(), home.display().to_string());
        environment.insert("TMPDIR".to_owned(), folder.path.join(".tmp").display().to_string());
        let program = job.command.first().map(Path::new).unwrap_or(Path::new(""));
        if self.mode == Mode::Namespaces {
            for path in job.reads.iter().map(AsRef::as_ref).chain([program]) {
                places::show(path)?;
            }
            if job.proxied {
                let port = loopback::open(control)?;
                environment.extend(proxy_variables(port));
            }
            places::close()?;
        }
        let at_hand = match self.mode {
            Mode::Namespaces => Mechanisms::from([Mechanism::Namespaces]),
            Mode::Plain => Mechanisms::from([Mechanism::Subreaper]),
        };
        Ok(LastJob {
            mode: self.mode,
            command: job.command.clone(),
            environment,
            folder: folder.path.clone(),
            input: folder.input.clone(),
            reads: job.reads.clone(),
            proxied: job.proxied,
            limits: job.limits,
            most_processes: self.most_processes(job.limits.processes),
            require: job.require.clone(),
            user: self.user,
            at_hand,
        })
    }

    /// The kernel counts processes of a user; from 5.14 on, of a user in a namespace. Where others are counted as well, they
    /// come on top.
    fn most_processes(&self, own: u32) -> u64 {
        let own = u64::from(own);
        if self.mode == Mode::Namespaces || self.user.is_some() {
            return own;
        }
        let user = nix::unistd::getuid();
        let list = fs::read_dir("/proc").into_iter().flatten().flatten();
        let of_user = |entry: &fs::DirEntry| {
            use std::os::unix::fs::MetadataExt;
            entry.metadata().is_ok_and(|meta| meta.uid() == user.as_raw())
        };
        let threads =
            |entry: &fs::DirEntry| fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count);
        own + list.filter(of_user).map(|entry| threads(&entry) as u64).sum::<u64>()
    }

    /// Has the last stage become the program.
    fn start(&mut self, job: &LastJob) -> Result<Mechanisms, Failure> {
        let failed = Failure::at("starting the program");
        wire::send(&mut self.last, job).map_err(&failed)?;
        let mut at_hand = None;
        while let Some(word) = wire::receive::<LastWord>(&mut self.last).map_err(&failed)? {
            match word {
                LastWord::Restricted(those) => at_hand = Some(those),
                LastWord::Failed(failure) => return Err(failure),
            }
        }
        at_hand.ok_or_else(|| Failure::Broken("the last stage ended before its program began".to_owned()))
    }
}

impl Running<'_> {
    /// Looks on until the program is over, or too much, or nobody waits for it.
    fn watch(&self, control: &mut UnixStream) -> Result<Ending, Failure> {
        let mut measured = Instant::now();
        let mut looked = Instant::now();
        loop {
            if let Some(ending) = self.reap()? {
                return Ok(ending);
            }
            if Instant::now() >= self.until {
                return Ok(Ending::TimedOut);
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                if let Some(excess) = self.excess(&mut measured) {
                    return Ok(Ending::Exceeded(excess));
                }
            }
            if let Some(ending) = self.listen(control)? {
                return Ok(ending);
            }
        }
    }

    /// Waits a moment, for an end of a process or for whoever asked.
    fn listen(&self, control: &mut UnixStream) -> Result<Option<Ending>, Failure> {
        let mut both = [
            PollFd::new(control.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.stage.children.as_fd(), PollFlags::POLLIN),
        ];
        let wait = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO);
        match poll(&mut both, wait) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(Failure::Broken(format!("waiting for the program: {error}"))),
        }
        let spoken = both.first().and_then(PollFd::any).unwrap_or(false);
        while matches!(self.stage.children.read_signal(), Ok(Some(_))) {}
        if !spoken {
            return Ok(None);
        }
        Ok(Some(match wire::receive::<Order>(control) {
            Ok(Some(Order::Stop(ending))) => ending,
            // Whoever asked is gone, and nobody will ever want what comes of this.
            _ => Ending::Cancelled,
        }))
    }

    /// Takes leave of processes that are gone. The end of the program is the end of the job, whoever it left behind.
    fn reap(&self) -> Result<Option<Ending>, Failure> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => return Ok(None),
                Ok(WaitStatus::Exited(pid, code)) if pid == self.stage.program => {
                    return Ok(Some(Ending::Exited(code)));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.stage.program => {
                    return Ok(Some(after_signal(signal)));
                }
                Ok(_) => {}
                Err(error) => return Err(Failure::Broken(format!("waiting for the program: {error}"))),
            }
        }
    }

    fn excess(&self, measured: &mut Instant) -> Option<Excess> {
        let processes = descendants::ours();
        let sum = descendants::sum(&processes);
        let gone = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| {
            let millis = |time: nix::sys::time::TimeVal| time.tv_sec() * 1000 + time.tv_usec() / 1000;
            u64::try_from(millis(usage.user_time()) + millis(usage.system_time())).unwrap_or_default()
        });
        if let Some(excess) = sum.excess(gone, &self.limits) {
            return Some(excess);
        }
        if sum.memory > self.limits.memory && descendants::memory(&processes) > self.limits.memory {
            return Some(Excess::Memory);
        }
        if measured.elapsed() >= MEASURE {
            *measured = Instant::now();
            return self.is_folder_too_large().then_some(Excess::Disk);
        }
        None
    }

    /// In memory, the folder cannot grow beyond its size.
    fn is_folder_too_large(&self) -> bool {
        let most = self.limits.disk.saturating_add(self.laid);
        let measure = || folder::measure(&self.folder.path, most, self.most_entries);
        let is_over = |(bytes, entries): (u64, u64)| bytes > most || entries > self.most_entries;
        self.stage.mode == Mode::Plain && is_over(measure())
    }
}

/// Some signals come of limits of the kernel.
fn after_signal(signal: Signal) -> Ending {
    if signal == Signal::SIGXCPU {
        Ending::Exceeded(Excess::Cpu)
    } else if signal == Signal::SIGXFSZ {
        Ending::Exceeded(Excess::Disk)
    } else {
        Ending::Signalled(signal as i32)
    }
}

/// What programs look at to find a proxy, in both ways of writing it.
fn proxy_variables(port: u16) -> impl Iterator<Item = (String, String)> {
    let proxy = format!("http://127.0.0.1:{port}");
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let own = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "localhost,127.0.0.1".to_owned()));
    names.map(move |name| (name.to_owned(), proxy.clone())).into_iter().chain(own)
}
