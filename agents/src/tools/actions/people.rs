//! The actions that reach others: `request_info` and `escalate` a person, `delegate` another agent. Whoever waits holds no
//! slot; what came of it is the observation.

use async_trait::async_trait;
use muster_shared::flow::{Question, RolePermission, TaskDraft, Use, Wait};
use serde_json::{Value, json};

use super::known::look;
use super::text_of;
use crate::roles::TRIGGERS;
use crate::tools::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// From which share of its words on a statement may answer a question.
const MAY_ANSWER: f64 = 0.6;
/// Most statements that are given for an answer.
const MOST: usize = 3;
pub(super) struct RequestInfo;
pub(super) struct Escalate;
pub(super) struct Delegate;

#[async_trait]
impl Tool for RequestInfo {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::with_properties(
            "request_info",
            "Asks for what you need and do not have: results and documents are looked through first, then a person is asked.",
            json!({
                "question": {"type": "string", "minLength": 1, "maxLength": 4000},
                "why": {"type": "string", "maxLength": 2000, "description": "what hangs on it"},
                "choices": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
                "default": {"type": "string", "description": "what you go on with when nobody answers"},
                "ask_person": {"type": "boolean", "default": false, "description": "what was found does not answer"}
            }),
            &["question"],
        );
        spec.with_repeatable_effects()
    }

    async fn call(&self, ctx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let question = text_of(&arguments, "question");
        if arguments["ask_person"] != true {
            let found = look(ctx, question, MOST).await?;
            let answers: Vec<String> = found
                .iter()
                .filter(|found| found.share >= MAY_ANSWER)
                .map(|found| format!("- {} [{}]", found.text, found.source))
                .collect();
            if !answers.is_empty() {
                return Ok(ToolOutput::text(format!(
                    "Known already:\n{}\nIf this does not answer it, ask again with `ask_person`.",
                    answers.join("\n")
                )));
            }
        }
        if !ctx.permissions.is_open(RolePermission::People) {
            return Err(ToolFailure::Refused(
                "Neither results nor documents answer it, and your role may not ask people. Go on without, and name it in \
                 `unanswered`."
                    .to_owned(),
            ));
        }
        ctx.rights.allows(&Use::Person)?;
        Ok(ToolOutput::waiting(Wait::Answer(asked(question, text_of(&arguments, "why"), &arguments))))
    }
}

#[async_trait]
impl Tool for Escalate {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::with_properties(
            "escalate",
            "Lets a person decide, and goes on with the decision. Use it rather than guess: the task is ambiguous, a business \
             decision, a security risk, has constraints in conflict, or lacks critical information.",
            json!({
                "trigger": {"type": "string", "enum": TRIGGERS},
                "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "what is to be decided"},
                "why": {"type": "string", "maxLength": 2000, "description": "what you know, and what hangs on it"},
                "choices": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
                "default": {"type": "string", "description": "what you go on with when nobody answers"}
            }),
            &["trigger", "question"],
        );
        spec.with_repeatable_effects().behind(RolePermission::People)
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let trigger = text_of(&arguments, "trigger").replace('_', " ");
        let why = match text_of(&arguments, "why") {
            "" => trigger,
            why => format!("{trigger}: {why}"),
        };
        Ok(ToolOutput::waiting(Wait::Answer(asked(text_of(&arguments, "question"), &why, &arguments))))
    }
}

fn asked(question: &str, why: &str, arguments: &Value) -> Question {
    let choices = arguments["choices"].as_array().into_iter().flatten();
    Question {
        reason: why.to_owned(),
        choices: choices.filter_map(Value::as_str).map(str::to_owned).collect(),
        default: arguments["default"].as_str().map(str::to_owned),
        ..Question::new(question)
    }
}

#[async_trait]
impl Tool for Delegate {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::with_properties(
            "delegate",
            "Hands a part of your task to another agent, as a task of its own, and goes on with its result. Use it for what \
             another role does better; do not hand over the whole.",
            json!({
                "name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "a few words that name it"},
                "goal": {"type": "string", "minLength": 1, "maxLength": 8000, "description": "understandable by itself"},
                "role": {"type": "string", "maxLength": 100, "description": "who should do it: worker, researcher, …"},
                "expected_output": {"type": "string", "maxLength": 2000},
                "needs": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 200},
                    "maxItems": 20,
                    "description": "capabilities that it needs"
                },
                "pattern": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "how it is given out: `auction` has agents bid for it, `committee:3` has three of them come to one verdict; to one of them when absent"
                }
            }),
            &["name", "goal"],
        );
        spec.with_repeatable_effects().behind(RolePermission::Delegate)
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let text = |name: &str| text_of(&arguments, name).to_owned();
        let some = |name: &str| Some(text(name).to_lowercase()).filter(|text| !text.is_empty());
        let needs = arguments["needs"].as_array().into_iter().flatten();
        let draft = TaskDraft {
            name: text("name"),
            goal: text("goal"),
            expected_output: text("expected_output"),
            role: some("role"),
            needs: needs.filter_map(Value::as_str).map(str::to_owned).collect(),
            pattern: some("pattern"),
            ..TaskDraft::default()
        };
        Ok(ToolOutput::waiting(Wait::Task(Box::new(draft))))
    }
}
