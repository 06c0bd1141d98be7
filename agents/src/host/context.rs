//! What all tasks of an agent share. Models, tools and templates are made with the first task: an idle agent is
//! small.

mod tools;
mod watch;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use muster_bus::{BrokerClock, Bus, BusError};
use muster_shared::flow::{LeafRef, TaskOffered, Voucher, Work};
use muster_shared::ids::{Role, RunId, TaskId};
use muster_shared::plan::tools::means;
use muster_shared::secret::Redactor;
use muster_shared::time::Millis;
use tokio_util::sync::CancellationToken;

use super::bidder::Experience;
use super::corpora::{Corpora, DocumentsOfGoal};
use super::models::ModelClientFactory;
use crate::definition::Definition;
use crate::model::breaker::Breakers;
use crate::model::budget_lease::BudgetLease;
use crate::model::call_admission::Common;
use crate::model::pacing::Pacer;
use crate::model::pricing::Pricing;
use crate::prompts::Templates;
use crate::react::declaration::DeclarationStore;
use crate::react::prompt::{Brief, Sampling};
use crate::react::resources::{DocumentSource, TaskResources};
use crate::react::reuse::{Reuse, ReuseRules};
use crate::react::states::SlotStates;
use crate::roles::{RoleRules, Rules, rules_for, rules_of};
use crate::settings::AgentSettings;
use crate::tools::asked::AskRules;
use crate::tools::served::{ServedTools, may_use_served};
use crate::tools::{Tool, ToolEngine, ToolSpec};

/// After this time the broker's clock is looked at anew.
const CLOCK_AGE: Duration = Duration::from_secs(300);
/// Pause before it is asked for again when it cannot be read.
const CLOCK_PAUSE: Duration = Duration::from_secs(1);

/// What all tasks of an agent share.
pub struct AgentContext {
    bus: Bus,
    role: Role,
    /// Large: contexts travel by value.
    settings: Box<AgentSettings>,
    redactor: Arc<Redactor>,
    models: ModelClientFactory,
    host: String,
    extra: Vec<Arc<dyn Tool>>,
    /// The rules of the agent's own role, when a user defined it.
    own: Option<Arc<RoleRules>>,
    corpora: Arc<Corpora>,
    common: Common,
    /// The broker's time: deadlines are by its stamps.
    clock: tokio::sync::Mutex<Option<BrokerClock>>,
    engine: OnceLock<ToolEngine>,
    /// The tools of tool servers; nothing for a role that may use none.
    served: OnceLock<Arc<ServedTools>>,
    templates: OnceLock<Result<Templates, String>>,
    experience: Experience,
    states: SlotStates,
    declarations: Arc<DeclarationStore>,
}

impl AgentContext {
    /// The context of an agent; `minds` chooses what thinks.
    #[must_use]
    pub fn new(
        bus: Bus,
        role: Role,
        settings: AgentSettings,
        redactor: Arc<Redactor>,
        models: ModelClientFactory,
    ) -> Self {
        let corpora = Arc::new(Corpora::new(settings.cache_dir.clone(), bus.store()));
        let (engine, templates) = (OnceLock::new(), OnceLock::new());
        let (host, extra, own) =
            (muster_bus::host_name().unwrap_or_else(|| "localhost".to_owned()), Vec::new(), None);
        let common = common(&bus, &settings);
        let states = SlotStates::new(settings.slots(&role));
        let clock = tokio::sync::Mutex::default();
        let declarations = Arc::new(DeclarationStore::new(bus.store(), Arc::clone(&redactor)));
        Self {
            bus,
            role,
            settings: Box::new(settings),
            redactor,
            models,
            host,
            extra,
            own,
            corpora,
            common,
            clock,
            engine,
            served: OnceLock::new(),
            templates,
            experience: Experience::default(),
            states,
            declarations,
        }
    }

    /// What its slots do.
    pub(super) const fn states(&self) -> &SlotStates {
        &self.states
    }

    /// What its tasks took so far.
    pub(super) const fn experience(&self) -> &Experience {
        &self.experience
    }

