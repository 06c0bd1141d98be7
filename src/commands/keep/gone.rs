//! What is said of a run whose record was removed.

use muster_bus::{Bus, KeepNote, RemovalNote};
use muster_shared::ids::RunId;
use serde_json::json;

use crate::args::ShowArgs;
use crate::exit::{Exit, Failure, failed};
use crate::keeping::summary::Summary;
use crate::output;
use crate::render::{self, figures};

/// A run whose record was removed, with what is left of it.
pub(crate) struct Gone {
    run: RunId,
    pub(crate) removed: RemovalNote,
    pub(crate) summary: Option<Summary>,
}

/// Whether there is something to be read of a run that is noted: it came from elsewhere, or a summary is left.
pub(crate) fn is_there(note: &KeepNote) -> bool {
    note.imported.is_some() || note.removed.is_some()
}

/// How a run was removed, in a sentence.
pub(crate) fn tell_removed(run: RunId, removed: &RemovalNote) -> Failure {
    let (short, date) = (run.short(), figures::date(removed.at));
    let by = figures::one_line(&removed.rule, 200);
    let failure = failed!("the record of run {short} was removed on {date} UTC by {by}");
    match (removed.done, removed.summary.is_some()) {
        (false, _) => failure.help("the removal was cut short: `muster gc` finishes it"),
        (true, true) => failure.help(format!("`muster show {short}` shows its summary")),
        (true, false) => failure,
    }
}

/// What is left of a run whose record was removed; nothing where it was not.
pub(crate) async fn removed(bus: &Bus, run: RunId) -> Result<Option<Gone>, Failure> {
    let note = bus.kept().note(run).await?;
    let Some(removed) = note.gone().cloned() else { return Ok(None) };
    let summary = summary(bus, run, &removed).await?;
    Ok(Some(Gone { run, removed, summary }))
}

async fn summary(bus: &Bus, run: RunId, removed: &RemovalNote) -> Result<Option<Summary>, Failure> {
    if removed.summary.is_none() {
        return Ok(None);
    }
    let bytes = bus.kept().summary(run).await?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Summaries of the newest runs whose record was removed.
pub(crate) async fn summaries(bus: &Bus, limit: usize) -> Result<Vec<Gone>, Failure> {
    let notes = bus.kept().all().await?;
    let gone = notes.iter().rev().filter_map(|(run, note)| Some((*run, note.gone()?)));
    let mut gone: Vec<_> = gone.filter(|(_, removed)| removed.summary.is_some()).collect();
    // Newest first by the sequence number of the first entry, which is that of the creation.
    gone.sort_by_key(|(_, removed)| std::cmp::Reverse(removed.places));
    let mut found = Vec::new();
    for (run, removed) in gone.into_iter().take(limit) {
        let summary = summary(bus, run, removed).await?;
        found.push(Gone { run, removed: removed.clone(), summary });
    }
    Ok(found)
}

/// Shows what is left of a run.
pub(crate) fn shown(gone: &Gone, args: &ShowArgs) -> Result<Exit, Failure> {
    let Gone { run, removed, summary } = gone;
    let is_whole = args.task.is_none() && !args.reflection && !args.refinements;
    let Some(summary) = summary.as_ref().filter(|_| is_whole) else {
        return Err(tell_removed(*run, removed));
    };
    output::json_or_line(args.json, || summary.to_json(removed), || render::kept::summary(summary, removed))
}

impl Gone {
    /// As `muster runs --json` has it.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let mut shown =
            self.summary.as_ref().map_or_else(|| json!({ "run": self.run }), |summary| summary.brief.clone());
        shown["record_removed"] = json!(self.removed);
        shown
    }
}
