//! What thinks in a task: a chat model, or the rules that work offline. Loop, journal, tools and recovery are the
//! same for both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_offline::{MODEL_NAME, OfflineModel};
use muster_shared::flow::{Action, ModelCall, TaskOffered, TemplateRef, Usage};
use muster_shared::secret::Redactor;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::decide::StepLimits;
use super::declaration::DeclarationStore;
use super::history::History;
use super::parse::{
    AnswerForm, ParseFailure, ParsedAction, ParsedAnswer, WITHHELD, parse_answer, parse_whole_document,
};
use super::progress::ProgressStream;
use super::prompt::{CallStyle, Conversation};
use super::record::keep_whole;
use super::reuse::{Reuse, Reused};
use super::submit::{ModelAnswer, arguments_of_product};
use super::toolset::Toolset;
use crate::model::call_admission::CallAdmission;
use crate::model::capability::Capabilities;
use crate::model::chat::{
    ChatAnswer, ChatModel, ChatRequest, Delta, ModelError, ModelErrorKind, ToolDecl, ignore_deltas,
};

/// What a model is told when its budget allows one more call and no further one.
const LAST_CALL: &str = "What you may use is almost used up: this is your last answer. No tool is run any more. Submit \
                         the best result there is.";

/// What thinks in a task.
#[derive(Clone)]
pub enum ModelClient {
    /// A model that is asked in words.
    Chat(ChatClient),
    /// Rules that need no model.
    Offline(OfflineModel),
}

impl ModelClient {
    /// Its name, as `provider/model`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Chat(model) => model.model.describe(),
            Self::Offline(_) => MODEL_NAME.to_owned(),
        }
    }

    /// What it can do, where that is known.
    #[must_use]
    pub const fn capabilities(&self) -> Option<Capabilities> {
        match self {
            Self::Chat(model) => model.capabilities,
            Self::Offline(_) => None,
        }
    }

    /// Whether it sees pictures, as far as is known.
    #[must_use]
    pub fn sees(&self) -> bool {
        self.capabilities().is_some_and(|able| able.sees)
    }

    /// Whether it works without a language model.
    #[must_use]
    pub const fn is_offline(&self) -> bool {
        matches!(self, Self::Offline(_))
    }
}

/// A model that is asked in words.
#[derive(Clone)]
pub struct ChatClient {
    model: Arc<dyn ChatModel>,
    /// Set once the server has refused native tool calls.
    in_text: Arc<AtomicBool>,
    /// What it can do, where that is known.
    capabilities: Option<Capabilities>,
}

impl ChatClient {
    /// Thinks with this model.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, style: CallStyle) -> Self {
        Self { model, in_text: Arc::new(AtomicBool::new(style == CallStyle::Text)), capabilities: None }
    }

    /// The same, with what the model can do.
    #[must_use]
    pub fn with(self, capabilities: Capabilities) -> Self {
        Self { capabilities: Some(capabilities), ..self }
    }

    /// How the model is told of actions.
    #[must_use]
    pub fn style(&self) -> CallStyle {
        if self.in_text.load(Ordering::Relaxed) { CallStyle::Text } else { CallStyle::Native }
    }

    /// Whether the failure may come from native tool calls; if so, the model is asked in text from now on.
    #[must_use]
    pub fn gives_up_native(&self, error: &ModelError) -> bool {
        let message = error.message.to_lowercase();
        let about_tools = ["tool", "function"].iter().any(|word| message.contains(word));
        error.kind == ModelErrorKind::BadRequest && about_tools && !self.in_text.swap(true, Ordering::Relaxed)
    }
}

/// An answer as understood, and the call behind it for the record.
pub struct Heard {
    /// The answer.
    pub answer: ModelAnswer,
    /// The call; offline rules make none.
    pub call: Option<ModelCall>,
    /// What the model wrote, as it is shown to it when asked again.
    pub verbatim: String,
}

/// What a chat model needs besides the conversation.
pub struct Asking<'a> {
    /// The template that the prompt was made from.
    pub template: &'a TemplateRef,
    /// What the model may do.
    pub toolset: &'a Toolset,
    /// Keeps secrets out of what is kept.
    pub redactor: &'a Redactor,
    /// The limits of the task.
    pub limits: StepLimits,
    /// Which declarations the object store holds.
    pub declarations: &'a DeclarationStore,
    /// The answers of others that may serve.
    pub reuse: Option<&'a Reuse>,
}

