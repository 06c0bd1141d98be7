//! `muster trace RUN --otlp`: a run as spans, after the fact.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use muster_shared::ids::RunId;
use muster_shared::run::Entry;
use muster_shared::traces::{Span, Tracer, otlp as form};
use tokio::time::sleep;

use super::{FoundEntries, read, tell_missing, wanted};
use crate::app::{App, variables};
use crate::args::TraceArgs;
use crate::commands::select;
use crate::exit::{Exit, Failure, failed};
use crate::output;
use crate::redaction::redacted_json;
use crate::telemetry::otlp::{self, SendError, Sender};

/// How often a batch is tried that may be taken later.
const TRIES: u32 = 4;

/// Most spans of one request, or of one line.
const BATCH: usize = 512;

/// Sends a run, and those within it, to a receiver or into a file.
pub(super) async fn send(app: &App, args: &TraceArgs, to: &str) -> Result<Exit, Failure> {
    let is_address = to.contains("://");
    let all = variables();
    // What is wrong with the address is told before the record is read.
    let sender = if is_address { Some(receiver(&all, to)?) } else { None };
    let (found, held_back) = select::reading(app, async |bus| read(bus, &wanted(args)).await).await?;
    held_back.iter().for_each(|text| output::note(text));
    let (spans, going_on) = spans(&found, args.content);
    tell_missing(found);
    for run in going_on {
        let short = run.short();
        output::note!(
            "run {short} has not ended: what goes on in it, and the span of the run itself, are left out"
        );
    }
    match sender {
        Some(sender) => {
            let refused = deliver(&sender, &spans).await?;
            let taken = spans.len().saturating_sub(refused);
            output::note!("{taken} spans sent");
            if refused > 0 {
                return Err(failed!("the receiver refused {refused} spans"));
            }
        }
        None if to == "-" => {
            lines(&spans, &all, &mut std::io::stdout().lock()).map_err(|why| unwritten(to, &why))?
        }
        None => {
            let file = File::create(Path::new(to)).map_err(|why| unwritten(to, &why))?;
            let mut file = BufWriter::new(file);
            lines(&spans, &all, &mut file).and_then(|()| file.flush()).map_err(|why| unwritten(to, &why))?;
            output::note!("{} spans written to {to}", spans.len());
        }
    }
    Ok(Exit::Completed)
}

/// The spans of every run that was found, and the runs that go on.
fn spans(found: &FoundEntries, content: bool) -> (Vec<Span>, Vec<RunId>) {
    let mut runs: BTreeMap<RunId, Vec<&Entry>> = BTreeMap::new();
    for entry in found.iter().filter_map(|(_, entry)| entry.as_ref().ok()) {
        runs.entry(entry.run).or_default().push(entry);
    }
    let (mut spans, mut going_on) = (Vec::new(), Vec::new());
    for (run, entries) in runs {
        let (mut tracer, mut has_ended) = (Tracer::new(content), false);
        for entry in entries {
            let closed = tracer.read(entry);
            has_ended |= closed.has_ended;
            spans.extend(closed.spans);
        }
        if !has_ended {
            going_on.push(run);
        }
    }
    (spans, going_on)
}

fn receiver(variables: &[(String, String)], to: &str) -> Result<Sender, Failure> {
    let wrong = |why: String| {
        Failure::usage(why)
            .help("name a receiver of OTLP over HTTP, such as http://127.0.0.1:4318, or a file")
    };
    let read = otlp::read(variables, Some(to)).map_err(wrong)?;
    let Some((settings, said)) = read else { return Err(wrong(format!("{to:?} names no receiver"))) };
    said.iter().for_each(|text| output::note(text));
    Sender::new(settings).map_err(wrong)
}

/// Sends all spans, and says how many were refused.
async fn deliver(sender: &Sender, spans: &[Span]) -> Result<usize, Failure> {
    let mut refused = 0;
    for batch in spans.chunks(BATCH) {
        let mut tried = 1;
        loop {
            match sender.send(batch).await {
                Ok(said) => {
                    if let Some(said) = said {
                        output::note!("the receiver says: {}", said.reason);
                        refused += (said.spans as usize).min(batch.len());
                    }
                    break;
                }
                Err(SendError { is_transient: true, after, .. }) if tried < TRIES => {
                    sleep(after.unwrap_or(Duration::from_secs(1))).await;
                    tried += 1;
                }
                Err(SendError { reason, .. }) => {
                    return Err(failed!("the spans could not be sent: {reason}").help(
                        "check the address; sending again does no harm, since the spans of a run always have the same ids",
                    ));
                }
            }
        }
    }
    Ok(refused)
}

/// Writes lines of OTLP's JSON, as files of a collector have them.
fn lines(spans: &[Span], variables: &[(String, String)], out: &mut impl Write) -> std::io::Result<()> {
    let resource = otlp::resource(variables);
    for batch in spans.chunks(BATCH) {
        writeln!(out, "{}", redacted_json(form::json(batch, &resource).to_string(), serde_json::to_string))?;
    }
    Ok(())
}

fn unwritten(to: &str, why: &std::io::Error) -> Failure {
    failed!("the spans cannot be written to {to}: {why}")
}
