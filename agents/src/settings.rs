//! Settings of an agent process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use muster_bus::allowance::breaker::BreakerRules;
use muster_bus::allowance::rate::Rate;
use muster_composite::Composites;
use muster_shared::flow::{Budget, RolePermission, RolePermissions, TaskOffered};
use muster_shared::ids::Role;
use muster_shared::settings;
use muster_shared::time::millis;
use muster_tools::settings::DocumentSettings;
use serde::{Deserialize, Serialize};

use crate::model::budget_lease::FleetBudget;
use crate::model::capability::ModelSettings;
use crate::model::chat::ReasoningEffort;
use crate::model::pricing::Price;
use crate::model::provider::CallLimits;
use crate::model::retry::RetryLimits;
use crate::react::decide::StepLimits;
use crate::react::prompt::CallStyle;
use crate::tools::{EngineLimits, ToolSettings};

/// Longest wait of a model call for a rate limit. Equal to the default deadline of a task.
pub(crate) const RATE_LIMIT_TIMEOUT: Duration = Duration::from_secs(600);

/// Most model calls of one task, answered or not, where its budget names no number. More than any task needs in which all
/// is well.
const MAX_CALLS: u64 = 500;

/// Budget of an offer. Without a number of model calls: enough for two per step, at least `MAX_CALLS`.
pub(crate) fn budget_of(offer: &TaskOffered) -> Budget {
    let calls = MAX_CALLS.max(2 * u64::from(offer.limits.max_steps));
    offer.budget.or(&Budget { model_calls: Some(calls), ..Budget::UNLIMITED })
}

/// Time for which a write to the record is retried without a bus. A restarted server, or a cluster that elects a
/// leader, returns within it.
pub(crate) const LOG_WRITE_TIMEOUT: Duration = Duration::from_secs(60);

settings! {
    /// Settings of an agent process, whatever its role. Unknown fields are refused.
    #[derive(PartialEq)]
    pub struct AgentSettings {
        /// The name of this agent, or of another process of a fleet, on its host: by it, it is known again when it is started
        /// again. A local fleet names its processes.
        pub name: String = String::new() => text(); Fleet Harmless,
        /// Tasks done at the same time, by role. A worker, researcher or reflector has 8 by default, others 4.
        pub slots: BTreeMap<Role, u32> = BTreeMap::new() => named("worker", &whole(1, MAX_SLOTS as u64).example("8")); Fleet Harmless,
        /// Model as `provider/model`; by the conventional environment variables when absent, else offline.
        pub model: Option<String> = None => text().example("\"openai/gpt-4.1-mini\""); Project Trust,
        /// Models of single roles.
        pub models: BTreeMap<Role, String> = BTreeMap::new()
            => named("planner", &text().example("\"anthropic/claude-sonnet-4-5\"")); Fleet Trust,
        /// Models to ask, in this order, when the chosen one fails for good.
        pub fallback_models: Vec<String> = Vec::new() => list().example("[\"ollama/llama3.2\"]"); Fleet Trust,
        /// Where the provider of `model` is reached.
        pub endpoint: Option<String> = None => text().example("\"http://localhost:8080/v1\""); Fleet Trust,
        /// A file that holds the key of the provider of `model`.
        pub key_file: Option<String> = None => text().example("\"/run/secrets/model-key\""); Fleet Trust,
        /// Sampling temperature; the provider's default when absent.
        pub temperature: Option<f64> = None => real(0.0, 2.0).example("0.2"); Fleet Harmless,
        /// How much a model is to reason before it answers, where it can be told (`muster models show`); left to the model
        /// when absent.
        pub reasoning_effort: Option<ReasoningEffort> = None => words::<ReasoningEffort>().example("\"low\""); Fleet Harmless,
        /// How much models of single roles are to reason.
        pub reasoning_efforts: BTreeMap<Role, ReasoningEffort> = BTreeMap::new()
            => named("planner", &words::<ReasoningEffort>().example("\"high\"")); Fleet Harmless,
        /// Most tokens of one answer; the provider's default when absent.
        pub max_answer_tokens: Option<u32> = None => whole(1, 10_000_000).unit("tokens").example("4096"); Fleet Lower,
        /// What models can do, by the beginning of their names, where it is not known or known wrongly.
        pub capabilities: BTreeMap<String, ModelSettings> = BTreeMap::new()
            => named("house-model-1", &group(ModelSettings::SETTINGS)),
        /// Prices of models by the beginning of their names, in US dollars per million tokens, beside the built-in ones.
        pub prices: BTreeMap<String, Price> = BTreeMap::new() => named("house-model-1.0", &group(Price::SETTINGS)),
        /// How long an answer of a model may serve agents of the same role that ask the very same, in the whole fleet; 0 for
        /// never. A task that is done again, and members of a group, are always answered anew.
        #[serde(with = "muster_shared::span")]
        pub reuse_answers: Duration = Duration::ZERO => span(0, 30 * DAY); Fleet Harmless,
        /// Request rates of the whole fleet, by `provider` or `provider/model`; both apply. Calls above a rate wait their turn.
        pub rates: BTreeMap<String, Rate> = BTreeMap::new() => named("openai/gpt-4.1", &group(Rate::SETTINGS)),
        /// The most that the whole fleet may use. Not a setting of its own: `fleet.budget` is copied here.
        #[serde(skip)]
        pub fleet: FleetBudget = FleetBudget::default() => internal(),
        /// How documents that are no text are read. Not a setting of its own: the section `documents` is copied here.
        #[serde(skip)]
        pub documents: DocumentSettings = DocumentSettings::default() => internal(),
        /// What holds for tools. Not a setting of its own: the section `tool` is copied here.
        #[serde(skip)]
        pub tool: ToolSettings = ToolSettings::default() => internal(),
        /// Composite tools. Not a setting of its own: they are read from the folder `tools`.
        #[serde(skip)]
        pub composites: Composites = Composites::default() => internal(),
        /// What happens at the limits of one task.
        pub limits: StepLimits,
        /// What roles may do: a list of plan, tools, people, blueprints, delegate and peers. A role that is not named may do all of it.
        pub permissions: BTreeMap<Role, RolePermissions> = BTreeMap::new() => named("worker", &list_of::<RolePermission>().example("[\"plan\", \"tools\"]")); Fleet Fewer,
        /// Limits of one model call.
        pub calls: CallLimits,
        /// Limits of asking a failing model again.
        pub retries: RetryLimits,
        /// When a provider that does not answer is left alone by the whole fleet, and for how long.
        pub breaker: BreakerRules,
        /// Tools that a role may use instead of its own: names, `prefix.*`, or `*`.
        pub tools: BTreeMap<Role, Vec<String>> = BTreeMap::new()
            => named("worker", &list().example("[\"calculator\", \"corpus.*\"]")); Fleet Fewer,
        /// Where documents and their indices are kept on this host, shared by all agents.
        pub cache_dir: PathBuf = PathBuf::from(".muster/cache") => text(); User Trust,
        /// A folder with prompt templates (`worker.md.j2`, …) that take the place of the built-in ones.
        pub template_dir: Option<PathBuf> = None => text().example("\"prompts\""); Fleet Trust,
        /// Folders with blueprints, `NAME.toml` each; they lie beside the fleet's folder. Those that come with Muster are
        /// found without.
        pub blueprints: Vec<PathBuf> = vec![PathBuf::from("blueprints")] => list(); User Trust,
        /// How long the steps in hand may take when the process is to stop. Each task is released at the end of its step;
        /// what is not finished by then is cut, and a model call under way is made again by whoever goes on.
        #[serde(with = "muster_shared::span")]
        pub drain: Duration = Duration::from_secs(5) => span(0, HOUR); Fleet Harmless,
    }
}

