//! A try of a task as spans: its own, and those of what was called in it.

use super::attributes::{
    AGENT_ID, AGENT_NAME, CONVERSATION, ERROR_TYPE, OPERATION, PROVIDER, REQUEST_MODEL, RUN, TASK, ending,
    failure, model, text, usage, whole,
};
use super::course::Attempted;
use super::ids::{Part, SpanId, TraceId, root_span, span_of};
use super::seen::{Call, StepSeen};
use super::step::StepPlace;
use super::tries::{End, How};
use super::{Span, SpanKind, SpanLink, content};
use crate::flow::FailureKind;
use crate::ids::{RunId, TaskId};
use crate::time::Millis;

/// How a try ended, in a word, as `muster.outcome`.
fn word(how: &How) -> String {
    match how {
        How::Outcome(outcome) => ending(outcome.ending),
        How::Released { waits: true, .. } => "waits".to_owned(),
        How::Released { waits: false, .. } => "put_down".to_owned(),
        How::Unreadable => "unreadable".to_owned(),
        How::Lost => "lost".to_owned(),
        How::Silent => "silent".to_owned(),
        How::CutOff => "cut_off".to_owned(),
    }
}

/// What went wrong: its type, and in words of ours.
fn error(how: &How) -> Option<(String, String)> {
    let of_ours = |kind: &str, words: &str| Some((kind.to_owned(), words.to_owned()));
    match how {
        How::Outcome(outcome) if outcome.ending.is_success() => None,
        How::Outcome(outcome) => {
            let kind = FailureKind::of(outcome);
            Some((failure(kind), kind.in_words().to_owned()))
        }
        How::Released { .. } => None,
        How::Unreadable => of_ours("unreadable", "what its agent wrote cannot be read"),
        How::Lost => of_ours("agent_lost", "its agent was lost"),
        How::Silent => of_ours("fell_silent", "its agent fell silent"),
        How::CutOff => of_ours("cut_off", "it was taken from its agent"),
    }
}

/// Where the tries of a run stand, and how much is told of them.
pub(super) struct AttemptPlace<'a> {
    pub(super) run: RunId,
    pub(super) trace: TraceId,
    pub(super) conversation: &'a str,
    /// What the plan calls the task, where that is told.
    pub(super) name: Option<&'a str>,
    pub(super) content: bool,
}

impl AttemptPlace<'_> {
    /// The span of a try that is over, and those of the calls in it.
    pub(super) fn spans(&self, over: &Attempted, end: &End) -> Vec<Span> {
        let held = &over.held;
        let (start, until) = (held.from, end.at.max(held.from));
        let id = self.id(over, Part::Attempt);
        let mut spans = vec![self.span(id, over, &end.how, (start, until))];
        for seen in &held.steps {
            let calls = seen.calls(start, until);
            spans.extend(calls.iter().map(|call| self.call(id, over, seen, call)));
        }
        spans
    }

    fn id(&self, over: &Attempted, part: Part) -> SpanId {
        span_of(self.run, &over.task, over.generation, over.held.number, part)
    }

    fn call(&self, above: SpanId, over: &Attempted, seen: &StepSeen, call: &Call<'_>) -> Span {
        let place = StepPlace {
            run: self.run,
            conversation: self.conversation,
            task: &over.task,
            generation: over.generation,
            step: seen.step.number,
            content: self.content,
        };
        let draft = place.draft(call);
        Span {
            trace: self.trace,
            id: self.id(over, draft.part),
            parent: Some(above),
            name: draft.name,
            kind: draft.kind,
            start: call.start,
            end: call.end,
            attributes: draft.attributes,
            links: Vec::new(),
            error: draft.error,
        }
    }

    fn span(&self, id: SpanId, over: &Attempted, how: &How, (start, end): (Millis, Millis)) -> Span {
        let (task, held) = (&over.task, &over.held);
        let operation = operation(task);
        let agent = held.role.as_ref().map_or_else(|| "agent".to_owned(), ToString::to_string);
        let mut attributes = vec![
            text(OPERATION, operation),
            text(AGENT_NAME, agent.clone()),
            text(AGENT_ID, held.agent.as_str()),
            text(CONVERSATION, self.conversation),
        ];
        if let Some((provider, model)) = held.models().last().map(|call| model(&call.model)) {
            attributes.extend([text(PROVIDER, provider), text(REQUEST_MODEL, model)]);
        }
        attributes.extend(usage(&held.used(Some(how), over.before.is_none())));
        attributes.extend([
            text(RUN, self.run.to_string()),
            text(TASK, task.to_string()),
            whole("muster.task.generation", over.generation.0.into()),
            whole("muster.task.attempt", held.number.0.into()),
            whole("muster.steps", held.steps_taken().try_into().unwrap_or(u64::MAX)),
            text("muster.outcome", word(how)),
        ]);
        if !held.host.is_empty() {
            attributes.push(text("host.name", content::brief(&held.host)));
        }
        if held.pid > 0 {
            attributes.push(whole("process.pid", held.pid.into()));
        }
        if let Some(name) = self.name.filter(|_| self.content) {
            attributes.push(text("muster.task.name", content::brief(name)));
        }
        let error = error(how).map(|(kind, words)| {
            attributes.push(text(ERROR_TYPE, kind));
            words
        });
        Span {
            trace: self.trace,
            id,
            parent: Some(root_span(self.run)),
            name: format!("{operation} {agent}"),
            kind: SpanKind::Internal,
            start,
            end,
            attributes,
            links: self.links(over),
            error,
        }
    }

    /// The try before it, and the runs that were begun for it.
    fn links(&self, over: &Attempted) -> Vec<SpanLink> {
        let before = over.before.as_ref().map(|before| SpanLink {
            trace: self.trace,
            span: span_of(self.run, &before.task, before.generation, before.number, Part::Attempt),
            why: before.why.word(),
        });
        let children = over.held.children.iter().map(|run| SpanLink {
            trace: (*run).into(),
            span: root_span(*run),
            why: "child_run",
        });
        before.into_iter().chain(children).collect()
    }
}

/// What the conventions call the work.
const fn operation(task: &TaskId) -> &'static str {
    if matches!(task, TaskId::Plan | TaskId::Refine(_)) { "plan" } else { "invoke_agent" }
}