impl ChatClient {
    /// Asks the model once; what arrives is said live.
    ///
    /// # Errors
    /// When the model fails for good.
    pub async fn ask(
        &self,
        conversation: &mut Conversation,
        asking: &Asking<'_>,
        gate: &mut CallAdmission,
        progress: &mut ProgressStream,
    ) -> Result<Heard, ModelError> {
        if gate.is_last(&self.model.describe(), conversation.request()) {
            conversation.urge(LAST_CALL);
        }
        let aside = Aside { redactor: asking.redactor, reuse: asking.reuse };
        let hear = &mut |delta| progress.hear(delta);
        let answered = match self.answer(conversation.request(), aside, gate, hear).await {
            Err(error) if error.kind == ModelErrorKind::Refused => {
                withheld(&error, asking.redactor, gate.take())
            }
            answered => answered?,
        };
        let Answered { answer, usage } = answered;
        progress.finish();
        let request = conversation.request();
        let mut parameters = json!({
            "temperature": request.temperature,
            "max_tokens": gate.answer_limit().or(request.max_tokens),
            "max_steps": asking.limits.max_steps,
            "max_asks": asking.limits.max_asks,
            "stale_after": asking.limits.stale_after,
            "max_spins": asking.limits.max_spins,
            "at_limit": asking.limits.at_limit,
            "verification": asking.limits.verification,
            "max_revisions": asking.limits.max_revisions,
            "calls_a_step": asking.limits.calls_a_step,
        });
        if asking.limits.room > 0 {
            parameters["room"] = Value::from(asking.limits.room);
        }
        name_effort(request, &mut parameters);
        let how = asking.declarations.how(asking.toolset.declaration());
        let (request_hash, same_messages, messages) = conversation.keep(&mut parameters, how);
        let (verbatim, calls_at) = verbatim(&answer);
        let call = ModelCall {
            model: format!("{}/{}", answer.provider, answer.model),
            template: asking.template.clone(),
            request_hash,
            same_messages,
            messages,
            aside: false,
            parameters,
            signatures: signatures(&answer, asking.redactor),
            answer: verbatim.clone(),
            calls_at,
            cut: answer.finish.may_be_cut(),
            usage,
            millis: answer.millis,
        };
        let answer = understand(answer, asking.toolset.declarations(), asking.toolset.submit_schema());
        Ok(Heard { answer, call: Some(call), verbatim })
    }
}

/// What a question apart from the conversation needs.
#[derive(Clone, Copy)]
pub struct Aside<'a> {
    /// Keeps secrets out of what is kept.
    pub redactor: &'a Redactor,
    /// The answers of others that may serve.
    pub reuse: Option<&'a Reuse>,
}

/// An answer, and what it used.
struct Answered {
    answer: ChatAnswer,
    usage: Usage,
}

