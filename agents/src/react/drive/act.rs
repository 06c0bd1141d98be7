//! Tools: announced, called, and called again where that may be.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures::future::{self, BoxFuture};
use futures::{FutureExt, StreamExt, stream};
use muster_shared::flow::{
    Action, Answered, Awaited, CallVerdict, FurtherAction, Note, Observation, ObservationStatus, Step,
    TaskOffered, Wait,
};
use muster_shared::run::{AgentEvent, ToolStarted};

use super::super::approval::{CallStanding, standing};
use super::super::decide::ChosenAction;
use super::super::interrupt::unless_handed_over;
use super::super::journal::Journal;
use super::super::loop_detection::refused;
use super::super::resources::TaskResources;
use super::super::uncertain::{Resumption, resume};
use super::{Clock, End, Failure, TaskSession, Toolbox};
use crate::guards::Seen;
use crate::tools::documents::is_search;
use crate::tools::{ToolContext, ToolResult, ToolStatus};
use muster_offline::seen_lines;

/// The lines of each document that a task was shown.
type ShownLines = Arc<BTreeMap<String, BTreeSet<u64>>>;

/// Most tools of one answer that run at the same time.
const MOST_AT_ONCE: usize = 8;
/// What is told of a call beside others that waits.
const WAITS_ALONE: &str = "Not done: it waits for somebody. Call it by itself.";

/// What came of the calls of an answer.
pub(super) enum Acted {
    /// Something to observe of each.
    Observed(SeenOfAll),
    /// Nothing before this is there.
    Waits(Box<Wait>),
}

/// What was observed of the calls of an answer.
pub(super) struct SeenOfAll {
    /// Of the first.
    pub(super) first: Observation,
    /// Of each further one.
    pub(super) more: Vec<FurtherAction>,
    /// What guards said of it.
    pub(super) notes: Vec<Note>,
}

/// What came of one call.
enum OneActed {
    Observed(Seen),
    Waits(Box<Wait>),
}

impl OneActed {
    /// What we say of a call ourselves.
    fn told(observation: Observation) -> Self {
        Self::Observed(Seen::told(observation))
    }
}

/// One call of a tool.
struct Call<'a> {
    action: &'a Action,
    /// By which a call with side effects is known.
    key: String,
    /// How it stands by what guards and people said of it before.
    standing: CallStanding<'a>,
    /// Whether it is the first of its step.
    is_first: bool,
}

/// The action at this place of a step, if it is not known what came of it.
fn undone(step: &Step, at: usize) -> Option<&Action> {
    step.acts().nth(at).filter(|(_, seen)| seen.is_none()).map(|(action, _)| action)
}

/// Whether what a person said of a call of a step stands with it already.
fn is_noted(step: &Step, verdict: &CallVerdict) -> bool {
    usize::try_from(verdict.at).is_ok_and(|at| Note::approval(&step.notes, at).is_some())
}

/// The key of the call at this place of a step, by the key of the step.
fn key_of(step: &str, at: usize) -> String {
    if at == 0 { step.to_owned() } else { format!("{step}/{at}") }
}

