//! Evidence for the result: each finding and claim of accepted results, with citations, confidence, checks, and conflicts.

use serde::Serialize;

use super::run_timeline::RunTimeline;
use super::words;
use crate::flow::{Citation, Claim, Finding, Observation, TaskResult, TaskStatus};
use crate::ids::{AgentId, Role, Seq, TaskId, TaskIndex};
use crate::run::{AgentEvent, ConflictEnd, ConflictState, Entry, RecordEvent, RunState, TaskState};

/// Shortest quote that identifies a step, in bytes.
const LEAST_QUOTE: usize = 12;

/// Statement that supports the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Text.
    pub text: String,
    /// Task with the statement in its result.
    pub task: TaskId,
    /// Role of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Sources.
    pub citations: Vec<Citation>,
    /// Confidence in percent; 0 if unknown.
    pub confidence: u8,
    /// Whether the quotes were found in all cited sources.
    pub looked_up: bool,
    /// Whether another task verified it.
    pub verified: bool,
    /// Result of conflicts with other claims.
    pub status: ClaimStatus,
    /// Step that read the source, or the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_in: Option<FoundIn>,
    /// Entry of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<Seq>,
}

/// Result of conflicts with other claims, with the number of the conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "conflict")]
pub enum ClaimStatus {
    /// No conflict.
    Uncontested,
    /// Confirmed.
    Upheld(u32),
    /// Rejected.
    Overruled(u32),
    /// Not settled.
    Contested(u32),
    /// Both claims are true.
    BothHold(u32),
}

/// Step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FoundIn {
    /// Number.
    pub step: u32,
    /// Entry.
    pub entry: Seq,
}

/// Evidence by task.
pub(super) fn evidence(state: &RunState, timeline: &RunTimeline<'_>) -> Vec<Evidence> {
    let mut all = Vec::new();
    for (index, found) in state.leaves() {
        if let Some(result) = counted(state, index, found) {
            all.extend(EvidenceSource::new(state, timeline, index, found).evidence(result));
        }
    }
    all
}

/// Result of a leaf, if the run uses it. The results of members belong to the task of the group.
fn counted<'a>(state: &RunState, index: &TaskIndex, found: &'a TaskState) -> Option<&'a TaskResult> {
    let outcome = found.outcome.as_deref()?;
    let is_counted = found.status == TaskStatus::Completed && !index.is_member();
    let is_planned = state.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(index));
    outcome.result().filter(|_| is_counted && is_planned)
}

/// Task with a result.
struct EvidenceSource<'a> {
    state: &'a RunState,
    task: TaskId,
    role: Option<Role>,
    found: &'a TaskState,
    /// Agent entries of the task, or of the member with the accepted result.
    entries: Vec<&'a Entry>,
}

impl<'a> EvidenceSource<'a> {
    fn new(state: &'a RunState, timeline: &RunTimeline<'a>, index: &TaskIndex, found: &'a TaskState) -> Self {
        let task = index.to_task_id();
        let member = state.groups.get(index).and_then(|group| group.verdict.as_ref());
        let did = member.map_or_else(|| task.clone(), |verdict| verdict.counts.to_task_id());
        let is_its = |entry: &&Entry| {
            if let RecordEvent::Agent(key, _) = &entry.event { key.task == did } else { false }
        };
        let entries = timeline.entries.iter().filter(is_its).collect();
        Self { state, role: timeline.roles.get(&did).cloned(), task, found, entries }
    }

    fn evidence(&self, result: &TaskResult) -> Vec<Evidence> {
        let mut all: Vec<Evidence> = result.findings.iter().map(|finding| self.finding(finding)).collect();
        all.extend(result.claims.iter().map(|claim| self.claim(claim)));
        if all.is_empty() && !result.conclusion.trim().is_empty() {
            all.push(self.new_evidence(&result.conclusion, &[]));
        }
        all
    }

    fn finding(&self, finding: &Finding) -> Evidence {
        Evidence {
            confidence: finding.confidence,
            looked_up: finding.looked_up,
            verified: finding.verified,
            ..self.new_evidence(&finding.text, &finding.citations)
        }
    }

    fn claim(&self, claim: &Claim) -> Evidence {
        let text = format!("{}: {}", claim.subject, claim.value);
        Evidence {
            confidence: claim.confidence,
            status: self.status(claim),
            ..self.new_evidence(&text, &claim.evidence)
        }
    }

    fn new_evidence(&self, text: &str, citations: &[Citation]) -> Evidence {
        Evidence {
            text: words::brief(text),
            task: self.task.clone(),
            role: self.role.clone(),
            agent: self.found.ended_by.clone(),
            citations: citations.to_vec(),
            confidence: 0,
            looked_up: false,
            verified: false,
            status: ClaimStatus::Uncontested,
            found_in: self.found_in(citations),
            entry: self.outcome(),
        }
    }

    fn status(&self, claim: &Claim) -> ClaimStatus {
        let index = self.task.as_leaf();
        let takes_part = |conflict: &ConflictState| {
            conflict.sides.iter().any(|side| Some(&side.task) == index && side.claim == *claim)
        };
        let found = self.state.conflicts.found.iter().rfind(|(_, conflict)| takes_part(conflict));
        let Some((id, conflict)) = found else { return ClaimStatus::Uncontested };
        match &conflict.end {
            Some(ConflictEnd::Settled(verdict)) => {
                let lost = index.is_some_and(|index| verdict.losers.contains(index));
                if lost { ClaimStatus::Overruled(*id) } else { ClaimStatus::Upheld(*id) }
            }
            Some(ConflictEnd::Both(_)) => ClaimStatus::BothHold(*id),
            Some(ConflictEnd::Gone(_)) => ClaimStatus::Uncontested,
            Some(ConflictEnd::Unsettled(_)) | None => ClaimStatus::Contested(*id),
        }
    }

    /// Entry of the accepted outcome.
    fn outcome(&self) -> Option<Seq> {
        let kept = self.found.outcome.as_deref()?;
        let is_it = |entry: &&&Entry| {
            if let RecordEvent::Agent(_, AgentEvent::Outcome(outcome)) = &entry.event {
                outcome.product == kept.product
            } else {
                false
            }
        };
        let outcomes = || {
            self.entries
                .iter()
                .rev()
                .filter(|entry| matches!(entry.event, RecordEvent::Agent(_, AgentEvent::Outcome(_))))
        };
        outcomes().find(is_it).or_else(|| outcomes().next()).map(|entry| entry.seq)
    }

    /// First step that read the quote, else the document; else the last step.
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
