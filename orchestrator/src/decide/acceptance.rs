//! Whether a result is what was asked for (O10). One that is not does not count: its task is done again, told why. Agents
//! that are part of Muster have looked already; others may be written in any language, and are held to the same.

use muster_shared::flow::{Acceptance, Ending, FailureKind, Product, TaskResult};
use muster_shared::ids::{AgentId, Role, Seq, TaskIndex};
use muster_shared::run::{AgentEvent, RunState};

/// Most faults that are named.
const MOST_FAULTS: usize = 5;

/// Why a result does not count.
#[derive(Debug)]
pub(super) struct Fault {
    /// What kind of failure it is.
    pub(super) kind: FailureKind,
    /// Why, in a sentence.
    pub(super) reason: String,
    /// Whether it may count as a part all the same, when nothing better comes.
    pub(super) is_part: bool,
}

/// What a task gave, and how it ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    /// How it ended.
    pub(super) ending: Ending,
    /// What it gave.
    pub(super) result: &'a TaskResult,
    /// What of its agent's contract that does not hold.
    pub(super) contract_violation: Option<&'a [String]>,
}

/// What is wrong with the result of a task, by rule; nothing when it counts.
pub(super) fn fault(run: &RunState, index: &TaskIndex, given: Given<'_>) -> Option<Fault> {
    let Given { ending, result, contract_violation } = given;
    let held_to = contract_violation.map(broken).or_else(|| too_large(result));
    if held_to.is_some() {
        return held_to;
    }
    match run.limits.responses.acceptance {
        Acceptance::Off => return None,
        Acceptance::Rules => {}
    }
    let task = run.plan_task(&index.planned())?;
    let not_accepted = |reason: String| Fault { kind: FailureKind::NotAccepted, reason, is_part: true };
    if is_empty(result) {
        return Some(not_accepted(format!(
            "it was called done and nothing was given; expected was: {}",
            task.expected_output
        )));
    }
    // Whoever names milestones means them; one that says it is not done has said what is missing.
    let (reached, set) = (result.milestones.len(), task.milestones.len());
    (ending == Ending::Done && reached > 0 && reached < set).then(|| {
        not_accepted(format!(
            "{reached} of {set} milestones were reached ({}); set were: {}",
            result.milestones.join("; "),
            task.milestones.join("; ")
        ))
    })
}

fn broken(faults: &[String]) -> Fault {
    let reason = format!("the result does not fit the contract of this role: {}", listed(faults));
    Fault { kind: FailureKind::ContractBroken, reason, is_part: false }
}

fn too_large(result: &TaskResult) -> Option<Fault> {
    let data = result.data.as_ref().map_or(0, |data| data.to_string().len());
    let sizes = [
        ("data", data, TaskResult::MAX_DATA_BYTES),
        ("conclusion", result.conclusion.len(), TaskResult::MAX_CONCLUSION_BYTES),
    ];
    let (field, bytes, most) = sizes.into_iter().find(|(_, bytes, most)| bytes > most)?;
    let reason = format!("`{field}` has {bytes} bytes, {most} is the most: give less, or write it to a file");
    Some(Fault { kind: FailureKind::ContractBroken, reason, is_part: false })
}

fn listed(faults: &[String]) -> String {
    faults.iter().take(MOST_FAULTS).map(String::as_str).collect::<Vec<_>>().join("; ")
}

/// Whose result stands in an outcome, and of which role a user defined: contracts are held against it.
pub(crate) fn promised(run: &RunState, outcome: Seq) -> Option<(&Role, &AgentId, &TaskResult)> {
    let (key, AgentEvent::Outcome(outcome)) = run.pending.get(&outcome)? else { return None };
    let Some(Product::Result(result)) = outcome.product.as_ref().filter(|_| outcome.counts()) else {
        return None;
    };
    run.plan_task(&key.task.leaf()?.planned())?;
    matches!(key.role, Role::Specialist(_)).then_some((&key.role, &key.agent, result))
}

/// Whether nothing was given.
pub(super) fn is_empty(result: &TaskResult) -> bool {
    result.conclusion.trim().is_empty()
        && result.findings.is_empty()
        && result.claims.is_empty()
        && result.data.is_none()
}
