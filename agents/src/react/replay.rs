//! Reads every model answer of a record again and decides upon it again, without asking a model or running a tool.
//! Pure.
//!
//! Steps without a model call are taken as they are: offline rules and agents in other languages keep none. So are
//! endings that came from outside a task: a deadline, a cancellation, a model that could not be reached.

mod call;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_shared::flow::{
    Action, Ending, Hook, ModelCall, Note, Observation, Outcome, Product, Report, RolePermissions, Step,
    TaskOffered, Thought, Use,
};
use muster_shared::ids::{Attempt, Generation, Seq, TaskId};
use muster_shared::run::{AgentEvent, Entry, RecordEvent, Started};
use serde::Serialize;
use serde_json::Value;

use self::call::{heard, limits_of};
use super::consult::{NO_ANSWER, ask, consulted, said_before};
use super::decide::{NextStep, StepContext, decide};
use super::further::way_to_further;
use super::history::History;
use super::lookup::{looked_up, note_in, note_of};
use super::model::understand;
use super::record::{FURTHER, PROMISED, TOOLS, naming};
use super::toolset::{Ability, Toolset, model_name};
use crate::definition::Schema;
use crate::roles::{RoleRules, Rules, promising, rules_for};
use crate::tools::{ToolSettings, ToolSpec, look::LOOK, standard_registry};

/// How much of a record was decided again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Steps, those that end a task among them.
    pub steps: u32,
    /// Model answers behind them.
    pub answers: u32,
    /// Steps that no model call stands behind; they were taken as they are.
    pub taken: u32,
}

/// The first step that came out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// Where it stands in the record.
    pub seq: Seq,
    /// The task.
    pub task: TaskId,
    /// What the record holds.
    pub expected: String,
    /// What was decided now.
    pub came: String,
}

/// Decides every step of every task in a run's record again.
///
/// # Errors
/// The first difference.
pub fn replay(entries: &[Entry]) -> Result<Replayed, Box<Divergence>> {
    let mut done = Replayed::default();
    let mut histories = TaskHistories::new();
    for entry in entries {
        match &entry.event {
            RecordEvent::Decided(decided) => {
                if let Some(offer) = decided.offer.as_deref() {
                    begin(&mut histories, offer);
                }
            }
            RecordEvent::Offered(offer) => begin(&mut histories, offer),
            RecordEvent::Agent(key, event) => {
                let Some(offer) = histories.get(&(key.task.clone(), key.generation)).map(|found| found.offer)
                else {
                    continue;
                };
                // An offer that only seemed lost may have been worked on until then, and all of it counts.
                if matches!(event, AgentEvent::Started(Started { attempt: Attempt(1), .. })) {
                    begin(&mut histories, offer);
                }
                let Some(history_of_task) = histories.get_mut(&(key.task.clone(), key.generation)) else {
                    continue;
                };
                history_of_task.check(event, &mut done).map_err(|(expected, came)| {
                    let task = key.task.clone();
                    Box::new(Divergence { seq: entry.seq, task, expected, came })
                })?;
                history_of_task.history =
                    std::mem::take(&mut history_of_task.history).and_then(vec![entry.clone()]);
            }
        }
    }
    Ok(done)
}

/// Every generation of every task, by task.
type TaskHistories<'a> = BTreeMap<(TaskId, Generation), TaskHistory<'a>>;

fn begin<'a>(histories: &mut TaskHistories<'a>, offer: &'a TaskOffered) {
    let before = (offer.task.clone(), Generation(offer.generation.0.saturating_sub(1)));
    let before = offer.continues.and_then(|_| histories.get(&before));
    let history =
        before.map_or_else(History::default, |before| before.history.clone().going_on_from(Vec::new()));
    histories.insert((offer.task.clone(), offer.generation), TaskHistory { offer, history });
}

/// What the record holds, and what came instead.
type RecordDifference = (String, String);

/// One generation of a task on its way through the record.
struct TaskHistory<'a> {
    offer: &'a TaskOffered,
    history: History,
}

