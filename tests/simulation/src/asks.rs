//! What agents wrote and asked, task by task: who held it, which steps were journaled, which were asked for.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent};

use crate::agenda::Time;
use crate::io::PATIENCE;

/// What was journaled so long ago is seen by whoever looks before it asks a model: it waits so long for an answer, or was
/// sure for a moment.
const SEEN_AFTER: Time = PATIENCE + 500;

/// One generation of one task.
type Generations = (RunId, TaskId, Generation);

/// What stands in the record about each generation of each task, and what was asked.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    courses: BTreeMap<Generations, Course>,
    /// Of generations that go on from others: the first of these.
    first: BTreeMap<Generations, Generation>,
    /// Where the model's answer of each step was journaled, by the first generation.
    journaled: BTreeMap<Generations, BTreeMap<u32, Vec<Journaled>>>,
    tools: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Course {
    holder: Option<AgentId>,
    /// The last step of the generations before, when it was offered.
    before: u32,
    /// Its own last step, or the one it began after.
    steps: u32,
    /// Whether it goes on from another.
    goes_on: bool,
    /// Whether it has steps of its own.
    has_steps: bool,
    closed: bool,
}

/// A step whose answer is in the record.
#[derive(Debug, Clone, Copy)]
struct Journaled {
    generation: Generation,
    seq: Seq,
    at: Time,
}

impl Asks {
    /// Takes in what was offered.
    pub(crate) fn offered(&mut self, entry: &Entry) {
        let offer = match &entry.event {
            RecordEvent::Offered(offer) => offer,
            RecordEvent::Decided(decided) => match decided.offer.as_deref() {
                Some(offer) => offer,
                None => return,
            },
            RecordEvent::Agent(..) => return,
        };
        let Some(first) = offer.continues else { return };
        let of = |generation| (entry.run, offer.task.clone(), generation);
        let earlier = self.courses.range(of(first)..of(offer.generation));
        let before = earlier.map(|(_, course)| course).rfind(|course| course.has_steps);
        let before = before.map_or(0, |course| course.steps);
        self.first.insert(of(offer.generation), first);
        self.courses.insert(of(offer.generation), Course { before, goes_on: true, ..Course::default() });
    }

    /// A generation that goes on from others is worked on together with these.
    fn together(&self, (run, task, generation): &Generations) -> Generations {
        let at = (*run, task.clone(), *generation);
        let first = self.first.get(&at).copied().unwrap_or(*generation);
        (*run, task.clone(), first)
    }

    /// The last step that a generation can go on from, if an earlier one went on after it was offered.
    fn most(&self, at: &Generations) -> u32 {
        let earlier = self.courses.range(self.together(at)..at.clone());
        earlier.map(|(_, course)| course.steps).max().unwrap_or(0)
    }

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
        let (together, most) = (self.together(&at), self.most(&at));
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
                let known = if course.has_steps {
                    course.steps..=course.steps
                } else {
                    course.before..=most.max(course.before)
                };
                if !known.contains(&started.after_step) {
                    wrong(
                        "work goes on after the last step",
                        format!("starts after step {}", started.after_step),
                    );
                }
                course.holder = Some(key.agent.clone());
                course.steps = started.after_step;
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
        let journaled = Journaled { generation: key.generation, seq: entry.seq, at: now };
        let mut keep = |step: u32| {
            self.journaled.entry(together.clone()).or_default().entry(step).or_default().push(journaled);
        };
        match event {
            AgentEvent::ToolStarted(tool) => keep(tool.step.number),
            AgentEvent::Step(step) => {
                // Who had an earlier generation may take the same step late: what was begun of it is ended all the same.
                // It may also have ended a step after this one was begun: its agent reads on, and follows that step.
                let first = course.goes_on && !course.has_steps;
                let follows = step.number == course.steps + 1;
                let follows_earlier = first && step.number <= course.steps.max(most) + 1;
                if !follows && !follows_earlier {
                    wrong("steps follow each other", format!("step {} after {}", step.number, course.steps));
                }
                (course.steps, course.has_steps) = (step.number, true);
                keep(step.number);
            }
            AgentEvent::Outcome(_) | AgentEvent::Unreadable(_) => course.closed = true,
            AgentEvent::Started(_) | AgentEvent::Released(_) => {}
        }
        broken
    }

    /// Takes in that a model is asked by somebody who read the record up to `known`.
    ///
    /// A process that was frozen cannot know what happened meanwhile, so a call that was answered elsewhere just now
    /// may be asked again; one that was answered before it last had to look may not, in whichever generation.
    pub(crate) fn asked(&self, at: &Generations, step: u32, known: Seq, now: Time) -> Option<String> {
        let (_, task, generation) = at;
        let repeated = |journaled: &&Journaled| {
            (journaled.generation == *generation && journaled.seq <= known)
                || now.saturating_sub(journaled.at) > SEEN_AFTER
        };
        let Journaled { generation: of, seq, .. } =
            self.journaled.get(&self.together(at))?.get(&step)?.iter().find(repeated)?;
        Some(format!(
            "no finished model call is asked again: step {step} of {task}@{generation}, journaled at {seq} in @{of}"
        ))
    }

    /// Takes in that a tool with lasting effect runs.
    pub(crate) fn ran(&mut self, key: &str) -> Option<String> {
        let again = !self.tools.insert(key.to_owned());
        again.then(|| format!("a tool with lasting effect runs once: {key}"))
    }
}
