//! What the result rests on: each finding and claim of the results that count, with where it stands, who found it where,
//! and whether it was checked or contested.

use serde::Serialize;

use super::story::Story;
use super::words;
use crate::flow::{Citation, Claim, Finding, Observation, TaskResult, TaskStatus};
use crate::ids::{AgentId, Role, Seq, TaskId, TaskIndex};
use crate::run::{AgentEvent, ConflictEnd, ConflictState, Entry, RecordEvent, RunState, TaskState};

/// Shortest quote by which a step is found that saw it, in bytes: shorter ones stand anywhere.
const LEAST_QUOTE: usize = 12;

/// A statement that the result rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// What kind of statement it is.
    pub kind: EvidenceKind,
    /// It in words.
    pub text: String,
    /// The task that gave it.
    pub task: TaskId,
    /// Who did the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The agent that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Where it stands.
    pub citations: Vec<Citation>,
    /// How sure its author is, in percent; 0 when that is not said.
    pub confidence: u8,
    /// Whether all its citations were looked up by rule, and stand.
    pub looked_up: bool,
    /// Whether somebody other than the finder looked it up.
    pub verified: bool,
    /// Whether others claim something else.
    pub standing: Standing,
    /// Whether what it was made from has changed since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// The step that saw what it cites, else the one that gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_in: Option<FoundIn>,
    /// The entry that gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<Seq>,
}

/// What kind of statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// The task's conclusion, where it gives no single statements.
    Conclusion,
    /// A single statement.
    Finding,
    /// A statement that can be compared with what others say of the same subject.
    Claim,
}

/// Whether others claim something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "conflict")]
pub enum Standing {
    /// Nobody does.
    Uncontested,
    /// Somebody did, and this is what holds.
    Upheld(u32),
    /// Somebody did, and that is what holds.
    Overruled(u32),
    /// Somebody does, and it is not known what holds.
    Contested(u32),
    /// Somebody did, and both hold.
    BothHold(u32),
}

/// A step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FoundIn {
    /// Its number.
    pub step: u32,
    /// Where it stands.
    pub entry: Seq,
}

/// What the result of a run rests on, task by task.
pub(super) fn evidence(state: &RunState, story: &Story<'_>) -> Vec<Evidence> {
    let mut all = Vec::new();
    for (index, found) in state.leaves() {
        if let Some(result) = counted(state, index, found) {
            all.extend(Giver::new(state, story, index, found).evidence(result));
        }
    }
    all
}

/// The result of a leaf, if the run builds on it. Of members it is told with the task that they are members of.
fn counted<'a>(state: &RunState, index: &TaskIndex, found: &'a TaskState) -> Option<&'a TaskResult> {
    let outcome = found.outcome.as_deref()?;
    let is_counted = found.status == TaskStatus::Completed && !index.is_member();
    let is_planned = state.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(index));
    outcome.result().filter(|_| is_counted && is_planned)
}

/// Whoever gave a result.
struct Giver<'a> {
    state: &'a RunState,
    task: TaskId,
    role: Option<Role>,
    found: &'a TaskState,
    /// The entries of agents about it, and about the member whose result is its own.
    entries: Vec<&'a Entry>,
}

impl<'a> Giver<'a> {
    fn new(state: &'a RunState, story: &Story<'a>, index: &TaskIndex, found: &'a TaskState) -> Self {
        let task = TaskId::Leaf(index.clone());
        let member = state.groups.get(index).and_then(|group| group.verdict.as_ref());
        let did = member.map_or_else(|| task.clone(), |verdict| TaskId::Leaf(verdict.counts.clone()));
        let is_its = |entry: &&Entry| match &entry.event {
            RecordEvent::Agent(key, _) => key.task == did,
            RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
        };
        let entries = story.entries.iter().filter(is_its).collect();
        Self { state, role: story.roles.get(&did).cloned(), task, found, entries }
    }

    fn evidence(&self, result: &TaskResult) -> Vec<Evidence> {
        let mut all: Vec<Evidence> = result.findings.iter().map(|finding| self.finding(finding)).collect();
        all.extend(result.claims.iter().map(|claim| self.claim(claim)));
        if all.is_empty() && !result.conclusion.trim().is_empty() {
            all.push(self.new_evidence(EvidenceKind::Conclusion, &result.conclusion, &[]));
        }
        all
    }

