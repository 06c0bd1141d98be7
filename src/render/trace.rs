//! `muster trace`: the record of a run as a timeline.

mod agent_event;
mod input;
mod json;

use std::collections::BTreeMap;

use muster_shared::flow::{Placement, TaskOffered};
use muster_shared::ids::{AgentId, TaskId};
use muster_shared::run::event::Words;
use muster_shared::run::{AgentEvent, Decided, Entry, RecordEvent, RunEvent};
use muster_shared::time::Millis;

use self::input::inputs;
pub(crate) use self::json::{entry_json, stray_json};
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
        let words =
            Words { brief: &|text| self.brief(text), name: &|name| figures::one_line(name, LONGEST_NAME) };
        let events = decided.events.iter().filter(relevant).map(|event| format!("→ {}", event.text(words)));
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
            text += &format!("\n  not to {}: {}", other.agent, self.brief(&other.reason));
        }
        format!("→ {text}")
    }

    fn brief(&self, text: &str) -> String {
        if self.full { figures::harmless(text) } else { figures::one_line(text, BRIEF) }
    }
}

fn offered(offer: &TaskOffered) -> String {
    let priority = offer.work.leaf().map(|task| task.priority).filter(|priority| *priority != 0);
    let priority = priority.map_or_else(String::new, |priority| format!(", priority {priority}"));
    let rights = offer.rights.effective().told();
    let rights = if rights.is_empty() { String::new() } else { format!(", may use {}", rights.join("; ")) };
    let trial = offer.trial.as_ref().map_or_else(String::new, |mark| {
        format!(", trial {}: {}", figures::one_line(&mark.trial, LONGEST_NAME), mark.arm.as_str())
    });
    let (task, queue, generation) = (&offer.task, &offer.queue, offer.generation);
    format!("{task} offered to {queue} (generation {generation}{priority}{trial}){rights}")
}

/// What is said at once, while a run is watched, of an entry of an agent that cannot be read.
pub(crate) fn unreadable(entry: &Entry) -> Option<String> {
    let RecordEvent::Agent(key, AgentEvent::Unreadable(unreadable)) = &entry.event else { return None };
    let why = figures::one_line(&unreadable.why, BRIEF);
    Some(format!("{} of task {} by {}: [unreadable: {why}]", unreadable.kind, key.task, key.agent))
}

/// An entry that nobody can read, and which is none of an agent about a task.
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
