//! `muster tools`: which tools there are, a call by hand, and how calls went.

mod call;
mod leases;
#[cfg(feature = "mcp")]
mod mcp;
pub(crate) mod stats;
mod workspace;

use std::sync::Arc;
use std::time::Instant;

use muster_agents::AgentSettings;
use muster_agents::roles;
use muster_agents::tools::edges::absent_feature;
use muster_agents::tools::{
    Permission, ToolContext, ToolEngine, ToolSpec, granted_by_name, registry_of, with_inner,
};
use muster_shared::flow::{Grantor, TaskRights, Use};
use muster_shared::ids::Role;
use muster_shared::time::millis;
use serde_json::json;

use self::mcp::StartedServers;
#[cfg(not(feature = "mcp"))]
use crate::absent::mcp;
use crate::app::App;
use crate::args::{ToolsAction, ToolsNameArgs, ToolsTestArgs};
use crate::commands::agent::tools::{access, composites, own_tools};
use crate::exit::{Exit, Failure, usage};
use crate::mcp_file::HeldTool;
use crate::render::checks::{Check, CheckResult, list as list_checks};
use crate::render::figures;
use crate::render::tools::{ToolState, table, whole};
use crate::{output, tool_files};

/// Does what was asked.
pub(super) async fn tools(app: &App, action: &ToolsAction) -> Result<Exit, Failure> {
    match action {
        ToolsAction::List(args) => on_desk(app, None, async |desk| desk.list(args.json)).await,
        ToolsAction::Show(args) => on_desk(app, Some(&args.name), async |desk| desk.show(app, args)).await,
        ToolsAction::Call(args) => {
            on_desk(app, Some(&args.name), async |desk| call::call(app, desk, args).await).await
        }
        ToolsAction::Test(args) => {
            on_desk(app, args.name.as_deref(), async |desk| desk.test(app, args).await).await
        }
        ToolsAction::Accept(args) => super::agent::mcp::accept(app, args),
        ToolsAction::Stats(args) => stats::stats(app, args).await,
        ToolsAction::Leases(args) => leases::leases(app, args).await,
        ToolsAction::Revoke(args) => leases::revoke(app, args).await,
    }
}

/// Does something with the tools that there are, while the MCP servers run that it takes: that of the tool which is named, or
/// all of them.
async fn on_desk(
    app: &App,
    tool: Option<&str>,
    does: impl AsyncFnOnce(&Desk) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let servers = StartedServers::start(app, tool).await;
    let done = does(&Desk::open(app, &servers)).await;
    servers.stop().await;
    done
}

/// The tools as agents of this folder's fleet have them, and what their calls go by.
struct Desk {
    settings: AgentSettings,
    engine: ToolEngine,
    rights: Arc<TaskRights>,
    /// Tools of which runs want each call approved.
    to_approve: Vec<String>,
    /// Tools of MCP servers that wait for a person.
    held: Vec<HeldTool>,
}