impl ChatClient {
    /// The answer that somebody else had to the same question, where that may serve; else the model's. Without secrets.
    async fn answer(
        &self,
        request: &ChatRequest,
        aside: Aside<'_>,
        gate: &mut CallAdmission,
        hear: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answered, ModelError> {
        let target = self.model.describe();
        if let Some(reuse) = aside.reuse
            && let Some(Reused { answer, usage }) = reuse.find(&target, request).await
        {
            return Ok(Answered { answer, usage });
        }
        let mut answer = self.model.ask_with_leave(request, gate, hear).await?;
        redact(&mut answer, aside.redactor);
        if let Some(reuse) = aside.reuse {
            reuse.keep(&target, request, &answer).await;
        }
        Ok(Answered { answer, usage: gate.take() })
    }

    /// Asks the model something apart from the conversation. Nothing of it is said live.
    ///
    /// # Errors
    /// When the model fails for good, or there is no leave to ask it.
    pub async fn ask_apart(
        &self,
        request: &ChatRequest,
        purpose: &str,
        aside: Aside<'_>,
        gate: &mut CallAdmission,
    ) -> Result<ModelCall, ModelError> {
        let Answered { answer, usage } = self.answer(request, aside, gate, &mut ignore_deltas).await?;
        let (answer_text, calls_at) = verbatim(&answer);
        let mut parameters = json!({"temperature": request.temperature, "max_tokens": request.max_tokens});
        name_effort(request, &mut parameters);
        let (request_hash, messages) = keep_whole(request, &mut parameters);
        let system_hash = hex::encode(Sha256::digest(request.system.as_bytes()));
        Ok(ModelCall {
            model: format!("{}/{}", answer.provider, answer.model),
            template: TemplateRef {
                name: purpose.to_owned(),
                version: 1,
                hash: system_hash.chars().take(16).collect(),
            },
            request_hash,
            same_messages: 0,
            messages,
            aside: true,
            parameters,
            answer: answer_text,
            calls_at,
            signatures: Vec::new(),
            cut: answer.finish.may_be_cut(),
            usage,
            millis: answer.millis,
        })
    }
}

/// Says how much the model was to reason, where it was told.
fn name_effort(request: &ChatRequest, parameters: &mut Value) {
    if let Some(effort) = request.effort {
        parameters["reasoning_effort"] = Value::from(effort.as_word());
    }
}

/// What a provider held back, as an answer: it is decided upon like any other refusal, and reads as one in the record.
fn withheld(error: &ModelError, redactor: &Redactor, usage: Usage) -> Answered {
    let (provider, model) = error.target.split_once('/').unwrap_or(("", &error.target));
    let answer = ChatAnswer {
        text: redactor.redact(&format!("{WITHHELD} {}", error.message)).into_owned(),
        model: model.to_owned(),
        provider: provider.to_owned(),
        ..ChatAnswer::default()
    };
    Answered { answer, usage }
}

/// The next move of the offline rules, in the form of a model's answer.
#[must_use]
pub fn offline_answer(model: OfflineModel, offer: &TaskOffered, history: &History) -> Heard {
    let chosen = model.next(offer, history.steps());
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let submits = chosen.action.name == Action::SUBMIT;
    let arguments = chosen.action.arguments;
    let arguments = if submits { arguments_of_product(arguments) } else { arguments };
    let parsed = ParsedAnswer {
        thought: some(chosen.thought.text),
        reasoning: some(chosen.thought.reasoning),
        plan: some(chosen.thought.plan),
        criticism: some(chosen.thought.criticism),
        action: ParsedAction { name: chosen.action.name, arguments, call_id: None },
        more: Vec::new(),
        form: AnswerForm::Json,
        repaired: false,
    };
    let answer = ModelAnswer { said: String::new(), reasoning: None, parsed: Ok(parsed) };
    Heard { answer, call: None, verbatim: String::new() }
}

/// Reads an action, else the document that was asked for.
pub(super) fn understand(answer: ChatAnswer, tools: &[ToolDecl], submit: &Value) -> ModelAnswer {
    let parsed = parse_answer(&answer, tools);
    if matches!(parsed, Err(ParseFailure::NoActionName | ParseFailure::Unreadable { .. })) {
        match parse_whole_document::<Value>(&answer.text, submit, answer.finish.may_be_cut()) {
            Ok(document) => return ModelAnswer::submitting(&document, answer.text, answer.reasoning),
            Err(ParseFailure::CutOff) => {
                let (said, reasoning) = (answer.text, answer.reasoning);
                return ModelAnswer { said, reasoning, parsed: Err(ParseFailure::CutOff) };
            }
            // What was wrong with it as an action says more.
            Err(_) => {}
        }
    }
    ModelAnswer { said: answer.text, reasoning: answer.reasoning, parsed }
}

fn redact(answer: &mut ChatAnswer, redactor: &Redactor) {
    answer.text = redactor.redact(&answer.text).into_owned();
    answer.reasoning = answer.reasoning.take().map(|text| redactor.redact(&text).into_owned());
    for call in &mut answer.tool_calls {
        call.raw = redactor.redact(&call.raw).into_owned();
        redactor.redact_value(&mut call.arguments);
    }
}

/// Most bytes of a provider's marks that are kept.
const MOST_SIGNED: usize = 32 * 1024;

/// The marks on the first call of an answer. One that would not be kept as it is, or is too long, is of no use.
fn signatures(answer: &ChatAnswer, redactor: &Redactor) -> Vec<String> {
    let marks = answer.tool_calls.first().map(|call| call.signatures.as_slice()).unwrap_or_default();
    let bytes: usize = marks.iter().map(String::len).sum();
    let is_kept = |mark: &String| redactor.redact(mark) == mark.as_str();
    if bytes <= MOST_SIGNED && marks.iter().all(is_kept) { marks.to_vec() } else { Vec::new() }
}

/// The answer word for word, and where in it each native call begins. Reasoning is left out, calls follow the text.
fn verbatim(answer: &ChatAnswer) -> (String, Vec<u32>) {
    let mut text = answer.text.clone();
    let mut calls_at = Vec::with_capacity(answer.tool_calls.len());
    for call in &answer.tool_calls {
        if !text.is_empty() {
            text.push('\n');
        }
        calls_at.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        text.push_str(&format!("[call] {} {}", call.name, call.raw));
    }
    (text, calls_at)
}
