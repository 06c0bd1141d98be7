//! When what was done in a run, as spans to be drawn: from its record alone. Pure.
//!
//! Who had which task, and what was done in it when, is what spans for OpenTelemetry are made of as well
//! ([`muster_shared::traces::Course`]). Drawn is also what goes on, and how long nobody had a task.

mod waits;

use muster_shared::flow::{Step, Usage};
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::Entry;
use muster_shared::time::Millis;
use muster_shared::traces::{Attempted, Call, Called, Course, End, How, Stage, StepSeen, Why};
use serde::Serialize;
use serde_json::{Value, json};

use waits::Waits;

/// Most spans that are told. What comes after them is left out, and that is said.
const MOST: usize = 50_000;

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpanKind {
    /// An agent had a task.
    Task,
    /// One turn.
    Step,
    /// A model was asked.
    Model,
    /// A tool was called.
    Tool,
    /// Nobody had the task: it was in a queue, or waited for somebody.
    Wait,
    /// Another agent went on where one was lost.
    Takeover,
}

/// Something that took time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Span {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) kind: SpanKind,
    pub(crate) task: String,
    #[serde(rename = "gen")]
    pub(crate) generation: u32,
    pub(crate) attempt: u32,
    pub(crate) step: Option<u32>,
    pub(crate) name: String,
    pub(crate) agent: Option<String>,
    /// UTC milliseconds.
    pub(crate) start: u64,
    /// The same; nothing while it lasts.
    pub(crate) end: Option<u64>,
    pub(crate) state: Value,
    pub(crate) tokens: u64,
    /// In millionths of a US dollar.
    pub(crate) cost: u64,
}

/// All of a run.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Timeline {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) spans: Vec<Span>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cut: bool,
}

/// The spans of a run, in the order in which they began.
pub(crate) fn timeline(entries: &[Entry]) -> Timeline {
    let (mut course, mut waits, mut spans) = (Course::new(false), Waits::default(), Vec::new());
    let (from, to) =
        (entries.first().map_or(0, |entry| entry.at.0), entries.last().map_or(0, |entry| entry.at.0));
    for entry in entries {
        for over in course.read(entry) {
            if is_lost(&over) && !course.is_held(&over.task, over.generation) {
                waits.begin(&over.task, over.generation, entry.at.0, "its agent was lost");
            }
            Drawing::of(&over, to).draw(&mut spans);
        }
        waits.take(entry);
    }
    for held in course.going_on() {
        Drawing::of(&held, to).draw(&mut spans);
    }
    spans.extend(waits.all(course.has_ended().then_some(to)));
    // What began at the same time stays as it is: first what is above.
    spans.sort_by_key(|span| span.start);
    let cut = spans.len() > MOST;
    spans.truncate(MOST);
    Timeline { from, to, spans, cut }
}

fn is_lost(over: &Attempted) -> bool {
    over.end.as_ref().is_some_and(|end| matches!(end.how, How::Lost))
}

/// A try, and how it is drawn.
struct Drawing<'a> {
    attempted: &'a Attempted,
    id: String,
    /// When it ended, or until when it is known to go on.
    until: Millis,
}

impl<'a> Drawing<'a> {
    fn of(attempted: &'a Attempted, now: u64) -> Self {
        let Attempted { task, generation, held, end, .. } = attempted;
        let id = format!("{task}/{generation}/{}/{}", held.number, held.agent);
        let until = end.as_ref().map_or(Millis(now), |end| end.at).max(held.from);
        Self { attempted, id, until }
    }

    fn draw(&self, spans: &mut Vec<Span>) {
        let held = &self.attempted.held;
        spans.extend(self.takeover());
        spans.push(self.whole());
        spans.extend(held.steps.iter().filter_map(|seen| self.step(seen)));
        for seen in &held.steps {
            let above = self.step_above(seen);
            let calls = seen.calls(held.from, self.until);
            spans.extend(calls.iter().map(|call| self.call(seen, &above, call)));
        }
    }

    fn bare(&self, kind: SpanKind, start: Millis) -> Span {
        let Attempted { task, generation, held, .. } = self.attempted;
        let agent = Some(held.agent.to_string());
        Span { attempt: held.number.0, agent, ..bare(task, *generation, kind, start.0) }
    }

    /// When something ended that ends with the try: not at all as long as that goes on.
    fn end(&self) -> Option<u64> {
        self.attempted.end.as_ref().map(|_| self.until.0)
    }