/// How models are told of actions.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalling {
    /// By the provider's native tool calls.
    #[default]
    Native,
    /// By JSON in the text.
    Text,
}

impl From<ToolCalling> for CallStyle {
    fn from(setting: ToolCalling) -> Self {
        match setting {
            ToolCalling::Native => Self::Native,
            ToolCalling::Text => Self::Text,
        }
    }
}

/// Most tasks one process does at the same time, whatever settings say.
pub const MAX_SLOTS: u32 = 256;

impl AgentSettings {
    /// Tasks that an agent of this role does at the same time.
    #[must_use]
    pub fn slots(&self, role: &Role) -> u32 {
        let usual = match role {
            Role::Worker | Role::Researcher | Role::Reflector | Role::Specialist(_) => 8,
            Role::Planner | Role::Refiner | Role::Writer => 4,
        };
        self.slots.get(role).copied().unwrap_or(usual).clamp(1, MAX_SLOTS)
    }

    /// How long a task may give nothing to write, in milliseconds: a question with all its retries, its wait for its turn,
    /// or a tool, whose times are limited by themselves.
    #[must_use]
    pub fn longest_silence_ms(&self) -> u64 {
        let turn = if self.rates.is_empty() { Duration::ZERO } else { RATE_LIMIT_TIMEOUT };
        let question = self.retries.total.saturating_add(self.calls.call).saturating_add(turn);
        let longest = question.max(EngineLimits::default().max_timeout);
        millis(longest)
    }

    /// How much the model of this role is to reason, if settings say so.
    #[must_use]
    pub fn effort(&self, role: &Role) -> Option<ReasoningEffort> {
        self.reasoning_efforts.get(role).copied().or(self.reasoning_effort)
    }

    /// The model that settings name for this role, if any.
    #[must_use]
    pub fn model_of(&self, role: &Role) -> Option<&str> {
        self.models.get(role).or(self.model.as_ref()).map(String::as_str)
    }
}
