//! All that one task needs, made ready by the host.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use muster_bus::GuardDoor;
use muster_corpus::{CitedPlace, Corpus};
use muster_shared::flow::{PlaceFound, Product, RolePermissions, TaskOffered, TemplateRef, Usage};
use muster_shared::secret::Redactor;

use super::decide::{StepContext, StepLimits};
use super::declaration::DeclarationStore;
use super::history::History;
use super::model::ModelClient;
use super::prompt::{Brief, CallStyle, Conversation, Sampling};
use super::reuse::Reuse;
use super::toolset::Toolset;
use crate::model::call_admission::{CallAdmission, Common};
use crate::model::pricing::Pricing;
use crate::roles::Rules;
use crate::tools::{ToolContext, ToolEngine, Uncertain};

/// Where the documents of a goal are had, once they are needed.
#[async_trait]
pub trait DocumentSource: Send + Sync {
    /// Opens them.
    async fn open(&self) -> Result<Corpus, String>;
}

/// All that one task needs.
pub struct TaskResources {
    /// What thinks.
    pub model: ModelClient,
    /// The rules of the role.
    pub rules: Rules,
    /// What the model may do.
    pub toolset: Toolset,
    /// Runs the tools.
    pub engine: ToolEngine,
    /// What tools may use.
    pub context: ToolContext,
    /// The prompt's lasting parts.
    pub brief: Brief,
    /// The template they were made from.
    pub template: TemplateRef,
    /// What the role may do at all.
    pub permissions: RolePermissions,
    /// The limits.
    pub limits: StepLimits,
    /// How sampling is set.
    pub sampling: Sampling,
    /// The prices.
    pub pricing: Pricing,
    /// What all tasks share with the whole fleet.
    pub common: Common,
    /// Keeps secrets out.
    pub redactor: Arc<Redactor>,
    /// The documents of the goal, for what is looked up by rule.
    pub documents: Option<Arc<dyn DocumentSource>>,
    /// Which declarations of tools the object store holds.
    pub declarations: Arc<DeclarationStore>,
    /// Where guards are asked.
    pub guards: GuardDoor,
    /// The answers of others that may serve the task, by setting.
    pub reuse: Option<Reuse>,
}

impl TaskResources {
    /// What stays the same over all steps of this task.
    pub(super) fn case<'a>(&'a self, offer: &'a TaskOffered) -> StepContext<'a> {
        StepContext {
            offer,
            rules: &self.rules,
            toolset: &self.toolset,
            permissions: self.permissions,
            has_model: !self.model.is_offline(),
            limits: self.limits,
        }
    }

    /// Looks up places that a result cites.
    pub(super) async fn look_up(
        &self,
        asked: Vec<CitedPlace>,
        shows: bool,
    ) -> Result<Vec<PlaceFound>, String> {
        let corpus = match (&self.context.corpus, &self.documents) {
            (Some(corpus), _) => corpus.clone(),
            (None, Some(documents)) => documents.open().await?,
            (None, None) => return Err("there are no documents".to_owned()),
        };
        corpus.look_up(asked, shows).await.map_err(|error| error.to_string())
    }

    /// The gate that every model call of this task passes; `used` is what was used before.
    pub(super) fn gate(&self, offer: &TaskOffered, used: Usage) -> CallAdmission {
        CallAdmission::new(crate::settings::budget_of(offer), self.pricing.clone(), used, self.common.clone())
            .until(offer.deadline)
    }

    /// Whether a call of this tool changes nothing.
    pub(super) fn is_pure(&self, tool: &str) -> bool {
        self.toolset.find(tool).is_some_and(|ability| ability.pure)
    }

    /// What is done about a call of this tool of which nobody knows whether it took effect. What is not among our tools
    /// cannot be called again.
    pub(super) fn when_uncertain(&self, tool: &str) -> Uncertain {
        self.toolset.find(tool).map_or(Uncertain::Ask, |ability| ability.uncertain)
    }

    /// What a call of this tool may use, under its key when it has side effects.
    pub(super) fn context_for(&self, tool: &str, key: &str) -> Cow<'_, ToolContext> {
        if self.is_pure(tool) {
            Cow::Borrowed(&self.context)
        } else {
            Cow::Owned(self.context.clone().under_key(key))
        }
    }

    /// What a model is told of the workspace's files.
    pub(super) async fn files(&self, offer: &TaskOffered) -> Option<String> {
        let workspace = self.context.workspace.as_deref()?;
        super::files::told(workspace, &offer.nonce).await
    }

    /// Names in a report the files that the run's tasks made.
    pub(super) async fn name_files(&self, product: &mut Option<Product>) {
        let (Some(Product::Report(report)), Some(workspace)) = (product, self.context.workspace.as_deref())
        else {
            return;
        };
        match workspace.list().await {
            Ok(files) => report.artifacts = files,
            Err(error) => tracing::warn!(%error, "the report does not name the run's files"),
        }
    }

    /// The conversation as it stands after these steps. What it is to declare is put into the object store meanwhile.
    pub(super) fn converse(&self, offer: &TaskOffered, history: &History, style: CallStyle) -> Conversation {
        let settings = (style, self.sampling, self.limits);
        let conversation = Conversation::resume(&self.brief, &self.toolset, history, settings, &offer.nonce);
        if let Some(declaration) = conversation.to_declare() {
            self.declarations.begin(declaration);
        }
        conversation
    }
}