impl TaskSession<'_> {
    /// Ends the step whose tools were begun and not ended, as each tool has it; gives the end if that ends the task.
    pub(super) async fn finish_begun(
        &mut self,
        journal: &mut Journal,
        toolbox: &mut Toolbox,
    ) -> Result<Option<End>, Failure> {
        let Some(ToolStarted { step, idempotency_key }) = self.history.begun().cloned() else {
            return Ok(None);
        };
        if let Some(answered) = self.offer.answered.as_deref().filter(|answered| answered.step == step.number)
        {
            match (&answered.verdict, &answered.form) {
                (None, None) => return self.take_answer(journal, step, answered, &toolbox.resources).await,
                // Once it is noted, the call may have been begun.
                (Some(verdict), _) if !is_noted(&step, verdict) => {
                    return self.take_verdict(journal, toolbox, step, verdict).await;
                }
                (None, Some(reply)) if Note::forms(&step.notes).all(|noted| noted.id != reply.id) => {
                    let mut step = step;
                    step.notes.push(Note::Form { reply: (**reply).clone() });
                    return self.go_on_from(journal, toolbox, step).await;
                }
                (Some(_), _) | (None, Some(_)) => {}
            }
        }
        if idempotency_key.is_empty() {
            return self.go_on_from(journal, toolbox, step).await;
        }
        let lasting = step.acts().any(|(action, _)| !toolbox.resources.is_pure(&action.name));
        let (mut step, mut end) = (step, None);
        for at in 0..=step.more.len() {
            let Some(action) = undone(&step, at).cloned() else { continue };
            let key = key_of(&idempotency_key, at);
            let call = Call { action: &action, key, standing: standing(&step.notes, at), is_first: at == 0 };
            let finishing = self.finish_one(&call, step.number, &toolbox.resources);
            let (seen, ends) = self.answering(&toolbox.resources, finishing).await?;
            let asked = self.questions.take();
            self.wasted += asked.wasted;
            step.calls.extend(asked.calls);
            step.notes.extend(asked.notes);
            let (observation, notes) = seen.noted(at);
            step.notes.extend(notes);
            end = end.or(ends);
            match at.checked_sub(1).and_then(|at| step.more.get_mut(at)) {
                Some(one) => one.observation = Some(observation),
                None => step.observation = Some(observation),
            }
        }
        self.journal_step(journal, step, lasting).await?;
        Ok(end)
    }

    /// Ends one action that was begun and not ended, as its tool has it.
    async fn finish_one(
        &self,
        call: &Call<'_>,
        number: u32,
        resources: &TaskResources,
    ) -> Result<(Seen, Option<End>), Failure> {
        let (clock, name) = (Clock::start(), &call.action.name);
        if let Some(refused) = &call.standing.refused {
            return Ok((Seen::told(refused.clone()), None));
        }
        match resume(name, number, resources.when_uncertain(name)) {
            Resumption::Tell(observation) => Ok((Seen::told(observation), None)),
            Resumption::Fail(observation, submission) => {
                Ok((Seen::told(observation), Some(End { submission: *submission, chosen: None, clock })))
            }
            Resumption::Repeat => {
                let shown = OnceLock::new();
                let acting = self.act(call, resources, &shown).boxed();
                match unless_handed_over(self.handing_over.clone(), acting).await? {
                    OneActed::Observed(seen) => Ok((seen, None)),
                    OneActed::Waits(wait) if call.is_first => Err(self.waits(*wait)),
                    OneActed::Waits(_) => Ok((Seen::told(refused(WAITS_ALONE.to_owned())), None)),
                }
            }
        }
    }

    /// Ends the step with what came of what the task waited for.
    async fn take_answer(
        &mut self,
        journal: &mut Journal,
        step: Step,
        answered: &Answered,
        resources: &TaskResources,
    ) -> Result<Option<End>, Failure> {
        let mut observation = answered.observation.clone();
        observation.content = resources.redactor.redact(&observation.content).into_owned();
        let lasting = !resources.is_pure(&step.action.name);
        let mut step = step;
        let asking = self.guard_observation(&step.action, observation, resources);
        let (observation, notes) = unless_handed_over(self.handing_over.clone(), asking).await?.noted(0);
        step.notes.extend(notes);
        let step = Step { observation: Some(observation), ..step };
        self.journal_step(journal, step, lasting).await?;
        Ok(None)
    }

    /// The step that is begun waits.
    pub(super) fn waits(&self, wait: Wait) -> Failure {
        Failure::Waits(Box::new(Awaited { step: self.history.next_step(), wait }))
    }

    /// Journals the model's answer, with nothing of it done: whoever goes on need not ask the model again.
    pub(super) async fn keep(
        &self,
        journal: &mut Journal,
        chosen: &ChosenAction,
        clock: Clock,
    ) -> Result<(), Failure> {
        self.announce(journal, chosen, clock, String::new()).await
    }

    /// Journals the model's answer before its tool has ended.
    pub(super) async fn announce(
        &self,
        journal: &mut Journal,
        chosen: &ChosenAction,
        clock: Clock,
        idempotency_key: String,
    ) -> Result<(), Failure> {
        let step = self.make_step(chosen.clone(), None, clock);
        let begun = ToolStarted { step, idempotency_key };
        Ok(journal.append(&AgentEvent::ToolStarted(begun)).await?)
    }

    /// Calls the tools of an answer: side by side where they are `pure`, else one after the other.
    pub(super) async fn act_all(
        &self,
        chosen: &ChosenAction,
        pure: bool,
        key: &str,
        resources: &TaskResources,
        clock: &mut Clock,
    ) -> Acted {
        let (begun, shown) = (Instant::now(), OnceLock::new());
        let actions = std::iter::once(&chosen.action).chain(chosen.more.iter().map(|one| &one.action));
        let told = std::iter::once(None).chain(chosen.more.iter().map(|one| one.observation.as_ref()));
        let mut calls: Vec<BoxFuture<'_, OneActed>> = Vec::with_capacity(1 + chosen.more.len());
        for (at, (action, told)) in actions.zip(told).enumerate() {
            let standing = standing(&chosen.notes, at);
            let told = told.cloned().or_else(|| standing.refused.clone());
            let (call, shown) = (Call { action, key: key_of(key, at), standing, is_first: at == 0 }, &shown);
            calls.push(match told {
                Some(told) => future::ready(OneActed::told(told)).boxed(),
                None => async move { self.act(&call, resources, shown).await }.boxed(),
            });
        }
        let at_once = if pure { MOST_AT_ONCE } else { 1 };
        // They share what the conversation has room for.
        let most = resources.model.capabilities().and_then(|able| able.most_shown());
        let most = most.map(|most| most.min(most * 2 / (1 + chosen.more.len())));
        let shorten = |mut acted: OneActed| {
            if let (OneActed::Observed(seen), Some(most)) = (&mut acted, most) {
                shorten(&mut seen.observation, most);
            }
            acted
        };
        let mut acted = stream::iter(calls).buffered(at_once).map(shorten);
        let first = match acted.next().await {
            Some(OneActed::Observed(seen)) => seen,
            Some(OneActed::Waits(wait)) => {
                // The others are done when this one has been, and not twice.
                clock.outside += begun.elapsed();
                return Acted::Waits(wait);
            }
            None => Seen::told(refused(String::new())),
        };
        let acted = acted.collect::<Vec<_>>().await;
        clock.outside += begun.elapsed();
        let (first, of_first) = first.noted(0);
        let mut notes: Vec<Note> = of_first.collect();
        let mut more = Vec::with_capacity(chosen.more.len());
        for (at, (one, acted)) in chosen.more.iter().zip(acted).enumerate() {
            let observation = match acted {
                OneActed::Observed(seen) => {
                    let (observation, of_this) = seen.noted(at + 1);
                    notes.extend(of_this);
                    observation
                }
                OneActed::Waits(_) => refused(WAITS_ALONE.to_owned()),
            };
            more.push(FurtherAction { action: one.action.clone(), observation: Some(observation) });
        }
        Acted::Observed(SeenOfAll { first, more, notes })
    }

    /// Calls a tool. A call with side effects goes by its key.
    async fn act(
        &self,
        Call { action, key, standing, .. }: &Call<'_>,
        resources: &TaskResources,
        shown: &OnceLock<ShownLines>,
    ) -> OneActed {
        let name = &action.name;
        let arguments = standing.changed.unwrap_or(&action.arguments);
        let context = resources.context_for(name, key);
        let context = match is_search(name) && !resources.model.is_offline() {
            true => {
                let shown = Some(Arc::clone(shown.get_or_init(|| self.shown())));
                Cow::Owned(ToolContext { shown, ..context.into_owned() })
            }
            false => context,
        };
        let context = if standing.approved { Cow::Owned(context.into_owned().approved()) } else { context };
        let context = match standing.given.as_slice() {
            [] => context,
            given => Cow::Owned(ToolContext { people: Some(given.into()), ..context.into_owned() }),
        };
        let result = resources.engine.call(name, arguments.clone(), &context).await;
        if let Some(wait) = result.wait {
            return OneActed::Waits(wait);
        }
        let denied = result.denied.clone();
        let mut observation = observed(result);
        observation.content = resources.redactor.redact(&observation.content).into_owned();
        if let Some(word) = &standing.word {
            observation.content = format!("{word}\n{}", observation.content);
        }
        let seen = self.guard_observation(action, observation, resources).await;
        let mut seen = Seen { denied, ..seen };
        if let Some(most) = resources.model.capabilities().and_then(|able| able.most_shown()) {
            shorten(&mut seen.observation, most);
        }
        OneActed::Observed(seen)
    }

    /// The lines of documents that the task was shown, and that its conversation still shows.
    fn shown(&self) -> ShownLines {
        let steps = self.history.steps();
        // What is shown in short by now may be shown again.
        let whole = self.shown_whole.unwrap_or(steps.len()).min(steps.len());
        let pages = seen_lines(&steps[steps.len() - whole..]).into_iter();
        Arc::new(pages.map(|(path, lines)| (path, lines.into_keys().map(u64::from).collect())).collect())
    }

    pub(super) fn idempotency_key(&self) -> String {
        let TaskOffered { run, task, generation, .. } = self.offer;
        format!("{run}/{task}/{generation}/{}", self.history.next_step())
    }
}

/// Cuts what a model is shown to what its conversation has room for.
fn shorten(observation: &mut Observation, most: usize) {
    let content = &mut observation.content;
    if content.len() > most {
        content.truncate(content.floor_char_boundary(most));
        content.push_str("\n[cut: ask for less at a time]");
        observation.truncated = true;
    }
}

fn observed(result: ToolResult) -> Observation {
    let status = match result.status {
        ToolStatus::Success => ObservationStatus::Success,
        ToolStatus::Error => ObservationStatus::Error,
        ToolStatus::Timeout => ObservationStatus::Timeout,
        ToolStatus::Refused => ObservationStatus::Refused,
    };
    Observation {
        status,
        content: result.content,
        millis: result.millis,
        truncated: result.truncated,
        cached: result.cached,
    }
}
