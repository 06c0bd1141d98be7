//! `muster runs`: all runs, newest first.

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::{keep, select};
use crate::app::{App, now};
use crate::args::RunsArgs;
use crate::exit::{Exit, Failure};
use crate::keeping::summary::Summary;
use crate::render::figures;
use crate::render::runs::word;
use crate::{output, render};
use muster_bus::{Bus, BusError, NewestRuns, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{RunState, RunStatus, count, is_completed_in_part, note_waiting};
use muster_shared::time::Millis;

/// Prints the newest runs.
pub(super) async fn runs(app: &App, args: &RunsArgs) -> Result<Exit, Failure> {
    if let Some(action) = &args.action {
        return Box::pin(keep::perform(app, action)).await;
    }
    let (Newest { runs, left_out, order: _ }, gone) =
        select::reading(app, async |bus| all_but(bus, args.limit, &|_| None).await).await?;
    if args.json {
        let damaged = left_out.iter().map(|(run, why)| damaged(*run, why));
        let gone = gone.iter().map(keep::Gone::to_json);
        output::json(&runs.iter().map(brief).chain(gone).chain(damaged).collect::<Vec<Value>>())?;
    } else if !runs.is_empty() || left_out.is_empty() {
        let summaries: Vec<&Summary> = gone.iter().filter_map(|gone| gone.summary.as_ref()).collect();
        output::line(&render::runs::table(&runs, &summaries, now()))?;
    }
    tell_left_out(&left_out);
    Ok(Exit::Completed)
}

/// The same; runs that are known are named, and not read.
pub(crate) async fn all_but(
    bus: &Bus,
    limit: usize,
    is_known: &Known<'_>,
) -> Result<(Newest, Vec<keep::Gone>), Failure> {
    let mut found = newest_but(bus, limit, is_known).await?;
    let notes = bus.kept().all().await?;
    let is_gone = |run: &RunId| notes.get(run).is_some_and(|note| note.gone().is_some());
    found.runs.retain(|state| !is_gone(&state.id));
    found.left_out.retain(|(run, _)| !is_gone(run));
    let imported = notes.iter().rev().filter(|(_, note)| note.imported.is_some() && note.gone().is_none());
    for (run, _) in imported.take(limit) {
        let created_at = match is_known(run) {
            Some(created_at) => created_at,
            None => match select::entries(bus, *run).await.and_then(|entries| select::fold(*run, &entries)) {
                Ok(state) => {
                    let created_at = state.created_at;
                    found.runs.push(state);
                    created_at
                }
                Err(failure) => {
                    found.left_out.push((*run, failure.to_string()));
                    continue;
                }
            },
        };
        // The log here has no entry of it: it is placed by the time at which it was created elsewhere.
        let place = found.order.iter().position(|(_, other)| *other < created_at);
        found.order.insert(place.unwrap_or(found.order.len()), (*run, created_at));
    }
    found.order.retain(|(run, _)| !is_gone(run));
    found.order.truncate(limit);
    let place = |wanted: RunId| found.order.iter().position(|(run, _)| *run == wanted);
    found.runs.retain(|state| place(state.id).is_some());
    found.runs.sort_by_key(|state| place(state.id));
    let room = limit.saturating_sub(found.order.len());
    Ok((found, keep::summaries(bus, room).await?))
}

/// The newest runs, and those of which the record cannot be followed, with the reason.
#[derive(Default)]
pub(crate) struct Newest {
    pub(crate) runs: Vec<RunState>,
    pub(crate) left_out: Vec<(RunId, String)>,
    /// All that can be followed, known ones included, newest first by the event log, each with the time of its creation.
    pub(crate) order: Vec<(RunId, Millis)>,
}

/// When a run was created, if the caller knows the run already: then it is not read.
pub(crate) type Known<'a> = dyn Fn(&RunId) -> Option<Millis> + Sync + 'a;

/// How many records are read at the same time.
const AT_ONCE: usize = 8;

/// The newest runs. One record that cannot be followed does not hide the others.
pub(crate) async fn newest(bus: &Bus, limit: usize) -> Result<Newest, Failure> {
    newest_but(bus, limit, &|_| None).await
}

/// The same; runs that are known are named, and not read.
pub(crate) async fn newest_but(bus: &Bus, limit: usize, is_known: &Known<'_>) -> Result<Newest, Failure> {
    let mut found = Newest::default();
    let NewestRuns { runs, fragments } = bus.record().newest_runs(limit).await?;
    let record = &bus.record();
    let read = |run| async move {
        match is_known(&run) {
            Some(created_at) => (run, Ok(Err(created_at))),
            None => (run, record.read(&RecordFilter::Run(run), Seq(0)).await.map(Ok)),
        }
    };
    let mut reading = stream::iter(runs).map(read).buffered(AT_ONCE);
    while let Some((run, read)) = reading.next().await {
        match read {
            Ok(Err(created_at)) => found.order.push((run, created_at)),
            Ok(Ok(entries)) => match select::fold(run, &entries) {
                Ok(state) => {
                    found.order.push((run, state.created_at));
                    found.runs.push(state.as_seen().into_owned());
                }
                Err(failure) => found.left_out.push((run, failure.to_string())),
            },
            Err(unreadable @ BusError::Unreadable { .. }) => {
                found.left_out.push((run, unreadable.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let lost = fragments.into_iter().take(limit).map(|run| (run, "its beginning is missing".to_owned()));
    found.left_out.extend(lost);
    note_waiting(&mut found.runs.iter_mut().collect::<Vec<_>>());
    Ok(found)
}

/// Most runs that are named where some are left out.
const MOST_NAMED: usize = 5;

/// Prints one line about the runs that are left out, if there are any.
pub(super) fn tell_left_out(left_out: &[(RunId, String)]) {
    if let Some(text) = summary(left_out) {
        output::note(&text);
    }
}

/// One line about all runs that are left out, however many; nothing where none is.
pub(super) fn summary(left_out: &[(RunId, String)]) -> Option<String> {
    let ((first, why), more) = left_out.split_first()?;
    let named: Vec<String> = left_out.iter().take(MOST_NAMED).map(|(run, _)| run.short()).collect();
    Some(match more.len() {
        0 => format!("run {} is left out: {}", first.short(), figures::one_line(why, 300)),
        others => format!(
            "{} runs are left out, their records cannot be followed: {}{}; `muster trace RUN` shows what there is",
            others + 1,
            named.join(", "),
            if others + 1 > MOST_NAMED { ", …" } else { "" }
        ),
    })
}

/// A run of which the record cannot be followed, as `muster runs --json` has it.
pub(crate) fn damaged(run: RunId, why: &str) -> Value {
    json!({ "run": run, "status": "damaged", "reason": why })
}

/// Whether a run gave all that it was to give.
pub(crate) fn is_complete(state: &RunState) -> bool {
    state.status == RunStatus::Completed && !is_completed_in_part(state)
}

/// A run as `muster runs --json` has it.
pub(crate) fn brief(state: &RunState) -> Value {
    json!({
        "run": state.id, "status": state.status, "state": word(state), "complete": is_complete(state), "count": count(state), "goal": state.goal.text, "created_at": state.created_at,
        "ended_at": state.ended_at, "paused": state.control.paused, "parent": state.goal.parent, "shadow_of": state.goal.shadow.as_ref().map(|of| json!({ "trial": of.trial, "run": of.run, "task": of.task })), "usage": state.used(), "reason": state.reason,
    })
}
