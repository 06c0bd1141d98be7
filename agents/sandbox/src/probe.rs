//! What holds on this machine, found out by doing it: a stage is started, does all it does for a program, and tells.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::report::{Mechanisms, SandboxReport};
use crate::start::{self, PATIENCE};
use crate::wire::{self, Failure, Job, Limits, Mode, Word};

/// What holds on this machine. Takes some milliseconds, writes nothing outside of a folder that is gone afterwards, and
/// leaves nothing behind. Blocks.
#[must_use]
pub fn probe() -> SandboxReport {
    probe_with(&start::own_program(), true)
}

/// The same with another program as the stage, and without namespaces where they are not wanted.
#[must_use]
pub fn probe_with(program: &Path, namespaces: bool) -> SandboxReport {
    let mut reasons = Vec::new();
    let modes: &[Mode] = if namespaces { &[Mode::Namespaces, Mode::Plain] } else { &[Mode::Plain] };
    for mode in modes {
        match mechanisms(program, *mode) {
            Ok(at_hand) => return SandboxReport::of(&at_hand, reasons),
            Err(failure) => reasons.push(failure.to_string()),
        }
    }
    SandboxReport::of(&Mechanisms::new(), reasons)
}

fn mechanisms(program: &Path, mode: Mode) -> Result<Mechanisms, Failure> {
    let failed = Failure::at("starting the sandbox");
    let (mut control, other) = UnixStream::pair().map_err(&failed)?;
    control.set_read_timeout(Some(PATIENCE)).map_err(&failed)?;
    let mut child = start::command(program, mode, other).spawn().map_err(&failed)?;
    let found = ask(&mut control, program);
    // Nothing is wanted any more: it hears that, and ends.
    drop(control);
    let _ended = child.wait();
    found
}

fn ask(control: &mut UnixStream, program: &Path) -> Result<Mechanisms, Failure> {
    let failed = Failure::at("asking the sandbox");
    let next = |control: &mut UnixStream| {
        let word = wire::receive::<Word>(control).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Failure::Broken(start::not_a_stage(program)),
            _ => failed(error),
        });
        word?.ok_or_else(|| Failure::Broken(start::not_a_stage(program)))
    };
    start::ready(next(control)?)?;
    wire::send(control, &trial()).map_err(Failure::at("asking the sandbox"))?;
    loop {
        match next(control)? {
            Word::Started(at_hand) => return Ok(at_hand),
            Word::Failed(failure) => return Err(failure),
            _ => {}
        }
    }
}

/// A program that does nothing.
fn trial() -> Job {
    let mib = 1024 * 1024;
    Job {
        command: ["/bin/sh", "-c", ":"].map(str::to_owned).to_vec(),
        folder: std::env::temp_dir(),
        limits: Limits { time: 10_000, cpu: 10_000, memory: 256 * mib, processes: 16, disk: mib },
        ..Job::default()
    }
}
