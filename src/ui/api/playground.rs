//! The playground: a step's prompt, changed and asked again. Nothing of it touches the run: no record is written, no tool is
//! called; what a model answers is shown beside what it answered then.

use axum::extract::State;
use axum::http::StatusCode;
use muster_agents::model::chat::{ChatAnswer, ChatMessage, ChatModel, ChatRequest, ToolDecl, ignore_deltas};
use muster_agents::model::pricing::Pricing;
use muster_agents::model::provider::{Provider, ProviderClient};
use muster_agents::react::declaration::Declarations;
use muster_agents::react::sent::{SentRequest, choose, requests};
use muster_shared::flow::StoredMessage;
use muster_shared::ids::{Generation, TaskId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::reply::{Problem, Reply, json};
use super::super::state::Ui;
use super::{By, Said, Shared, apart, record_of};
use crate::commands::models;

/// Most tokens of an answer in the playground. A long answer, and no book.
const PLAYGROUND_TOKENS: u32 = 8_192;

/// What is asked again, and what is different.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Again {
    run: String,
    task: String,
    #[serde(rename = "gen")]
    generation: u32,
    step: u32,
    call: Option<usize>,
    /// The system prompt in place of the recorded one.
    prompt: Option<String>,
    /// All messages in place of the recorded ones.
    messages: Option<Vec<StoredMessage>>,
    model: Option<String>,
    temperature: Option<f64>,
}

/// Asks a model again; tells both answers.
pub(crate) async fn ask(State(ui): Shared, By(by): By, Said(again): Said<Again>) -> Reply {
    let task: TaskId =
        again.task.parse().map_err(|error| Problem::bad(format!("{:?} is no task: {error}", again.task)))?;
    if again.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err(Problem::bad("a temperature is between 0 and 2"));
    }
    let recorded = recorded(&ui, &again, task).await?;
    let request = request(&recorded, &again, PLAYGROUND_TOKENS)?;
    let spec = again.model.clone().unwrap_or_else(|| recorded.model.clone());
    let target = models::resolve(&ui.app, Some(&spec)).map_err(|error| {
        Problem::conflict(error.to_string())
            .help("the dashboard asks models itself: start it where their keys are set")
    })?;
    let pricing = Pricing::with_overrides(ui.app.settings().agent.prices.clone());
    let model =
        Provider::new(target, ui.app.settings().agent.calls, ProviderClient::default()).ok_or_else(|| {
            Problem::bad("the offline mode is no model that can be asked")
                .help("give model, as provider/model")
        })?;
    let left = ui.count_question()?;
    tracing::info!(by = %by.name, model = spec, "a model is asked from the playground");
    let answer = model.ask(&request, &mut ignore_deltas).await.map_err(|error| {
        let why = ui.app.redactor.redact(&error.to_string()).into_owned();
        Problem::new(StatusCode::BAD_GATEWAY, format!("{spec} gave no answer: {why}"))
    })?;
    let before = json!({
        "model": recorded.model, "answer": recorded.answer, "parameters": recorded.parameters,
        "seq": recorded.seq, "messages": recorded.messages,
    });
    json(&json!({ "before": before, "after": told(&ui, &spec, &answer, &pricing), "left": left }))
}

fn told(ui: &Ui, spec: &str, answer: &ChatAnswer, pricing: &Pricing) -> Value {
    let cost = pricing.cost_micros(&answer.provider, &answer.model, &answer.usage);
    let calls: Vec<Value> = answer
        .tool_calls
        .iter()
        .map(|call| json!({ "name": call.name, "arguments": call.arguments }))
        .collect();
    json!({
        "model": spec, "answer": ui.app.redactor.redact(&answer.text), "reasoning": answer.reasoning,
        "tool_calls": calls, "usage": answer.usage, "cost_micros": cost, "millis": answer.millis,
        "finish": answer.finish,
    })
}

/// What the model was sent then.
async fn recorded(ui: &Ui, again: &Again, task: TaskId) -> Result<SentRequest, Problem> {
    let bus = ui.bus()?;
    let (_, record) = record_of(ui, &again.run).await?;
    let declarations = Declarations::of(&bus.store(), &record.entries, Some(&task)).await?;
    let (generation, step, call) = (Generation(again.generation), again.step, again.call);
    let found = apart(move || {
        let mut sent = requests(&record.entries, &task, &declarations);
        let at = choose(&sent, Some(generation), Some(step), call);
        Ok(at.map(|at| sent.swap_remove(at)))
    });
    found.await?.ok_or_else(|| {
        Problem::not_found("no model was asked for this step").help("the offline rules need no prompt")
    })
}

/// The request with what is different. Pure.
fn request(recorded: &SentRequest, again: &Again, most: u32) -> Result<ChatRequest, Problem> {
    let given = again.messages.clone().unwrap_or_else(|| recorded.messages.clone());
    let mut messages = Vec::new();
    let mut system = String::new();
    for message in given {
        match message.role.as_str() {
            "system" if messages.is_empty() && system.is_empty() => system = message.content,
            "system" => messages.push(ChatMessage::system(message.content)),
            "user" => messages.push(ChatMessage::user(message.content)),
            "assistant" => messages.push(ChatMessage::assistant(message.content)),
            // Calls stand in the text of answers here: what a tool gave follows as text too.
            "tool" => messages.push(ChatMessage::user(message.content)),
            other => {
                return Err(Problem::bad(format!(
                    "{other:?} says no message: use system, user, assistant or tool"
                )));
            }
        }
    }
    if let Some(prompt) = &again.prompt {
        system.clone_from(prompt);
    }
    if messages.is_empty() {
        return Err(
            Problem::bad("there is nothing to be asked").help("give at least one message of the user")
        );
    }
    // Those that cannot be read as they stand are left out: the answer is looked at by a person.
    let tools: Vec<ToolDecl> =
        recorded.tools.iter().filter_map(|tool| serde_json::from_value(tool.clone()).ok()).collect();
    let recorded_temperature = recorded.parameters.get("temperature").and_then(Value::as_f64);
    Ok(ChatRequest {
        system: system.into(),
        messages: messages.into_iter().map(Into::into).collect(),
        tools: tools.into(),
        temperature: again.temperature.or(recorded_temperature),
        max_tokens: Some(most),
        ..ChatRequest::default()
    })
}
