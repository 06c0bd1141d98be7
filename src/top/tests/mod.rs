mod keys;
mod pictures;

use std::sync::Arc;

use muster_bus::{RegistryChange, Tapped};
use muster_shared::flow::{About, OnTimeout, Question};
use muster_shared::ids::{QuestionId, RunId, Seq};
use muster_shared::run::event::QuestionAsked;
use muster_shared::run::{Entry, RecordEvent, RunEvent};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Envelope};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::live::model::{Change, Input, Link, Model, Most};
use crate::render::golden;

/// Some time after the run was asked.
const NOW: Millis = Millis(1_795_300_000_000);

fn run(n: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(0x0197_a1b2_0000_7000_8000_0000_0000_0000 + n))
}

fn record(run: RunId) -> Vec<Arc<Entry>> {
    golden::entries_of(run).into_iter().map(Arc::new).collect()
}

/// The same entry with other events.
fn changed(entry: &Entry, change: impl FnOnce(&mut muster_shared::run::Decided)) -> Arc<Entry> {
    let mut entry = entry.clone();
    if let RecordEvent::Decided(decided) = &mut entry.event {
        change(decided);
    }
    Arc::new(entry)
}

/// A fleet with a process, a run at work, and one that has ended.
fn model() -> Model {
    let mut model = Model::new(Most::default());
    model.take(Input::Link(Link::Anew("nats://me:secret@127.0.0.1:4222".into())));
    for (agent, role, busy) in
        [("orchestrator-1", "orchestrator", 2), ("worker-1", "worker", 1), ("researcher-1", "researcher", 0)]
    {
        let profile = json!({
            "agent": agent, "role": role, "busy": busy, "slots": 8, "pid": 7, "host": "mill", "resident_bytes": 12_582_912,
            "started_at": NOW.0 - 3_600_000, "model": "openai/scripted",
        });
        let change = RegistryChange::Joined(serde_json::from_value(profile).unwrap());
        model.take(Input::Processes { change: Box::new(change), at: NOW });
    }
    model.take(Input::Record { run: run(1), entries: record(run(1)) });
    model.take(Input::Record { run: run(2), entries: record(run(2))[..13].to_vec() });
    model.take(Input::CaughtUp);
    model
}

/// Somebody is asked by the run that is at work.
fn ask(model: &mut Model, about: About, choices: &[&str]) {
    let last = model.run(run(2)).unwrap().last();
    let asked = QuestionAsked {
        id: QuestionId(1),
        about,
        question: Question {
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            ..Question::new("Which of the two sources counts?")
        },
        expires: NOW.after(std::time::Duration::from_secs(600)),
        on_timeout: OnTimeout::Proceed,
    };
    let entry = changed(&record(run(2))[0], |decided| {
        decided.inputs = Vec::new();
        decided.now = NOW;
        decided.events = vec![RunEvent::QuestionAsked(asked)];
    });
    let entry = Arc::new(Entry { seq: Seq(last.0 + 1), ..(*entry).clone() });
    model.take(Input::Entry(entry));
    assert_eq!(model.questions().count(), 1, "{:?}", model.run(run(2)).unwrap().damaged());
}

fn passes(model: &mut Model, text: &str) -> Vec<Change> {
    let body = Body::Error(serde_json::from_value(json!({ "reason": text })).unwrap());
    let mut envelope: Envelope =
        serde_json::from_value(json!({ "body": { "type": "error", "content": { "reason": "" } } })).unwrap();
    envelope.body = body;
    let tapped = Tapped {
        subject: "dlq.worker".into(),
        at: NOW,
        bytes: vec![0; 40].into(),
        headers: Vec::new(),
        content: Ok(envelope),
    };
    model.take(Input::Tapped { tapped: Box::new(tapped), dropped: 0 })
}

/// The screen as text, a line for each row, without the spaces at their ends.
fn seen_in(top: &Top, model: &Model, look: Look, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, top, model, look)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let row = |y: u16| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol().to_owned());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..height).map(row).collect()
}

fn seen(top: &Top, model: &Model) -> Vec<String> {
    seen_in(top, model, Look::new(true), top.size.0, top.size.1)
}

fn text(top: &Top, model: &Model) -> String {
    seen(top, model).join("\n")
}

fn at(view: View) -> Top {
    Top::new(view, (80, 24), NOW)
}

/// Presses keys one after the other. Gives what is to be done.
fn press(top: &mut Top, model: &Model, keys: &[Key]) -> Vec<Effect> {
    keys.iter().flat_map(|key| update(top, model, Event::Key(*key))).collect()
}

fn typed(top: &mut Top, model: &Model, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| update(top, model, Event::Key(Key::Char(c)))).collect()
}
