//! `muster trace`: the record of a run as a timeline.

use std::collections::BTreeMap;

use muster_shared::flow::{
    Action, Observation, ObservationStatus, Outcome, Placement, Product, Step, TaskOffered, Work,
};
use muster_shared::ids::{AgentId, TaskId};
use muster_shared::run::event::Words;
use muster_shared::run::{AgentEvent, AgentKey, Decided, Entry, Input, RecordEvent, Request, RunEvent};
use muster_shared::time::Millis;
use serde_json::{Value, json};

use super::figures;
use super::paint::Paint;

/// Most characters of a thought, an argument or an observation, unless all is wanted.
const BRIEF: usize = 240;

/// Most characters of what somebody calls themselves.
const LONGEST_NAME: usize = 40;

/// Writes entries one after the other; remembers when the run began and which process each agent is.
#[derive(Debug)]
pub(crate) struct Timeline {
    paint: Paint,
    full: bool,
    began: Option<Millis>,
    processes: BTreeMap<AgentId, u32>,
}

impl Timeline {
    /// An empty timeline.
    pub(crate) const fn new(paint: Paint, full: bool) -> Self {
        Self { paint, full, began: None, processes: BTreeMap::new() }
    }

    /// An entry as text. With a task, only what is about it; nothing when nothing is.
    pub(crate) fn entry(&mut self, entry: &Entry, only: Option<&TaskId>) -> Option<String> {
        let began = *self.began.get_or_insert(entry.at);
        if let RecordEvent::Agent(key, AgentEvent::Started(started)) = &entry.event {
            // One that does not say which process it is has none to be shown.
            if started.pid > 0 {
                self.processes.insert(key.agent.clone(), started.pid);
            }
        }
        let (who, what, details) = match &entry.event {
            RecordEvent::Decided(decided) => {
                let lines = self.decision(decided, only);
                if only.is_some() && lines.is_empty() {
                    return None;
                }
                (decided.by.to_string(), format!("decided on {}", inputs(&decided.inputs)), lines)
            }
            RecordEvent::Offered(offer) => {
                if only.is_some_and(|task| *task != offer.task) {
                    return None;
                }
                ("offer".to_owned(), offered(offer), Vec::new())
            }
            RecordEvent::Agent(key, event) => {
                if only.is_some_and(|task| *task != key.task) {
                    return None;
                }
                let (what, details) = self.agent(key, event);
                (self.who(&key.agent), what, details)
            }
        };
        let at = format!("{:>9}", format!("+{}", figures::span(entry.at.since(began))));
        let mut lines = vec![format!(
            "{} {} {} {what}",
            self.paint.dim(&format!("{:>6}", entry.seq)),
            self.paint.dim(&at),
            self.paint.bold(&who)
        )];
        lines.extend(details.into_iter().map(|line| figures::indent(&line, 17)));
        Some(lines.join("\n"))
    }

    fn who(&self, agent: &AgentId) -> String {
        self.processes.get(agent).map_or_else(|| agent.to_string(), |pid| format!("{agent} (pid {pid})"))
    }

    fn decision(&self, decided: &Decided, only: Option<&TaskId>) -> Vec<String> {
        let relevant = |event: &&RunEvent| only.is_none_or(|task| event.task().as_ref() == Some(task));
        let events = decided.events.iter().filter(relevant).map(|event| self.run_event(event));
        let offer = decided.offer.as_deref().filter(|offer| only.is_none_or(|task| *task == offer.task));
        let placements =
            decided.placements.iter().filter(|placed| only.is_none_or(|task| *task == placed.task));
        let placed = placements.filter(|placed| !placed.reasons.is_empty()).map(|placed| self.placed(placed));
        events.chain(offer.map(|offer| format!("→ {}", offered(offer)))).chain(placed).collect()
    }

    /// To whom a task goes, why, and why not to others.
    fn placed(&self, placement: &Placement) -> String {
        let to = placement.to.to_string();
        let mut text = format!(
            "{} goes to {}: {}",
            placement.task,
            to.trim_start_matches('@'),
            placement.reasons.join("; ")
        );
        for other in &placement.passed_over {
            text.push_str(&format!("\n  not to {}: {}", other.agent, self.brief(&other.reason)));
        }
        format!("→ {text}")
    }

    fn run_event(&self, event: &RunEvent) -> String {
        let words =
            Words { brief: &|text| self.brief(text), name: &|name| figures::one_line(name, LONGEST_NAME) };
        format!("→ {}", event.text(words))
    }

