//! What a server asks of us: people, models, and that its news are heard. Each question has a limit, and what nobody is
//! there to answer is declined.

// Sampling is deprecated since 2026-07-28; servers of older protocols ask for it.
#![expect(deprecated, reason = "servers of older protocols ask for sampling")]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use muster_shared::flow::Use;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, InputRequest, InputRequests, InputResponses, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion, Role,
    SamplingCapability, SamplingMessage, SamplingMessageContentBlock, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::callbacks::{CallPlace, Callbacks, ModelQuestion, PersonAnswer, PersonQuestion, Turn, Wanted};
use crate::plain::{cut, visible, visible_value};
use crate::settings::McpSettings;

/// Longest question to a person, in bytes.
const MAX_QUESTION: usize = 8 * 1024;
/// Longest line of progress, in bytes.
const MAX_PROGRESS: usize = 300;
/// Longest conversation that a model is asked to go on with, in bytes.
const MAX_CONVERSATION: usize = 256 * 1024;
/// Most turns of it.
const MAX_TURNS: usize = 200;
/// Most questions that one answer of a server puts to us.
const MAX_INPUTS: usize = 16;
/// What the protocol has for a request that a person turned down.
const DECLINED: ErrorCode = ErrorCode(-1);

/// Answers a server.
pub(crate) struct Desk {
    server: String,
    callbacks: Callbacks,
    sampling_tokens: u32,
    open: Semaphore,
    /// Whether it asks things and does not say in which call, as older protocols have it.
    asks: AtomicBool,
    /// Then it is called by one at a time: so it is known who is asked.
    alone: Arc<Semaphore>,
    calls: Mutex<BTreeMap<u64, CallPlace>>,
    progress: Mutex<HashMap<ProgressToken, CallPlace>>,
    changed: Arc<Notify>,
}

