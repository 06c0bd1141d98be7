//! All settings, and the sections of them that belong to the command itself.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_agents::AgentSettings;
use muster_agents::model::budget_lease::Period;
use muster_agents::tools::ToolSettings;
use muster_bus::BusSettings;
use muster_bus::server::ServerSettings;
use muster_gateway::GatewaySettings;
use muster_orchestrator::OrchestratorSettings;
use muster_shared::flow::{Budget, RunLimits};
use muster_shared::{setting, settings};
use muster_tools::settings::DocumentSettings;
use serde::{Deserialize, Serialize};

use super::alerts::AlertSettings;
use super::effort::Effort;
use super::guards::{GuardSettings, GuardSettingsByName};
use super::keep::KeepSettings;
use super::metrics::MetricsSettings;
use super::trials::{TrialSettings, TrialSettingsByName};
use super::ui::UiSettings;

/// Interval of scans of the folders of specialists and tools. A scan takes less than a millisecond.
pub(crate) const FOLDER_SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// Time for processes to end in good order before they are killed. Agents give their tasks back within five
/// seconds.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Folder with files NAME.agent.md that define specialists. The fleet runs one process for each.
pub(crate) const AGENTS_DIR: &str = "agents";

/// Folder with files NAME.tool.toml that define tools. One process serves them to the fleet.
pub(crate) const TOOLS_DIR: &str = "tools";

/// Most processes of one role.
pub(crate) const MOST_PROCESSES: u16 = 256;

settings! {
    /// All settings.
    pub(crate) struct Settings {
        /// The way to the fleet's NATS server, and what is kept there. Spans of time are 500ms, 30s, 10m, 2h or 30d.
        pub(crate) bus: BusSettings,
        /// The NATS server that a local fleet starts for itself when bus.url is not set.
        pub(crate) server: ServerSettings,
        /// Orchestrators.
        pub(crate) orchestrator: OrchestratorSettings,
        /// The task gateway, by which programs in other languages work. Orchestrators host it.
        pub(crate) gateway: GatewaySettings,
        /// Agents and their models. Without a model, the conventional variables (OPENAI_API_KEY, …) decide; without
        /// these, the offline model.
        pub(crate) agent: AgentSettings,
        /// Tools, whoever calls them. Which of them a role has is set by agent.tools.
        pub(crate) tool: ToolSettings,
        /// Documents that are no text: what reading one of them may take, and the processes that do it.
        pub(crate) documents: DocumentSettings,
        /// Limits of runs whose goal names none. They are fixed when a run begins.
        pub(crate) limits: RunLimits,
        /// Guards of runs, by name: processes that are asked whether a run may go on so, and say allow, change or refuse
        /// (docs/guards.md). A folder's settings may add guards, and change none of yours.
        pub(crate) guards: GuardSettingsByName = GuardSettingsByName::new()
            => named("secrets", &group(GuardSettings::SETTINGS)),
        /// Trials, by name: another role, model or prompt beside the usual one, as a shadow or as a canary
        /// (docs/trials.md).
        pub(crate) trials: TrialSettingsByName = TrialSettingsByName::new()
            => named("cheaper", &group(TrialSettings::SETTINGS)),
        /// The local fleet that `muster up` watches over, and that `muster run` brings up for itself.
        pub(crate) fleet: FleetSettings,
        /// How long runs are kept in full after their end; `muster gc` then leaves a summary of them (docs/keeping.md).
        pub(crate) keep: KeepSettings,
        /// Alerts on failing tools, slow steps, and waiting questions, posted to one webhook (docs/alerts.md).
        pub(crate) alerts: AlertSettings,
        /// The dashboard, `muster ui` (docs/dashboard.md). It listens on this machine alone.
        pub(crate) ui: UiSettings,
        /// How goals are asked, and how `muster run` waits.
        pub(crate) ask: AskSettings,
        /// Figures of processes for Prometheus (docs/telemetry.md).
        pub(crate) metrics: MetricsSettings,
        /// Logs of processes, in .muster/log for a local fleet.
        pub(crate) log: LogSettings,
    }
}

settings! {
    /// The local fleet that `muster up` watches over, and that `muster run` brings up for itself.
    #[derive(PartialEq)]
    pub(crate) struct FleetSettings {
        /// Processes of each role; 1 where nothing is said, 0 for none.
        pub(crate) scale: BTreeMap<String, u16> = BTreeMap::new()
            => named("worker", &whole(0, MOST_PROCESSES as u64).example("4")); Fleet Harmless,
        /// Restarts of one process within the window after which it is given up.
        pub(crate) max_restarts: u32 = 5 => whole(0, 1_000_000); Fleet Harmless,
        /// Wait before the first restart of a process. It doubles with each one within a minute, up to a hundred times as long.
        #[serde(with = "muster_shared::span")]
        pub(crate) restart_wait: Duration = Duration::from_millis(100) => span(1, HOUR); Fleet Harmless,
        /// Time for the fleet to come up.
        #[serde(with = "muster_shared::span")]
        pub(crate) start_limit: Duration = Duration::from_secs(20) => span(SECOND, HOUR); Fleet Harmless,
        /// The most that all runs of the fleet may use together. Every process borrows a part of it at a time.
        pub(crate) budget: Budget = Budget::UNLIMITED => group(Budget::SETTINGS); Fleet Lower,
        /// For which time fleet.budget is: day (by UTC), or total.
        pub(crate) budget_per: Period = Period::Day => words::<Period>(); Fleet Higher,
    }
}

settings! {
    /// What processes log.
    #[derive(PartialEq, Eq)]
    pub(crate) struct LogSettings {
        /// What is logged: error, warn, info, debug or trace, also by module (`info,muster_bus=debug`). MUSTER_LOG sets
        /// it too.
        pub(crate) level: String = "warn,muster=info".to_owned() => text(); User Harmless,
        /// How: text, or json (one object a line).
        pub(crate) format: LogFormat = LogFormat::Text => words::<LogFormat>(); User Harmless,
    }
}

/// How log lines are written.
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
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

settings! {
    /// How a goal is asked.
    #[derive(PartialEq, Eq)]
    pub(crate) struct AskSettings {
        /// How much is done for a goal: quick (one agent), standard (one agent, and more where it is needed) or thorough
        /// (plan, reflect, refine, verify, write). It gives values to limits that nobody set; `muster config limits`
        /// shows which.
        pub(crate) effort: Effort = Effort::Standard => words::<Effort>(); User Harmless,
        /// Time for a local fleet that is gone to come back before a command that waits for it gives up; six times as
        /// long for a bus elsewhere.
        #[serde(with = "muster_shared::span")]
        pub(crate) lost_limit: Duration = Duration::from_secs(10) => span(100, DAY); User Harmless,
    }
}

/// An amount of US dollars, 0 or more, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dollars(u64);

impl Dollars {
    /// In millionths.
    pub(crate) const fn micros(self) -> u64 {
        self.0
    }
}

impl std::str::FromStr for Dollars {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let amount = text.trim().trim_start_matches('$').parse().ok().and_then(setting::micros);
        amount.map(Self).ok_or_else(|| format!("{text:?} is no amount of US dollars: write 1.50"))
    }
}
