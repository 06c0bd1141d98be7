//! Keys in a view.

use std::sync::Arc;

use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::{RequestAction, RunState};

use super::super::detail;
use super::super::editor::Editor;
use super::super::key::Key;
use super::super::list::List;
use super::super::rows::{self, Rows};
use super::super::state::{Focus, Order, Over, SortKey, Top, View};
use super::{Effect, look_at, open, orders};
use crate::live::model::{LiveRun, Model, Passed};
use crate::render::{figures, questions, safe};

/// A key in a view.
pub(super) fn press(top: &mut Top, model: &Model, key: Key) -> Vec<Effect> {
    if let Some(effects) = everywhere(top, key) {
        return effects;
    }
    if top.view == View::Run && top.focus == Focus::Detail && scroll_detail(top, key) {
        return Vec::new();
    }
    if move_on(top, model, key) || arrange(top, key) {
        return Vec::new();
    }
    match key {
        Key::Enter => return enter(top, model),
        Key::Char('p') => confirm(top, model, "", |state| match state.control.paused {
            Some(_) => (RequestAction::Resume { deadline_ms: None }, "resume"),
            None => (RequestAction::Pause, "pause"),
        }),
        Key::Char('x') | Key::F(9) | Key::Ctrl('k') => {
            confirm(top, model, "cancelled in muster top", |_| (RequestAction::Cancel, "cancel"))
        }
        Key::Char('o') => return open_related(top, model),
        Key::Char('a') => orders::answer(top, model),
        Key::Char('y') => orders::approve(top, model),
        Key::Char('n') => orders::reject(top, model),
        Key::Esc => return back(top),
        Key::Left | Key::Char('h') if top.view == View::Run => top.focus = Focus::Tree,
        Key::Right | Key::Char('l') if top.view == View::Run => top.focus = Focus::Detail,
        _ => {}
    }
    Vec::new()
}

/// Keys that mean the same in all views.
fn everywhere(top: &mut Top, key: Key) -> Option<Vec<Effect>> {
    match key {
        Key::Char('q') | Key::F(10) => return Some(vec![Effect::Quit]),
        Key::Char('?') | Key::F(1) => top.over = Over::Help(0),
        Key::Char(digit @ '1'..='5') => {
            let at = usize::from(digit as u8 - b'1');
            return Some(look_at(top, View::ALL[at]));
        }
        Key::Tab => return Some(look_at(top, top.view.further(1))),
        Key::BackTab => return Some(look_at(top, top.view.further(View::ALL.len() - 1))),
        Key::Char('/') | Key::F(3 | 4) => top.over = Over::Filter(Editor::of(top.filter())),
        Key::Char(':') => top.over = Over::Command(Editor::default()),
        _ => return None,
    }
    Some(Vec::new())
}

/// Keys that move in the list that is seen. Says whether it is one.
fn move_on(top: &mut Top, model: &Model, key: Key) -> bool {
    let (page, now) = (top.page(), top.now);
    if matches!(key, Key::Char(' ' | 'f')) {
        match top.view {
            View::Traffic if top.traffic.follows => stay(&mut top.traffic, rows::traffic(model)),
            View::Traffic => top.traffic.follows = true,
            View::Run => top.back = 0,
            View::Fleet | View::Runs | View::Questions => {}
        }
        return true;
    }
    let before = (top.view == View::Run).then(|| tree_place(top, model));
    let moved = match top.view {
        View::Fleet => go(&mut top.fleet, rows::fleet(model, now), key, page),
        View::Runs => go(&mut top.runs, rows::runs(model, now), key, page),
        View::Run => go(&mut top.tree, rows::tree(opened(top.open, model)), key, page / 2),
        View::Traffic => go(&mut top.traffic, rows::traffic(model), key, page),
        View::Questions => go(&mut top.questions, rows::questions(model, now), key, page),
    };
    if before.is_some_and(|before| before != tree_place(top, model)) {
        top.back = 0;
    }
    moved
}