    /// Adds tools to the built-in ones.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.extra.extend(tools);
        self
    }

    /// Works by a definition of the user's.
    #[must_use]
    pub fn with_definition(mut self, definition: Arc<Definition>) -> Self {
        self.own = Some(Arc::new(rules_of(definition)));
        self
    }

    /// Listens to tool servers from now on, where the role may use tools of any.
    pub(super) async fn follow_tool_servers(&self, stop: &CancellationToken) -> Result<(), BusError> {
        if !may_use_served(&self.tool_patterns()) {
            return Ok(());
        }
        let served = self.served.get_or_init(|| {
            let tool = &self.settings.tool;
            Arc::new(ServedTools::new(&self.bus, self.role.clone(), &tool.borrow, AskRules::of(&tool.mcp)))
        });
        served.follow(stop.clone()).await
    }

    /// A task is done here: what it had borrowed goes back.
    pub(super) fn task_ended(&self, run: RunId, task: &TaskId) {
        if let Some(served) = self.served.get() {
            served.task_ended(&run.to_string(), &task.to_string());
        }
    }

    /// The definition, when a user defined the agent's role.
    pub(super) fn definition(&self) -> Option<&Definition> {
        self.own.as_ref()?.specialist.as_deref()
    }

    /// The rules of a kind of work: leaves are done by the agent's own rules where it has some.
    fn rules(&self, work: &Work) -> Rules {
        match (work, &self.own) {
            (Work::Execute { .. }, Some(own)) => Rules::Own(Arc::clone(own)),
            _ => Rules::BuiltIn(rules_for(work)),
        }
    }

    /// Allows more steps than usual.
    #[cfg(test)]
    pub(super) const fn limit_steps(&mut self, most: u32) {
        self.settings.limits.max_steps = most;
    }

    /// The bus.
    #[must_use]
    pub const fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The agent's role.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    pub(super) const fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn slots(&self) -> u32 {
        self.settings.slots(&self.role)
    }

    /// The model asked unless a run wants another, or why there is none.
    pub(super) fn model_name(&self) -> String {
        match (self.models)(None) {
            Ok(model) => model.describe(),
            Err(reason) => format!("none ({})", self.redactor.redact(&reason)),
        }
    }

    /// The tools that it says it has: what its role may use, and by name those that settings allow beside the ones that
    /// come on. Tools are made for this only where some are allowed: an idle agent is small.
    pub(super) fn told_tools(&self) -> Vec<String> {
        let mut told = self.tool_patterns();
        if self.settings.tool.allow.is_empty() {
            return told;
        }
        let engine = self.engine();
        let may = |spec: &ToolSpec| told.iter().any(|pattern| means(pattern, &spec.name));
        let is_told = |spec: &&Arc<ToolSpec>| spec.off_until_allowed && engine.is_on(spec) && may(spec);
        let allowed: Vec<String> =
            engine.registry().list().iter().filter(is_told).map(|spec| spec.name.clone()).collect();
        told.extend(allowed);
        told
    }

    pub(super) fn tool_patterns(&self) -> Vec<String> {
        let built_in = crate::roles::all().into_iter().find(|rules| rules.name == self.role.to_string());
        let own = self.own.as_deref().or(built_in);
        let usual = || own.map(|rules| rules.tool_patterns().map(str::to_owned).collect());
        self.settings.tools.get(&self.role).cloned().or_else(usual).unwrap_or_else(|| vec!["*".to_owned()])
    }

    /// Waits until it is `at` by the broker's clock. Without the broker nobody can say: it is asked again.
    pub(super) async fn at(&self, at: Millis) {
        loop {
            match self.clock().await {
                Ok(clock) => {
                    let left = at.since(clock.now());
                    if left.is_zero() {
                        return;
                    }
                    // The clock is looked at anew: two clocks never run quite alike.
                    tokio::time::sleep(left.min(CLOCK_AGE)).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "the broker's clock cannot be read; trying again");
                    tokio::time::sleep(CLOCK_PAUSE).await;
                }
            }
        }
    }

    /// Waits until the task's time is up: by its offer, or by the agent's own limit.
    pub(super) async fn time_is_up(&self, offer: &TaskOffered) {
        let own = self.definition().and_then(|definition| definition.limits.deadline);
        let own = async {
            match own {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.at(offer.deadline) => {}
            () = own => {}
        }
    }

    async fn clock(&self) -> Result<BrokerClock, BusError> {
        let mut clock = self.clock.lock().await;
        if let Some(set) = clock.filter(|clock| clock.age() < CLOCK_AGE) {
            return Ok(set);
        }
        match (self.bus.allowances().clock().await, *clock) {
            (Ok(set), _) => Ok(*clock.insert(set)),
            // An old one is better than none.
            (Err(_), Some(old)) => Ok(old),
            (Err(error), None) => Err(error),
        }
    }

    /// All that one task needs.
    pub(super) async fn equip(
        &self,
        offer: &TaskOffered,
        voucher: Option<Arc<Voucher>>,
    ) -> Result<TaskResources, String> {
        let rules = self.rules(&offer.work);
        let model = (self.models)(offer.model.as_deref())?;
        let engine = self.engine().clone();
        if let Some(served) = self.served.get() {
            served.register(engine.registry());
        }
        // After those of servers: they may be made of them.
        self.settings.composites.register(engine.registry());
        let abilities = self.abilities(&engine, &rules, offer);
        let mut context = self.context(&engine, &abilities, offer).await?;
        let abilities = tools::as_far_as_seen(abilities, &context, &model, &offer.rights).await;
        context.results = Arc::new(results_of(&offer.work));
        let permissions = self.settings.permissions.get(&self.role).copied().unwrap_or_default();
        context.permissions = permissions;
        let rights = Arc::new(offer.rights.clone());
        context.rights = Arc::clone(&rights);
        context.to_approve = offer.limits.people.approve_tools.clone().into();
        context.voucher = voucher;
        context.watch = self.watch(&engine, offer);
        let able = model.capabilities();
        let weak = able.is_some_and(|able| able.weak);
        let toolset = self.toolset(&rules, abilities, offer, weak).behind(permissions).within(&rights);
        let load =
            || Templates::load(self.settings.template_dir.as_deref()).map_err(|error| error.to_string());
        let templates = self.templates.get_or_init(load).as_ref().map_err(Clone::clone)?;
        let (brief, template) = templates.brief(&rules, offer).map_err(|error| error.to_string())?;
        let redacted = |text: &str| self.redactor.redact(text).into_owned();
        let mut limits = self.settings.limits.of_task(offer, &rules, !model.is_offline());
        if able.is_some_and(|able| !able.parallel) {
            limits.calls_a_step = 1;
        }
        let head =
            brief.system.len().saturating_add(usize::try_from(toolset.declarations().bytes()).unwrap_or(0));
        let head = u32::try_from(head).unwrap_or(u32::MAX);
        let room = able.and_then(|able| able.room(self.settings.max_answer_tokens));
        limits.room = room.map_or(0, |room| room.saturating_sub(head).max(1));
        let takes_temperature = able.is_none_or(|able| able.temperature);
        let pricing = Pricing::with_overrides(self.settings.prices.clone());
        Ok(TaskResources {
            model,
            rules,
            toolset,
            engine,
            context,
            brief: Brief { system: redacted(&brief.system), task: redacted(&brief.task) },
            template,
            permissions,
            limits,
            sampling: Sampling {
                temperature: self.settings.temperature.filter(|_| takes_temperature),
                effort: self.settings.effort(&self.role).filter(|_| able.is_some_and(|able| able.effort)),
                max_tokens: self.settings.max_answer_tokens,
            },
            common: self.common.clone(),
            redactor: Arc::clone(&self.redactor),
            documents: offer.corpus.clone().map(|wanted| {
                let corpora = Arc::clone(&self.corpora);
                Arc::new(DocumentsOfGoal { corpora, wanted, rights: Arc::clone(&rights) })
                    as Arc<dyn DocumentSource>
            }),
            declarations: Arc::clone(&self.declarations),
            guards: self.bus.guards(),
            reuse: self.reuse(offer, &pricing),
            pricing,
        })
    }

    fn reuse(&self, offer: &TaskOffered, pricing: &Pricing) -> Option<Reuse> {
        let rules = ReuseRules { oldest: self.settings.reuse_answers, pricing, now: muster_bus::now() };
        Reuse::of(&self.bus, &self.role, offer, rules)
    }
}

pub(super) fn common(bus: &Bus, settings: &AgentSettings) -> Common {
    let pacer = Pacer::new(bus.allowances(), settings.rates.clone(), crate::settings::RATE_LIMIT_TIMEOUT);
    let budget_lease = || Arc::new(BudgetLease::new(bus.allowances(), bus.who().to_string(), settings.fleet));
    let budget_lease = (!settings.fleet.budget.is_unlimited()).then(budget_lease);
    let who = bus.who().to_string();
    let breakers = Breakers::new(bus.allowances(), who, settings.breaker, settings.calls.call);
    Common { breakers: Some(Arc::new(breakers)), pacer: Some(Arc::new(pacer)), budget_lease }
}

/// What the tasks gave that this work builds on.
fn results_of(work: &Work) -> Vec<LeafRef> {
    match work {
        Work::Execute { inputs, .. } => inputs.clone(),
        // Their prompts hold all results, and they have no tools.
        _ => Vec::new(),
    }
}
