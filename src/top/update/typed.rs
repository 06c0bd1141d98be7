//! Lines that are typed for the screen itself, and texts that are read.

use muster_shared::ids::RunId;

use super::super::help::HELP;
use super::super::key::Key;
use super::super::state::{Over, Top, View};
use super::{Effect, look_at, open};
use crate::commands::choose_run;
use crate::live::model::{LiveRun, Model};
use crate::render::figures;

/// A key while a text is read.
pub(super) fn scroll(top: &mut Top, key: Key) {
    let page = top.page() as usize;
    let (from, lines) = match &mut top.over {
        Over::Help(from) => (from, HELP.len()),
        Over::Text { from, text, .. } => (from, text.lines().count()),
        _ => return,
    };
    match key {
        Key::Esc | Key::Enter | Key::Char('q' | '?') | Key::F(1 | 10) => top.over = Over::Nothing,
        Key::Up | Key::Char('k') => *from = from.saturating_sub(1),
        Key::Down | Key::Char('j') => *from = (*from + 1).min(lines.saturating_sub(1)),
        Key::PageUp | Key::Ctrl('b') => *from = from.saturating_sub(page),
        Key::PageDown | Key::Ctrl('f') | Key::Char(' ') => {
            *from = (*from + page).min(lines.saturating_sub(1))
        }
        Key::Home | Key::Char('g') => *from = 0,
        Key::End | Key::Char('G') => *from = lines.saturating_sub(page),
        _ => {}
    }
}

/// A key while a filter is typed: it holds at once.
pub(super) fn filter(top: &mut Top, key: Key) {
    let Over::Filter(editor) = &mut top.over else { return };
    match key {
        Key::Enter | Key::Up | Key::Down => top.over = Over::Nothing,
        Key::Esc => {
            top.over = Over::Nothing;
            top.set_filter("");
        }
        key => {
            editor.press(key);
            follow(top);
        }
    }
}

/// The list shows what the filter says that is typed.
pub(super) fn follow(top: &mut Top) {
    if let Over::Filter(editor) = &top.over {
        let text = editor.text().to_owned();
        top.set_filter(&text);
    }
}

/// A key while a command is typed.
pub(super) fn command(top: &mut Top, model: &Model, key: Key) -> Vec<Effect> {
    let Over::Command(editor) = &mut top.over else { return Vec::new() };
    match key {
        Key::Esc => top.over = Over::Nothing,
        Key::Backspace if editor.text().is_empty() => top.over = Over::Nothing,
        Key::Enter => {
            let text = editor.text().trim().to_owned();
            top.over = Over::Nothing;
            return perform(top, model, &text);
        }
        key => drop(editor.press(key)),
    }
    Vec::new()
}

fn perform(top: &mut Top, model: &Model, text: &str) -> Vec<Effect> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let word = word.to_lowercase();
    if word.is_empty() {
        return Vec::new();
    }
    if "quit".starts_with(&word) {
        // Before `questions`, as everywhere.
        return vec![Effect::Quit];
    }
    if word == "run" && !rest.trim().is_empty() {
        return show(top, model, rest.trim());
    }
    if word == "help" {
        top.over = Over::Help(0);
        return Vec::new();
    }
    let named = View::ALL.into_iter().find(|view| view.to_string().to_lowercase().starts_with(&word));
    // `ru` is the runs, not the run.
    let named = if named == Some(View::Runs) && word == "run" { Some(View::Run) } else { named };
    match named {
        Some(view) => look_at(top, view),
        None => {
            let word = figures::one_line(&word, 30);
            top.complain(format!(
                "there is no command {word}: fleet, runs, run ID, traffic, questions, quit"
            ));
            Vec::new()
        }
    }
}

/// Shows the run that is meant among those that are known.
fn show(top: &mut Top, model: &Model, wanted: &str) -> Vec<Effect> {
    let runs: Vec<RunId> = model.runs().map(LiveRun::id).collect();
    match choose_run(&runs, wanted) {
        Ok(run) => open(top, run),
        Err(failure) => {
            top.complain(figures::one_line(&failure.to_string(), 200));
            Vec::new()
        }
    }
}
