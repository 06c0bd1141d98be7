//! Answers the requests and notifications of a server: questions to a person, and changed lists. The number of open
//! questions is limited, and a question without a recipient is declined.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use muster_shared::flow::{Form, Use};
use muster_shared::sync::lock;
use muster_shared::wire::tool_question::{CallAnswer, PersonQuestion};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    InputRequest, InputRequests, InputResponses, ListRootsRequestMethod, ProtocolVersion,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::callbacks::CallPlace;
use crate::plain::{cut, visible, visible_value};

/// Questions of one server to people that are open at the same time; further ones are declined. A person answers one after
/// the other.
const QUESTIONS_AT_ONCE: usize = 4;

/// Longest question to a person, in bytes.
const MAX_QUESTION: usize = 8 * 1024;
/// Longest line about a server in logs, in bytes.
const MAX_LINE: usize = 300;
/// Most questions that one answer of a server puts to us.
const MAX_INPUTS: usize = 16;

/// Answers a server.
pub(crate) struct Desk {
    server: String,
    elicits: bool,
    open: Semaphore,
    /// Whether it asks things and does not say in which call, as older protocols have it.
    asks: AtomicBool,
    /// Then it is called by one at a time: so it is known who is asked.
    alone: Arc<Semaphore>,
    calls: Mutex<BTreeMap<u64, CallPlace>>,
    changed: Arc<Notify>,
}

impl Desk {
    pub(crate) fn new(server: &str, elicits: bool, changed: Arc<Notify>) -> Self {
        Self {
            server: server.to_owned(),
            elicits,
            open: Semaphore::new(QUESTIONS_AT_ONCE),
            asks: AtomicBool::new(false),
            alone: Arc::new(Semaphore::new(1)),
            calls: Mutex::default(),
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
        lock(&self.calls).values().cloned().collect()
    }

    /// Notes a call that is under way, until what is given back is dropped.
    pub(crate) fn under_way(self: &Arc<Self>, number: u64, place: CallPlace) -> UnderWay {
        lock(&self.calls).insert(number, place);
        UnderWay { desk: Arc::clone(self), number }
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
                InputRequest::CreateMessage(_) => {
                    return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
                }
                InputRequest::ListRoots(_) => {
                    return Err(ErrorData::method_not_found::<ListRootsRequestMethod>());
                }
                _ => return Err(ErrorData::invalid_params("a question of a kind that is not known", None)),
            };
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    async fn elicit(
        &self,
        params: ElicitRequestParams,
        during: Vec<CallPlace>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        if !self.elicits {
            return Ok(declined);
        }
        let may_ask = |place: &CallPlace| place.rights.allow_all(&[Use::Person]).is_ok();
        let during: Vec<CallPlace> = during.into_iter().filter(may_ask).collect();
        let Ok(_open) = self.open.try_acquire() else { return Ok(declined) };
        // With several calls in progress, the call that asks is unknown.
        let [CallPlace { asker: Some(asker), .. }] = during.as_slice() else { return Ok(declined) };
        let (message, form) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                (message, Form::Values(visible_value(value_of(&requested_schema)?)))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                if !(url.starts_with("https://") || url.starts_with("http://")) {
                    return Err(ErrorData::invalid_params("the URL must begin with https://", None));
                }
                (message, Form::Visit(visible(&url)))
            }
            _ => return Err(ErrorData::invalid_params("a question of a kind that is not known", None)),
        };
        let text = cut(&visible(&message), MAX_QUESTION);
        let schema = if let Form::Values(schema) = &form { Some(schema.clone()) } else { None };
        let answer = asker.ask(PersonQuestion { text, form }).await;
        Ok(match (answer, schema) {
            (CallAnswer::Given { values }, Some(schema)) => match misfit(&schema, &values) {
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
            (CallAnswer::Given { .. }, None) => ElicitResult::new(ElicitationAction::Accept),
            (CallAnswer::Decline { .. }, _) => declined,
            (CallAnswer::Cancel { .. }, _) => ElicitResult::new(ElicitationAction::Cancel),
        })
    }
}

/// A call that is under way.
pub(crate) struct UnderWay {
    desk: Arc<Desk>,
    number: u64,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.desk.calls).remove(&self.number);
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
        if self.elicits {
            let both = ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default());
            capabilities.elicitation = Some(both);
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
        Ok(validator) => validator.validate(values).err().map(|error| cut(&error.to_string(), MAX_LINE)),
        Err(error) => Some(cut(&error.to_string(), MAX_LINE)),
    }
}
