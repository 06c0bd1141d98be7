//! Cost. Rows add up, field by field, to the usage of the run's state: each entry that increases the sum is compared with the
//! outcomes that it accounts for, and the remainder has a separate row.

use std::collections::BTreeMap;

use serde::Serialize;

use super::run_timeline::RunTimeline;
use crate::flow::{Budget, ModelCall, Step, Usage};
use crate::ids::{Role, RunId, Seq, TaskId};
use crate::run::{AgentEvent, AgentKey, Entry, Held, RecordEvent, RunEvent, RunState, ToolUse};

/// Cost of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Total, equal to `usage` of `muster show --json`.
    pub total: Usage,
    /// Usage by task, most expensive first.
    pub by_task: Vec<TaskCost>,
    /// Usage by role.
    pub by_role: Vec<RoleCost>,
    /// Usage by model, of the calls that steps contain.
    pub by_model: Vec<ModelCost>,
    /// Calls by tool.
    pub tools: BTreeMap<String, ToolUse>,
    /// Budget, if one is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// Usage of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskCost {
    /// Task; absent for usage without a known task, such as that before a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Child run of the task, for the usage of that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Time of models, in milliseconds.
    pub model_ms: u64,
    /// Time of tools, in milliseconds.
    pub tool_ms: u64,
    /// Usage.
    pub usage: Usage,
}

/// Usage of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleCost {
    /// Role; absent for child runs and unknown roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Usage.
    pub usage: Usage,
}

/// Usage of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelCost {
    /// Model.
    pub model: String,
    /// Calls.
    pub calls: u64,
    /// Time of the calls, in milliseconds.
    pub millis: u64,
    /// Usage.
    pub usage: Usage,
}

/// Usage that an agent reported and no decision has counted.
#[derive(Debug, Clone)]
struct Claimed {
    seq: Seq,
    key: AgentKey,
    usage: Usage,
    /// Whether the state expects this report.
    counts: bool,
}

/// State before an entry.
#[derive(Debug, Default)]
pub(super) struct Before {
    used: Usage,
    claimed: Vec<Claimed>,
}

impl Before {
    pub(super) fn of(state: Option<&RunState>) -> Self {
        let Some(state) = state else { return Self::default() };
        let pending = state.pending.iter().map(|(seq, (key, event))| claimed(state, *seq, key, said(event)));
        let held = state.guarding.open.values().filter_map(|held| match &held.what {
            Held::Outcome { seq, key, outcome } => Some(claimed(state, *seq, key, outcome.usage)),
            _ => None,
        });
        let claimed = pending.chain(held).filter(|one| !one.usage.is_nothing()).collect();
        Self { used: state.spending.used, claimed }
    }
}

type Row = (Option<TaskId>, Option<RunId>, Option<Role>);

/// Usage by task, child run, and role.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    rows: BTreeMap<Row, Usage>,
    models: BTreeMap<String, ModelCost>,
    /// Time of models and tools by task, in milliseconds.
    times: BTreeMap<TaskId, (u64, u64)>,
}

impl Ledger {
    /// Adds the usage that an entry added to the sum.
    pub(super) fn note(&mut self, before: Before, after: &RunState, entry: &Entry) {
        let mut left = after.spending.used.without(before.used);
        if left.is_nothing() {
            return;
        }
        match &entry.event {
            RecordEvent::Agent(key, _) => self.add(of_task(&key.task, Some(&key.role)), left),
            RecordEvent::Decided(decided) => {
                for event in &decided.events {
                    if let Some((row, usage)) = by_itself(after, event) {
                        self.take(&mut left, row, usage);
                    }
                }
                let gone = |one: &Claimed| !after.pending.contains_key(&one.seq);
                let (sure, others): (Vec<_>, Vec<_>) =
                    before.claimed.into_iter().filter(gone).partition(|one| one.counts);
                for one in sure.into_iter().chain(others) {
                    self.take(&mut left, of_task(&one.key.task, Some(&one.key.role)), one.usage);
                }
                self.add((None, None, None), left);
            }
            RecordEvent::Offered(_) => self.add((None, None, None), left),
        }
    }

    /// Moves a part of the remainder to a row, if the remainder contains it.
    fn take(&mut self, left: &mut Usage, row: Row, usage: Usage) {
        if is_within(&usage, left) {
            *left = left.without(usage);
            self.add(row, usage);
        }
    }

    fn add(&mut self, row: Row, usage: Usage) {
        if !usage.is_nothing() {
            *self.rows.entry(row).or_default() += usage;
        }
    }

    /// Adds a model call of a step.
    pub(super) fn model(&mut self, call: &ModelCall) {
        let new = || ModelCost { model: call.model.clone(), calls: 0, millis: 0, usage: Usage::default() };
        let found = self.models.entry(call.model.clone()).or_insert_with(new);
        found.calls = found.calls.saturating_add(1);
        found.millis = found.millis.saturating_add(call.millis);
        found.usage += call.usage;
    }

