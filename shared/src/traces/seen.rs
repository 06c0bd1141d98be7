//! A step as it is told: what is kept of it, and when its calls were made.
//!
//! A step says how long it took, and how long each call did; when it was stored is the broker's word. Its calls are laid out
//! backwards from there: those of models one after the other, then those of tools, side by side where there would be no time
//! for one after the other.

use super::content;
use crate::flow::{Action, FurtherAction, ModelCall, Observation, Step, Thought};
use crate::text::one_line;
use crate::time::Millis;

/// Longest name of a tool that is told, in characters: a model may have made it up.
const LONGEST_NAME: usize = 64;

/// Parameters of calls that are told.
pub(super) const TEMPERATURE: &str = "temperature";
pub(super) const MOST_TOKENS: &str = "max_tokens";

/// How much of a step its entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// All of it.
    Taken,
    /// What the model answered. Its tools were begun, and nothing more was heard of them.
    Begun,
    /// What the model answered. A later entry says what came of it, or begins it anew.
    Journaled,
}

/// A step of a try by one entry, without what nobody is told of.
#[derive(Debug, Clone)]
pub struct StepSeen {
    /// The step. What people, models and tools said stands in it only where that is to be told.
    pub step: Step,
    /// When the entry was stored.
    pub at: Millis,
    /// How much it says.
    pub stage: Stage,
    /// So many of its first calls of models are told by earlier entries.
    told: usize,
}

/// A call in a step, and when it was made.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its place in the step, among those of its kind.
    pub place: usize,
    /// When it began.
    pub start: Millis,
    /// When it ended, or until when it is waited for.
    pub end: Millis,
    /// What was called.
    pub called: Called<'a>,
}

/// What a step called.
#[derive(Debug, Clone, Copy)]
pub enum Called<'a> {
    /// A model.
    Model(&'a ModelCall),
    /// A tool, and what came of it.
    Tool(&'a Action, &'a Observation),
    /// A tool of which nothing more was heard.
    Unheard(&'a Action),
}

impl Called<'_> {
    /// What it is called: a model by its provider and its name, a tool on one line.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Model(call) => call.model.clone(),
            Self::Tool(action, _) | Self::Unheard(action) => one_line(&action.name, LONGEST_NAME),
        }
    }
}

impl StepSeen {
    /// A step that was stored at a time, with `told` of its first calls of models in entries before it. `content` says whether
    /// what people, models and tools said is to be told too.
    pub(super) fn new(step: &Step, at: Millis, stage: Stage, told: usize, content: bool) -> Self {
        Self { step: kept(step, content), at, stage, told }
    }

    /// When it began, by what it says of itself.
    #[must_use]
    pub fn began(&self) -> Millis {
        let asked = self.step.calls.iter().map(|call| call.millis).fold(0, u64::saturating_add);
        let acted = self.step.observations().map(|observation| observation.millis).max().unwrap_or(0);
        let took = self.step.millis.max(asked.saturating_add(acted));
        Millis(self.at.0.saturating_sub(took))
    }

    /// The calls of models that no earlier entry tells of.
    pub(super) fn models(&self) -> impl Iterator<Item = &ModelCall> {
        self.step.calls.iter().skip(self.told)
    }

    /// Its calls, within the time in which its agent had the task.
    #[must_use]
    pub fn calls(&self, from: Millis, until: Millis) -> Vec<Call<'_>> {
        let mut calls = Vec::new();
        let asked = self.lay_out_models(&mut calls);
        match self.stage {
            Stage::Taken => self.lay_out_tools(asked, &mut calls),
            Stage::Begun => self.lay_out_unheard(until, &mut calls),
            Stage::Journaled => {}
        }
        // Clocks of agents and of the broker differ: what is below lies within.
        let until = until.max(from);
        for call in &mut calls {
            (call.start, call.end) = (call.start.clamp(from, until), call.end.clamp(from, until));
        }
        calls
    }

    /// Adds the calls of models, and says when the last of them ended.
    fn lay_out_models<'a>(&'a self, calls: &mut Vec<Call<'a>>) -> Millis {
        let mut from = self.began();
        for (place, call) in self.step.calls.iter().enumerate() {
            let end = after(from, call.millis).min(self.at);
            if place >= self.told {
                calls.push(Call { place, start: from, end, called: Called::Model(call) });
            }
            from = end;
        }
        from
    }

    fn lay_out_tools<'a>(&'a self, asked: Millis, calls: &mut Vec<Call<'a>>) {
        let (mut from, at) = (asked, self.at);
        let room = at.0.saturating_sub(from.0);
        let took = self.step.observations().map(|observation| observation.millis);
        let one_by_one = took.fold(0, u64::saturating_add) <= room;
        for (place, (action, observation)) in self.step.acts().enumerate() {
            let Some(observation) = observation.filter(|_| action.name != Action::SUBMIT) else { continue };
            let end = after(from, observation.millis).min(at);
            let called = Called::Tool(action, observation);
            calls.push(Call { place, start: from.min(end), end, called });
            if one_by_one {
                from = end;
            }
        }
    }

    fn lay_out_unheard<'a>(&'a self, until: Millis, calls: &mut Vec<Call<'a>>) {
        let (start, end) = (self.at, until.max(self.at));
        for (place, (action, observation)) in self.step.acts().enumerate() {
            if observation.is_none() && action.name != Action::SUBMIT {
                calls.push(Call { place, start, end, called: Called::Unheard(action) });
            }
        }
    }
}

const fn after(from: Millis, millis: u64) -> Millis {
    Millis(from.0.saturating_add(millis))
}

/// What is kept of a step for as long as it is not known whether it counts.
fn kept(step: &Step, content: bool) -> Step {
    let further = |one: &FurtherAction| FurtherAction {
        action: kept_action(&one.action, content),
        observation: one.observation.as_ref().map(|observation| kept_observation(observation, content)),
    };
    Step {
        number: step.number,
        thought: Thought::default(),
        action: kept_action(&step.action, content),
        observation: step.observation.as_ref().map(|observation| kept_observation(observation, content)),
        more: step.more.iter().map(further).collect(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: step.calls.iter().map(|call| kept_call(call, content)).collect(),
        millis: step.millis,
        outside_millis: step.outside_millis,
    }
}

fn kept_action(action: &Action, content: bool) -> Action {
    let arguments = if content { action.arguments.clone() } else { serde_json::Value::Null };
    Action { name: action.name.clone(), arguments }
}

fn kept_observation(observation: &Observation, content: bool) -> Observation {
    Observation {
        status: observation.status,
        content: if content { content::brief(&observation.content) } else { String::new() },
        millis: observation.millis,
        truncated: observation.truncated,
        cached: observation.cached,
    }
}

fn kept_call(call: &ModelCall, content: bool) -> ModelCall {
    let told = |name: &'static str| Some((name, call.parameters.get(name)?.clone()));
    ModelCall {
        model: call.model.clone(),
        template: call.template.clone(),
        request_hash: String::new(),
        same_messages: call.same_messages,
        messages: if content { content::newest(&call.messages) } else { Vec::new() },
        aside: call.aside,
        parameters: [TEMPERATURE, MOST_TOKENS].into_iter().filter_map(told).collect(),
        answer: if content { content::brief(&call.answer) } else { String::new() },
        calls_at: Vec::new(),
        signatures: Vec::new(),
        cut: call.cut,
        usage: call.usage,
        millis: call.millis,
    }
}