    fn agent(&self, key: &AgentKey, event: &AgentEvent) -> (String, Vec<String>) {
        let task = &key.task;
        match event {
            AgentEvent::Started(started) => {
                let after = match started.after_step {
                    0 => String::new(),
                    step => format!(", going on after step {step}"),
                };
                let what = format!(
                    "started {task} (generation {}{}){}{after}",
                    key.generation,
                    if started.attempt.0 == 0 {
                        String::new()
                    } else {
                        format!(", attempt {}", started.attempt)
                    },
                    if started.host.is_empty() { String::new() } else { format!(" on {}", started.host) },
                );
                (what, Vec::new())
            }
            AgentEvent::ToolStarted(tool) => {
                (format!("{task} step {} is calling {}", tool.step.number, tool.step.action.name), Vec::new())
            }
            AgentEvent::Step(step) => (step_head(task, step), self.step(step)),
            AgentEvent::Released(released) => {
                (format!("handed {task} over: {}", self.brief(&released.reason)), Vec::new())
            }
            AgentEvent::Outcome(outcome) => self.outcome(task, outcome),
            AgentEvent::Unreadable(unreadable) => {
                let why = self.brief(&unreadable.why);
                (
                    format!(
                        "{} of {task} {}",
                        unreadable.kind,
                        self.paint.bad(&format!("[unreadable: {why}]"))
                    ),
                    Vec::new(),
                )
            }
        }
    }

    fn outcome(&self, task: &TaskId, outcome: &Outcome) -> (String, Vec<String>) {
        let mut details = outcome.last_step.as_deref().map_or_else(Vec::new, |step| {
            let mut lines = vec![format!("step {} ({})", step.number, figures::millis(step.millis))];
            lines.extend(self.step_giving(step, outcome.product.as_ref()));
            lines
        });
        if !outcome.reason.is_empty() {
            details.push(format!("because     {}", self.brief(&outcome.reason)));
        }
        details.push(format!("used        {}", figures::usage(&outcome.usage)));
        (format!("ended {task}: {}", word(&outcome.ending)), details)
    }

    fn step(&self, step: &Step) -> Vec<String> {
        self.step_giving(step, None)
    }

    /// A step; what the last one submitted stands in what the task gave.
    fn step_giving(&self, step: &Step, given: Option<&Product>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |name: &str, text: &str| {
            if !text.trim().is_empty() {
                lines.push(format!("{name:<12}{}", self.brief(text)));
            }
        };
        for told in &step.heard {
            let name = told.from.as_ref().map(|_| format!(" ({})", told.name)).unwrap_or_default();
            line("heard", &format!("from {}{name}: {}", told.teller(), told.text));
        }
        line("thought", &step.thought.text);
        line("reasoning", &step.thought.reasoning);
        line("plan", &step.thought.plan);
        line("criticism", &step.thought.criticism);
        let Action { name, arguments } = &step.action;
        match (arguments, given.map(serde_json::to_string)) {
            (Value::Null, Some(Ok(given))) => line("action", &format!("{name} {given}")),
            // No action came of the last answers.
            (Value::Null, _) if name == Action::SUBMIT => {}
            (Value::Null, _) => line("action", name),
            (arguments, _) => line("action", &format!("{name} {arguments}")),
        }
        if let Some(observation) = &step.observation {
            line("observation", &observed(observation));
        }
        step.notes.iter().for_each(|note| line("note", &note.to_string()));
        lines
    }

    fn brief(&self, text: &str) -> String {
        if self.full { figures::harmless(text) } else { figures::one_line(text, BRIEF) }
    }
}

fn offered(offer: &TaskOffered) -> String {
    let priority = match &offer.work {
        Work::Execute { task, .. } if task.priority != 0 => format!(", priority {}", task.priority),
        Work::Execute { .. }
        | Work::Plan { .. }
        | Work::Reflect { .. }
        | Work::Refine { .. }
        | Work::Write { .. }
        | Work::DraftReview { .. } => String::new(),
    };
    format!("{} offered to {} (generation {}{priority})", offer.task, offer.queue, offer.generation)
}

fn step_head(task: &TaskId, step: &Step) -> String {
    let outside = figures::millis(step.outside_millis);
    format!("{task} step {} ({}, of which outside {outside})", step.number, figures::millis(step.millis))
}

fn observed(observation: &Observation) -> String {
    let status = match observation.status {
        ObservationStatus::Success => "ok",
        ObservationStatus::Error => "error",
        ObservationStatus::Timeout => "timed out",
        ObservationStatus::Refused => "refused",
    };
    format!("[{status}, {}] {}", figures::millis(observation.millis), observation.content)
}

/// The name that a value has in the record.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => "?".to_owned(),
    }
}

