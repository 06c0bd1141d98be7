//! The record gone through entry by entry: which spans a decision closes.
//!
//! A span is told once, with the decision that closes it: until then nobody knows whether what an agent wrote counts. So
//! whoever wrote that decision can send it, and nobody else has to.

use super::attempt::AttemptPlace;
use super::attributes::{CONVERSATION, ERROR_TYPE, OPERATION, RUN, run_end, text, usage};
use super::course::{Attempted, Course};
use super::ids::{ParentSpan, TraceId, root_span};
use super::{Span, SpanKind, SpanLink, content};
use crate::ids::{AgentId, RunId};
use crate::run::{Decided, Entry, RecordEvent, RunState};
use crate::time::Millis;

/// What a decision closed.
#[derive(Debug, Default)]
pub struct Closed {
    /// The spans.
    pub spans: Vec<Span>,
    /// Who decided; nothing where the entry is no decision.
    pub by: Option<AgentId>,
    /// Whether the run ended with it.
    pub has_ended: bool,
}

/// Makes spans of the record of a run, as it goes through it.
#[derive(Debug)]
pub struct Tracer {
    content: bool,
    course: Course,
    place: Option<Place>,
}

/// Where the spans of a run stand.
#[derive(Debug, Clone)]
struct Place {
    run: RunId,
    trace: TraceId,
    above: Option<ParentSpan>,
    conversation: String,
    began: Millis,
}

impl Tracer {
    /// Begins with the first entry. `content` says whether what people, models and tools said is told too.
    #[must_use]
    pub fn new(content: bool) -> Self {
        Self { content, course: Course::new(content), place: None }
    }

    /// Whether spans are recorded: always, unless the client of the run does not sample its trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.place.as_ref().and_then(|place| place.above).is_none_or(|above| above.is_sampled)
    }

    /// Takes the next entry of the record, and says what it closed.
    pub fn read(&mut self, entry: &Entry) -> Closed {
        if self.course.has_ended() {
            return Closed::default();
        }
        let over = self.course.read(entry);
        if self.place.is_none() {
            self.place = self.course.state().map(|state| Place::of(state, entry.at));
        }
        if let RecordEvent::Decided(decided) = &entry.event {
            self.closed(decided, &over, entry.at)
        } else {
            Closed::default()
        }
    }

    fn closed(&self, decided: &Decided, over: &[Attempted], at: Millis) -> Closed {
        let mut spans: Vec<Span> = over.iter().flat_map(|one| self.close(one)).collect();
        let has_ended = self.course.has_ended();
        if has_ended {
            spans.extend(self.root(at));
        }
        Closed { spans, by: Some(decided.by.clone()), has_ended }
    }

    fn close(&self, over: &Attempted) -> Vec<Span> {
        let (Some(place), Some(end)) = (&self.place, &over.end) else { return Vec::new() };
        let planned = over
            .task
            .leaf()
            .and_then(|index| self.course.state()?.plan.as_ref()?.tasks.get(&index.planned()));
        let at_place = AttemptPlace {
            run: place.run,
            trace: place.trace,
            conversation: &place.conversation,
            name: planned.map(|planned| planned.name.as_str()),
            content: self.content,
        };
        at_place.spans(over, end)
    }

    /// The span of the run as a whole.
    fn root(&self, at: Millis) -> Option<Span> {
        let (place, state) = (self.place.as_ref()?, self.course.state());
        let workflow = state
            .and_then(|state| state.goal.blueprint.as_ref())
            .map_or("muster", |filled| &filled.blueprint.name);
        let mut attributes = vec![
            text(OPERATION, "invoke_workflow"),
            text("gen_ai.workflow.name", workflow),
            text(CONVERSATION, place.conversation.clone()),
            text(RUN, place.run.to_string()),
        ];
        let mut error = None;
        if let Some(state) = state {
            attributes.extend(usage(&state.used()));
            let (status, wrong) = run_end(state.status);
            attributes.push(text("muster.run.status", status));
            if let Some((kind, words)) = wrong {
                attributes.push(text(ERROR_TYPE, kind));
                error = Some(words.to_owned());
            }
            if self.content {
                attributes.push(text("gen_ai.input.messages", content::asked(&state.goal.text)));
                if let Some(report) = &state.report {
                    attributes.push(text("gen_ai.output.messages", content::answered(&report.body, "stop")));
                }
            }
        }
        Some(Span {
            trace: place.trace,
            id: root_span(place.run),
            parent: place.above.map(|above| above.span),
            name: format!("invoke_workflow {workflow}"),
            kind: SpanKind::Internal,
            start: place.began,
            end: at.max(place.began),
            attributes,
            links: state.map(links_of_run).unwrap_or_default(),
            error,
        })
    }
}

impl Place {
    fn of(state: &RunState, began: Millis) -> Self {
        let above = state.goal.trace.as_ref().and_then(ParentSpan::read);
        let first = state.goal.conversation.first().map_or(state.id, |turn| turn.run);
        Self {
            run: state.id,
            trace: above.map_or_else(|| state.id.into(), |above| above.trace),
            above,
            conversation: first.to_string(),
            began,
        }
    }
}

/// What a run has to do with others: the one of whose task it is a part, where it has a trace of its own, and the one that
/// it was forked from.
fn links_of_run(state: &RunState) -> Vec<SpanLink> {
    let link = |run: RunId, why| SpanLink { trace: run.into(), span: root_span(run), why };
    let parent = state.goal.parent.as_ref().filter(|_| state.goal.trace.is_none());
    let parent = parent.map(|parent| link(parent.run, "parent_run"));
    parent.into_iter().chain(state.forked.map(|origin| link(origin.run, "forked_from"))).collect()
}
