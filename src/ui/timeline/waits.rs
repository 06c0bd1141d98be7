//! When nobody had a task: it was in a queue, or waited for somebody. Pure.

use std::collections::BTreeMap;

use muster_shared::flow::TaskOffered;
use muster_shared::ids::{Generation, TaskId};
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use serde_json::json;

use super::{Span, SpanKind, bare};

/// Longest reason that is told, in characters.
const LONGEST: usize = 200;

/// The waits of a run.
#[derive(Default)]
pub(super) struct Waits {
    spans: Vec<Span>,
    /// By task: the wait that is not over, in `spans`.
    open: BTreeMap<TaskId, usize>,
}

impl Waits {
    /// Takes the next entry of the record.
    pub(super) fn take(&mut self, entry: &Entry) {
        let at = entry.at.0;
        match &entry.event {
            RecordEvent::Decided(decided) => {
                if let Some(offer) = &decided.offer {
                    self.offered(offer, at);
                }
            }
            RecordEvent::Offered(offer) => self.offered(offer, at),
            RecordEvent::Agent(key, event) => match event {
                AgentEvent::Started(_) => self.end(&key.task, at),
                AgentEvent::Released(released) => {
                    let why = if released.reason.is_empty() { "put down" } else { released.reason.as_str() };
                    self.begin(&key.task, key.generation, at, why);
                }
                _ => {}
            },
        }
    }

    /// From now on nobody has the task.
    pub(super) fn begin(&mut self, task: &TaskId, generation: Generation, at: u64, why: &str) {
        self.end(task, at);
        self.open.insert(task.clone(), self.spans.len());
        self.spans.push(Span {
            id: format!("{task}/{generation}/wait{}", self.spans.len()),
            name: why.chars().take(LONGEST).collect(),
            state: json!("waiting"),
            ..bare(task, generation, SpanKind::Wait, at)
        });
    }

    /// All of them. Where the run has ended, so has what was still waited for.
    pub(super) fn all(mut self, ended: Option<u64>) -> Vec<Span> {
        if let Some(at) = ended {
            for index in std::mem::take(&mut self.open).into_values() {
                self.close(index, at, "cut_off");
            }
        }
        self.spans
    }

    fn offered(&mut self, offer: &TaskOffered, at: u64) {
        self.begin(&offer.task, offer.generation, at, &format!("in the queue of {}", offer.queue));
    }

    fn end(&mut self, task: &TaskId, at: u64) {
        if let Some(index) = self.open.remove(task) {
            self.close(index, at, "done");
        }
    }

    fn close(&mut self, index: usize, at: u64, state: &str) {
        if let Some(span) = self.spans.get_mut(index) {
            (span.end, span.state) = (Some(at), json!(state));
        }
    }
}
