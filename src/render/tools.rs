//! `muster tools`.

use muster_agents::tools::{EngineRules, Permission, ToolSpec, Uncertain};
use muster_shared::run::ToolUse;
use serde::Serialize;

use super::{figures, table as tables};
use crate::mcp_file::HeldTool;

/// Whether a tool may be called, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolState {
    /// It may.
    On,
    /// It may not, for this reason.
    Off(&'static str),
}

impl ToolState {
    /// Why it may not be called.
    pub(crate) const fn why_off(self) -> Option<&'static str> {
        match self {
            Self::On => None,
            Self::Off(why) => Some(why),
        }
    }

    fn in_words(self) -> String {
        self.why_off().map_or_else(|| "on".to_owned(), |why| format!("off: {why}"))
    }
}

/// Tools, one a line; the held ones last.
pub(crate) fn table(tools: &[(&ToolSpec, ToolState)], held: &[HeldTool]) -> String {
    let row = |(spec, state): &(&ToolSpec, ToolState)| {
        vec![
            spec.name.clone(),
            touches(spec),
            if spec.pure { "no" } else { "yes" }.to_owned(),
            state.in_words(),
            spec.source.to_string(),
        ]
    };
    let unknown = || "-".to_owned();
    let held_row = |one: &HeldTool| vec![one.name.clone(), unknown(), unknown(), one.describe(), unknown()];
    let rows = tools.iter().map(row).chain(held.iter().map(held_row)).collect();
    tables::plain(&["TOOL", "TOUCHES", "CHANGES", "STATE", "SOURCE"], rows, &[])
}

fn touches(spec: &ToolSpec) -> String {
    let word = |grant: &Permission| match grant {
        Permission::ReadDocuments => "documents",
        Permission::ReadWorkspace | Permission::WriteWorkspace => "files",
        Permission::Network => "network",
        Permission::Execute => "programs",
        Permission::Memory => "memory",
        Permission::AskPerson => "people",
        Permission::Money => "money",
    };
    let mut words: Vec<&str> = spec.grants.iter().map(word).collect();
    words.dedup();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// All that is known of a tool.
pub(crate) fn whole(
    spec: &ToolSpec,
    state: ToolState,
    rules: &EngineRules,
    roles: &[&str],
    approval: Option<&str>,
    access: &[String],
) -> String {
    let limit = figures::span(rules.time_limit(spec, 0));
    let most = figures::bytes(rules.limits.max_content as u64);
    let quotas = rules.quotas_of(&spec.name).map(|(pattern, _)| pattern).collect::<Vec<_>>();
    let mut lines = vec![
        ("touches", touches(spec)),
        ("changes", changes(spec)),
        ("state", state.in_words()),
        ("source", spec.source.to_string()),
        ("limits", format!("{limit} a call, {most} of words")),
        ("roles", if roles.is_empty() { "none".to_owned() } else { roles.join(", ") }),
    ];
    lines.extend(access.iter().map(|one| ("trusted to", one.clone())));
    lines.extend(approval.map(|why| ("approval", why.to_owned())));
    lines.extend(rules.serves(spec).filter(|_| approval.is_none()).map(|serves| {
        ("cache", format!("an answer serves agents of the same role for {}", figures::span(serves)))
    }));
    if !quotas.is_empty() {
        let quotas = quotas.iter().map(|pattern| format!("tool.quotas.{pattern:?}"));
        lines.push(("quotas", figures::list(quotas)));
    }
    if !spec.inner.is_empty() {
        lines.push(("calls", figures::list(&spec.inner)));
    }
    if let Some(other) = rules.alternatives.get(&spec.name) {
        lines.push(("else", format!("{other} is called where it fails for good")));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = lines.iter().map(|(name, value)| format!("  {name:<width$}  {value}")).collect();
    let parameters = serde_json::to_string_pretty(&spec.parameters).unwrap_or_default();
    let description = figures::indent(&figures::wrap(&spec.description, 98), 2);
    format!(
        "{}\n{description}\n\n{}\n\n  arguments\n{}",
        spec.name,
        lines.join("\n"),
        figures::indent(&parameters, 4)
    )
}

fn changes(spec: &ToolSpec) -> String {
    let after_a_death = match (spec.pure, spec.uncertain) {
        (true, _) => return "nothing; it is called again after a death".to_owned(),
        (false, Uncertain::Repeat) => "it is called again",
        (false, Uncertain::Ask) => "its agent is told, and looks",
        (false, Uncertain::Fail) => "a person has to look",
    };
    format!("something; when an agent dies within a call, {after_a_death}")
}

/// How calls of one tool went.
#[derive(Debug, Serialize)]
pub(crate) struct UsedTool<'a> {
    name: &'a str,
    #[serde(flatten)]
    used: &'a ToolUse,
    mean_ms: Option<u64>,
    p95_ms: Option<u64>,
}

impl<'a> UsedTool<'a> {
    /// With the figures that follow.
    pub(crate) fn of((name, used): (&'a String, &'a ToolUse)) -> Self {
        Self { name, used, mean_ms: used.mean_ms(), p95_ms: used.within_ms(95) }
    }
}

/// How calls of tools went, one tool a line.
pub(crate) fn use_table(tools: &[UsedTool<'_>], runs: usize) -> String {
    let runs = figures::plural(runs as u64, "run");
    if tools.is_empty() {
        return format!("no tool was called in {runs}");
    }
    let millis = |time: Option<u64>| time.map_or_else(|| "-".to_owned(), figures::millis);
    let row = |tool: &UsedTool<'_>| {
        let ToolUse { calls, failures, timeouts, refused, cached, saved_ms, bytes, .. } = tool.used;
        let counts = [calls, failures, timeouts, refused, cached].map(u64::to_string);
        let saved = millis(Some(*saved_ms).filter(|_| *cached > 0));
        let times = [saved, millis(tool.mean_ms), millis(tool.p95_ms), figures::bytes(*bytes)];
        std::iter::once(tool.name.to_owned()).chain(counts).chain(times).collect()
    };
    let heading =
        ["TOOL", "CALLS", "FAILED", "TIMED OUT", "REFUSED", "CACHED", "SPARED", "MEAN", "P95", "ANSWERED"];
    let table = tables::plain(&heading, tools.iter().map(row).collect(), &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    format!("{table}\n\nin {runs}")
}
