//! Rows in columns, as many as fit.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::super::list::List;
use super::super::rows::{Column, Row, Rows, Tone};
use super::Page;
use crate::render::figures;

/// Least width that the last column is to have, for which others go.
const LAST: usize = 16;

/// Draws a list; its place is marked where keys go to it.
pub(super) fn table<K: Clone + PartialEq>(
    page: &mut Page<'_>,
    area: Rect,
    list: &List<K>,
    rows: Rows<K>,
    is_marked: bool,
) {
    if area.height == 0 {
        return;
    }
    let any = !rows.rows.is_empty();
    let rows = list.shown(rows);
    let has_head = rows.columns.len() > 1 || rows.is_sorted;
    let body = if has_head { Rect { y: area.y + 1, height: area.height - 1, ..area } } else { area };
    let place = list.place(&rows.rows).unwrap_or(0);
    let height = usize::from(body.height);
    // The place stands in the middle where it can; at the end of what comes, it stands below.
    let last_first = rows.rows.len().saturating_sub(height);
    let first = if list.follows { last_first } else { place.saturating_sub(height / 2).min(last_first) };
    let seen = &rows.rows[first..(first + height).min(rows.rows.len())];
    let widths = widths(rows.columns, seen, area.width.into());
    if has_head {
        let title = |at: usize, column: &Column| match rows.is_sorted && at == list.sort {
            true if list.reversed => format!("{}▾", column.title),
            true => format!("{}▴", column.title),
            false => column.title.to_owned(),
        };
        let titles: Vec<String> =
            rows.columns.iter().enumerate().map(|(at, column)| title(at, column)).collect();
        let head = in_columns(rows.columns, &widths, &titles);
        let text: String = head.iter().map(|(_, text)| text.as_str()).collect();
        page.line(Rect { height: 1, ..area }, &text, Tone::Strong);
    }
    if rows.rows.is_empty() {
        let text = if any { "nothing here has what the filter wants; Esc shows all" } else { rows.none };
        page.line(Rect { height: body.height.min(1), ..body }, text, Tone::Dim);
        return;
    }
    for (y, (at, row)) in (body.y..body.bottom()).zip((first..).zip(seen)) {
        draw_row(page, Rect { y, height: 1, ..body }, rows.columns, &widths, row);
        if is_marked && at == place {
            page.buffer.set_style(Rect { y, height: 1, ..body }, page.look.chosen());
        }
    }
}

fn draw_row<K>(page: &mut Page<'_>, area: Rect, columns: &[Column], widths: &[Option<usize>], row: &Row<K>) {
    let mut x = area.x;
    for (at, text) in in_columns(columns, widths, &row.cells) {
        let tone = if row.tone.0 == at { row.tone.1 } else { Tone::Plain };
        let width = u16::try_from(text.width()).unwrap_or(u16::MAX).min(area.right().saturating_sub(x));
        page.line(Rect { x, width, ..area }, &text, tone);
        x = x.saturating_add(width);
    }
}

/// How wide the columns are; nothing for those that there is no room for.
fn widths<K>(columns: &[Column], rows: &[Row<K>], room: usize) -> Vec<Option<usize>> {
    let wanted = |at: usize, column: &Column| {
        let cells = rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| cell.width());
        cells.max().unwrap_or(0).max(column.title.width() + 1)
    };
    let last = columns.len() - 1;
    let mut widths: Vec<Option<usize>> =
        columns.iter().enumerate().map(|(at, column)| Some(wanted(at, column))).collect();
    widths[last] = Some(0);
    let taken =
        |widths: &[Option<usize>]| widths[..last].iter().flatten().map(|width| width + 1).sum::<usize>();
    while taken(&widths) + LAST > room {
        let shown = (0..last).filter(|at| widths[*at].is_some() && columns[*at].rank > 0);
        let Some(least) = shown.max_by_key(|at| columns[*at].rank) else { break };
        widths[least] = None;
    }
    widths[last] = Some(room.saturating_sub(taken(&widths)));
    widths
}

/// The cells that are shown, each with its column, as wide as that is.
fn in_columns(columns: &[Column], widths: &[Option<usize>], cells: &[String]) -> Vec<(usize, String)> {
    let last = columns.len() - 1;
    let shown = columns.iter().zip(widths).zip(cells).enumerate();
    shown
        .filter_map(|(at, ((column, width), cell))| {
            let width = (*width)?;
            let text = figures::cut(cell, width);
            let space = " ".repeat(width.saturating_sub(text.width()));
            Some((
                at,
                match (at == last, column.right) {
                    (true, _) => text,
                    (false, true) => format!("{space}{text} "),
                    (false, false) => format!("{text}{space} "),
                },
            ))
        })
        .collect()
}
