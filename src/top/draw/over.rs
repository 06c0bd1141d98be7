//! What stands over a view: help, texts, lines that are typed.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::super::editor::Editor;
use super::super::help::HELP;
use super::super::rows::Tone;
use super::super::state::{Focus, Over, Top, View};
use super::Page;
use crate::live::model::Model;
use crate::render::figures;

/// How wide the keys are in the help.
const KEYS: usize = 16;

/// The keys, from this line on.
pub(super) fn help(page: &mut Page<'_>, area: Rect, from: usize) {
    for (y, (keys, what)) in (area.y..area.bottom()).zip(HELP.iter().skip(from)) {
        let row = Rect { y, height: 1, ..area };
        if keys.is_empty() {
            page.line(row, what, Tone::Strong)
        } else {
            page.line(row, &format!("  {keys:<KEYS$} {what}"), Tone::Plain)
        }
    }
}

/// A text, from this line on.
pub(super) fn text(page: &mut Page<'_>, area: Rect, title: &str, text: &str, from: usize) {
    page.line(Rect { height: 1, ..area }, title, Tone::Strong);
    let lines = text.lines().skip(from).flat_map(|line| {
        let wrapped = figures::wrap(line, area.width.into());
        wrapped.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    for (y, line) in (area.y + 1..area.bottom()).zip(lines) {
        page.line(Rect { y, height: 1, ..area }, &line, Tone::Plain);
    }
}

/// A line that is typed: so much of it as fits around the cursor. Gives where that stands.
pub(super) fn typed(page: &mut Page<'_>, area: Rect, lead: &str, editor: &Editor) -> (u16, u16) {
    let (before, after) = editor.parts();
    let (before, after) = (figures::harmless(before), figures::harmless(after));
    let room = usize::from(area.width).saturating_sub(lead.width() + 1);
    // Of what stands before the cursor, the end is seen.
    let mut seen = before.as_str();
    while seen.width() > room {
        let next = seen.chars().next().map_or(0, char::len_utf8);
        seen = &seen[next..];
    }
    page.line(area, &format!("{lead}{seen}{after}"), Tone::Plain);
    let x = u16::try_from(lead.width() + seen.width()).unwrap_or(area.width);
    (area.x + x.min(area.width.saturating_sub(1)), area.y)
}

/// The keys that mean most where it is.
pub(super) fn keys(top: &Top, model: &Model) -> String {
    let here = match (&top.over, top.view) {
        (Over::Help(_) | Over::Text { .. }, _) => return "↑↓ move  Esc back".to_owned(),
        (Over::Filter(_), _) => return "Enter keeps the filter  Esc shows all  !text leaves out".to_owned(),
        (Over::Command(_), _) => return "fleet  runs  run ID  traffic  questions  quit  Esc back".to_owned(),
        (Over::Typing { .. }, _) => return "Enter sends  Esc does not".to_owned(),
        (Over::Confirm(_), _) => return String::new(),
        (Over::Nothing, View::Fleet) => "Enter details  < > order",
        (Over::Nothing, View::Runs) => "Enter open  p pause  x cancel  < > order",
        (Over::Nothing, View::Run) if top.focus == Focus::Tree => "Enter task  p pause  x cancel  o child",
        (Over::Nothing, View::Run) => "Enter in full  f follow  Esc tasks",
        (Over::Nothing, View::Traffic) => "f follow  Enter in full  o run",
        (Over::Nothing, View::Questions) if model.questions().next().is_some() => {
            "a answer  y approve  n reject  o run"
        }
        (Over::Nothing, View::Questions) => "",
    };
    let lead = if here.is_empty() { String::new() } else { format!("{here}  ") };
    format!("{lead}/ filter  : command  ? help  q quit")
}
