//! What is counted when something is written to the record, said by a guard, or carried out for others.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muster_agents::tools::documents::has_found;
use muster_bus::{DecisionSeen, RunProgress};
use muster_shared::flow::{Action, Hook, ModelCall, ObservationStatus, Outcome, Ruling, Step};
use muster_shared::ids::RunId;
use muster_shared::run::{AgentEvent, AgentKey};
use muster_shared::sync::lock;
use muster_shared::traces::{ParentSpan, TraceId, provider};
use muster_shared::wire::TraceContext;
use muster_shared::wire::tool_server::ServedStatus;

use super::families::{Orders, Own, Served, Verdicts, Work};
use super::family::{Exemplar, Family};
use super::label::{Known, label};
use super::own;
use crate::telemetry::Role;
use crate::telemetry::otlp::Counts;

/// Bytes that are taken for a token where a context is counted in bytes.
const BYTES_A_TOKEN: f64 = 3.0;

/// The figures of a process.
#[derive(Debug)]
pub(crate) struct Figures {
    work: Work,
    orders: Orders,
    verdicts: Verdicts,
    served: Served,
    own: Own,
    tools: Known,
    models: Known,
    runs: Mutex<HashMap<RunId, RunProgress>>,
}

impl Figures {
    pub(crate) fn new() -> Self {
        Self {
            work: Work::new(),
            orders: Orders::new(),
            verdicts: Verdicts::new(),
            served: Served::new(),
            own: Own::new(),
            tools: Known::default(),
            models: Known::default(),
            runs: Mutex::default(),
        }
    }

    /// What an agent reports was written.
    pub(crate) fn reported(
        &self,
        run: RunId,
        key: &AgentKey,
        event: &AgentEvent,
        trace: Option<&TraceContext>,
    ) {
        let role = key.role.to_string();
        let seen = Seen { trace: trace_of(run, trace), role: label(&role) };
        match event {
            AgentEvent::Started(_) => self.work.started.add(&[seen.role], 1.0, None),
            AgentEvent::Step(step) => self.step(&seen, step),
            AgentEvent::Outcome(outcome) => self.outcome(&seen, outcome),
            _ => {}
        }
    }

    fn outcome(&self, seen: &Seen<'_>, outcome: &Outcome) {
        if let Some(step) = &outcome.last_step {
            self.step(seen, step);
        }
        let ending = serde_json::to_value(outcome.ending).unwrap_or_default();
        self.work.ended.add(&[seen.role, label(ending.as_str().unwrap_or_default())], 1.0, seen.with(1.0));
        if outcome.usage.wasted_calls > 0 {
            self.work.wasted.add(&[seen.role], outcome.usage.wasted_calls as f64, None);
        }
    }

    fn step(&self, seen: &Seen<'_>, step: &Step) {
        let time = seconds(step.millis);
        self.work.steps.add(&[seen.role], 1.0, seen.with(1.0));
        self.work.step_time.observe(&[seen.role], time, seen.with(time));
        for call in &step.calls {
            self.call(seen, call);
        }
        for (action, observation) in step.acts() {
            let Some(observation) = observation.filter(|_| action.name != Action::SUBMIT) else { continue };
            let (status, is_made) = match observation.status {
                ObservationStatus::Success => ("success", true),
                ObservationStatus::Error => ("error", true),
                ObservationStatus::Timeout => ("timeout", true),
                ObservationStatus::Refused => ("refused", false),
            };
            let tool = if is_made { self.tools.real(&action.name) } else { self.tools.perhaps(&action.name) };
            if observation.cached.is_some() {
                self.work.cached.add(&[tool], 1.0, None);
                continue;
            }
            self.work.tool_calls.add(&[tool, status], 1.0, seen.with(1.0));
            if is_made {
                let time = seconds(observation.millis);
                self.work.tool_time.observe(&[tool], time, seen.with(time));
            }
            if let Some(found) = has_found(&action.name, &observation.content) {
                self.work.retrievals.add(&[if found { "hit" } else { "miss" }], 1.0, None);
            }
        }
    }

    fn call(&self, seen: &Seen<'_>, call: &ModelCall) {
        let (named, model) = call.model.split_once('/').unwrap_or(("unknown", call.model.as_str()));
        let (provider, model) = (label(provider(named)), self.models.real(model));
        let of_model = [provider, model];
        if call.usage.reused_calls > 0 {
            self.work.model_calls.add(&[provider, model, "reused"], 1.0, None);
            return;
        }
        self.work.model_calls.add(&[provider, model, "answered"], 1.0, seen.with(1.0));
        let time = seconds(call.millis);
        self.work.model_time.observe(&of_model, time, seen.with(time));
        let usage = &call.usage;
        for (kind, count) in
            [("input", usage.input_tokens), ("cached", usage.cached_tokens), ("output", usage.output_tokens)]
        {
            if count > 0 {
                self.work.tokens.add(&[provider, model, kind], count as f64, None);
            }
        }
        if usage.cost_micros > 0 {
            self.work.cost.add(&of_model, usage.cost_micros as f64 / 1e6, None);
        }
        let room = call.parameters.get("room").and_then(serde_json::Value::as_f64).filter(|room| *room > 0.0);
        if let Some(room) = room {
            let part = usage.input_tokens as f64 * BYTES_A_TOKEN / room;
            self.work.window.observe(&[seen.role], part, seen.with(part));
        }
    }

