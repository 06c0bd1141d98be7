//! Tries of tasks: who had them, what was done in them, and how they ended.

use std::sync::Arc;

use super::seen::{Stage, StepSeen};
use crate::flow::{ModelCall, Outcome, Step, Usage};
use crate::ids::{AgentId, Attempt, Role, RunId, Seq};
use crate::run::Started;
use crate::time::Millis;

/// How a try ended.
#[derive(Debug, Clone)]
pub enum How {
    /// With an outcome.
    Outcome(Arc<Outcome>),
    /// It was put down, or handed over in good order.
    Released {
        /// What was used and stands in no outcome.
        usage: Usage,
        /// Whether it waits for something.
        waits: bool,
        /// Whether the generation ends with it.
        is_parked: bool,
    },
    /// What was to end it cannot be read.
    Unreadable,
    /// Its agent was lost.
    Lost,
    /// Its agent wrote nothing for too long.
    Silent,
    /// It was taken from its agent by a decision.
    CutOff,
}

impl How {
    /// How its agent came to leave it, in words; nothing where that was its own doing.
    pub(super) const fn loss(&self) -> Option<&'static str> {
        match self {
            Self::Outcome(_) | Self::Released { .. } | Self::Unreadable => None,
            Self::Lost => Some("was lost"),
            Self::Silent => Some("fell silent"),
            Self::CutOff => Some("was cut off"),
        }
    }
}

/// The end of a try.
#[derive(Debug, Clone)]
pub struct End {
    /// How.
    pub how: How,
    /// When.
    pub at: Millis,
}

/// What an agent said of the end of its try: it is one once a decision names it.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) seq: Seq,
    pub(super) end: End,
}

/// A try of a task, as far as it came.
#[derive(Debug, Clone)]
pub struct Try {
    /// Who has the task.
    pub agent: AgentId,
    /// In which role; nothing where what it wrote when it began is lost.
    pub role: Option<Role>,
    /// Which try of its generation. As long as no decision counted it, what its agent says.
    pub number: Attempt,
    /// Since when.
    pub from: Millis,
    /// Its steps, in order. One in which tools were begun may be told by several entries.
    pub steps: Vec<StepSeen>,
    pub(super) host: String,
    pub(super) pid: u32,
    /// The entry with which its agent began.
    pub(super) began: Option<Seq>,
    /// Whether a decision took it for the one that counts.
    pub(super) is_confirmed: bool,
    pub(super) said: Option<Said>,
    /// Runs that were begun for it.
    pub(super) children: Vec<RunId>,
}

impl Try {
    pub(super) fn new(agent: AgentId, role: Option<Role>, from: Millis) -> Self {
        Self {
            agent,
            role,
            number: Attempt(0),
            from,
            steps: Vec::new(),
            host: String::new(),
            pid: 0,
            began: None,
            is_confirmed: false,
            said: None,
            children: Vec::new(),
        }
    }

    pub(super) fn started(agent: AgentId, role: Role, from: Millis, started: &Started) -> Self {
        Self {
            number: started.attempt,
            host: started.host.clone(),
            pid: started.pid,
            ..Self::new(agent, Some(role), from)
        }
    }

    /// What the try used. An outcome says what the whole generation did: of that, only what this try did is its own. `is_first`
    /// says whether nobody had the task before.
    #[must_use]
    pub fn used(&self, how: Option<&How>, is_first: bool) -> Usage {
        match how {
            Some(How::Outcome(outcome)) if is_first => outcome.usage,
            Some(How::Released { usage, .. }) if self.steps_taken() == 0 => *usage,
            Some(
                How::Outcome(_)
                | How::Released { .. }
                | How::Unreadable
                | How::Lost
                | How::Silent
                | How::CutOff,
            )
            | None => self.models().fold(Usage::default(), |mut used, call| {
                used += call.usage;
                used
            }),
        }
    }

    /// How many steps were taken in it.
    #[must_use]
    pub fn steps_taken(&self) -> usize {
        self.steps.iter().filter(|seen| seen.stage == Stage::Taken).count()
    }

    /// The calls of models in it.
    pub(super) fn models(&self) -> impl Iterator<Item = &ModelCall> {
        self.steps.iter().flat_map(StepSeen::models)
    }

    fn see(&mut self, seen: StepSeen) {
        let begun = self.steps.iter_mut().rfind(|earlier| earlier.stage == Stage::Begun);
        if let Some(begun) = begun
            && (seen.stage == Stage::Begun || begun.step.number <= seen.step.number)
        {
            begun.stage = Stage::Journaled;
        }
        self.steps.push(seen);
    }
}

/// The tries of a generation that are not over.
#[derive(Debug, Default)]
pub(super) struct Tries {
    pub(super) open: Vec<Try>,
    /// A step of which so many calls of models are told.
    told: Option<(u32, usize)>,
}

impl Tries {
    /// The try of an agent that has not said how it ended.
    pub(super) fn of(&mut self, agent: &AgentId) -> Option<&mut Try> {
        self.open.iter_mut().rev().find(|held| held.agent == *agent && held.said.is_none())
    }

    /// Whether nothing is known that makes a difference to later entries.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.told.is_none()
    }

    /// A step was taken, or begun: a tool is about to be called, and what the model answered is known.
    pub(super) fn step(&mut self, agent: &AgentId, step: &Step, stage: Stage, stored: Millis, content: bool) {
        let told = self.told.filter(|(number, _)| *number == step.number).map_or(0, |(_, count)| count);
        let Some(held) = self.of(agent) else { return };
        held.see(StepSeen::new(step, stored, stage, told, content));
        self.told = (stage == Stage::Begun).then(|| (step.number, step.calls.len().max(told)));
    }
}
