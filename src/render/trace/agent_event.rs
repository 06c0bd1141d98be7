//! What an agent reports of a task, in words.

use muster_shared::flow::{
    Action, CachedAnswer, Note, Observation, ObservationStatus, Outcome, Product, Step,
};
use muster_shared::ids::TaskId;
use muster_shared::run::{AgentEvent, AgentKey};
use serde_json::Value;

use super::super::{doing, figures};
use super::Timeline;

/// Most characters of a refusal with its chain of grants.
const MOST_REFUSED: usize = 2_000;

impl Timeline {
    /// What happened, and the details below it.
    pub(super) fn agent(&self, key: &AgentKey, event: &AgentEvent) -> (String, Vec<String>) {
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
            AgentEvent::ToolStarted(tool) => (
                format!("{task} step {} is calling {}", tool.step.number, doing::called(&tool.step)),
                Vec::new(),
            ),
            AgentEvent::Step(step) => (step_head(task, step), self.step_giving(step, None)),
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
        for one in &step.more {
            line("action", &format!("{} {}", one.action.name, one.action.arguments));
            if let Some(observation) = &one.observation {
                line("observation", &observed(observation));
            }
        }
        let others = step.notes.iter().filter(|note| !matches!(note, Note::Denied { .. }));
        others.for_each(|note| line("note", &note.to_string()));
        // Who took a right away is told whole.
        let denied = Note::denied(&step.notes).map(|(_, refusal)| refusal.to_string());
        lines.extend(
            denied.map(|text| format!("{:<12}{}", "refused", figures::one_line(&text, MOST_REFUSED))),
        );
        lines
    }
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
    let cached = observation.cached.map_or_else(String::new, |CachedAnswer { age_ms, saved_ms }| {
        format!(", answered {} ago, {} spared", figures::millis(age_ms), figures::millis(saved_ms))
    });
    format!("[{status}, {}{cached}] {}", figures::millis(observation.millis), observation.content)
}

/// The name that a value has in the record.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => "?".to_owned(),
    }
}
