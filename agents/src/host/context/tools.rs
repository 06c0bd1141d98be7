//! The tools of a task: those that its role may use and that have something to work on.

use std::sync::Arc;

use muster_shared::flow::{Hook, TaskOffered, TaskRights, Use, Work};
use muster_shared::ids::TaskId;
use muster_tools::ResultKeeper;

use super::AgentContext;
use crate::react::model::ModelClient;
use crate::react::toolset::{Ability, Toolset, narrowed, without};
use crate::roles::{FEW_TOOLS, RoleRules, base_tools};
use crate::tools::actions::reaches_peers;
use crate::tools::counts::FleetCounts;
use crate::tools::look::LOOK;
use crate::tools::read_result::{READ_RESULT, StoredResults};
use crate::tools::served::MOST_DECLARED;
use crate::tools::shared::FleetAnswers;
use crate::tools::workspace::{SharedWorkspace, WorkspaceLimits};
use crate::tools::{
    DOCUMENTS, FILES, Permission, ToolContext, ToolEngine, granted_by_name, registry_of, with_inner,
};

impl AgentContext {
    /// The tools as a model is told of them: all where somebody named them, else those that most tasks need.
    pub(super) fn toolset(
        &self,
        rules: &RoleRules,
        abilities: Vec<Ability>,
        offer: &TaskOffered,
        weak: bool,
    ) -> Toolset {
        let submit = rules.submit_schema(offer);
        let task = offer.work.leaf();
        let (named, by_blueprint) = (
            task.is_some_and(|task| !task.tools.is_empty()),
            task.is_some_and(|task| task.blueprint.is_some()),
        );
        let is_set = self.settings.tools.contains_key(&self.role);
        match base_tools(rules.name).filter(|_| !is_set && !named && !by_blueprint) {
            // A weak model is confused by more than a few.
            Some(_) if weak => {
                let is_one = |name: &str| FEW_TOOLS.contains(&name) || name == LOOK;
                let few = abilities.into_iter().filter(|ability| is_one(&ability.name));
                Toolset::new(few.collect(), submit)
            }
            Some(base) => {
                let own = self.extra.iter().map(|tool| tool.spec().name);
                let composites = self.settings.composites.names().take(MOST_DECLARED).map(str::to_owned);
                let own = own.chain(self.served_among(&abilities)).chain(composites).collect::<Vec<_>>();
                let base: Vec<&str> =
                    base.iter().copied().chain([LOOK]).chain(own.iter().map(String::as_str)).collect();
                Toolset::with_base(abilities, &base, submit)
            }
            None => Toolset::new(abilities, submit),
        }
    }

    pub(in crate::host) fn engine(&self) -> &ToolEngine {
        self.engine.get_or_init(|| {
            let registry = registry_of(&self.settings, &self.extra);
            let counter = Arc::new(FleetCounts(self.bus.allowances()));
            let answers = self.bus.answers(self.role.clone());
            let shared = FleetAnswers::new(answers, Arc::clone(&self.redactor), muster_bus::now);
            ToolEngine::with_rules(Arc::new(registry), self.settings.tool.rules())
                .counting(counter)
                .sharing(Arc::new(shared))
        })
    }

    /// The tools that the role may use, without those that have nothing to work on.
    pub(super) fn abilities(
        &self,
        engine: &ToolEngine,
        rules: &RoleRules,
        offer: &TaskOffered,
    ) -> Vec<Ability> {
        let allowed = self.settings.tools.get(&self.role).map(Vec::as_slice);
        let has_documents = offer.corpus.is_some();
        let served = self.served.get();
        let is_there = |name: &str| served.and_then(|served| served.is_there(name)).unwrap_or(true);
        let usable = |spec: &Ability| {
            engine.is_on(spec)
                && rules.may_use(&spec.name, allowed)
                && is_there(&spec.name)
                && (has_documents || !spec.name.starts_with("corpus."))
                && (offer.may_ask_peers || !reaches_peers(&spec.name))
                && may_change(&offer.task, spec.pure)
        };
        let registry = engine.registry();
        let is_usable = |name: &String| registry.find(name).is_some_and(|inner| usable(&inner));
        let with_all = |spec: &Ability| usable(spec) && spec.inner.iter().all(is_usable);
        let usable = registry.list().into_iter().filter(with_all).collect();
        match offer.work.leaf() {
            // A task whose only tool failed has the others of its role.
            Some(task) => narrowed(without(usable, &offer.withheld), task),
            None => usable,
        }
    }

