//! Whoever looks on while this process writes to the record, gives verdicts or serves tools: what counts for figures and traces
//! passes here, whoever did it. Nobody does unless that was asked for, and then a write costs one look at a field more.

use std::time::Duration;

use muster_shared::flow::{Hook, Ruling};
use muster_shared::ids::{RunId, Seq};
use muster_shared::plan::progress;
use muster_shared::run::{AgentEvent, AgentKey, Decided, RunEvent, RunState};
use muster_shared::wire::TraceContext;
use muster_shared::wire::tool_server::ServedStatus;

/// What is told of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionSeen {
    /// The names of its events, in order.
    pub events: Vec<&'static str>,
    /// Whether the run ends with it.
    pub ends_run: bool,
    /// How many offers it makes.
    pub offers: u32,
}

impl DecisionSeen {
    /// What is told of one.
    #[must_use]
    pub fn of(decided: &Decided) -> Self {
        Self {
            events: decided.events.iter().map(RunEvent::name).collect(),
            ends_run: !decided.continues && decided.events.iter().any(RunEvent::ends_run),
            offers: decided.offers.saturating_add(u32::from(decided.offer.is_some())),
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunProgress {
    /// Leaves of its plan that are done.
    pub done: usize,
    /// All leaves of its plan.
    pub tasks: usize,
    /// Questions that wait for a person.
    pub questions: usize,
    /// What it used, in millionths of a US dollar.
    pub cost_micros: u64,
    /// The most that it may use, in millionths of a US dollar, where there is such a limit.
    pub budget_micros: Option<u64>,
}

impl RunProgress {
    /// How far a run is by its state.
    #[must_use]
    pub fn of(run: &RunState) -> Self {
        let (done, tasks) = run.plan.as_ref().map_or((0, 0), |plan| progress::count(plan, &run.statuses()));
        Self {
            done,
            tasks,
            questions: run.open_questions().count(),
            cost_micros: run.used().cost_micros,
            budget_micros: run.limits.budget.cost_micros,
        }
    }
}

/// Is told what this process has done: written to the record, said as a guard, carried out as a server of tools. Called on the
/// path of that: it must not wait.
pub trait Observer: Send + Sync {
    /// A decision stands in the record, from this place on.
    fn decided(&self, run: RunId, seq: Seq, decision: &DecisionSeen);

    /// How far a run is that this process drives.
    fn progressed(&self, run: RunId, progress: RunProgress);

    /// A run is not driven here any more.
    fn left(&self, run: RunId);

    /// Where this process serves its figures, for the registry; empty where it does not.
    fn address(&self) -> String;

    /// What an agent reports stands in the record. The trace is that of whoever asked for the run, where it belongs to one.
    fn reported(&self, run: RunId, key: &AgentKey, event: &AgentEvent, trace: Option<&TraceContext>);

    /// The guard that this process is has given a verdict, so long after it began to look at what it was asked.
    fn judged(&self, hook: Hook, verdict: Ruling, took: Duration);

    /// A call of a tool that is served here has ended, after so long.
    fn served(&self, tool: &str, status: ServedStatus, took: Duration);
}
