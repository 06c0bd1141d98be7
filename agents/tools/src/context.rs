//! What a call of a tool is given to work with.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use muster_corpus::Corpus;
use muster_shared::flow::{LeafRef, RolePermissions, TaskRights, Voucher};
use muster_shared::wire::tool_question::QuestionAnswer;
use tokio_util::sync::CancellationToken;

use crate::{
    asker::{Asker, Viewer},
    engine::ToolEngine,
    keeper::ResultKeeper,
    result::ToolFailure,
    spec::Permission,
    watch::CallWatch,
    workspace::Workspace,
};

/// What a call may use and on whose behalf it runs. Cheap to clone.
#[derive(Clone, Default)]
pub struct ToolContext {
    /// The run, for logs.
    pub run: String,
    /// The task, for logs and as the author of workspace files.
    pub task: String,
    /// What this agent was granted.
    pub grants: BTreeSet<Permission>,
    /// The documents of the run, if it has any.
    pub corpus: Option<Corpus>,
    /// Results of the tasks that this one builds on.
    pub results: Arc<Vec<LeafRef>>,
    /// The lines of documents that were shown in this task, so that they need not be shown again.
    pub shown: Option<Arc<BTreeMap<String, BTreeSet<u64>>>>,
    /// What the agent's role may do.
    pub permissions: RolePermissions,
    /// What the task may use.
    pub rights: Arc<TaskRights>,
    /// Who vouches for that, for whoever carries a call out elsewhere; nobody in a fleet without keys.
    pub voucher: Option<Arc<Voucher>>,
    /// The files of the run, if it has a workspace.
    pub workspace: Option<Arc<dyn Workspace>>,
    /// Names this call, the same whoever makes it and however often: `run/task/gen/step`. Only calls with side effects
    /// have one; a tool that keeps it can tell a repetition.
    pub idempotency_key: Option<String>,
    /// Tools of which the run wants each call approved by a person, as patterns, beside those of the settings.
    pub to_approve: Arc<[String]>,
    /// Whether a person approved the call that is made with this.
    pub approved: bool,
    /// Where results that are cut are kept whole, if anywhere.
    pub keeper: Option<Arc<dyn ResultKeeper>>,
    /// The engine that makes the call, for tools that call others ([`crate::ToolSpec::inner`]).
    pub engine: Option<ToolEngine>,
    /// Who is asked about calls that a tool makes of others, if anybody is.
    pub watch: Option<Arc<dyn CallWatch>>,
    /// Whom the call may ask something before it ends, if anybody.
    pub asker: Option<Arc<dyn Asker>>,
    /// Answers questions about pictures, if the task has a model.
    pub viewer: Option<Arc<dyn Viewer>>,
    /// What people answered who were asked something by this call when it was made before; nothing where it may ask nobody. What
    /// it asks beyond that, it waits for ([`ToolOutput::waiting`](crate::ToolOutput::waiting)).
    pub people: Option<Arc<[QuestionAnswer]>>,
    /// Raised when the task is stopped; a call that runs is given up at once.
    pub cancel: CancellationToken,
}

impl ToolContext {
    /// A context for a task, with nothing granted yet.
    pub fn new(run: impl Into<String>, task: impl Into<String>) -> Self {
        Self { run: run.into(), task: task.into(), ..Self::default() }
    }

    /// The files of the run.
    ///
    /// # Errors
    /// When the run has no workspace.
    pub fn workspace(&self) -> Result<&Arc<dyn Workspace>, ToolFailure> {
        self.workspace
            .as_ref()
            .ok_or_else(|| ToolFailure::Unavailable("this run has no workspace".to_owned()))
    }

    /// Names the call that is made with this.
    #[must_use]
    pub fn under_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Says that a person approved the call that is made with this.
    #[must_use]
    pub fn approved(mut self) -> Self {
        self.approved = true;
        self
    }

    /// Narrows what the task may use.
    #[must_use]
    pub fn within(mut self, rights: Arc<TaskRights>) -> Self {
        self.rights = rights;
        self
    }

    /// Grants permissions.
    #[must_use]
    pub fn granting(mut self, grants: impl IntoIterator<Item = Permission>) -> Self {
        self.grants.extend(grants);
        self
    }

    /// Gives the documents of the run, and the permission to read them.
    #[must_use]
    pub fn with_corpus(mut self, corpus: Corpus) -> Self {
        self.corpus = Some(corpus);
        self.granting([Permission::ReadDocuments])
    }

    /// Gives the workspace of the run, and the permission to read and write it.
    #[must_use]
    pub fn with_workspace(mut self, workspace: Arc<dyn Workspace>) -> Self {
        self.workspace = Some(workspace);
        self.granting([Permission::ReadWorkspace, Permission::WriteWorkspace])
    }
}
