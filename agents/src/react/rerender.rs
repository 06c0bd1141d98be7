//! Renders the prompts of a record anew, by the templates at hand, and compares them with what was sent. Pure.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use muster_shared::flow::{ModelCall, Step, StoredMessage};
use muster_shared::ids::{Role, Seq, TaskId};
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use serde::Serialize;

use super::declaration::Declarations;
use super::prompt::{CallStyle, Conversation, Sampling};
use super::replay::{TaskHistory, follow, limits_of};
use super::sent::{SentRequest, requests};
use crate::definition::Definition;
use crate::prompts::Templates;
use crate::roles::{self, RoleRules, Rules, SPECIALIST, rules_of};

/// Most differences that are told.
const MOST_TOLD: usize = 20;

/// How the prompts came out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rerendered {
    /// Prompts that were rendered anew.
    pub prompts: u32,
    /// Prompts that came out as they were sent.
    pub same: u32,
    /// The others, as far as they are told.
    pub differences: Vec<PromptDifference>,
    /// Prompts of specialists whose definition is not at hand, by role: neither the same nor different.
    pub not_rendered: BTreeMap<String, u32>,
}

/// A prompt that came out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptDifference {
    /// Where it stands in the record.
    pub seq: Seq,
    /// The task.
    pub task: TaskId,
    /// Its step.
    pub step: u32,
    /// The first message that differs, from 1; the system prompt is the first.
    pub message: usize,
    /// Its first line that differs, as it was sent.
    pub sent: String,
    /// The same as it is rendered now.
    pub came: String,
}

/// Renders the first prompt of every step anew. What the model was told within a step is not rendered from templates.
/// The words of specialists are in `definitions`; prompts of one that is not there are counted apart. Tools are not
/// compared, so that nothing is needed from the object store.
#[must_use]
pub fn rerender(entries: &[Entry], templates: &Templates, definitions: &[Arc<Definition>]) -> Rerendered {
    let mut rendering = Rendering {
        entries,
        templates,
        specialists: definitions.iter().map(|known| (known.role.clone(), own_rules(known))).collect(),
        kept: BTreeMap::new(),
        seen: BTreeMap::new(),
        done: Rerendered::default(),
    };
    let followed = follow(entries, |history_of_task, entry, event| {
        rendering.look(history_of_task, entry, event);
        Ok::<(), Infallible>(())
    });
    match followed {
        Ok(()) => rendering.done,
    }
}

fn own_rules(definition: &Arc<Definition>) -> Rules {
    Rules::Own(Arc::new(rules_of(Arc::clone(definition))))
}

/// A record on its way through the templates.
struct Rendering<'a> {
    entries: &'a [Entry],
    templates: &'a Templates,
    specialists: Vec<(Role, Rules)>,
    /// What every task sent, as far as it was asked for.
    kept: BTreeMap<TaskId, Vec<SentRequest>>,
    /// The step of a task that was rendered last, and its first call.
    seen: BTreeMap<TaskId, (u32, &'a ModelCall)>,
    done: Rerendered,
}

impl<'a> Rendering<'a> {
    fn look(&mut self, history_of_task: &TaskHistory<'a>, entry: &Entry, event: &'a AgentEvent) {
        let Some(asked) = asked(event) else { return };
        let Asked { step, call } = asked;
        let (task, generation) = (&history_of_task.offer.task, history_of_task.offer.generation);
        // Announced before: it was sent under the offer of then. A step that waited ends under a later one, whose
        // plan has moved on.
        let now = (step.number, call);
        if self.seen.insert(task.clone(), now) == Some(now) {
            return;
        }
        let rules = match self.rules(history_of_task, &entry.event, asked) {
            Ok(rules) => rules,
            Err(role) => {
                *self.done.not_rendered.entry(role).or_default() += 1;
                return;
            }
        };
        let kept = self.kept.entry(task.clone());
        let kept = kept.or_insert_with(|| requests(self.entries, task, &Declarations::default()));
        let was =
            kept.iter().find(|sent| !sent.aside && (sent.generation, sent.step) == (generation, step.number));
        self.done.prompts += 1;
        match was.and_then(|was| compare(history_of_task, self.templates, &rules, asked, was)) {
            None => self.done.same += 1,
            Some(difference) if self.done.differences.len() < MOST_TOLD => {
                self.done.differences.push(difference);
            }
            Some(_) => {}
        }
    }