impl TaskHistory<'_> {
    fn check(&self, event: &AgentEvent, done: &mut Replayed) -> Result<(), RecordDifference> {
        match event {
            AgentEvent::Step(step) => self.check_step(step, done),
            AgentEvent::Outcome(outcome) => self.check_outcome(outcome, done),
            // A tool that was announced comes again with its step.
            AgentEvent::Started(_)
            | AgentEvent::ToolStarted(_)
            | AgentEvent::Released(_)
            | AgentEvent::Unreadable(_) => Ok(()),
        }
    }

    fn check_step(&self, step: &Step, done: &mut Replayed) -> Result<(), RecordDifference> {
        let Some(next) = self.decide_again(step, done)? else { return Ok(()) };
        let recorded = (&step.thought, &step.action);
        let came = match &next {
            NextStep::CallTool { chosen, .. } => (&chosen.thought, &chosen.action, None),
            NextStep::Refuse { chosen, observation } | NextStep::Observe { chosen, observation } => {
                (&chosen.thought, &chosen.action, Some(observation))
            }
            _ => {
                return Err((in_words(&step.thought, &step.action, step.observation.as_ref()), what(&next)));
            }
        };
        // Its words name all tools that the agent had, which another build need not know.
        let status = |observation: &Observation| observation.status;
        let same_observation =
            came.2.is_none_or(|refused| Some(refused.status) == step.observation.as_ref().map(status));
        let more = match &next {
            NextStep::CallTool { chosen, .. } => chosen.more.iter().map(|one| &one.action).collect(),
            _ => step.more.iter().map(|one| &one.action).collect::<Vec<_>>(),
        };
        let same_more = more.into_iter().eq(step.more.iter().map(|one| &one.action));
        if recorded == (came.0, came.1) && same_observation && same_more {
            return Ok(());
        }
        Err((
            in_words(&step.thought, &step.action, step.observation.as_ref()),
            in_words(came.0, came.1, came.2),
        ))
    }

    fn check_outcome(&self, outcome: &Outcome, done: &mut Replayed) -> Result<(), RecordDifference> {
        let Some(step) = outcome.last_step.as_deref() else { return Ok(()) };
        if is_from_outside(outcome.ending) || is_of_guard(outcome, step) {
            done.taken += 1;
            return Ok(());
        }
        let Some(next) = self.decide_again(step, done)? else { return Ok(()) };
        let (NextStep::Submit { submission, .. } | NextStep::Conclude { submission, .. }) = &next else {
            return Err((format!("the task ends: {:?} {}", outcome.ending, outcome.reason), what(&next)));
        };
        let product = outcome.product.clone().map(without_files);
        let recorded = (outcome.ending, &outcome.reason, &product);
        if recorded == (submission.ending, &submission.reason, &submission.product) {
            return Ok(());
        }
        Err((json(&recorded), json(&(submission.ending, &submission.reason, &submission.product))))
    }

    /// What follows from the last answer behind a step, if there is one; every answer before it was not taken.
    fn decide_again(&self, step: &Step, done: &mut Replayed) -> Result<Option<NextStep>, RecordDifference> {
        let calls = || step.calls.iter().filter(|call| !call.aside);
        let Some(last) = calls().next_back() else {
            done.taken += 1;
            return Ok(None);
        };
        let naming = self.naming(step).unwrap_or(last);
        let rules = self.rules(naming);
        let toolset = self.toolset(naming, &rules).and_closed(self.closed_to(step));
        let limits = limits_of(last).of_task(self.offer, &rules, true);
        let (permissions, has_model) = (RolePermissions::OPEN, true);
        let case = StepContext {
            offer: self.offer,
            rules: &rules,
            toolset: &toolset,
            permissions,
            has_model,
            limits,
        };
        let mut next = None;
        for (asked, call) in (1..).zip(calls()) {
            if let Some(taken) = next.filter(|next| !matches!(next, NextStep::AskAgain { .. })) {
                return Err((format!("answer {} was not taken", asked - 1), what(&taken)));
            }
            let answer = understand(heard(call, step), toolset.declarations(), toolset.submit_schema());
            next = Some(decide(&self.history, &answer, asked, &case));
            done.answers += 1;
        }
        let next = next.map(|mut next| {
            loop {
                next = match next {
                    NextStep::Consult { chosen, question } => {
                        let asked = ask(question, &self.history, Some(&chosen), &case);
                        let said =
                            said_before(&step.calls, &asked).unwrap_or_else(|| Err(NO_ANSWER.to_owned()));
                        done.answers += 1;
                        consulted(&self.history, chosen, question, said, &case)
                    }
                    NextStep::LookUp { mut chosen, asked, .. } => {
                        let unknown = || note_of(&asked, Err("the record does not say".to_owned()));
                        chosen.notes.push(note_in(step).cloned().unwrap_or_else(unknown));
                        looked_up(&self.history, chosen, &case)
                    }
                    settled @ (NextStep::CallTool { .. }
                    | NextStep::Refuse { .. }
                    | NextStep::Observe { .. }
                    | NextStep::AskAgain { .. }
                    | NextStep::Submit { .. }
                    | NextStep::Conclude { .. }) => return settled,
                };
            }
        });
        done.steps += 1;
        Ok(next)
    }

    /// The call that says by which tools and which promise a step was asked for: one of its own, else one before it.
    fn naming<'a>(&'a self, step: &'a Step) -> Option<&'a ModelCall> {
        naming(step.calls.iter().rev().chain(self.history.newest_calls()))
    }

    /// The rules of the role, with what it promised.
    fn rules(&self, call: &ModelCall) -> Rules {
        let promised = call.parameters.get(PROMISED).and_then(|schema| Schema::new(schema.clone()).ok());
        match promised {
            Some(output) => Rules::Own(Arc::new(promising(output))),
            None => Rules::BuiltIn(rules_for(&self.offer.work)),
        }
    }

    /// The tools that the model was offered, as this build knows them.
    fn toolset(&self, call: &ModelCall, rules: &RoleRules) -> Toolset {
        let named = names_in(call, TOOLS);
        let known =
            standard_registry(&ToolSettings::default()).map(|registry| registry.list()).unwrap_or_default();
        let has_documents = self.offer.corpus.is_some();
        let abilities = if named.is_empty() {
            let offered = |spec: &Ability| {
                // Records that name no tools are older than what looks at pictures.
                let is_there = has_documents || !spec.name.starts_with("corpus.");
                rules.may_use(&spec.name, None) && is_there && spec.name != LOOK
            };
            known.iter().filter(|spec| offered(spec)).cloned().collect()
        } else {
            by_name(&named, &known)
        };
        let further = by_name(&names_in(call, FURTHER), &known);
        let rights = &self.offer.rights;
        let closed = known.iter().filter(|spec| rights.allow_all(&Use::of_tool(&spec.name)).is_err());
        let toolset = Toolset::new(abilities, rules.submit_schema(self.offer)).and_further(further);
        toolset.and_closed(closed.cloned())
    }

    /// The tools that a step chose and has no right to, of which only their agent knew: the record names them.
    fn closed_to(&self, step: &Step) -> Vec<Ability> {
        let chosen = std::iter::once(&step.action).chain(step.more.iter().map(|more| &more.action));
        let named: Vec<&str> = chosen.map(|action| action.name.as_str()).collect();
        let has_no_right =
            |ability: &Ability| self.offer.rights.allow_all(&Use::of_tool(&ability.name)).is_err();
        by_name(&named, &[]).into_iter().filter(has_no_right).collect()
    }
}