impl Desk {
    pub(crate) fn new(
        server: &str,
        callbacks: &Callbacks,
        settings: &McpSettings,
        changed: Arc<Notify>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            callbacks: callbacks.clone(),
            sampling_tokens: settings.sampling_tokens,
            open: Semaphore::new(usize::try_from(settings.questions_at_once).unwrap_or(1)),
            asks: AtomicBool::new(false),
            alone: Arc::new(Semaphore::new(1)),
            calls: Mutex::default(),
            progress: Mutex::default(),
            changed,
        }
    }

    /// Waits until no other call is under way, where that is the only way to know for which one the server asks.
    pub(crate) async fn alone(&self) -> Option<OwnedSemaphorePermit> {
        if !self.asks.load(Ordering::Acquire) {
            return None;
        }
        Arc::clone(&self.alone).acquire_owned().await.ok()
    }

    /// The calls for which the server may ask something now.
    fn asked_during(&self) -> Vec<CallPlace> {
        self.asks.store(true, Ordering::Release);
        self.calls_under_way()
    }

    /// Notes a call that is under way, until what is given back is dropped.
    pub(crate) fn under_way(self: &Arc<Self>, number: u64, place: CallPlace) -> UnderWay {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(number, place);
        UnderWay { desk: Arc::clone(self), number }
    }

    /// Has the progress of a request told of a call, until what is given back is dropped.
    pub(crate) fn follow(self: &Arc<Self>, token: ProgressToken, place: CallPlace) -> Followed {
        if self.callbacks.progress.is_some() {
            self.progress.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), place);
        }
        Followed { desk: Arc::clone(self), token }
    }

    /// Answers the questions that stand in an answer of the server.
    pub(crate) async fn fulfil(
        &self,
        requests: InputRequests,
        place: &CallPlace,
    ) -> Result<InputResponses, ErrorData> {
        if requests.len() > MAX_INPUTS {
            return Err(ErrorData::invalid_params(format!("more than {MAX_INPUTS} questions at once"), None));
        }
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let during = vec![place.clone()];
            let answer = match request {
                InputRequest::Elicitation(request) => value_of(&self.elicit(request.params, during).await?)?,
                InputRequest::CreateMessage(request) => {
                    value_of(&self.sample(request.params, during).await?)?
                }
                InputRequest::ListRoots(_) => value_of(&ListRootsResult::default())?,
                _ => return Err(ErrorData::invalid_params("a question of a kind that is not known", None)),
            };
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    fn calls_under_way(&self) -> Vec<CallPlace> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    async fn elicit(
        &self,
        params: ElicitRequestParams,
        during: Vec<CallPlace>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let Some(person) = &self.callbacks.person else { return Ok(declined) };
        let may_ask = |place: &CallPlace| place.rights.allow_all(&[Use::Person]).is_ok();
        let during: Vec<CallPlace> = during.into_iter().filter(may_ask).collect();
        let Ok(_open) = self.open.try_acquire() else { return Ok(declined) };
        if during.is_empty() {
            return Ok(declined);
        }
        let (message, wants) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                (message, Wanted::Form(visible_value(value_of(&requested_schema)?)))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                if !(url.starts_with("https://") || url.starts_with("http://")) {
                    return Err(ErrorData::invalid_params("the URL must begin with https://", None));
                }
                (message, Wanted::Visit(visible(&url)))
            }
            _ => return Err(ErrorData::invalid_params("a question of a kind that is not known", None)),
        };
        let message = cut(&visible(&message), MAX_QUESTION);
        let form = if let Wanted::Form(schema) = &wants { Some(schema.clone()) } else { None };
        let answer = person.ask(PersonQuestion { server: self.server.clone(), during, message, wants }).await;
        Ok(match (answer, form) {
            (PersonAnswer::Accept(values), Some(schema)) => match misfit(&schema, &values) {
                None => ElicitResult::new(ElicitationAction::Accept).with_content(values),
                Some(misfit) => {
                    tracing::warn!(
                        server = self.server,
                        misfit,
                        "a person's answer does not fit what was asked"
                    );
                    ElicitResult::new(ElicitationAction::Cancel)
                }
            },
            (PersonAnswer::Accept(_), None) => ElicitResult::new(ElicitationAction::Accept),
            (PersonAnswer::Decline, _) => declined,
            (PersonAnswer::Cancel, _) => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn sample(
        &self,
        params: CreateMessageRequestParams,
        during: Vec<CallPlace>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |why: &str| ErrorData::new(DECLINED, format!("declined: {why}"), None);
        let Some(model) = &self.callbacks.model else {
            return Err(ErrorData::method_not_found::<rmcp::model::CreateMessageRequestMethod>());
        };
        if during.is_empty() {
            return Err(refused("no call is under way"));
        }
        if params.tools.is_some_and(|tools| !tools.is_empty()) {
            return Err(refused("models are not lent with tools"));
        }
        let turns = turns_of(params.messages).map_err(|why| refused(&why))?;
        let Ok(_open) = self.open.try_acquire() else {
            return Err(refused("too many questions are open"));
        };
        let question = ModelQuestion {
            server: self.server.clone(),
            during,
            system: params.system_prompt,
            turns,
            max_tokens: params.max_tokens.clamp(1, self.sampling_tokens),
            temperature: params.temperature,
            stop: params.stop_sequences.unwrap_or_default().into_iter().take(8).collect(),
        };
        let answer = model.ask(question).await.map_err(|why| refused(&why))?;
        let end = if answer.cut {
            CreateMessageResult::STOP_REASON_END_MAX_TOKEN
        } else {
            CreateMessageResult::STOP_REASON_END_TURN
        };
        let message = SamplingMessage::assistant_text(answer.text);
        Ok(CreateMessageResult::new(message, answer.model).with_stop_reason(end))
    }

    fn hear(&self, params: &ProgressNotificationParam) {
        let place =
            self.progress.lock().unwrap_or_else(PoisonError::into_inner).get(&params.progress_token).cloned();
        if let (Some(place), Some(listener)) = (place, &self.callbacks.progress) {
            listener.heard(&place, &line_of(params));
        }
    }
}

/// A call that is under way.
pub(crate) struct UnderWay {
    desk: Arc<Desk>,
    number: u64,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.desk.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// A request whose progress is told.
pub(crate) struct Followed {
    desk: Arc<Desk>,
    token: ProgressToken,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.desk.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl ClientHandler for Desk {
    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            answer = self.elicit(params, self.asked_during()) => answer,
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        tokio::select! {
            answer = self.sample(params, self.asked_during()) => answer,
            () = context.ct.cancelled() => Err(ErrorData::new(DECLINED, "taken back", None)),
        }
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(&params);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let said = cut(&visible(&params.data.to_string()), MAX_PROGRESS);
        tracing::debug!(server = self.server, "an MCP server logs: {said}");
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.callbacks.person.is_some() {
            let both = ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default());
            capabilities.elicitation = Some(both);
        }
        if self.callbacks.model.is_some() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        let us = Implementation::new("muster", env!("CARGO_PKG_VERSION"));
        // For those who are greeted in the older way; the newer one has no greeting.
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

fn value_of(part: &impl serde::Serialize) -> Result<Value, ErrorData> {
    serde_json::to_value(part).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// What of some values does not fit a schema.
fn misfit(schema: &Value, values: &Value) -> Option<String> {
    match jsonschema::validator_for(schema) {
        Ok(validator) => validator.validate(values).err().map(|error| cut(&error.to_string(), MAX_PROGRESS)),
        Err(error) => Some(cut(&error.to_string(), MAX_PROGRESS)),
    }
}

/// A conversation of words; others are not lent a model.
fn turns_of(messages: Vec<SamplingMessage>) -> Result<Vec<Turn>, String> {
    if messages.is_empty() || messages.len() > MAX_TURNS {
        return Err(format!("a conversation has 1 to {MAX_TURNS} turns"));
    }
    let mut turns = Vec::new();
    let mut bytes = 0;
    for message in messages {
        let by_model = message.role == Role::Assistant;
        let mut text = String::new();
        for block in message.content.into_vec() {
            let SamplingMessageContentBlock::Text(words) = block else {
                return Err("models are asked with words alone".to_owned());
            };
            text.push_str(&words.text);
        }
        bytes += text.len();
        if bytes > MAX_CONVERSATION {
            return Err(format!("the conversation has more than {MAX_CONVERSATION} bytes"));
        }
        turns.push(Turn { by_model, text });
    }
    Ok(turns)
}

fn line_of(params: &ProgressNotificationParam) -> String {
    let words = params.message.as_deref().map(|message| cut(&visible(message), MAX_PROGRESS));
    let words = words.map(|words| words.replace(['\n', '\t'], " "));
    let count = match params.total {
        Some(total) => format!("{} of {total}", params.progress),
        None => params.progress.to_string(),
    };
    words.map_or(count.clone(), |words| format!("{words} ({count})"))
}