    /// The rules with the words of whoever sent the prompt; the role of a specialist whose words are not here.
    fn rules(
        &self,
        history_of_task: &TaskHistory<'_>,
        event: &RecordEvent,
        Asked { step, call }: Asked<'_>,
    ) -> Result<Rules, String> {
        let built_in = || history_of_task.rules(history_of_task.naming(step).unwrap_or(call));
        if call.template.name != SPECIALIST {
            return Ok(built_in());
        }
        let role = match event {
            RecordEvent::Agent(key, _) => &key.role,
            RecordEvent::Decided(_) | RecordEvent::Offered(_) => return Ok(built_in()),
        };
        let here = || self.specialists.iter().filter(|(known, _)| known == role).map(|(_, rules)| rules);
        let as_sent = |rules: &&Rules| {
            let made = self.templates.brief(rules, history_of_task.offer);
            made.is_ok_and(|(_, template)| template.hash == call.template.hash)
        };
        here().find(as_sent).or_else(|| here().next()).cloned().ok_or_else(|| role.to_string())
    }
}

/// A step that a model was asked for, and its first call within the conversation.
#[derive(Clone, Copy)]
struct Asked<'a> {
    step: &'a Step,
    call: &'a ModelCall,
}

/// What an event says of a step that a model was asked for.
fn asked(event: &AgentEvent) -> Option<Asked<'_>> {
    let step = match event {
        AgentEvent::ToolStarted(begun) => &begun.step,
        AgentEvent::Step(step) => step,
        AgentEvent::Outcome(outcome) => outcome.last_step.as_deref()?,
        AgentEvent::Started(_) | AgentEvent::Released(_) | AgentEvent::Unreadable(_) => return None,
    };
    let call = step.calls.iter().find(|call| !call.aside)?;
    // Agents in other languages have templates of their own.
    let is_ours = roles::all().iter().any(|rules| rules.name == call.template.name);
    is_ours.then_some(Asked { step, call })
}

/// The first difference; nothing when the prompt comes out as it was sent.
fn compare(
    history_of_task: &TaskHistory<'_>,
    templates: &Templates,
    rules: &RoleRules,
    Asked { step, call }: Asked<'_>,
    was: &SentRequest,
) -> Option<PromptDifference> {
    let offer = history_of_task.offer;
    let differs = |message, sent: &str, came: &str| {
        Some(PromptDifference {
            seq: was.seq,
            task: offer.task.clone(),
            step: was.step,
            message,
            sent: sent.to_owned(),
            came: came.to_owned(),
        })
    };
    let brief = match templates.brief(rules, offer) {
        Ok((brief, _)) => brief,
        Err(error) => return differs(0, "a prompt", &error.to_string()),
    };
    let toolset = history_of_task.toolset(history_of_task.naming(step).unwrap_or(call), rules);
    let limits = limits_of(call).of_task(offer, rules, true);
    let came = |style| {
        let settings = (style, Sampling::default(), limits);
        let history = &history_of_task.history;
        let mut came = Conversation::resume(&brief, &toolset, history, settings, &offer.nonce);
        came.learn(&step.notes);
        came.stored()
    };
    // Models without native calls were told of the tools in the system prompt.
    let style =
        if !was.declares_tools() && was.messages.first().is_some_and(|first| first.content != brief.system) {
            CallStyle::Text
        } else {
            CallStyle::Native
        };
    let came = came(style);
    let at = (0..came.len()).find(|at| was.messages.get(*at) != came.get(*at))?;
    let (sent, came) = first_difference(was.messages.get(at), came.get(at));
    differs(at + 1, &sent, &came)
}

fn first_difference(sent: Option<&StoredMessage>, came: Option<&StoredMessage>) -> (String, String) {
    let lines = |message: Option<&StoredMessage>| -> Vec<String> {
        message.map(|message| message.content.lines().map(str::to_owned).collect()).unwrap_or_default()
    };
    let (sent, came) = (lines(sent), lines(came));
    let at = (0..sent.len().max(came.len())).find(|at| sent.get(*at) != came.get(*at)).unwrap_or(0);
    let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "(nothing)".to_owned());
    (line(&sent), line(&came))
}

#[cfg(test)]
#[path = "rerender_tests.rs"]
mod tests;
