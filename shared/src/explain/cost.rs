//! Where money went. What is told here adds up, field by field, to what the state says was used: each entry that adds to
//! that sum is held against the outcomes it took into account, and what none of them said is told as such.

use std::collections::BTreeMap;

use serde::Serialize;

use super::story::Story;
use crate::flow::{Budget, ModelCall, TaskStatus, Usage};
use crate::ids::{Role, RunId, Seq, TaskId};
use crate::run::{AgentEvent, AgentKey, Entry, Held, RecordEvent, RunEvent, RunState};

/// What was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// All of it: the same as `usage` of `muster show --json`.
    pub total: Usage,
    /// The same by task, the dearest first.
    pub by_task: Vec<TaskCost>,
    /// The same by role.
    pub by_role: Vec<RoleCost>,
    /// By model, as far as steps in the record tell of their calls: answers that no step holds are missing.
    pub by_model: Vec<ModelCost>,
    /// Calls of tools.
    pub tools: Vec<ToolCost>,
    /// What was not used, since it was there already.
    pub spared: Spared,
    /// What may be used, where that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// What a task used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskCost {
    /// The task; nothing for what no task is known of: of a fork, what was taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The run that was begun for it, where this is what that one used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What was used.
    pub usage: Usage,
}

/// What a role used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleCost {
    /// The role; nothing for runs within, and for what no role is known of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What was used.
    pub usage: Usage,
}

/// What the calls of a model used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelCost {
    /// The model.
    pub model: String,
    /// How many calls the steps hold.
    pub calls: u64,
    /// Time until the answers were there, in milliseconds.
    pub millis: u64,
    /// What was used.
    pub usage: Usage,
}

/// Calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCost {
    /// The tool.
    pub tool: String,
    /// Calls that something came of.
    pub calls: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Those whose time was up.
    pub timed_out: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Mean time of a call that was made, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<u64>,
}

/// What was there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spared {
    /// Calls of models that were not made, since an identical one had been answered.
    pub model_calls: u64,
    /// What they would have cost, in millionths of a US dollar.
    pub model_micros: u64,
    /// What the caches of providers saved, in millionths of a US dollar.
    pub provider_micros: u64,
    /// Calls of tools that were answered by what others were answered.
    pub tool_calls: u64,
    /// How long those would have taken, in milliseconds.
    pub tool_ms: u64,
}

/// What somebody says was used, and has not been taken into account.
#[derive(Debug, Clone)]
struct Claimed {
    seq: Seq,
    key: AgentKey,
    usage: Usage,
    /// Whether it is for them to say so, as far as is known before the entry.
    counts: bool,
}

/// What stood before an entry.
#[derive(Debug, Default)]
pub(super) struct Before {
    used: Usage,
    claimed: Vec<Claimed>,
}

impl Before {
    /// What there is to know before an entry is folded.
    pub(super) fn of(state: Option<&RunState>) -> Self {
        let Some(state) = state else { return Self::default() };
        let pending = state.pending.iter().map(|(seq, (key, event))| claimed(state, *seq, key, said(event)));
        let held = state.guarding.open.values().filter_map(|held| match &held.what {
            Held::Outcome { seq, key, outcome } => Some(claimed(state, *seq, key, outcome.usage)),
            Held::Report(_)
            | Held::BroughtPlan
            | Held::TakenOver
            | Held::Steps(_)
            | Held::Edit(_)
            | Held::HandOver(_)
            | Held::Stopped(_)
            | Held::GivenUp(_) => None,
        });
        let claimed = pending.chain(held).filter(|one| !one.usage.is_nothing()).collect();
        Self { used: state.spending.used, claimed }
    }
}

type Row = (Option<TaskId>, Option<RunId>, Option<Role>);

/// What was used, kept by who used it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    rows: BTreeMap<Row, Usage>,
    models: BTreeMap<String, ModelCost>,
}

impl Ledger {
    /// Notes what an entry added to the sum.
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

    /// Takes a part of what is left to be told, if it is within it.
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