    /// Adds the time of a step.
    pub(super) fn time(&mut self, task: &TaskId, step: &Step) {
        let (model_ms, tool_ms) = self.times.entry(task.clone()).or_default();
        *model_ms = step.calls.iter().map(|call| call.millis).fold(*model_ms, u64::saturating_add);
        *tool_ms = step.observations().map(|seen| seen.millis).fold(*tool_ms, u64::saturating_add);
    }

    /// Adds the usage of tasks in progress and the remainder, so that the sum is that of the state.
    pub(super) fn close(&mut self, state: &RunState) {
        let mut left = state.used().without(self.sum());
        for (task, usage) in state.used_in_progress() {
            self.take(&mut left, of_task(task, None), usage);
        }
        self.add((None, None, None), left);
    }

    fn sum(&self) -> Usage {
        let mut sum = Usage::default();
        self.rows.values().for_each(|usage| sum += *usage);
        sum
    }
}

fn claimed(state: &RunState, seq: Seq, key: &AgentKey, usage: Usage) -> Claimed {
    let counts =
        state.spending.uncounted.iter().any(|kept| {
            (&kept.task, kept.generation, &kept.agent) == (&key.task, key.generation, &key.agent)
        });
    Claimed { seq, key: key.clone(), usage, counts }
}

/// Counted usage of an agent entry.
fn said(event: &AgentEvent) -> Usage {
    match event {
        AgentEvent::Outcome(outcome) => outcome.usage,
        AgentEvent::Released(released) if released.parked => released.usage,
        _ => Usage::default(),
    }
}

/// Usage that an event adds without a report: that of child runs, and the calls of crashed agents.
fn by_itself(state: &RunState, event: &RunEvent) -> Option<(Row, Usage)> {
    if let RunEvent::ChildEnded(ended) = event {
        let task = state.children.get(&ended.run).map(|child| child.task.clone());
        return Some(((task, Some(ended.run), None), ended.end.usage));
    }
    let RunEvent::TaskQuarantined(found) = event else { return None };
    let wasted_calls = u64::try_from(found.evidence.agents.len()).unwrap_or(u64::MAX);
    Some((of_task(&found.task, None), Usage { wasted_calls, ..Usage::default() }))
}

fn of_task(task: &TaskId, role: Option<&Role>) -> Row {
    (Some(task.clone()), None, role.cloned())
}

fn is_within(part: &Usage, whole: &Usage) -> bool {
    let mut sum = whole.without(*part);
    sum += *part;
    sum == *whole
}

pub(super) fn cost(state: &RunState, timeline: &RunTimeline<'_>) -> Cost {
    let role_of = |task: Option<&TaskId>| task.and_then(|task| timeline.roles.get(task).cloned());
    let mut by_task: BTreeMap<(Option<TaskId>, Option<RunId>), TaskCost> = BTreeMap::new();
    let mut by_role: BTreeMap<Option<Role>, Usage> = BTreeMap::new();
    for ((task, run, role), usage) in &timeline.ledger.rows {
        let role = match run {
            Some(_) => None,
            None => role.clone().or_else(|| role_of(task.as_ref())),
        };
        *by_role.entry(role.clone()).or_default() += *usage;
        let times = task.as_ref().filter(|_| run.is_none()).and_then(|task| timeline.ledger.times.get(task));
        let (model_ms, tool_ms) = times.copied().unwrap_or_default();
        let (task, run) = (task.clone(), *run);
        let new = TaskCost { task: task.clone(), run, role, model_ms, tool_ms, usage: Usage::default() };
        by_task.entry((task, run)).or_insert(new).usage += *usage;
    }
    let mut by_task: Vec<TaskCost> = by_task.into_values().collect();
    by_task.sort_by_key(|row| std::cmp::Reverse(weight(&row.usage)));
    let mut by_role: Vec<RoleCost> =
        by_role.into_iter().map(|(role, usage)| RoleCost { role, usage }).collect();
    by_role.sort_by_key(|row| std::cmp::Reverse(weight(&row.usage)));
    let mut by_model: Vec<ModelCost> = timeline.ledger.models.values().cloned().collect();
    by_model.sort_by_key(|row| std::cmp::Reverse(weight(&row.usage)));
    let total = state.used();
    let budget = Some(state.limits.budget).filter(|budget| !budget.is_unlimited());
    Cost { total, by_task, by_role, by_model, tools: timeline.tools.by_tool().clone(), budget }
}

/// Sort key: cost, then tokens, then calls.
fn weight(usage: &Usage) -> (u64, u64, u64, u64) {
    (usage.cost_micros, usage.tokens(), usage.calls(), usage.tool_calls)
}
