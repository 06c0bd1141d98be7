//! The runs.

use muster_shared::ids::RunId;
use muster_shared::run::{RunState, RunStatus, count, is_completed_in_part};
use muster_shared::time::Millis;

use super::{By, Column, Row, Rows, Tone, left, right};
use crate::live::model::{LiveRun, Model};
use crate::render::{figures, runs};

const COLUMNS: &[Column] = &[
    left("RUN", 0),
    left("STATE", 0),
    left("ASKED (UTC)", 5),
    right("TOOK", 1),
    right("DONE", 2),
    right("CALLS", 3),
    right("TOKENS", 4),
    right("COST", 6),
    left("GOAL", 0),
];

/// How many columns there are.
pub(crate) const COLUMNS_COUNT: usize = COLUMNS.len();

/// The columns by which keys put it in order.
pub(crate) const BY_TIME: usize = 3;
pub(crate) const BY_CALLS: usize = 5;
pub(crate) const BY_COST: usize = 7;

/// Longest goal in a row.
const GOAL: usize = 300;

/// The newest runs.
pub(crate) fn runs(model: &Model, now: Millis) -> Rows<RunId> {
    let rows = model.runs().map(|run| row(run, now)).collect();
    Rows {
        columns: COLUMNS,
        rows,
        is_sorted: true,
        none: "there are no runs yet: ask one with `muster run \"…\"`",
    }
}

fn row(run: &LiveRun, now: Millis) -> Row<RunId> {
    match (run.damaged(), run.state()) {
        (None, Some(state)) => sound(state, now),
        (why, _) => {
            let mut cells = vec![run.id().short(), "damaged".to_owned()];
            cells.resize(COLUMNS.len() - 1, "-".to_owned());
            cells.push(figures::one_line(why.unwrap_or("its beginning is missing"), GOAL));
            let by = cells.iter().map(|cell| By::Text(cell.clone())).collect();
            Row { key: run.id(), cells, by, tone: (1, Tone::Bad) }
        }
    }
}

fn sound(state: &RunState, now: Millis) -> Row<RunId> {
    let took = state.ended_at.unwrap_or(now).since(state.created_at);
    let used = state.used();
    let tasks = count(state);
    let (done, all) = tasks.as_ref().map_or((0, 0), |count| (count.done, count.all()));
    let goal = match &state.goal.parent {
        Some(parent) => format!("↳ {} {}: {}", parent.run.short(), parent.task, state.goal.text),
        None => state.goal.text.clone(),
    };
    let goal = figures::one_line(&goal, GOAL);
    let word = runs::word(state);
    let cells = vec![
        state.id.short(),
        word.to_owned(),
        figures::date(state.created_at),
        figures::span(took),
        if all == 0 { "-".to_owned() } else { format!("{done}/{all}") },
        figures::count(used.model_calls),
        figures::count(used.tokens()),
        if used.cost_micros == 0 { "-".to_owned() } else { figures::dollars(used.cost_micros) },
        goal.clone(),
    ];
    let by = vec![
        By::Text(state.id.to_string()),
        By::Text(word.to_owned()),
        By::Number(state.created_at.0),
        By::Number(took.as_millis() as u64),
        By::Number(done as u64),
        By::Number(used.model_calls),
        By::Number(used.tokens()),
        By::Number(used.cost_micros),
        By::Text(goal),
    ];
    Row { key: state.id, cells, by, tone: (1, tone(state)) }
}

/// How the state of a run is to be seen.
pub(crate) fn tone(state: &RunState) -> Tone {
    match state.status {
        RunStatus::Created | RunStatus::Processing
            if state.control.paused.is_some() || state.waits_for_person() =>
        {
            Tone::Warn
        }
        RunStatus::Created | RunStatus::Processing => Tone::Busy,
        RunStatus::Completed if is_completed_in_part(state) => Tone::Warn,
        RunStatus::Completed => Tone::Good,
        RunStatus::Failed => Tone::Bad,
        RunStatus::Aborted(_) => Tone::Warn,
    }
}