    /// Counts a call of a model that a step holds.
    pub(super) fn model(&mut self, call: &ModelCall) {
        let new = || ModelCost { model: call.model.clone(), calls: 0, millis: 0, usage: Usage::default() };
        let found = self.models.entry(call.model.clone()).or_insert_with(new);
        found.calls = found.calls.saturating_add(1);
        found.millis = found.millis.saturating_add(call.millis);
        found.usage += call.usage;
    }

    /// Adds what is in work, and whatever the record did not tell: the sum is that of the state.
    pub(super) fn close(&mut self, state: &RunState) {
        let mut left = state.used().without(self.sum());
        for (task, seen) in &state.seen {
            let in_work = state.tasks.get(task).is_some_and(|found| found.status == TaskStatus::Processing);
            if in_work || state.seen_with(task).is_some() {
                self.take(&mut left, of_task(task, None), seen.usage);
            }
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

/// What an entry of an agent says was used, where that is counted.
fn said(event: &AgentEvent) -> Usage {
    match event {
        AgentEvent::Outcome(outcome) => outcome.usage,
        AgentEvent::Released(released) if released.parked => released.usage,
        AgentEvent::Released(_)
        | AgentEvent::Started(_)
        | AgentEvent::ToolStarted(_)
        | AgentEvent::Step(_)
        | AgentEvent::Unreadable(_) => Usage::default(),
    }
}

/// What an event adds without anybody's word: what a run within used, and the calls that agents died of.
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

/// What was used, by task, role and model.
pub(super) fn cost(state: &RunState, story: &Story<'_>) -> Cost {
    let role_of = |task: Option<&TaskId>| task.and_then(|task| story.roles.get(task).cloned());
    let mut by_task: BTreeMap<(Option<TaskId>, Option<RunId>), TaskCost> = BTreeMap::new();
    let mut by_role: BTreeMap<Option<Role>, Usage> = BTreeMap::new();
    for ((task, run, role), usage) in &story.ledger.rows {
        let role = match run {
            Some(_) => None,
            None => role.clone().or_else(|| role_of(task.as_ref())),
        };
        *by_role.entry(role.clone()).or_default() += *usage;
        let new = TaskCost { task: task.clone(), run: *run, role, usage: Usage::default() };
        by_task.entry((task.clone(), *run)).or_insert(new).usage += *usage;
    }
    let mut by_task: Vec<TaskCost> = by_task.into_values().collect();
    by_task.sort_by_key(|row| std::cmp::Reverse(weight(&row.usage)));
    let mut by_role: Vec<RoleCost> =
        by_role.into_iter().map(|(role, usage)| RoleCost { role, usage }).collect();
    by_role.sort_by_key(|row| std::cmp::Reverse(weight(&row.usage)));
    let mut by_model: Vec<ModelCost> = story.ledger.models.values().cloned().collect();
    by_model.sort_by_key(|row| std::cmp::Reverse(weight(&row.usage)));
    let total = state.used();
    let budget = Some(state.limits.budget).filter(|budget| !budget.is_unlimited());
    Cost { total, by_task, by_role, by_model, tools: tools(story), spared: spared(&total, story), budget }
}

/// What makes a row stand before others: money, then tokens, then calls.
fn weight(usage: &Usage) -> (u64, u64, u64, u64) {
    (usage.cost_micros, usage.tokens(), usage.calls(), usage.tool_calls)
}

fn tools(story: &Story<'_>) -> Vec<ToolCost> {
    let used = story.tools.by_tool().iter();
    used.map(|(tool, used)| ToolCost {
        tool: tool.clone(),
        calls: used.calls,
        failed: used.failures,
        timed_out: used.timeouts,
        refused: used.refused,
        mean_ms: used.mean_ms(),
    })
    .collect()
}

fn spared(total: &Usage, story: &Story<'_>) -> Spared {
    let used = || story.tools.by_tool().values();
    Spared {
        model_calls: total.reused_calls,
        model_micros: total.reused_micros,
        provider_micros: total.saved_micros,
        tool_calls: used().map(|one| one.cached).fold(0, u64::saturating_add),
        tool_ms: used().map(|one| one.saved_ms).fold(0, u64::saturating_add),
    }
}