    fn finding(&self, finding: &Finding) -> Evidence {
        Evidence {
            confidence: finding.confidence,
            looked_up: finding.looked_up,
            verified: finding.verified,
            ..self.new_evidence(EvidenceKind::Finding, &finding.text, &finding.citations)
        }
    }

    fn claim(&self, claim: &Claim) -> Evidence {
        let text = format!("{}: {}", claim.subject, claim.value);
        Evidence {
            confidence: claim.confidence,
            standing: self.standing(claim),
            ..self.new_evidence(EvidenceKind::Claim, &text, &claim.evidence)
        }
    }

    fn new_evidence(&self, kind: EvidenceKind, text: &str, citations: &[Citation]) -> Evidence {
        Evidence {
            kind,
            text: words::brief(text),
            task: self.task.clone(),
            role: self.role.clone(),
            agent: self.found.ended_by.clone(),
            citations: citations.to_vec(),
            confidence: 0,
            looked_up: false,
            verified: false,
            standing: Standing::Uncontested,
            stale: self.found.stale.is_some(),
            found_in: self.found_in(citations),
            entry: self.outcome(),
        }
    }

    fn standing(&self, claim: &Claim) -> Standing {
        let index = self.task.as_leaf();
        let takes_part = |conflict: &ConflictState| {
            conflict.sides.iter().any(|side| Some(&side.task) == index && side.claim == *claim)
        };
        let found = self.state.conflicts.found.iter().rfind(|(_, conflict)| takes_part(conflict));
        let Some((id, conflict)) = found else { return Standing::Uncontested };
        match &conflict.end {
            Some(ConflictEnd::Settled(verdict)) => {
                let lost = index.is_some_and(|index| verdict.losers.contains(index));
                if lost { Standing::Overruled(*id) } else { Standing::Upheld(*id) }
            }
            Some(ConflictEnd::Both(_)) => Standing::BothHold(*id),
            Some(ConflictEnd::Gone(_)) => Standing::Uncontested,
            Some(ConflictEnd::Unsettled(_)) | None => Standing::Contested(*id),
        }
    }

    /// The entry of the outcome that is kept.
    fn outcome(&self) -> Option<Seq> {
        let kept = self.found.outcome.as_deref()?;
        let is_it = |entry: &&&Entry| match &entry.event {
            RecordEvent::Agent(_, AgentEvent::Outcome(outcome)) => outcome.product == kept.product,
            RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
        };
        let outcomes = || self.entries.iter().rev().filter(|entry| is_outcome(entry));
        outcomes().find(is_it).or_else(|| outcomes().next()).map(|entry| entry.seq)
    }

    /// The first step that saw the words that are cited, else their document; else the step that gave the result.
    fn found_in(&self, citations: &[Citation]) -> Option<FoundIn> {
        let saw = |seen: &Observation| {
            citations.iter().any(|one| one.quote.len() >= LEAST_QUOTE && seen.content.contains(&one.quote))
        };
        let names = |seen: &Observation| {
            citations.iter().any(|one| !one.path.is_empty() && seen.content.contains(&one.path))
        };
        self.step_that(&saw).or_else(|| self.step_that(&names)).or_else(|| self.last_step())
    }

    fn step_that(&self, sees: &dyn Fn(&Observation) -> bool) -> Option<FoundIn> {
        self.entries.iter().find_map(|entry| {
            let RecordEvent::Agent(_, AgentEvent::Step(step)) = &entry.event else { return None };
            step.observations().any(sees).then_some(FoundIn { step: step.number, entry: entry.seq })
        })
    }

    fn last_step(&self) -> Option<FoundIn> {
        self.entries.iter().rev().find_map(|entry| {
            let RecordEvent::Agent(_, AgentEvent::Outcome(outcome)) = &entry.event else { return None };
            let step = outcome.last_step.as_ref()?.number;
            Some(FoundIn { step, entry: entry.seq })
        })
    }
}

const fn is_outcome(entry: &Entry) -> bool {
    matches!(entry.event, RecordEvent::Agent(_, AgentEvent::Outcome(_)))
}
