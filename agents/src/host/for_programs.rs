//! What tasks of programs in other languages share with those of our own agents: the documents of goals, the files of runs,
//! and models by the fleet's keys, rates and budgets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use muster_bus::{Bus, GuardDoor};
use muster_corpus::{CitedPlace, Corpus};
use muster_shared::flow::{
    CorpusRef, ModelCall, PlaceFound, RolePermissions, TaskOffered, TaskRights, TemplateRef, Usage,
};
use muster_shared::ids::Role;
use muster_shared::secret::Redactor;
use muster_shared::sync::lock;

use super::context::common;
use super::corpora::Corpora;
use super::models::{ModelClientFactory, minds_from_environment};
use crate::model::call_admission::{CallAdmission, Common};
use crate::model::chat::{ChatMessage, ChatRequest, ModelError, ModelErrorKind};
use crate::model::gate::Ownership;
use crate::model::pricing::Pricing;
use crate::react::model::{Aside, ModelClient};
use crate::settings::AgentSettings;
use crate::tools::workspace::{SharedWorkspace, WorkspaceLimits};

/// By this name the record knows what programs asked a model.
const ASKED: &str = "asked by a program";
/// And so what they say that they used of others.
const SAID: &str = "said by a program";

/// What tasks of programs share with those of our own agents. Everything is made when it is first needed.
pub struct ForPrograms {
    bus: Bus,
    settings: AgentSettings,
    redactor: Arc<Redactor>,
    corpora: Corpora,
    common: OnceLock<Common>,
    models: Mutex<BTreeMap<Role, ModelClientFactory>>,
}

/// A question of a program to a model.
#[derive(Debug, Clone, Default)]
pub struct ProgramQuestion {
    /// Instructions.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// JSON Schema of the wanted answer.
    pub schema: Option<serde_json::Value>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u32>,
}

impl ForPrograms {
    /// What they share, by the settings of agents.
    #[must_use]
    pub fn new(bus: Bus, settings: AgentSettings, redactor: Arc<Redactor>) -> Self {
        let corpora = Corpora::new(settings.cache_dir.clone(), bus.store());
        let (common, models) = (OnceLock::new(), Mutex::default());
        Self { bus, settings, redactor, corpora, common, models }
    }

    /// How long a bus that cannot be reached is waited for.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        crate::settings::LOG_WRITE_TIMEOUT
    }

    /// What a role may do.
    #[must_use]
    pub fn permissions(&self, role: &Role) -> RolePermissions {
        self.settings.permissions.get(role).copied().unwrap_or_default()
    }

    /// Takes secrets out of a text.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    /// Keeps secrets out.
    #[must_use]
    pub const fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Where guards are asked.
    pub(super) fn guards(&self) -> GuardDoor {
        self.bus.guards()
    }

    /// The files of the run, as the task of this offer sees them.
    #[must_use]
    pub fn workspace(&self, offer: &TaskOffered) -> SharedWorkspace {
        let limits = WorkspaceLimits::default();
        SharedWorkspace::new(self.bus.files(), offer.run, offer.task.to_string(), limits)
    }

    /// The documents of a goal that a task with these rights may read.
    ///
    /// # Errors
    /// When they cannot be had.
    pub async fn documents(&self, wanted: &CorpusRef, rights: &TaskRights) -> Result<Corpus, String> {
        self.corpora.readable(wanted, &Arc::new(rights.clone())).await
    }

    /// What is found at places that a result cites.
    ///
    /// # Errors
    /// When the documents cannot be had.
    pub async fn look_up(
        &self,
        wanted: &CorpusRef,
        rights: &TaskRights,
        asked: Vec<CitedPlace>,
    ) -> Result<Vec<PlaceFound>, String> {
        let corpus = self.documents(wanted, rights).await?;
        corpus.look_up(asked, false).await.map_err(|error| error.to_string())
    }

    /// The gate that every model call of a task passes; `used` is what was used before.
    #[must_use]
    pub fn gate(&self, offer: &TaskOffered, used: Usage, ownership: Arc<dyn Ownership>) -> CallAdmission {
        let common = self.common.get_or_init(|| common(&self.bus, &self.settings)).clone();
        let pricing = Pricing::with_overrides(self.settings.prices.clone());
        CallAdmission::new(crate::settings::budget_of(offer), pricing, used, common)
            .until(offer.deadline)
            .held_by(ownership)
    }

    /// Asks the model of a role, or the one that the run wants.
    ///
    /// # Errors
    /// When there is none, it fails for good, or there is no leave to ask it.
    pub async fn ask(
        &self,
        role: &Role,
        offer: &TaskOffered,
        question: ProgramQuestion,
        gate: &mut CallAdmission,
    ) -> Result<ModelCall, ModelError> {
        let none = |why: String| ModelError::new(ModelErrorKind::BadRequest, "none", why);
        let client = self.factory(role)(offer.model.as_deref()).map_err(none)?;
        let ModelClient::Chat(client) = client else {
            let why = "the fleet has no language model: set agent.model and its key where orchestrators run";
            return Err(none(why.to_owned()));
        };
        let messages = question.messages.into_iter().map(|message| {
            let content = self.redacted(&message.content);
            ChatMessage { content, ..message }.into()
        });
        let request = ChatRequest {
            system: self.redacted(&question.system).into(),
            messages: messages.collect(),
            schema: question.schema,
            temperature: question.temperature.or(self.settings.temperature),
            max_tokens: question.max_tokens.or(self.settings.max_answer_tokens),
            ..ChatRequest::default()
        };
        client.ask_apart(&request, ASKED, Aside { redactor: &self.redactor, reuse: None }, gate).await
    }

    fn factory(&self, role: &Role) -> ModelClientFactory {
        let mut models = lock(&self.models);
        let made = models.entry(role.clone());
        Arc::clone(made.or_insert_with(|| minds_from_environment(self.settings.clone(), role.clone())))
    }
}

/// What a program says that it used of models of its own, as a call of the record. Its steps and tool calls are counted from
/// what it records.
#[must_use]
pub fn said_by_program(model: &str, usage: Usage) -> Option<ModelCall> {
    let usage = Usage { steps: 0, tool_calls: 0, ..usage };
    (!usage.is_nothing()).then(|| ModelCall {
        model: model.to_owned(),
        template: TemplateRef { name: SAID.to_owned(), version: 1, hash: String::new() },
        request_hash: String::new(),
        same_messages: 0,
        messages: Vec::new(),
        aside: true,
        parameters: serde_json::Value::Null,
        answer: String::new(),
        calls_at: Vec::new(),
        signatures: Vec::new(),
        cut: false,
        usage,
        millis: 0,
    })
}