    fn whole(&self) -> Span {
        let Attempted { held, end, before, .. } = self.attempted;
        let used = held.used(end.as_ref().map(|end| &end.how), before.is_none());
        Span {
            id: self.id.clone(),
            name: held.role.as_ref().map(ToString::to_string).unwrap_or_default(),
            end: self.end(),
            state: state(end.as_ref()),
            tokens: used.tokens(),
            cost: used.cost_micros,
            ..self.bare(SpanKind::Task, held.from)
        }
    }

    fn takeover(&self) -> Option<Span> {
        let Attempted { held, before, .. } = self.attempted;
        let before = before.as_ref().filter(|before| before.why == Why::Takeover)?;
        let loss = before.loss?;
        Some(Span {
            id: format!("{}/takeover", self.id),
            name: format!("{} goes on where {} {loss}", held.agent, before.agent),
            end: Some(held.from.0),
            ..self.bare(SpanKind::Takeover, held.from)
        })
    }

    fn step_id(&self, step: &Step) -> String {
        format!("{}/s{}", self.id, step.number)
    }

    /// A step as a whole, by the entry that says most of it.
    fn step(&self, seen: &StepSeen) -> Option<Span> {
        let (from, step) = (self.attempted.held.from, &seen.step);
        let (end, state) = match seen.stage {
            Stage::Taken => (Some(seen.at.clamp(from, self.until).0), "done"),
            Stage::Begun if self.end().is_none() => (None, "processing"),
            Stage::Begun => (self.end(), "cut_off"),
            Stage::Journaled => return None,
        };
        let used = step.calls.iter().fold(Usage::default(), |mut used, call| {
            used += call.usage;
            used
        });
        Some(Span {
            id: self.step_id(step),
            parent: Some(self.id.clone()),
            step: Some(step.number),
            name: step.action.name.clone(),
            end,
            state: json!(state),
            tokens: used.tokens(),
            cost: used.cost_micros,
            ..self.bare(SpanKind::Step, seen.began().clamp(from, self.until))
        })
    }

    /// What the calls of an entry stand below: their step, unless no other entry says more of it.
    fn step_above(&self, seen: &StepSeen) -> String {
        let number = seen.step.number;
        let is_drawn = |one: &StepSeen| one.step.number == number && one.stage != Stage::Journaled;
        if seen.stage != Stage::Journaled || self.attempted.held.steps.iter().any(is_drawn) {
            return self.step_id(&seen.step);
        }
        self.id.clone()
    }

    fn call(&self, seen: &StepSeen, above: &str, call: &Call<'_>) -> Span {
        let (kind, letter, usage, end, state) = match call.called {
            Called::Model(answered) => {
                let state = if answered.cut { "cut" } else { "done" };
                (SpanKind::Model, 'm', answered.usage, Some(call.end.0), json!(state))
            }
            Called::Tool(_, observation) => {
                (SpanKind::Tool, 't', Usage::default(), Some(call.end.0), json!(observation.status))
            }
            Called::Unheard(_) => {
                let state = if self.end().is_none() { "processing" } else { "effect_unknown" };
                (SpanKind::Tool, 't', Usage::default(), self.end(), json!(state))
            }
        };
        Span {
            id: format!("{}/{letter}{}", self.step_id(&seen.step), call.place),
            parent: Some(above.to_owned()),
            step: Some(seen.step.number),
            name: call.called.name(),
            end,
            state,
            tokens: usage.tokens(),
            cost: usage.cost_micros,
            ..self.bare(kind, call.start)
        }
    }
}

/// How a try stands, as the page knows it.
fn state(end: Option<&End>) -> Value {
    let word = match end.map(|end| &end.how) {
        None => "processing",
        Some(How::Outcome(outcome)) => return json!(outcome.ending),
        Some(How::Released { is_parked: true, .. }) => "parked",
        Some(How::Released { is_parked: false, .. }) => "released",
        Some(How::Unreadable) => "unreadable",
        Some(How::Lost) => "lost",
        Some(How::Silent) => "silent",
        Some(How::CutOff) => "cut_off",
    };
    json!(word)
}

fn bare(task: &TaskId, generation: Generation, kind: SpanKind, start: u64) -> Span {
    Span {
        id: String::new(),
        parent: None,
        kind,
        task: task.to_string(),
        generation: generation.0,
        attempt: 0,
        step: None,
        name: String::new(),
        agent: None,
        start,
        end: None,
        state: Value::Null,
        tokens: 0,
        cost: 0,
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
