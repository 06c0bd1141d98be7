//! Renders the prompts of a record anew, by the templates at hand, and compares them with what was sent. Pure.

use std::collections::BTreeMap;
use std::convert::Infallible;

use muster_shared::flow::{ModelCall, Step, StoredMessage};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::{AgentEvent, Entry};
use serde::Serialize;

use super::prompt::{CallStyle, Conversation, Sampling};
use super::replay::{Course, follow, limits_of};
use super::sent::{Sent, requests};
use crate::prompts::Templates;
use crate::roles;

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
    pub differences: Vec<Difference>,
}

/// A prompt that came out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
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
#[must_use]
pub fn rerender(entries: &[Entry], templates: &Templates) -> Rerendered {
    let mut kept: BTreeMap<TaskId, Vec<Sent>> = BTreeMap::new();
    let mut done = Rerendered::default();
    let followed = follow(entries, |course, _, event| {
        let Some((step, call)) = asked(event) else { return Ok(()) };
        let (task, generation) = (&course.offer.task, course.offer.generation);
        let kept = kept.entry(task.clone()).or_insert_with(|| requests(entries, task));
        let was =
            kept.iter().find(|sent| !sent.aside && (sent.generation, sent.step) == (generation, step.number));
        done.prompts += 1;
        match was.and_then(|was| compare(course, templates, call, was)) {
            None => done.same += 1,
            Some(difference) if done.differences.len() < MOST_TOLD => done.differences.push(difference),
            Some(_) => {}
        }
        Ok::<(), Infallible>(())
    });
    match followed {
        Ok(()) => done,
    }
}

/// The step that an event holds, and its first call within the conversation.
fn asked(event: &AgentEvent) -> Option<(&Step, &ModelCall)> {
    let step = match event {
        AgentEvent::Step(step) => step,
        AgentEvent::Outcome(outcome) => outcome.last_step.as_deref()?,
        AgentEvent::Started(_) | AgentEvent::ToolStarted(_) | AgentEvent::Released(_) => return None,
    };
    let call = step.calls.iter().find(|call| !call.aside)?;
    // The words of a user's own role are with the agents that have it.
    let is_ours = roles::all().iter().any(|rules| rules.name == call.template.name);
    is_ours.then_some((step, call))
}

/// The first difference; nothing when the prompt comes out as it was sent.
fn compare(course: &Course<'_>, templates: &Templates, call: &ModelCall, was: &Sent) -> Option<Difference> {
    let (offer, rules) = (course.offer, course.rules(call));
    let differs = |message, sent: &str, came: &str| {
        Some(Difference {
            seq: was.seq,
            task: offer.task.clone(),
            step: was.step,
            message,
            sent: sent.to_owned(),
            came: came.to_owned(),
        })
    };
    let brief = match templates.brief(&rules, offer) {
        Ok((brief, _)) => brief,
        Err(error) => return differs(0, "a prompt", &error.to_string()),
    };
    let toolset = course.toolset(call, &rules);
    let limits = limits_of(call).of_task(offer, &rules, true);
    let came = |style| {
        let settings = (style, Sampling::default(), limits);
        Conversation::resume(&brief, &toolset, &course.history, settings, &offer.nonce).stored()
    };
    // Models without native calls were told of the tools in the system prompt.
    let style =
        if was.tools.is_empty() && was.messages.first().is_some_and(|first| first.content != brief.system) {
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
