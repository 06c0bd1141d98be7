//! What follows from what happens: the next state, and what is to be done. Pure.

mod keys;
mod orders;
mod typed;

use muster_shared::ids::RunId;
use muster_shared::time::Millis;
use uuid::Uuid;

use super::key::Key;
use super::state::{Order, Over, Top, View};
use crate::live::feed::Wish;
use crate::live::model::{Change, Model};

/// What happens.
#[derive(Debug)]
pub(crate) enum Event {
    /// A key was pressed.
    Key(Key),
    /// A text was pasted.
    Paste(String),
    /// The screen has another size.
    Resize(u16, u16),
    /// Time went on.
    Tick(Millis),
    /// What is known changed.
    Changed(Change),
    /// Something was asked of a run, by this id.
    Asked {
        /// The id.
        id: Uuid,
        /// What was asked.
        what: String,
    },
    /// It could not be asked, or nothing came of it.
    Unheard {
        /// The id.
        id: Uuid,
        /// Why.
        why: String,
    },
    /// A run is to be shown.
    Show(RunId),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Leave.
    Quit,
    /// Stop until somebody goes on.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Have something followed.
    Wish(Wish),
    /// Ask something of a run.
    Ask(Order),
}

/// Takes in what happens. Gives what is to be done.
pub(crate) fn update(top: &mut Top, model: &Model, event: Event) -> Vec<Effect> {
    match event {
        Event::Key(key) => {
            top.is_stale = true;
            return press(top, model, key);
        }
        Event::Paste(text) => {
            top.is_stale = true;
            if let Over::Filter(editor) | Over::Command(editor) | Over::Typing { editor, .. } = &mut top.over
            {
                editor.insert(&text);
            }
            typed::follow(top);
        }
        Event::Resize(width, height) => (top.size, top.is_stale) = ((width, height), true),
        Event::Tick(now) => {
            top.is_stale |= has_clocks(top, model) && now.0 / 1000 != top.now.0 / 1000;
            top.now = now;
        }
        Event::Changed(change) => {
            top.is_stale |= is_seen(top, &change);
            if let Change::Request { id, refused } = change
                && let Some(what) = top.asked.remove(&id)
            {
                match refused {
                    None => top.say(format!("{what}: done")),
                    Some(why) => top.complain(format!("{what}: refused: {why}")),
                }
            }
        }
        Event::Asked { id, what } => {
            top.is_stale = true;
            top.say(format!("{what}: asked …"));
            top.asked.insert(id, what);
        }
        Event::Unheard { id, why } => {
            if let Some(what) = top.asked.remove(&id) {
                top.is_stale = true;
                top.complain(format!("{what}: {why}"));
            }
        }
        Event::Show(run) => {
            top.is_stale = true;
            return open(top, run);
        }
    }
    Vec::new()
}

fn press(top: &mut Top, model: &Model, key: Key) -> Vec<Effect> {
    // These mean the same everywhere.
    match key {
        Key::Ctrl('c') => return vec![Effect::Quit],
        Key::Ctrl('z') => return vec![Effect::Suspend],
        Key::Ctrl('l') => return vec![Effect::Redraw],
        _ => {}
    }
    match &top.over {
        Over::Nothing => return keys::press(top, model, key),
        Over::Help(_) | Over::Text { .. } => typed::scroll(top, key),
        Over::Filter(_) => typed::filter(top, key),
        Over::Command(_) => return typed::command(top, model, key),
        Over::Confirm(_) => return orders::confirm(top, key),
        Over::Typing { .. } => return orders::type_on(top, key),
    }
    Vec::new()
}

/// Shows a view.
fn look_at(top: &mut Top, view: View) -> Vec<Effect> {
    top.view = view;
    let taps = view == View::Traffic;
    let is_other = taps != top.tapping;
    top.tapping = taps;
    match (is_other, taps) {
        (false, _) => Vec::new(),
        (true, true) => vec![Effect::Wish(Wish::Tap)],
        (true, false) => vec![Effect::Wish(Wish::Untap)],
    }
}

/// Opens a run, and shows it. The one that was open is not any more.
fn open(top: &mut Top, run: RunId) -> Vec<Effect> {
    let mut effects = look_at(top, View::Run);
    if top.open != Some(run) {
        let before = top.open.replace(run);
        effects.extend(before.map(|run| Effect::Wish(Wish::Close(run))));
        effects.push(Effect::Wish(Wish::Open(run)));
        top.tree = super::list::List::new(0, false, false);
        (top.focus, top.back) = (super::state::Focus::Tree, 0);
    }
    effects
}

/// Whether a change can be seen.
fn is_seen(top: &Top, change: &Change) -> bool {
    match change {
        Change::Link | Change::Questions | Change::Request { .. } | Change::Gone(_) => true,
        // How many there are stands at the head.
        Change::Fleet | Change::Brief(_) => match top.view {
            View::Fleet | View::Runs => true,
            View::Run | View::Traffic | View::Questions => !matches!(change, Change::Brief(_)),
        },
        Change::Run(change) => top.view == View::Run && top.open == Some(change.run),
        Change::Doing { run, .. } => top.view == View::Run && top.open == Some(*run),
        Change::Tapped(_) => top.view == View::Traffic,
        Change::TapEnded => false,
    }
}

/// Whether times stand on the screen that go on by themselves.
fn has_clocks(top: &Top, model: &Model) -> bool {
    match top.view {
        View::Fleet => model.fleet().profiles().next().is_some(),
        View::Runs => model.states().any(|state| !state.status.is_ended()),
        View::Run => {
            let open = top.open.and_then(|run| model.run(run)?.state());
            open.is_some_and(|state| !state.status.is_ended())
        }
        View::Traffic => model.traffic().count() > 0,
        View::Questions => model.questions().next().is_some(),
    }
}
