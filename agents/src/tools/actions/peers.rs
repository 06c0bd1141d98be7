//! The actions that reach peers (F8): `ask_peer` another agent, `share_info` with other tasks, `request_context` of the run,
//! and `who_can` do something. Whoever asks waits without a slot; the answer is the observation. Help takes a model,
//! the others are answered from the record and the registry.

use async_trait::async_trait;
use muster_shared::flow::{
    CapabilityQuery, ContextRead, ContextRequest, ContextWrite, HelpRequest, InformationShare, Peer,
    PeerRequest, RolePermission, Wait,
};
use serde_json::{Value, json};

use super::text_of;
use crate::tools::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// Their names.
pub(super) const NAMES: [&str; 6] =
    ["ask_peer", "share_info", "request_context", "who_can", "write_context", "read_context"];

pub(super) struct AskPeer;
pub(super) struct ShareInfo;
pub(super) struct RequestContext;
pub(super) struct WhoCan;
pub(super) struct WriteContext;
pub(super) struct ReadContext;

/// A tool that does nothing by itself: called again, it asks for the same.
fn spec(name: &str, what: &str, properties: Value, required: &[&str]) -> ToolSpec {
    ToolSpec::with_properties(name, what, properties, required)
        .with_repeatable_effects()
        .behind(RolePermission::Peers)
}

fn waiting(request: PeerRequest) -> ToolOutput {
    ToolOutput::waiting(Wait::Peer(Box::new(request)))
}

fn list(arguments: &Value, name: &str) -> Vec<String> {
    let items = arguments[name].as_array().into_iter().flatten().filter_map(Value::as_str);
    items.map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

#[async_trait]
impl Tool for AskPeer {
    fn spec(&self) -> ToolSpec {
        let who =
            |what: &str| json!({"type": "string", "minLength": 1, "maxLength": 200, "description": what});
        spec(
            NAMES[0],
            "Asks another agent a question, and goes on with its answer. Name who is asked in one way: by `role`, by \
             `capability`, or an `agent`. Use it for what a specialist knows better; `who_can` tells whom to ask.",
            json!({
                "role": who("a role, such as researcher"),
                "capability": who("what it has to be able to do"),
                "agent": who("the id of an agent; any of its role may answer"),
                "question": {
                    "type": "string", "minLength": 1, "maxLength": 4000, "description": "understandable by itself"
                },
                "why": {"type": "string", "maxLength": 2000, "description": "what hangs on it"}
            }),
            &["question"],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let named = |name: &str| Some(text_of(&arguments, name).to_owned()).filter(|name| !name.is_empty());
        let to = match (named("role"), named("capability"), named("agent")) {
            (Some(role), None, None) => Peer::Role(role),
            (None, Some(capability), None) => Peer::Capability(capability),
            (None, None, Some(agent)) => Peer::Agent(agent),
            (role, capability, agent) => {
                let ways = [role, capability, agent].into_iter().flatten().count();
                return Err(ToolFailure::InvalidArguments(format!(
                    "name who is asked in one way, not in {ways}: `role`, `capability` or `agent`"
                )));
            }
        };
        let (question, why) =
            (text_of(&arguments, "question").to_owned(), text_of(&arguments, "why").to_owned());
        Ok(waiting(PeerRequest::HelpRequest(HelpRequest { to, question, why })))
    }
}

#[async_trait]
impl Tool for ShareInfo {
    fn spec(&self) -> ToolSpec {
        spec(
            NAMES[1],
            "Tells other tasks of this run something that they should know now, such as a fact that changes what they look \
             for. Your own result reaches those that depend on you anyway.",
            json!({
                "text": {"type": "string", "minLength": 1, "maxLength": 8000, "description": "understandable by itself"},
                "tasks": {
                    "type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 20,
                    "description": "for which tasks, by index or name; without it, for those that depend on yours or \
                                    work for the same task as you do"
                }
            }),
            &["text"],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let (text, tasks) = (text_of(&arguments, "text").to_owned(), list(&arguments, "tasks"));
        Ok(waiting(PeerRequest::InformationShare(InformationShare { text, tasks })))
    }
}

#[async_trait]
impl Tool for RequestContext {
    fn spec(&self) -> ToolSpec {
        spec(
            NAMES[2],
            "Tells what other tasks of this run gave so far, or how the run stands. No model and no person is asked.",
            json!({
                "tasks": {
                    "type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 20,
                    "description": "of which tasks, by index or name; of the whole run without it"
                },
                "question": {"type": "string", "maxLength": 2000, "description": "what you look for"}
            }),
            &[],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let (tasks, question) = (list(&arguments, "tasks"), text_of(&arguments, "question").to_owned());
        Ok(waiting(PeerRequest::ContextRequest(ContextRequest { tasks, question })))
    }
}

#[async_trait]
impl Tool for WhoCan {
    fn spec(&self) -> ToolSpec {
        spec(
            NAMES[3],
            "Tells which roles of this fleet say that they can do something, so that you can `ask_peer` or `delegate`.",
            json!({
                "needs": {
                    "type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 20,
                    "description": "what is to be done, in a word or two each; without it, everybody is named"
                }
            }),
            &[],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        Ok(waiting(PeerRequest::CapabilityQuery(CapabilityQuery { needs: list(&arguments, "needs") })))
    }
}

#[async_trait]
impl Tool for WriteContext {
    fn spec(&self) -> ToolSpec {
        spec(
            NAMES[4],
            "Writes a value that all tasks of this run share, such as an agreed name or figure. Name the version that you \
             saw, 0 for a new one: if somebody wrote it since, you are told what there is instead. Whom it concerns is told.",
            json!({
                "key": {
                    "type": "string", "minLength": 1, "maxLength": 64,
                    "description": "a letter, then letters, digits, -, _ and ."
                },
                "value": {"description": "a text, a number, true or false, a list or an object; its type stays"},
                "version": {"type": "integer", "minimum": 0, "description": "the version that you saw"}
            }),
            &["key", "value"],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let version = arguments["version"].as_u64().and_then(|version| u32::try_from(version).ok());
        let (key, value) = (text_of(&arguments, "key").to_owned(), arguments["value"].clone());
        let version = version.unwrap_or_default();
        Ok(waiting(PeerRequest::ContextWrite(ContextWrite { key, value, version })))
    }
}

#[async_trait]
impl Tool for ReadContext {
    fn spec(&self) -> ToolSpec {
        spec(
            NAMES[5],
            "Reads values that the tasks of this run share, with their versions: one by its key, all without. You are told \
             when what you asked for changes.",
            json!({
                "key": {"type": "string", "maxLength": 64, "description": "the key, or how keys begin"},
                "prefix": {"type": "boolean", "description": "whether all keys that begin so are meant"}
            }),
            &[],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let (key, prefix) = (text_of(&arguments, "key").to_owned(), arguments["prefix"].as_bool());
        let prefix = prefix.unwrap_or(key.is_empty());
        Ok(waiting(PeerRequest::ContextRead(ContextRead { key, prefix })))
    }
}
