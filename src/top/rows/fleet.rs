//! The processes.

use muster_shared::time::Millis;

use super::{By, Column, Row, Rows, Tone, left, right};
use crate::live::model::Model;
use crate::render::figures;
use crate::render::processes::{self, Listed};

/// Longest text in a cell that is not the last.
const MOST: usize = 24;

const COLUMNS: &[Column] = &[
    left("AGENT", 0),
    left("ROLE", 3),
    left("HOST", 4),
    right("PID", 5),
    right("BUSY", 0),
    right("DONE", 2),
    right("MEMORY", 1),
    right("UP", 6),
    left("MODEL", 7),
    left("STATE", 0),
];

/// How many columns there are.
pub(crate) const COLUMNS_COUNT: usize = COLUMNS.len();

/// The columns by which keys put it in order: memory, time, what is in hand, name.
pub(crate) const BY_MEMORY: usize = 6;
pub(crate) const BY_TIME: usize = 7;
pub(crate) const BY_BUSY: usize = 4;

/// The processes of the fleet, and those that were given up.
pub(crate) fn fleet(model: &Model, now: Millis) -> Rows<String> {
    let shown = model.fleet().shown();
    let listed = shown.listed.iter().map(|listed| row(listed, now));
    let given_up = shown.members.iter().filter(|member| member.given_up).map(|member| {
        let how = member.gave_up.as_ref().map_or("died too often", |gave_up| gave_up.how.as_str());
        let mut cells = vec![figures::one_line(&member.name, MOST), member.role().to_owned()];
        cells.resize(COLUMNS.len() - 1, "-".to_owned());
        cells.push(figures::one_line(&format!("given up: {how}"), 200));
        let by = cells.iter().map(|cell| By::Text(cell.clone())).collect();
        Row { key: member.name.clone(), cells, by, tone: (COLUMNS.len() - 1, Tone::Bad) }
    });
    Rows {
        columns: COLUMNS,
        rows: listed.chain(given_up).collect(),
        is_sorted: true,
        none: "no process has joined the fleet",
    }
}

fn row(listed: &Listed, now: Millis) -> Row<String> {
    let profile = &listed.profile;
    let up = match profile.started_at {
        0 => None,
        since => Some(now.since(Millis(since))),
    };
    let state = figures::one_line(&processes::state(profile), 60);
    let tone = match (profile.role.as_str(), profile.busy) {
        ("orchestrator", _) => Tone::Plain,
        (_, 0) => Tone::Dim,
        (_, _) => Tone::Busy,
    };
    let agent = profile.agent.to_string();
    let role = figures::one_line(&processes::role(profile), MOST);
    let host = figures::one_line(&profile.host, MOST);
    let model = figures::one_line(&profile.model, MOST);
    let done = listed.track_record.map_or(0, |tally| tally.ended());
    // Orchestrators first.
    let first = if profile.role == "orchestrator" { "" } else { profile.role.as_str() };
    let by = vec![
        By::Text(agent.clone()),
        By::Text(format!("{first}\u{0}{agent}")),
        By::Text(host.clone()),
        By::Number(profile.pid.into()),
        By::Number(profile.busy.into()),
        By::Number(done),
        By::Number(profile.resident_bytes),
        By::Number(up.map_or(0, |up| up.as_secs())),
        By::Text(model.clone()),
        By::Text(state.clone()),
    ];
    let cells = vec![
        figures::one_line(&agent, MOST),
        role,
        host,
        profile.pid.to_string(),
        format!("{}/{}", profile.busy, profile.slots),
        processes::done(listed.track_record.as_ref()),
        if profile.resident_bytes == 0 { "?".to_owned() } else { figures::bytes(profile.resident_bytes) },
        up.map_or_else(|| "-".to_owned(), figures::span),
        if model.is_empty() { "-".to_owned() } else { model },
        state,
    ];
    Row { key: agent, cells, by, tone: (COLUMNS.len() - 1, tone) }
}
