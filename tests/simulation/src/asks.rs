//! What agents wrote and asked, task by task: who held it, which steps were journaled, which were asked for.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Entry};

use crate::agenda::Time;
use crate::agent::LOOK_AFTER;

/// One generation of one task.
type Generations = (RunId, TaskId, Generation);

/// What stands in the record about each generation of each task, and what was asked.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    courses: BTreeMap<Generations, Course>,
    tools: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Course {
    holder: Option<AgentId>,
    /// Where and when the model's answer of each step was journaled.
    journaled: BTreeMap<u32, (Seq, Time)>,
    steps: u32,
    closed: bool,
}

impl Asks {
    /// Takes in what an agent wrote, and says which rules it breaks.
    pub(crate) fn wrote(
        &mut self,
        entry: &Entry,
        key: &AgentKey,
        event: &AgentEvent,
        now: Time,
    ) -> Vec<String> {
        let mut broken = Vec::new();
        let at = (entry.run, key.task.clone(), key.generation);
        let course = self.courses.entry(at).or_default();
        let mut wrong = |rule: &str, how: String| {
            broken.push(format!(
                "at {}: {rule}: {} {}@{} {how}",
                entry.seq, key.agent, key.task, key.generation
            ));
        };
        if course.closed {
            let rule = match event {
                AgentEvent::Outcome(_) => "no outcome twice per generation",
                _ => "nothing is written by whom does not own",
            };
            wrong(rule, "after the outcome".to_owned());
        }
        match event {
            AgentEvent::Started(started) => {
                if started.after_step != course.steps {
                    wrong(
                        "work goes on after the last step",
                        format!("starts after step {}", started.after_step),
                    );
                }
                course.holder = Some(key.agent.clone());
            }
            _ if course.holder.as_ref() != Some(&key.agent) => {
                wrong("nothing is written by whom does not own", format!("writes {}", event.kind()));
            }
            AgentEvent::ToolStarted(_)
            | AgentEvent::Step(_)
            | AgentEvent::Outcome(_)
            | AgentEvent::Unreadable(_) => {}
            AgentEvent::Released(released) => {
                course.holder = None;
                course.closed |= released.parked;
            }
        }
        match event {
            AgentEvent::ToolStarted(tool) => {
                course.journaled.insert(tool.step.number, (entry.seq, now));
            }
            AgentEvent::Step(step) => {
                if step.number != course.steps + 1 {
                    wrong("steps follow each other", format!("step {} after {}", step.number, course.steps));
                }
                course.steps = step.number;
                course.journaled.entry(step.number).or_insert((entry.seq, now));
            }
            AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => course.closed = true,
            AgentEvent::Started(_) | AgentEvent::Released(_) => {}
        }
        broken
    }

    /// Takes in that a model is asked by somebody who read the record up to `known`.
    ///
    /// A process that was frozen cannot know what happened meanwhile, so a call that was answered elsewhere just now
    /// may be asked again; one that was answered before it last had to look may not.
    pub(crate) fn asked(&self, at: &Generations, step: u32, known: Seq, now: Time) -> Option<String> {
        let (seq, when) = self.courses.get(at)?.journaled.get(&step)?;
        let repeated = *seq <= known || now.saturating_sub(*when) > LOOK_AFTER;
        let (_, task, generation) = at;
        repeated.then(|| {
            format!("no finished model call is asked again: step {step} of {task}@{generation}, journaled at {seq}")
        })
    }

    /// Takes in that a tool with lasting effect runs.
    pub(crate) fn ran(&mut self, key: &str) -> Option<String> {
        let again = !self.tools.insert(key.to_owned());
        again.then(|| format!("a tool with lasting effect runs once: {key}"))
    }
}