    /// Where results are kept that are cut, if the task can read on in them. Not where guards look at observations: they see
    /// what is shown, and judge it by the tool that gave it.
    fn keeper(&self, abilities: &[Ability], offer: &TaskOffered) -> Option<Arc<dyn ResultKeeper>> {
        let can_read_on = abilities.iter().any(|ability| ability.name == READ_RESULT);
        let is_watched =
            offer.limits.guards_at(Hook::AfterObservation, Some(&self.role), None).next().is_some();
        let (store, redactor) = (self.bus.store(), Arc::clone(&self.redactor));
        (can_read_on && !is_watched).then(|| {
            Arc::new(StoredResults::new(store, redactor, offer.run, &offer.task)) as Arc<dyn ResultKeeper>
        })
    }

    /// The tools of tool servers among these, as far as a model is told of them at once.
    fn served_among(&self, abilities: &[Ability]) -> Vec<String> {
        let Some(served) = self.served.get() else { return Vec::new() };
        let names = abilities.iter().map(|ability| &ability.name);
        let names: Vec<String> = names.filter(|name| served.is_there(name).is_some()).cloned().collect();
        if names.len() > MOST_DECLARED { Vec::new() } else { names }
    }

    pub(super) async fn context(
        &self,
        engine: &ToolEngine,
        abilities: &[Ability],
        offer: &TaskOffered,
    ) -> Result<ToolContext, String> {
        let mut context = ToolContext::new(offer.run.to_string(), offer.task.to_string());
        if let Some(corpus) = &offer.corpus
            && abilities.iter().any(|ability| needs(ability, &DOCUMENTS))
        {
            context =
                context.with_corpus(self.corpora.readable(corpus, &Arc::new(offer.rights.clone())).await?);
        }
        let sees_files = matches!(offer.work, Work::Refine { .. } | Work::Write { .. });
        if sees_files || abilities.iter().any(|ability| needs(ability, &FILES)) {
            let (files, limits) = (self.bus.files(), WorkspaceLimits::default());
            let workspace = SharedWorkspace::new(files, offer.run, offer.task.to_string(), limits);
            context = context.with_workspace(Arc::new(workspace));
        }
        context.keeper = self.keeper(abilities, offer);
        context.people = Some(Arc::default());
        Ok(context.granting(granted_by_name(&with_inner(abilities, engine.registry()))))
    }
}

/// These tools without the one that looks at pictures, unless there are pictures that the task may read and a model that
/// sees. Where the task has no right to it, that is what is told of it.
pub(super) async fn as_far_as_seen(
    mut abilities: Vec<Ability>,
    context: &ToolContext,
    model: &ModelClient,
    rights: &TaskRights,
) -> Vec<Ability> {
    let has_no_right = || rights.allow_all(&Use::of_tool(LOOK)).is_err();
    if !abilities.iter().any(|ability| ability.name == LOOK) || has_no_right() {
        return abilities;
    }
    let has_pictures = match &context.corpus {
        Some(corpus) if model.sees() => corpus.has_pictures().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether documents are pictures is not known: nobody looks at any");
            false
        }),
        _ => false,
    };
    if !has_pictures {
        abilities.retain(|ability| ability.name != LOOK);
    }
    abilities
}

/// Whether a task may have a tool: whoever judges between others looks, and changes nothing.
const fn may_change(task: &TaskId, is_pure: bool) -> bool {
    match task {
        TaskId::Settle(_) => is_pure,
        TaskId::Plan
        | TaskId::Leaf(_)
        | TaskId::Reflect(_)
        | TaskId::Refine(_)
        | TaskId::Write
        | TaskId::DraftReview(_) => true,
    }
}

fn needs(ability: &Ability, any_of: &[Permission]) -> bool {
    any_of.iter().any(|permission| ability.grants.contains(permission))
}

#[cfg(test)]
mod tests {
    use muster_shared::ids::TaskIndex;

    use super::*;
    use crate::tools::{ToolSettings, standard_registry};

    #[test]
    fn whoever_judges_changes_nothing() {
        let Ok(registry) = standard_registry(&ToolSettings::default()) else {
            panic!("the standard tools fit together")
        };
        let tools = registry.list();
        let had = |task: &TaskId| -> Vec<String> {
            let had = tools.iter().filter(|spec| may_change(task, spec.pure));
            had.map(|spec| spec.name.clone()).collect()
        };
        let (judge, worker) = (had(&TaskId::Settle(1)), had(&TaskId::Leaf(TaskIndex::top(1))));
        assert!(judge.contains(&"workspace.read".to_owned()), "{judge:?}");
        for tool in ["workspace.write", "workspace.append"] {
            assert!(!judge.contains(&tool.to_owned()) && worker.contains(&tool.to_owned()), "{tool}");
        }
    }
}
