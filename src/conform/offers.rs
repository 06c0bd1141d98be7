//! What an agent is given in each trial, and what stood in the record before.

use muster_bus::BusError;
use muster_shared::contract::Schema;
use muster_shared::flow::specialist::given;
use muster_shared::flow::{
    Action, Budget, Ending, LeafRef, Observation, ObservationStatus, Outcome, PlanTask, Product, RunLimits,
    Step, TaskDraft, TaskOffered, TaskResult, TaskRights, Thought, Usage, Work,
};
use muster_shared::ids::{AgentId, Attempt, Generation, Queue, Role, TaskIndex};
use muster_shared::run::{AgentEvent, AgentKey, Released, Started};
use muster_shared::time::Millis;
use muster_shared::wire::envelope::INLINE_LIMIT;
use muster_shared::wire::{Encoding, Profile};

use super::{Trial, TrialKind};

/// Time that each task has.
const DEADLINE_MILLIS: u64 = 120_000;
/// What is asked where nothing else is said.
const GOAL: &str = "Count the words of this sentence.";

/// What the agent is asked to do in every trial.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The person's goal.
    pub(crate) goal: String,
    /// The task.
    pub(crate) task: TaskDraft,
}

impl Given {
    /// A task by its goal alone; the usual one when nothing is said.
    pub(crate) fn goal(goal: Option<&str>) -> Self {
        let goal = goal.unwrap_or(GOAL).to_owned();
        Self {
            task: TaskDraft { name: "conform".to_owned(), goal: goal.clone(), ..TaskDraft::default() },
            goal,
        }
    }

    /// A task in full.
    pub(crate) fn task(task: TaskDraft) -> Self {
        Self { goal: task.goal.clone(), task }
    }

    fn planned(&self, role: Role) -> PlanTask {
        let TaskDraft { name, goal, criticism, milestones, expected_output, needs, tools, .. } =
            self.task.clone();
        PlanTask { criticism, milestones, expected_output, needs, tools, ..PlanTask::new(name, goal, role) }
    }

    /// The offer of a trial.
    pub(super) fn offer(
        &self,
        profile: &Profile,
        trial: &Trial,
        now: Millis,
    ) -> Result<TaskOffered, BusError> {
        let role = role_of(profile)?;
        let queue = match trial.kind {
            TrialKind::OfRole => Queue::Role(role.clone()),
            TrialKind::Plain
            | TrialKind::Stored
            | TrialKind::TakenOver
            | TrialKind::Continued
            | TrialKind::Closed
            | TrialKind::Cancelled
            | TrialKind::Parked
            | TrialKind::Redelivered
            | TrialKind::Overtaken => Queue::Agent(profile.agent.clone()),
        };
        Ok(TaskOffered {
            run: trial.run,
            task: trial.task.clone(),
            generation: trial.kind.generation(),
            queue,
            work: Work::Execute {
                task: self.planned(role),
                inputs: if trial.kind == TrialKind::Stored { vec![large()] } else { Vec::new() },
                parents: Vec::new(),
                progress: String::new(),
                lessons: Vec::new(),
                failed_before: None,
                earlier: None,
                left_out: Vec::new(),
                may_plan: false,
                member: None,
            },
            goal: self.goal.clone(),
            role_name: String::new(),
            conversation: Vec::new(),
            corpus: None,
            model: None,
            deadline: Millis(now.0.saturating_add(DEADLINE_MILLIS)),
            limits: RunLimits::default(),
            budget: Budget::default(),
            rights: TaskRights::default(),
            continues: (trial.kind == TrialKind::Continued).then_some(Generation(1)),
            answered: None,
            heard: Vec::new(),
            may_ask_peers: false,
            chain: Vec::new(),
            withheld: Vec::new(),
            background: None,
            trace: None,
            trial: None,
            alone: false,
            nonce: "c0ffee00c0ffee00".to_owned(),
            encoding: if profile.encoding == Encoding::Json { Encoding::Json } else { Encoding::default() },
        })
    }

