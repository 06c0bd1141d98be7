//! One run: how it stands, its tasks, and what the chosen one does.

use muster_shared::ids::TaskId;
use muster_shared::run::RunState;
use ratatui::layout::Rect;

use super::super::rows::{self, Tone};
use super::super::state::Top;
use super::super::{detail, rows::tone};
use super::{Page, is_on_detail, table};
use crate::live::model::{LiveRun, Model};
use crate::render::{figures, progress};

/// From how many columns on what a task does stands beside the tasks, and not below them.
const WIDE: u16 = 120;

/// Draws the run that is open.
pub(super) fn run(page: &mut Page<'_>, area: Rect, top: &Top, model: &Model) {
    let run = top.open.and_then(|run| model.run(run));
    let area = match run.map(|run| (run.damaged(), run.state())) {
        Some((_, Some(state))) => head(page, area, state, top),
        Some((Some(why), None)) => {
            let text = format!("its record cannot be followed: {}", figures::one_line(why, 300));
            page.line(Rect { height: 1, ..area }, &text, Tone::Bad);
            return;
        }
        Some((None, None)) => area,
        None if top.open.is_some() => {
            page.line(Rect { height: 1, ..area }, "its record is being read …", Tone::Dim);
            return;
        }
        None => area,
    };
    let rows = rows::tree(run);
    let Some(run) = run else {
        table::table(page, area, &top.tree, rows, true);
        return;
    };
    let shown = top.tree.shown(rows.clone()).rows;
    let lines = u16::try_from(shown.len()).unwrap_or(u16::MAX).max(1);
    let (tree, rest) = if area.width >= WIDE {
        let width = area.width / 2;
        let beside = Rect { x: area.x + width + 1, width: area.width - width - 1, ..area };
        (Rect { width, ..area }, beside)
    } else {
        let height = lines.min(area.height / 2);
        let below = Rect { y: area.y + height, height: area.height - height, ..area };
        (Rect { height, ..area }, below)
    };
    table::table(page, tree, &top.tree, rows, true);
    if let Some(task) = top.tree.chosen(&shown) {
        below(page, rest, top, run, &task);
    }
}

/// What was asked, and how it stands. Gives what is left of the area.
fn head(page: &mut Page<'_>, area: Rect, state: &RunState, top: &Top) -> Rect {
    page.line(Rect { height: 1, ..area }, &figures::one_line(&state.goal.text, 400), Tone::Strong);
    let second = Rect { y: area.y + 1, height: 1, ..area };
    let mut summary = progress::summary(state, top.now);
    if let Some(reason) = &state.reason {
        summary = format!("{summary}: {}", figures::one_line(reason, 200));
    }
    page.line(second, &summary, tone(state));
    Rect { y: area.y + 2, height: area.height - 2, ..area }
}

/// What the chosen task does, the newest at the bottom.
fn below(page: &mut Page<'_>, area: Rect, top: &Top, run: &LiveRun, task: &TaskId) {
    if area.height < 2 {
        return;
    }
    let first = Rect { height: 1, ..area };
    let lines = detail::lines(run, task, top.now, area.width.into());
    let height = usize::from(area.height - 1);
    let back = top.back.min(lines.len().saturating_sub(height));
    let end = lines.len() - back;
    let start = end.saturating_sub(height);
    let more = match (start, back) {
        (0, 0) => String::new(),
        (_, 0) => format!(" {start} above "),
        (_, _) => format!(" {start} above, {back} below; f follows "),
    };
    let rule = format!("── {task} {more}");
    let dashes = "─".repeat(usize::from(area.width).saturating_sub(rule.chars().count()));
    let style = if is_on_detail(top) { page.look.of(Tone::Strong) } else { page.look.of(Tone::Dim) };
    page.styled(first, &format!("{rule}{dashes}"), style);
    for (y, (tone, line)) in (area.y + 1..area.bottom()).zip(&lines[start..end]) {
        page.line(Rect { y, height: 1, ..area }, line, *tone);
    }
}