fn inputs(inputs: &[Input]) -> String {
    let words = inputs.iter().map(|input| match input {
        Input::Goal { .. } => "a goal".to_owned(),
        Input::Fork { from, .. } => format!("a fork of {} at entry {}", from.run.short(), from.at),
        Input::Agent { seq } => format!("entry {seq}"),
        Input::Unreadable { seq, why: _ } => format!("entry {seq}, which cannot be read"),
        Input::Capacity => "free capacity".to_owned(),
        Input::ContractBroken { faults, .. } => {
            format!("a result breaks its contract: {}", faults.join("; "))
        }
        Input::Bids { task, bids, .. } => format!("{} bids for {task}", bids.len()),
        Input::ChildEnded { child, .. } => format!("the end of {}", child.short()),
        Input::Timer => "a deadline".to_owned(),
        Input::AgentLost { agent, .. } => format!("the loss of {agent}"),
        Input::Silent { task, agent, for_ms, .. } => {
            format!("the silence of {agent} about {task} for {} s", for_ms / 1000)
        }
        Input::Cancel { by, .. } => format!("a cancellation by {}", figures::one_line(by, LONGEST_NAME)),
        Input::Pause { request } => format!("a pause asked for by {}", who(request)),
        Input::Resume { request, .. } => format!("a resumption asked for by {}", who(request)),
        Input::Skip { task, request } => format!("a wish by {} to skip {task}", who(request)),
        Input::Redo { task, request } => format!("a wish by {} to redo {task}", who(request)),
        Input::Edit { task, request, .. } => match task {
            Some(task) => format!("a new goal for {task} by {}", who(request)),
            None => format!("a new goal by {}", who(request)),
        },
        Input::Approve { request, .. } => format!("an approval by {}", who(request)),
        Input::Reject { request } => format!("a rejection by {}", who(request)),
        Input::Answer { question, request, .. } => {
            format!("an answer to question {question} by {}", who(request))
        }
        Input::SetContext { key, request, .. } => format!("a value for context.{key} by {}", who(request)),
        Input::Refuse { .. } => "a goal that is refused".to_owned(),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing new".to_owned() } else { words.join(", ") }
}

fn who(request: &Request) -> String {
    figures::one_line(&request.by, LONGEST_NAME)
}

/// What is said at once, while a run is watched, of an entry of an agent that cannot be read.
pub(crate) fn unreadable(entry: &Entry) -> Option<String> {
    let RecordEvent::Agent(key, AgentEvent::Unreadable(unreadable)) = &entry.event else { return None };
    let why = figures::one_line(&unreadable.why, BRIEF);
    Some(format!("{} of task {} by {}: [unreadable: {why}]", unreadable.kind, key.task, key.agent))
}

/// An entry that nobody can read, and which is none of an agent about a task: a line, or JSON.
pub(crate) fn stray(found: &muster_bus::Unreadable, paint: Paint) -> String {
    let why = figures::one_line(&found.reason, BRIEF);
    format!(
        "{} {:>9} {} {}",
        paint.dim(&format!("{:>6}", found.seq)),
        "",
        paint.bold(&figures::one_line(&found.subject, 120)),
        paint.bad(&format!("[unreadable: {why}]"))
    )
}

/// The same as JSON.
pub(crate) fn stray_json(found: &muster_bus::Unreadable) -> Value {
    json!({ "kind": "unreadable", "seq": found.seq, "subject": found.subject, "unreadable": found.reason })
}

/// An entry as JSON. The run's secret is left out.
pub(crate) fn entry_json(entry: &Entry) -> Value {
    let mut value = match &entry.event {
        RecordEvent::Decided(decided) => json!({ "kind": "decided", "by": decided.by, "event": decided }),
        RecordEvent::Offered(offer) => {
            json!({ "kind": "offered", "task": offer.task, "generation": offer.generation, "event": offer })
        }
        RecordEvent::Agent(key, event) => {
            let body = match event {
                AgentEvent::Started(started) => json!(started),
                AgentEvent::ToolStarted(tool) => json!(tool),
                AgentEvent::Step(step) => json!(step),
                AgentEvent::Released(released) => json!(released),
                AgentEvent::Outcome(outcome) => json!(outcome),
                AgentEvent::Unreadable(unreadable) => json!({ "unreadable": unreadable.why }),
            };
            json!({
                "kind": event.kind().to_string(), "role": key.role, "by": key.agent, "task": key.task,
                "generation": key.generation, "event": body,
            })
        }
    };
    value["seq"] = json!(entry.seq);
    value["at"] = json!(entry.at);
    value["run"] = json!(entry.run);
    hide_secret(&mut value);
    value
}

/// The run's secret guards the fences of prompts; whoever may read a trace need not know it.
fn hide_secret(value: &mut Value) {
    for list in ["events", "inputs"] {
        for item in value["event"][list].as_array_mut().into_iter().flatten() {
            let fields = item.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
            for field in fields {
                if let Some(secret) = field.get_mut("secret") {
                    *secret = json!("[redacted]");
                }
            }
            if let Some(secret) = item.get_mut("secret") {
                *secret = json!("[redacted]");
            }
        }
    }
    for nonce in ["/event/nonce", "/event/offer/nonce"] {
        if let Some(nonce) = value.pointer_mut(nonce) {
            *nonce = json!("[redacted]");
        }
    }
}
