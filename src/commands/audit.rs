//! `muster audit`: whether the record of a run is as it was written, and a file by which others can tell.

use std::path::Path;

use muster_bus::{Bus, KeptMessage};
use muster_shared::ids::RunId;
use muster_shared::wire::{Body, Envelope, decode};

use super::run::write;
use super::select;
use crate::app::{App, bus_failure};
use crate::args::AuditArgs;
use crate::audit::{Apart, Audit, WrongBody, file, has_ended};
use crate::exit::{Exit, Failure};
use crate::fleet::supervisor::ReadAccess;
use crate::{output, render};

/// A record as it was read.
struct ReadRecord {
    run: RunId,
    messages: Vec<KeptMessage>,
    apart: Apart,
}

/// Verifies the record of a run, or of a file.
pub(super) async fn audit(app: &App, args: &AuditArgs) -> Result<Exit, Failure> {
    let ReadRecord { run, messages, apart } = match &args.file {
        Some(file) => of_file(file)?,
        None => {
            super::run::check_output(args.export.as_deref())?;
            let reading = ReadAccess::open(app).await?;
            let found = of_run(&reading.bus, &args.run).await;
            reading.close().await;
            found?
        }
    };
    let audit = Audit::of(run, &messages, apart);
    if let Some(path) = &args.export {
        export(path, run, &messages)?;
    }
    if args.json {
        output::json(&audit)?;
    } else {
        for line in render::audit::lines(&audit) {
            output::line(&line)?;
        }
    }
    Ok(if audit.passes() { Exit::Completed } else { Exit::Unmet })
}

async fn of_run(bus: &Bus, wanted: &str) -> Result<ReadRecord, Failure> {
    let run = select::run(bus, wanted).await?;
    let record = bus.record();
    let messages = record.kept(run).await.map_err(bus_failure)?;
    let mut apart = Apart::default();
    for message in &messages {
        match record.body_apart(message).await.map_err(bus_failure)? {
            Some(Ok(())) => apart.fit += 1,
            Some(Err(why)) => apart.wrong.push(WrongBody { seq: message.seq, why }),
            None => {}
        }
    }
    Ok(ReadRecord { run, messages, apart })
}

fn of_file(path: &Path) -> Result<ReadRecord, Failure> {
    let text = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    let (run, messages) = file::read(&String::from_utf8_lossy(&text)).map_err(|wrong| {
        Failure::usage(format!("{} is not the exported record of a run: {wrong}", path.display()))
            .help("`muster audit RUN --export FILE` writes one")
    })?;
    let apart = |message: &&KeptMessage| {
        decode::<Envelope>(&message.payload, message.encoding)
            .is_ok_and(|envelope| matches!(envelope.body, Body::Stored(_)))
    };
    let not_checked = messages.iter().filter(apart).count() as u64;
    Ok(ReadRecord { run, messages, apart: Apart { not_checked, ..Apart::default() } })
}

fn export(path: &Path, run: RunId, messages: &[KeptMessage]) -> Result<(), Failure> {
    let text = file::write(run, messages)
        .map_err(|error| Failure::failed(format!("the record cannot be written as JSON: {error}")))?;
    write(path, &text, "the record").map_err(|failure| failure.help("give --export another file"))?;
    if !has_ended(messages) {
        output::note("the run has not ended: the file tells its secret, keep it to yourself until it has");
    }
    Ok(())
}