fn names_in<'a>(call: &'a ModelCall, parameter: &str) -> Vec<&'a str> {
    call.parameters[parameter].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The tools of these names; of those that this build does not know, no more than the name.
fn by_name(named: &[&str], known: &[Ability]) -> Vec<Ability> {
    let is_called = |spec: &Ability, name: &str| model_name(&spec.name) == model_name(name);
    let named = named.iter().filter(|name| **name != Action::SUBMIT);
    let found = named.map(|name| {
        let own = || known.iter().find(|spec| is_called(spec, name)).cloned();
        let unknown = || Arc::new(ToolSpec::new(*name, String::new(), Value::Object(serde_json::Map::new())));
        way_to_further(name).or_else(own).unwrap_or_else(unknown)
    });
    found.collect()
}

/// The product as the model gave it: which files there were came from outside.
fn without_files(product: Product) -> Product {
    match product {
        Product::Report(report) => Product::Report(Report { artifacts: Vec::new(), ..report }),
        _ => product,
    }
}

/// Whether a task ended because a guard refused what its model was to be asked.
fn is_of_guard(outcome: &Outcome, step: &Step) -> bool {
    let refused = |note: &Note| match note {
        Note::Guarded { hook: Hook::BeforeModel, said, .. } => said.refusal().is_some(),
        _ => false,
    };
    outcome.ending == Ending::Blocked && outcome.product.is_none() && step.notes.iter().any(refused)
}

const fn is_from_outside(ending: Ending) -> bool {
    matches!(
        ending,
        Ending::ModelFailed
            | Ending::AgentFailed
            | Ending::DeadlinePassed
            | Ending::Cancelled
            | Ending::BudgetExhausted
    )
}

fn what(next: &NextStep) -> String {
    match next {
        NextStep::CallTool { chosen, .. } => in_words(&chosen.thought, &chosen.action, None),
        NextStep::Consult { chosen, question } => {
            format!(
                "the model is asked apart, {question:?}: {}",
                in_words(&chosen.thought, &chosen.action, None)
            )
        }
        NextStep::LookUp { chosen, .. } => {
            format!("what it cites is looked up: {}", in_words(&chosen.thought, &chosen.action, None))
        }
        NextStep::Refuse { chosen, observation } | NextStep::Observe { chosen, observation } => {
            in_words(&chosen.thought, &chosen.action, Some(observation))
        }
        NextStep::AskAgain { reason, .. } => format!("the model is asked again: {reason}"),
        NextStep::Submit { submission, .. } | NextStep::Conclude { submission, .. } => {
            format!("the task ends: {:?} {}", submission.ending, submission.reason)
        }
    }
}

fn in_words(thought: &Thought, action: &Action, refused: Option<&Observation>) -> String {
    json(&(thought, action, refused.map(|observation| observation.status)))
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
