//! What tests of this crate share.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use muster_shared::flow::{Action, ModelCall, Observation, ObservationStatus, TemplateRef, Usage};
use muster_shared::flow::{PlanTask, RunLimits, Step, TaskOffered, Thought, Work};
use muster_shared::ids::{Queue, Role, RunId, TaskId, TaskIndex};
use muster_shared::wire::Encoding;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::react::toolset::{Ability, Toolset};
use crate::roles::rules_for;
use crate::tools::ToolSpec;

pub(crate) const NONCE: &str = "0f1e2d3c4b5a";

pub(crate) fn plan_task(role: Role) -> PlanTask {
    PlanTask {
        criticism: "May be called something else.".into(),
        milestones: vec!["searched".into()],
        expected_output: "a sentence".into(),
        ..PlanTask::new("Find the limit", "What limits delegation loops?", role)
    }
}

pub(crate) fn execute(role: Role) -> Work {
    Work::Execute {
        task: plan_task(role),
        inputs: Vec::new(),
        parents: vec!["the goal above".into()],
        progress: "[-] 1 Find the limit".into(),
        lessons: vec!["search twice".into()],
        failed_before: None,
        earlier: None,
        left_out: Vec::new(),
        may_plan: false,
        member: None,
    }
}

pub(crate) fn work(work: Value) -> Work {
    serde_json::from_value(work).unwrap()
}

pub(crate) fn planning() -> Work {
    work(json!({ "plan": { "roles": ["worker"], "held_to": {} } }))
}

pub(crate) fn writing(uncovered: &[&str]) -> Work {
    work(json!({ "write": { "results": [], "failed": [], "uncovered": uncovered } }))
}

pub(crate) fn offer(task: TaskId, role: Role, work: Work) -> TaskOffered {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let usual = json!({
        "run": RunId::from_uuid(Uuid::now_v7()), "task": TaskId::Plan, "generation": 1, "queue": Queue::Role(role),
        "work": planning(), "goal": "What limits delegation loops, and how?", "limits": RunLimits::default(),
        "deadline": u64::try_from(now).unwrap() + 60_000, "nonce": NONCE, "encoding": Encoding::MessagePack,
    });
    TaskOffered { task, work, ..serde_json::from_value(usual).unwrap() }
}

pub(crate) fn leaf(role: Role) -> TaskOffered {
    offer(TaskId::Leaf(TaskIndex::top(1)), role.clone(), execute(role))
}

pub(crate) fn ability(name: &str, pure: bool) -> Ability {
    let parameters =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let spec = ToolSpec::new(name, format!("does {name}"), parameters);
    Arc::new(if pure { spec } else { spec.with_side_effects() })
}

pub(crate) fn toolset(offer: &TaskOffered) -> Toolset {
    let abilities =
        vec![ability("corpus.search", true), ability("calculator", true), ability("workspace.write", false)];
    Toolset::new(abilities, (rules_for(&offer.work).schema)(offer))
}

pub(crate) fn step(number: u32, tool: &str, arguments: Value, status: ObservationStatus) -> Step {
    Step {
        number,
        thought: Thought { text: format!("thought {number}"), ..Thought::default() },
        action: Action { name: tool.into(), arguments },
        observation: Some(Observation {
            status,
            content: format!("seen {number}"),
            millis: 3,
            truncated: false,
            cached: None,
        }),
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: vec![ModelCall {
            model: "test/model".into(),
            template: TemplateRef::default(),
            request_hash: String::new(),
            same_messages: 0,
            messages: Vec::new(),
            aside: false,
            parameters: Value::Null,
            answer: String::new(),
            calls_at: Vec::new(),
            signatures: Vec::new(),
            cut: false,
            usage: Usage { model_calls: 1, input_tokens: 10, output_tokens: 5, ..Usage::default() },
            millis: 2,
        }],
        millis: 6,
        outside_millis: 5,
    }
}
