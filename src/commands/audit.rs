//! `muster audit`: whether the record of a run is as it was written, and a file by which others can tell.

use std::path::Path;

use muster_bus::credentials::{FleetKeys, fleet_in};
use muster_bus::{Bus, KeptMessage};
use muster_shared::ids::RunId;
use muster_shared::wire::{Body, Envelope, decode};

use super::run::write;
use super::select;
use crate::app::App;
use crate::args::AuditArgs;
use crate::audit::file::ExportedRecord;
use crate::audit::signed::{AuditKeys, KeysOrigin};
use crate::audit::{Apart, Audit, AuditedRecord, WrongBody, file, has_ended};
use crate::exit::{Exit, Failure, failed, usage};
use crate::{output, render};

/// A record as it was read.
struct ReadRecord {
    run: RunId,
    messages: Vec<KeptMessage>,
    apart: Apart,
    /// The fleet's keys, as the bus or the file that it comes from tells them.
    keys: Option<AuditKeys>,
    /// What the server says of entries that it does not give out.
    missing: Option<String>,
}

/// Verifies the record of a run, or of a file.
pub(super) async fn audit(app: &App, args: &AuditArgs) -> Result<Exit, Failure> {
    let ReadRecord { run, messages, apart, keys, missing } = match &args.file {
        Some(file) => of_file(file)?,
        None => {
            super::run::check_output(args.export.as_deref())?;
            select::reading(app, async |bus| of_run(bus, &args.run).await).await?
        }
    };
    let keys = match &args.keys {
        Some(path) => Some(keys_at(path)?),
        // Keys of another fleet than the record's are of no use, whatever is in this folder: so are any of a bus that has
        // none. A file from which the keys were taken out may well be of this fleet.
        None => own_keys(app)
            .filter(|own| match &keys {
                Some(told) => told.trust.account == own.trust.account,
                None => args.file.is_some(),
            })
            .or(keys),
    };
    let record = AuditedRecord { messages: &messages, keys: keys.as_ref(), missing: missing.as_deref() };
    let audit = Audit::of(run, &record, apart);
    if let Some(path) = &args.export {
        export(path, run, &record)?;
    }
    output::json_or_line(args.json, || &audit, || render::audit::lines(&audit).join("\n"))?;
    Ok(if audit.passes() { Exit::Completed } else { Exit::Unmet })
}

async fn of_run(bus: &Bus, wanted: &str) -> Result<ReadRecord, Failure> {
    let run = select::run(bus, wanted).await?;
    let record = bus.record();
    // Counted before they are read: a run that goes on has more by then.
    let counted = record.counted(run).await?;
    let messages = record.kept(run).await?;
    let mut apart = Apart::default();
    for message in &messages {
        match record.body_apart(message).await? {
            Some(Ok(())) => apart.fit += 1,
            Some(Err(why)) => apart.wrong.push(WrongBody { seq: message.seq, why }),
            None => {}
        }
    }
    let missing = select::held_back(counted, messages.len());
    // Who signed the record of a run that came from elsewhere, the keys of its own fleet tell.
    let keys = match bus.kept().imported(run).await? {
        Some(imported) => imported.keys.map(|trust| AuditKeys { trust, origin: KeysOrigin::Claimed }),
        None => bus.signatures().fleet().map(|trust| AuditKeys { trust, origin: KeysOrigin::Own }),
    };
    Ok(ReadRecord { run, messages, apart, keys, missing })
}

/// The public keys in a file or folder: what `muster keys public` wrote, credentials of the fleet, or its folder of keys.
fn keys_at(path: &Path) -> Result<AuditKeys, Failure> {
    let wrong = |reason: String| {
        usage!("there are no keys of a fleet in {}: {reason}", path.display())
            .help("`muster keys public` writes them for others")
    };
    let trust = if path.is_dir() {
        let keys = FleetKeys::open(path).map_err(|error| wrong(error.to_string()))?;
        let keys = keys.ok_or_else(|| wrong("it is no folder of keys".to_owned()))?;
        keys.public().map_err(|error| wrong(error.to_string()))?
    } else if let Ok(Some(trust)) = fleet_in(path) {
        trust
    } else {
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
    };
    Ok(AuditKeys { trust, origin: KeysOrigin::Given })
}

/// The keys that are known here anyway: the fleet's own, with who was revoked, or those in one's credentials.
fn own_keys(app: &App) -> Option<AuditKeys> {
    let own = app.keys().and_then(|keys| keys.public().ok());
    let told = || app.settings().bus.credentials.as_deref().and_then(|path| fleet_in(path).ok()?);
    own.or_else(told).map(|trust| AuditKeys { trust, origin: KeysOrigin::Own })
}

fn of_file(path: &Path) -> Result<ReadRecord, Failure> {
    let text = std::fs::read(path).map_err(|error| usage!("cannot read {}: {error}", path.display()))?;
    let read = file::read(&String::from_utf8_lossy(&text)).map_err(|wrong| {
        usage!("{} is not the exported record of a run: {wrong}", path.display())
            .help("`muster audit RUN --export FILE` writes one")
    })?;
    let ExportedRecord { run, messages, keys } = read;
    let apart = |message: &&KeptMessage| {
        decode::<Envelope>(&message.payload, message.encoding)
            .is_ok_and(|envelope| matches!(envelope.body, Body::Stored(_)))
    };
    let not_checked = messages.iter().filter(apart).count() as u64;
    let keys = keys.map(|trust| AuditKeys { trust, origin: KeysOrigin::Claimed });
    Ok(ReadRecord { run, messages, apart: Apart { not_checked, ..Apart::default() }, keys, missing: None })
}

fn export(path: &Path, run: RunId, record: &AuditedRecord<'_>) -> Result<(), Failure> {
    let (messages, keys) = (record.messages, record.keys.map(|keys| keys.trust.clone()));
    let text = file::write(run, messages, keys)
        .map_err(|error| failed!("the record cannot be written as JSON: {error}"))?;
    write(path, &text, "the record").map_err(|failure| failure.help("give --export another file"))?;
    if has_ended(messages) == Some(false) {
        output::note("the run has not ended: the file tells its secret, keep it to yourself until it has");
    }
    Ok(())
}