    /// A decision was written.
    pub(crate) fn decided(&self, run: RunId, decision: &DecisionSeen) {
        let orders = &self.orders;
        orders.decisions.add(&[], 1.0, None);
        orders.offers.add(&[], f64::from(decision.offers), None);
        let with = |value| Some(exemplar(run.into(), value));
        for event in decision.events.iter().copied() {
            orders.events.add(&[event], 1.0, None);
            match event {
                "task_orphaned" => orders.takeovers.add(&["lost"], 1.0, with(1.0)),
                "task_taken_back" => orders.takeovers.add(&["silent"], 1.0, with(1.0)),
                "task_released" => orders.takeovers.add(&["handed_over"], 1.0, with(1.0)),
                "run_completed" => orders.ended.add(&["completed"], 1.0, with(1.0)),
                "run_failed" => orders.ended.add(&["failed"], 1.0, with(1.0)),
                "run_aborted" => orders.ended.add(&["aborted"], 1.0, with(1.0)),
                _ => {}
            }
        }
    }

    /// How far a run is that is driven here.
    pub(crate) fn progressed(&self, run: RunId, progress: RunProgress) {
        self.runs().insert(run, progress);
    }

    /// A run is not driven here any more.
    pub(crate) fn left(&self, run: RunId) {
        self.runs().remove(&run);
    }

    fn runs(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, RunProgress>> {
        lock(&self.runs)
    }

    /// A guard gave a verdict.
    pub(crate) fn judged(&self, hook: Hook, verdict: Ruling, took: Duration) {
        let verdict = match verdict {
            Ruling::Allow => "allow",
            Ruling::Change => "change",
            Ruling::Refuse => "refuse",
        };
        self.verdicts.given.add(&[hook.as_str(), verdict], 1.0, None);
        self.verdicts.time.observe(&[hook.as_str()], took.as_secs_f64(), None);
    }

    /// A call of a tool that is served here has ended.
    pub(crate) fn served(&self, tool: &str, status: ServedStatus, took: Duration) {
        let status = match status {
            ServedStatus::Success => "success",
            ServedStatus::Error => "error",
            ServedStatus::Timeout => "timeout",
            ServedStatus::Refused => "refused",
            ServedStatus::Unavailable => "unavailable",
        };
        let tool = self.tools.real(tool);
        self.served.calls.add(&[tool, status], 1.0, None);
        self.served.time.observe(&[tool], took.as_secs_f64(), None);
    }

    /// All figures as they are now, of what a process of this kind does.
    pub(crate) fn all(&self, role: Role, counts: Option<&Counts>) -> Vec<&Family> {
        own::look(&self.own);
        let own = self.own.all();
        match role {
            Role::Orchestrator => {
                self.look_at_runs(counts);
                own.chain(self.work.all()).chain(self.orders.all()).collect()
            }
            // An agent may lend tools to others.
            Role::Agent => own.chain(self.work.all()).chain(self.served.all()).collect(),
            Role::Guard => own.chain(self.verdicts.all()).collect(),
            Role::ToolServer => own.chain(self.served.all()).collect(),
        }
    }

    fn look_at_runs(&self, counts: Option<&Counts>) {
        let runs: Vec<RunProgress> = self.runs().values().copied().collect();
        let sum = |of: fn(&RunProgress) -> usize| runs.iter().map(of).sum::<usize>() as f64;
        let (done, tasks) = (sum(|run| run.done), sum(|run| run.tasks));
        let orders = &self.orders;
        orders.runs.set(&[], runs.len() as f64);
        orders.plan.set(&["done"], done);
        orders.plan.set(&["open"], tasks - done);
        orders.progress.set(&[], if tasks > 0.0 { done / tasks } else { 0.0 });
        orders.questions.set(&[], sum(|run| run.questions));
        let used =
            runs.iter().filter_map(|run| Some(run.cost_micros as f64 / run.budget_micros?.max(1) as f64));
        orders.budget.set(&[], used.fold(0.0, f64::max));
        if let Some(counts) = counts {
            let read = |count: &std::sync::atomic::AtomicU64| {
                count.load(std::sync::atomic::Ordering::Relaxed) as f64
            };
            orders.sent.set(&[], read(&counts.sent));
            orders.dropped.set(&[], read(&counts.dropped));
        }
    }
}

/// In which trace, and by which role, something was seen.
struct Seen<'a> {
    trace: TraceId,
    role: &'a str,
}

impl Seen<'_> {
    fn with(&self, value: f64) -> Option<Exemplar> {
        Some(exemplar(self.trace, value))
    }
}

fn trace_of(run: RunId, trace: Option<&TraceContext>) -> TraceId {
    trace.and_then(ParentSpan::read).map_or_else(|| run.into(), |above| above.trace)
}

fn exemplar(trace: TraceId, value: f64) -> Exemplar {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Exemplar { trace: trace.to_string(), value, at }
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

#[cfg(test)]
mod tests;
