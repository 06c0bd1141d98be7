//! The tasks of a run.

use muster_shared::ids::TaskId;
use muster_shared::plan::progress::Mark;

use super::{Column, Row, Rows, Tone, left};
use crate::live::model::LiveRun;
use crate::render::figures;
use crate::render::progress::{self, Doing};

const COLUMNS: &[Column] = &[left("TASK", 0)];

/// Longest line of a task.
const MOST: usize = 400;

/// The phases and tasks of a run, as a tree.
pub(crate) fn tree(run: Option<&LiveRun>) -> Rows<TaskId> {
    let (none, rows) = match run.and_then(|run| Some((run, run.state()?))) {
        None => ("no run is open: choose one among the runs", Vec::new()),
        Some((run, state)) => {
            let nothing = Doing::new();
            let lines = progress::task_lines(state, run.doing().unwrap_or(&nothing));
            ("it is not planned yet", lines.into_iter().map(row).collect())
        }
    };
    Rows { columns: COLUMNS, rows, is_sorted: false, none }
}

fn row(line: progress::TreeLine) -> Row<TaskId> {
    let tone = match (line.mark, line.failed) {
        (Mark::Done, _) => Tone::Good,
        (Mark::InWork, _) => Tone::Busy,
        (Mark::Partly, true) => Tone::Bad,
        (Mark::Partly, false) => Tone::Warn,
        (Mark::NotStarted, _) => Tone::Dim,
    };
    let note = if line.note.is_empty() { String::new() } else { format!(" ({})", line.note) };
    let text = figures::one_line(&format!("{} {}{note}", line.mark, line.text), MOST);
    let cells = vec![format!("{}{text}", "  ".repeat(line.depth))];
    Row { key: line.task, cells, by: Vec::new(), tone: (0, tone) }
}
