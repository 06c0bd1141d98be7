//! What tests of this crate share.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use muster_shared::flow::{Action, ModelCall, Observation, ObservationStatus, TemplateRef, Usage};
use muster_shared::flow::{PlanTask, RunLimits, Step, TaskOffered, Thought, Work};
use muster_shared::ids::{Queue, Role, RunId, TaskId, TaskIndex};
use muster_shared::wire::Encoding;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::chat::{ChatAnswer, FinishReason, TokenUsage, Wasted};
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
    let (progress, lessons) = ("[-] 1 Find the limit", ["search twice"]);
    work(json!({ "execute": {
        "task": plan_task(role), "inputs": [], "parents": ["the goal above"], "progress": progress, "lessons": lessons,
    } }))
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
    let usage = Usage { model_calls: 1, input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let call = json!({
        "model": "test/model", "template": TemplateRef::default(), "request_hash": "", "same_messages": 0,
        "messages": [], "answer": "", "usage": usage, "millis": 2,
    });
    let call: ModelCall = serde_json::from_value(call).unwrap();
    Step {
        number,
        thought: Thought { text: format!("thought {number}"), ..Thought::default() },
        action: Action { name: tool.into(), arguments },
        observation: Some(Observation { millis: 3, ..Observation::new(status, format!("seen {number}")) }),
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: vec![call],
        millis: 6,
        outside_millis: 5,
    }
}

/// An answer of a model, text only.
pub(crate) fn answered(text: &str) -> ChatAnswer {
    ChatAnswer {
        text: text.to_owned(),
        reasoning: None,
        tool_calls: Vec::new(),
        usage: TokenUsage::default(),
        wasted: Wasted::default(),
        model: "scripted".into(),
        provider: "openai".into(),
        finish: FinishReason::Stop,
        millis: 1,
    }
}