    /// Why the task does not fit what the agent takes on by its own word; empty where it does.
    pub(super) fn unfit(&self, profile: &Profile, trial: &Trial) -> Vec<String> {
        let input = profile.specialist.as_ref().and_then(|specialist| specialist.contract.input.clone());
        let schema = input.and_then(|input| Schema::new(input).ok());
        let given = self.offer(profile, trial, Millis(0)).ok().and_then(|offer| given(&offer));
        schema.zip(given).map(|(schema, given)| schema.faults("input", &given)).unwrap_or_default()
    }
}

/// What stands in the record before the agent comes, by generation.
pub(super) fn earlier(kind: TrialKind) -> Vec<(Generation, AgentEvent)> {
    let first = |event| (Generation(1), event);
    match kind {
        TrialKind::TakenOver => vec![first(begun(1)), first(AgentEvent::Step(step())), first(handed_over())],
        TrialKind::Continued => vec![first(begun(1)), first(AgentEvent::Step(step())), first(put_down())],
        TrialKind::Closed => vec![first(begun(1)), first(AgentEvent::Outcome(outcome(Ending::Done).into()))],
        TrialKind::Plain
        | TrialKind::OfRole
        | TrialKind::Stored
        | TrialKind::Cancelled
        | TrialKind::Parked
        | TrialKind::Redelivered
        | TrialKind::Overtaken => Vec::new(),
    }
}

/// Under which an agent of ours writes about a trial.
pub(super) fn other(profile: &Profile, trial: &Trial, generation: Generation) -> Result<AgentKey, BusError> {
    let (role, agent) = (role_of(profile)?, AgentId::new("conform", 0));
    Ok(AgentKey { role, agent, task: trial.task.clone(), generation })
}

fn role_of(profile: &Profile) -> Result<Role, BusError> {
    let wrong = |_| BusError::BadName {
        name: profile.role.clone(),
        rule: "a role is lower-case letters, digits and _",
    };
    profile.role.parse().map_err(wrong)
}

/// A result so large that no offer with it fits into a message.
fn large() -> LeafRef {
    let sentence = "The tide comes twice a day, and nobody has asked it to. ";
    let conclusion = sentence.repeat(INLINE_LIMIT / sentence.len() + 1);
    LeafRef {
        index: TaskIndex::top(2),
        name: "tides".to_owned(),
        goal: "Describe the tides.".to_owned(),
        query: None,
        result: TaskResult { conclusion, ..TaskResult::default() },
    }
}

/// Another agent starts.
pub(super) fn begun(attempt: u32) -> AgentEvent {
    let (ack, host) = ("$JS.ACK.TASKS.conform.1.1.1.1.0".to_owned(), "conform".to_owned());
    AgentEvent::Started(Started { attempt: Attempt(attempt), ack, pid: 1, host, after_step: 0 })
}

/// Nobody goes on with a task of somebody of whose loss nothing was decided.
fn handed_over() -> AgentEvent {
    AgentEvent::Released(Released { reason: "handed over".to_owned(), ..Released::default() })
}

fn put_down() -> AgentEvent {
    AgentEvent::Released(Released { reason: "put down".to_owned(), parked: true, ..Released::default() })
}

fn step() -> Step {
    let content = "7".to_owned();
    Step {
        number: 1,
        thought: Thought { text: "Count once.".to_owned(), ..Thought::default() },
        action: Action { name: "count".to_owned(), arguments: serde_json::Value::Null },
        observation: Some(Observation {
            status: ObservationStatus::Success,
            content,
            millis: 0,
            truncated: false,
            cached: None,
        }),
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: Vec::new(),
        millis: 0,
        outside_millis: 0,
    }
}

/// How another agent ends a task.
pub(super) fn outcome(ending: Ending) -> Outcome {
    let result = TaskResult { conclusion: "7 words.".to_owned(), ..TaskResult::default() };
    Outcome {
        ending,
        reason: String::new(),
        product: Some(Product::Result(result)),
        last_step: None,
        steps: Vec::new(),
        usage: Usage::default(),
        contract_violation: None,
    }
}