fn go<K: Clone + PartialEq>(list: &mut List<K>, rows: Rows<K>, key: Key, page: isize) -> bool {
    let rows = list.shown(rows).rows;
    match key {
        Key::Up | Key::Char('k') => list.step(&rows, -1),
        Key::Down | Key::Char('j') => list.step(&rows, 1),
        Key::PageUp | Key::Ctrl('b') => list.step(&rows, -page),
        Key::PageDown | Key::Ctrl('f') => list.step(&rows, page),
        Key::Home | Key::Char('g') => list.go(&rows, 0),
        Key::End | Key::Char('G') => list.go(&rows, rows.len()),
        _ => return false,
    }
    true
}

/// Stops following where it is.
fn stay<K: Clone + PartialEq>(list: &mut List<K>, rows: Rows<K>) {
    let rows = list.shown(rows).rows;
    list.go(&rows, rows.len());
}

/// The task that is chosen in the run that is open.
fn tree_place(top: &Top, model: &Model) -> Option<TaskId> {
    top.tree.chosen_of(rows::tree(opened(top.open, model)))
}

/// The run that is open, as far as it is known.
fn opened(open: Option<RunId>, model: &Model) -> Option<&LiveRun> {
    open.and_then(|run| model.run(run))
}

/// Keys that scroll in what a task does. Says whether it is one.
fn scroll_detail(top: &mut Top, key: Key) -> bool {
    let page = top.page() as usize / 2;
    match key {
        Key::Up | Key::Char('k') => top.back += 1,
        Key::Down | Key::Char('j') => top.back = top.back.saturating_sub(1),
        Key::PageUp | Key::Ctrl('b') => top.back += page,
        Key::PageDown | Key::Ctrl('f') => top.back = top.back.saturating_sub(page),
        Key::Home | Key::Char('g') => top.back = usize::MAX / 2,
        Key::End | Key::Char('G') => top.back = 0,
        _ => return false,
    }
    true
}

/// Keys that order a list. Says whether it is one.
fn arrange(top: &mut Top, key: Key) -> bool {
    let by = match key {
        Key::Char('<') => -1,
        Key::Char('>') | Key::F(6) => 1,
        Key::Char('I') => {
            match top.view {
                View::Fleet => top.fleet.reversed = !top.fleet.reversed,
                View::Runs => top.runs.reversed = !top.runs.reversed,
                View::Questions => top.questions.reversed = !top.questions.reversed,
                View::Run | View::Traffic => {}
            }
            return true;
        }
        Key::Char('M') => return sort(top, SortKey::Memory),
        Key::Char('P') => return sort(top, SortKey::Work),
        Key::Char('T') => return sort(top, SortKey::Time),
        Key::Char('N') => return sort(top, SortKey::Name),
        _ => return false,
    };
    match top.view {
        View::Fleet => top.fleet.sort_on(rows::FLEET_COLUMNS, by),
        View::Runs => top.runs.sort_on(rows::RUNS_COLUMNS, by),
        View::Questions => top.questions.sort_on(rows::QUESTIONS_COLUMNS, by),
        View::Run | View::Traffic => {}
    }
    true
}

fn sort(top: &mut Top, by: SortKey) -> bool {
    top.sort(by);
    true
}

fn enter(top: &mut Top, model: &Model) -> Vec<Effect> {
    match top.view {
        View::Runs => {
            if let Some(run) = top.runs.chosen_of(rows::runs(model, top.now)) {
                return open(top, run);
            }
        }
        View::Run if top.focus == Focus::Tree => top.focus = Focus::Detail,
        View::Run => {
            if let Some((run, task)) = opened(top.open, model).zip(tree_place(top, model)) {
                let title = format!("{task} of run {}", run.id().short());
                top.over = Over::Text { title, text: detail::in_full(run, &task), from: 0 };
            }
        }
        View::Fleet => show_process(top, model),
        View::Traffic => show_message(top, model),
        View::Questions => show_question(top, model),
    }
    Vec::new()
}

/// All that a process says of itself.
fn show_process(top: &mut Top, model: &Model) {
    let Some(name) = top.fleet.chosen_of(rows::fleet(model, top.now)) else { return };
    let told = model.fleet().shown().in_json().into_iter();
    let mut told =
        told.filter(|one| one["agent"].as_str() == Some(&name) || one["name"].as_str() == Some(&name));
    if let Some(one) = told.next() {
        top.over = Over::Text { title: figures::one_line(&name, 60), text: indented(&one), from: 0 };
    }
}

