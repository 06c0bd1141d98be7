//! Rules about what tasks know in common, and about results that contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::conflict::{Side, Tolerance, detect};
use muster_shared::flow::{Claim, ObservationStatus, PeerAnswer, Plan, TaskStatus};
use muster_shared::ids::RunId;
use muster_shared::run::event::{ConflictResolved, ContextWritten, PlanRefused, TaskAnswered};
use muster_shared::run::{ConflictEnd, Entry, RecordEvent, RunEvent, RunState};

/// What was seen of values and conflicts.
#[derive(Debug, Default)]
pub(crate) struct Accord {
    /// The versions that somebody was told to have written.
    told: BTreeSet<(RunId, String, u32)>,
    /// How often there was what.
    pub(crate) seen: BTreeMap<&'static str, u64>,
}

impl Accord {
    /// Looks at an entry with the state before it and after it.
    pub(crate) fn appended(
        &mut self,
        before: Option<&RunState>,
        entry: &Entry,
        after: &RunState,
    ) -> Vec<String> {
        let RecordEvent::Decided(decided) = &entry.event else { return Vec::new() };
        let mut broken = Vec::new();
        let mut written = before.map(versions).unwrap_or_default();
        for event in &decided.events {
            match event {
                RunEvent::ContextWritten(ContextWritten { key, version, .. }) => {
                    let last = written.insert(key.clone(), *version).unwrap_or(0);
                    if *version != last + 1 {
                        broken
                            .push(format!("versions of a value rise by one: {key} from {last} to {version}"));
                    }
                }
                RunEvent::TaskAnswered(TaskAnswered { observation, answer, .. }) => {
                    if let Some(PeerAnswer::ContextWritten { key, version }) = answer.as_deref()
                        && !self.told.insert((entry.run, key.clone(), *version))
                    {
                        broken.push(format!("one write makes one version: {key} {version}"));
                    }
                    if observation.status == ObservationStatus::Refused
                        && observation.content.contains("context write is refused")
                    {
                        self.count("stale or unfit write refused");
                    }
                }
                RunEvent::ConflictResolved(ConflictResolved { end, redone, .. }) => {
                    self.count(match end {
                        ConflictEnd::Settled(verdict) => settled_by(verdict.by),
                        ConflictEnd::Unsettled(_) => "conflict left open",
                        ConflictEnd::Gone(_) => "conflict gone",
                        ConflictEnd::Both(_) => "both sides hold",
                    });
                    if !redone.is_empty() {
                        self.count("loser done again");
                    }
                }
                RunEvent::PlanRefused(PlanRefused { reasons })
                    if reasons.iter().any(|why| why.contains("{{context.")) =>
                {
                    self.count("plan refused for a value that nobody writes");
                }
                _ => {}
            }
        }
        let kept = versions(after);
        if before.is_some() && kept != written {
            broken.push(format!("values change by what is written alone: {written:?} became {kept:?}"));
        }
        if before.is_none_or(|run| !run.status.is_ended()) && after.status.is_ended() {
            broken.extend(unmarked(after));
        }
        broken.into_iter().map(|how| format!("at {}: {how}", entry.seq)).collect()
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }
}

const fn settled_by(step: muster_shared::flow::ConflictStep) -> &'static str {
    use muster_shared::flow::ConflictStep as Step;
    match step {
        Step::Methods => "conflict settled by methods",
        Step::Majority => "conflict settled by majority",
        Step::Confidence => "conflict settled by confidence",
        Step::Authority => "conflict settled by authority",
        Step::Arbiter => "conflict settled by arbiter",
        Step::Verify => "conflict settled by verification",
        Step::Person => "conflict settled by person",
    }
}

fn versions(run: &RunState) -> BTreeMap<String, u32> {
    run.peers.context.iter().map(|(key, entry)| (key.clone(), entry.version)).collect()
}

/// What a run ends with: no conflict is being settled, and its report names what contradicts.
fn unmarked(run: &RunState) -> Vec<String> {
    let mut broken = Vec::new();
    let Some(report) = &run.report else { return broken };
    // It tells nothing of what the tasks had given.
    if report.partial && report.body.contains("is withheld: the guards of reports") {
        return broken;
    }
    if !report.partial
        && let Some((id, _)) = run.open_conflicts().next()
    {
        broken.push(format!("every conflict is settled or marked: {id} is open"));
    }
    let text = report.unanswered.iter().fold(report.body.clone(), |text, line| text + "\n" + line);
    for conflict in run.conflicts.found.values() {
        let is_left = matches!(conflict.end, Some(ConflictEnd::Unsettled(_)) | None);
        if is_left && !text.contains(&conflict.subject) {
            broken.push(format!("what is not settled is marked: {}", conflict.subject));
        }
    }
    let tolerance = Tolerance { percent: run.limits.conflicts.tolerance_percent };
    for found in detect(&claimed(run), tolerance) {
        let subject = found.sides.first().map_or("", |side| side.claim.subject.as_str());
        if !text.contains(subject) {
            let sides: Vec<String> = found.sides.iter().map(ToString::to_string).collect();
            broken.push(format!("nothing contradictory is unmarked: {subject}: {}", sides.join("; ")));
        }
    }
    broken
}

/// All that results claim that are in the report.
fn claimed(run: &RunState) -> Vec<Side> {
    let mut sides = Vec::new();
    for (index, _) in run.plan.iter().flat_map(Plan::leaves) {
        let done = run.planned(index).filter(|state| state.status == TaskStatus::Completed);
        let Some(result) = done.and_then(|state| state.outcome.as_ref()?.result()) else { continue };
        sides.extend(
            result.claims.iter().take(Claim::MOST).map(|claim| Side::new(index.clone(), claim.clone())),
        );
    }
    sides
}
