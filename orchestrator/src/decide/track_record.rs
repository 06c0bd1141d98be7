//! What agents and tools did in a run that has ended, for the choice of agents in later runs (M6).

use std::collections::BTreeMap;

use muster_shared::flow::{CallDigest, ObservationStatus, StepDigest};
use muster_shared::ids::AgentId;
use muster_shared::run::RunState;
use muster_shared::track_record::{AgentTrackRecord, RunTrackRecord, Tally, ToolTally};

/// Steps that end a task call no tool.
const SUBMIT: &str = muster_shared::flow::Action::SUBMIT;

/// What the run tells of its agents and tools; nothing when nothing was done. Role and model of an agent are known to
/// whoever keeps it.
pub(super) fn of_run(run: &RunState) -> Option<RunTrackRecord> {
    let agents: Vec<AgentTrackRecord> = tallies(run)
        .into_iter()
        .map(|(agent, tally)| {
            let (role, model, name, host) = Default::default();
            AgentTrackRecord { agent, role, model, name, host, tally }
        })
        .collect();
    let mut tools: BTreeMap<String, ToolTally> = BTreeMap::new();
    let outcomes = run.tasks.values().filter_map(|task| task.outcome.as_ref());
    for step in outcomes.flat_map(|outcome| &outcome.steps) {
        count(&mut tools, step);
    }
    if agents.is_empty() && tools.is_empty() {
        return None;
    }
    let ended_at = run.ended_at.unwrap_or(run.decided_at);
    Some(RunTrackRecord { run: run.id, ended_at, agents, tools }.bounded())
}

/// What the work of each agent came to, with what became of its claims.
fn tallies(run: &RunState) -> BTreeMap<AgentId, Tally> {
    let mut all = run.tallies.clone();
    for (agent, count) in run.conflict_counts() {
        let tally = all.entry(agent).or_default();
        tally.conflicts_won = tally.conflicts_won.saturating_add(u64::from(count.won));
        tally.conflicts_lost = tally.conflicts_lost.saturating_add(u64::from(count.lost));
    }
    all
}

/// Counts all calls of a step.
fn count(tools: &mut BTreeMap<String, ToolTally>, step: &StepDigest) {
    let first = step.action.split_whitespace().next().unwrap_or_default();
    if let Some(status) = step.status {
        count_call(tools, &CallDigest { tool: first.to_owned(), status, millis: step.millis });
    }
    step.more.iter().for_each(|call| count_call(tools, call));
}

fn count_call(tools: &mut BTreeMap<String, ToolTally>, call: &CallDigest) {
    let failed = match call.status {
        ObservationStatus::Success => false,
        ObservationStatus::Error | ObservationStatus::Timeout => true,
        // It was not called.
        ObservationStatus::Refused => return,
    };
    if call.tool.is_empty() || call.tool == SUBMIT {
        return;
    }
    let tally = tools.entry(call.tool.clone()).or_default();
    tally.calls = tally.calls.saturating_add(1);
    tally.failed = tally.failed.saturating_add(u64::from(failed));
    tally.ms = tally.ms.saturating_add(call.millis);
}