impl Desk {
    fn open(app: &App, servers: &StartedServers) -> Self {
        let all = app.settings();
        let blueprints = super::blueprint::folders(app);
        let folder = tool_files::folder_of(app);
        let (composites, faults) = composites(app, &folder);
        for fault in faults {
            output::note(&fault);
        }
        let mut own = own_tools(app, &folder);
        own.extend(servers.tools());
        let settings = AgentSettings {
            blueprints,
            composites,
            tool: all.tool.clone(),
            documents: all.documents.clone(),
            ..all.agent.clone()
        };
        let registry = Arc::new(registry_of(&settings, &own));
        let engine = ToolEngine::with_rules(registry, settings.tool.rules());
        let rights = Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &all.limits.rights));
        let to_approve = all.limits.people.approve_tools.clone();
        Self { settings, engine, rights, to_approve, held: servers.held() }
    }

    /// Whether a tool may be called, and why not.
    fn state(&self, spec: &ToolSpec) -> ToolState {
        if !self.engine.is_on(spec) {
            return ToolState::Off("tool.allow does not name it");
        }
        let all = with_inner(&[Arc::new(spec.clone())], self.engine.registry());
        if !all.iter().all(|one| self.engine.is_on(one)) {
            return ToolState::Off("tool.allow does not name all that it calls");
        }
        match all.iter().try_for_each(|one| self.rights.allow_all(&Use::of_tool(&one.name))) {
            Ok(()) => ToolState::On,
            Err(_) => ToolState::Off("limits.rights does not let tasks use it"),
        }
    }

    /// What a call of a tool is granted here, with all that it calls in turn.
    fn granted(&self, spec: &Arc<ToolSpec>) -> Vec<Permission> {
        granted_by_name(&with_inner(std::slice::from_ref(spec), self.engine.registry()))
    }

    /// The roles whose agents may use a tool where their task does not name others.
    fn roles(&self, spec: &ToolSpec) -> Vec<&'static str> {
        let may = |name: &str| {
            let role: Option<Role> = name.parse().ok();
            let own = role.as_ref().and_then(|role| self.settings.tools.get(role)).map(Vec::as_slice);
            let gates = role.as_ref().and_then(|role| self.settings.permissions.get(role));
            let is_open = gates.is_none_or(|gates| gates.is_open(spec.permission));
            is_open && roles::all().iter().any(|rules| rules.name == name && rules.may_use(&spec.name, own))
        };
        roles::all().map(|rules| rules.name).into_iter().filter(|name| may(name)).collect()
    }

    fn find(&self, name: &str) -> Result<Arc<ToolSpec>, Failure> {
        let found = self.engine.registry().get(name);
        found.map(|tool| Arc::new(tool.spec().clone())).ok_or_else(|| {
            if let Some(feature) = absent_feature(name) {
                return crate::absent::missing(feature);
            }
            if let Some(held) = self.held.iter().find(|held| held.name == name) {
                return usage!("{name} is {}", held.describe());
            }
            let missing = self.settings.composites.missing(name, self.engine.registry());
            if !missing.is_empty() {
                return usage!("{name} calls {}, which is not here", missing.join(", "))
                    .help("composites of tools of MCP servers and tool servers are called by agents of a fleet alone");
            }
            let near = self.engine.registry().nearest(name);
            let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            usage!("there is no tool {name:?}")
                .help(format!("{near}`muster tools list` shows those there are"))
        })
    }

    fn list(&self, as_json: bool) -> Result<Exit, Failure> {
        let all = self.engine.registry().list();
        let held = |one: &HeldTool| json!({ "name": one.name, "on": false, "held_back": true, "why_off": one.describe(), "look": one.look });
        output::json_or_line(
            as_json,
            || {
                all.iter()
                    .map(|spec| self.in_json(spec))
                    .chain(self.held.iter().map(held))
                    .collect::<Vec<_>>()
            },
            || {
                let all: Vec<_> = all.iter().map(|spec| (spec.as_ref(), self.state(spec))).collect();
                table(&all, &self.held)
            },
        )
    }

    fn show(&self, app: &App, args: &ToolsNameArgs) -> Result<Exit, Failure> {
        let spec = self.find(&args.name)?;
        let (roles, access) = (self.roles(&spec), access(app, &spec.name));
        let in_json = || {
            let mut shown = self.in_json(&spec);
            shown["parameters"] = spec.parameters.clone();
            shown["roles"] = json!(roles);
            shown["trusted_to"] = json!(access);
            shown
        };
        let in_words =
            || whole(&spec, self.state(&spec), self.engine.rules(), &roles, self.approval(&spec), &access);
        output::json_or_line(args.json, in_json, in_words)
    }

    /// Why a person has to approve calls of a tool, if so.
    fn approval(&self, spec: &ToolSpec) -> Option<&'static str> {
        self.engine.rules().approval(spec, &self.to_approve)
    }

    fn in_json(&self, spec: &ToolSpec) -> serde_json::Value {
        let state = self.state(spec);
        json!({
            "name": spec.name, "description": spec.description, "touches": spec.grants, "pure": spec.pure,
            "when_uncertain": spec.uncertain, "on": state == ToolState::On, "held_back": false, "why_off": state.why_off(),
            "approval": self.approval(spec),
            "off_until_allowed": spec.off_until_allowed, "source": spec.source.to_string(),
            "timeout_ms": millis(self.engine.rules().time_limit(spec, 0)),
            "max_output_bytes": self.engine.rules().limits.max_content,
            "cache_ms": self.engine.rules().serves(spec).map(millis),
        })
    }

    async fn test(&self, app: &App, args: &ToolsTestArgs) -> Result<Exit, Failure> {
        let tools = match &args.name {
            Some(name) => vec![self.find(name)?],
            None => self.engine.registry().list(),
        };
        let mut checks = Vec::with_capacity(tools.len());
        for spec in &tools {
            checks.push(self.check(app, spec).await);
        }
        output::json_or_line(args.json, || &checks, || list_checks(&checks, app.paint()))?;
        let all_well = checks.iter().all(|check| check.verdict != CheckResult::Fail);
        Ok(if all_well { Exit::Completed } else { Exit::Failed })
    }

    async fn check(&self, app: &App, spec: &ToolSpec) -> Check {
        let name = &spec.name;
        let unusable = self.engine.registry().get(name).and_then(|tool| tool.validator().err().cloned());
        if let Some(reason) = unusable {
            return Check::fail(name, format!("its schema cannot be used: {reason}"), "mend the tool");
        }
        let Some(sample) = &spec.sample else {
            return Check::ok(name, "its schema is sound; it has no call to try");
        };
        if let Err(wrong) = self.engine.fits(name, sample) {
            return Check::fail(
                name,
                format!("its own sample does not fit its schema: {wrong}"),
                "mend the tool",
            );
        }
        if let Some(why) = self.state(spec).why_off() {
            return Check::ok(name, format!("its schema is sound; it is off: {why}"));
        }
        let begun = Instant::now();
        let context = ToolContext::new("by-hand", "test").within(Arc::clone(&self.rights)).approved();
        let context = context.granting(self.granted(&Arc::new(spec.clone())));
        let result = self.engine.call(name, sample.clone(), &context).await;
        let said = figures::one_line(&app.redactor.redact(&result.content), 120);
        if result.is_success() {
            Check::ok(name, format!("{said} ({})", figures::span(begun.elapsed())))
        } else {
            Check::fail(name, said, format!("`muster tools call {name}` says more"))
        }
    }
}