/// The chosen message of the traffic.
fn chosen_message<'a>(top: &Top, model: &'a Model) -> Option<&'a Arc<Passed>> {
    let chosen = top.traffic.chosen_of(rows::traffic(model));
    model.traffic().passed().find(|passed| Some(passed.number) == chosen)
}

/// A message that passed, in full.
fn show_message(top: &mut Top, model: &Model) {
    if let Some(passed) = chosen_message(top, model) {
        // What comes meanwhile does not move what is being read.
        if top.traffic.follows {
            top.traffic.go_to(passed.number);
        }
        let title = figures::one_line(&passed.tapped.subject, 200);
        let text = match &passed.tapped.content {
            Ok(envelope) => indented(&serde_json::json!(envelope)),
            Err(why) => safe::text(why).into_owned(),
        };
        top.over = Over::Text { title, text, from: 0 };
    }
}

fn show_question(top: &mut Top, model: &Model) {
    if let Some((run, id)) = orders::chosen(top, model)
        && let Some(state) = model.run(run).and_then(|run| run.state())
        && let Some(asked) = state.questions.get(&id)
    {
        let title = format!("question {id} of run {}", run.short());
        top.over = Over::Text { title, text: questions::one(state, id, asked, top.now), from: 0 };
    }
}

fn indented(value: &serde_json::Value) -> String {
    let written = serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string());
    safe::text(&written).into_owned()
}

/// The run that is chosen, or whose task or question is.
fn chosen_run(top: &Top, model: &Model) -> Option<RunId> {
    match top.view {
        View::Runs => top.runs.chosen_of(rows::runs(model, top.now)),
        View::Run => top.open,
        View::Questions => orders::chosen(top, model).map(|(run, _)| run),
        View::Fleet | View::Traffic => None,
    }
}

/// Asks a person to confirm an action on the chosen run.
fn confirm(
    top: &mut Top,
    model: &Model,
    reason: &str,
    action: impl FnOnce(&RunState) -> (RequestAction, &'static str),
) {
    let state = opened(chosen_run(top, model), model).and_then(LiveRun::state);
    match state {
        None => top.complain("choose a run first"),
        Some(state) if state.status.is_ended() => top.complain("the run has ended"),
        Some(state) => {
            let (action, word) = action(state);
            let what = format!("{word} run {}", state.id.short());
            top.over = Over::Confirm(Order { run: state.id, action, reason: reason.to_owned(), what });
        }
    }
}

/// Opens the run of a question, or the child run of a task.
fn open_related(top: &mut Top, model: &Model) -> Vec<Effect> {
    let related = match top.view {
        View::Run => {
            let state = opened(top.open, model).and_then(LiveRun::state);
            let task = tree_place(top, model);
            let child = state.and_then(|state| {
                let mut newest = state.children.iter().rev();
                newest.find(|(_, child)| Some(&child.task) == task.as_ref()).map(|(id, _)| *id)
            });
            // From a child, back to whom it is for.
            child.or_else(|| state.and_then(|state| Some(state.goal.parent.as_ref()?.run)))
        }
        View::Runs | View::Questions => chosen_run(top, model),
        View::Traffic => {
            chosen_message(top, model).and_then(|passed| passed.tapped.content.as_ref().ok()?.run)
        }
        View::Fleet => None,
    };
    match related {
        Some(run) => open(top, run),
        None => {
            top.complain("there is no run to open here");
            Vec::new()
        }
    }
}

/// Takes back what stands in the way, one thing at a time.
fn back(top: &mut Top) -> Vec<Effect> {
    if top.said.take().is_some() {
        return Vec::new();
    }
    match top.view {
        _ if !top.filter().is_empty() => top.set_filter(""),
        View::Run if top.focus == Focus::Detail => top.focus = Focus::Tree,
        View::Run => return look_at(top, View::Runs),
        View::Fleet | View::Runs | View::Traffic | View::Questions => {}
    }
    Vec::new()
}
