//! Guards: processes that are asked at certain points of a run whether it may go on so, with something else, or not at all.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{Role, RunId};
use crate::plan::tools::means;
use crate::text::one_line;

/// Longest reason of a guard that is kept, in characters.
const REASON_KEPT: usize = 400;
/// Most guards of one run.
pub const MOST_GUARDS: usize = 16;
/// Longest name of a guard, in bytes.
const MOST_NAME: usize = 48;

/// A point of a run at which guards are asked.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
    strum::IntoStaticStr,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Hook {
    /// Before a model is asked: the messages that it has not been sent yet.
    BeforeModel,
    /// Before a tool is called: its name and its arguments.
    BeforeTool,
    /// After a tool has answered: what the model would be told, and what the record would hold.
    AfterObservation,
    /// Before a plan is adopted, or changed by a refinement.
    BeforePlan,
    /// Before a report is delivered.
    BeforeReport,
}

impl Hook {
    /// All of them, in the order in which a run passes them.
    pub const ALL: [Self; 5] =
        [Self::BeforePlan, Self::BeforeModel, Self::BeforeTool, Self::AfterObservation, Self::BeforeReport];

    /// The word for it in settings and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What holds when a guard gives no verdict: it is gone, takes too long, or answers what is none.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// As if it had allowed.
    Allow,
    /// As if it had refused.
    #[default]
    Refuse,
}

/// What a guard says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It may go on as it is.
    Allow,
    /// It may go on with something else.
    Change,
    /// It may not.
    Refuse,
}

/// A guard of a run: when it is asked, and what holds when it gives no verdict. Fixed when the run is created. It is never
/// the guard's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GuardRule {
    /// Its name: it answers on `guard.<name>`.
    pub name: String,
    /// When it is asked.
    pub hooks: Vec<Hook>,
    /// What holds when it gives no verdict.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// How long its verdict is waited for, in milliseconds.
    pub timeout_ms: u64,
    /// The tools that it is asked about, where a tool is concerned; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The roles whose agents it is asked about, where an agent is concerned; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

impl GuardRule {
    /// Whether it is asked at a hook, about an agent of this role and this tool.
    #[must_use]
    pub fn watches(&self, hook: Hook, role: Option<&Role>, tool: Option<&str>) -> bool {
        let role = role.map(ToString::to_string);
        let of_role = role.is_none_or(|role| self.roles.is_empty() || self.roles.contains(&role));
        let of_tool = || {
            tool.is_none_or(|tool| self.tools.is_empty() || self.tools.iter().any(|named| means(named, tool)))
        };
        self.hooks.contains(&hook) && of_role && of_tool()
    }
}

/// Whether this can be the name of a guard: a token of its subject.
#[must_use]
pub fn is_guard_name(name: &str) -> bool {
    crate::text::is_short_name(name, MOST_NAME)
}

/// Longest time that a verdict is waited for, in milliseconds.
pub const LONGEST_TIMEOUT_MS: u64 = 60_000;
/// Most tools or roles that a guard is limited to.
pub const MOST_NAMED: usize = 64;

impl GuardRule {
    /// Whether a goal may bring it.
    fn is_sound(&self) -> bool {
        let is_short =
            |list: &[String]| list.len() <= MOST_NAMED && list.iter().all(|name| name.len() <= 256);
        is_guard_name(&self.name)
            && is_short(&self.tools)
            && is_short(&self.roles)
            && self.hooks.len() <= Hook::ALL.len()
    }
}

/// The guards of a run: those of the fleet, and those that its goal adds. A goal takes no guard of the fleet away, and
/// weakens none: where both have one of a name, it is the fleet's.
#[must_use]
pub fn joined(fleet: &[GuardRule], added: &[GuardRule]) -> Vec<GuardRule> {
    let mut all: BTreeMap<&str, &GuardRule> = BTreeMap::new();
    for rule in added.iter().filter(|rule| rule.is_sound()).chain(fleet) {
        all.insert(&rule.name, rule);
    }
    // Those of the fleet are never the ones for which there is no room.
    let of_fleet = |rule: &&GuardRule| fleet.iter().any(|own| own.name == rule.name);
    let room = MOST_GUARDS.saturating_sub(fleet.len());
    let (own, further): (Vec<&GuardRule>, Vec<&GuardRule>) = all.into_values().partition(of_fleet);
    let mut rules: Vec<GuardRule> = own.into_iter().chain(further.into_iter().take(room)).cloned().collect();
    rules.iter_mut().for_each(|rule| rule.timeout_ms = rule.timeout_ms.clamp(1, LONGEST_TIMEOUT_MS));
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    rules
}

/// What a guard is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardRequest {
    /// At which hook.
    pub hook: Hook,
    /// The run.
    pub run: RunId,
    /// The task, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Who asks.
    pub agent: String,
    /// Its role.
    pub role: String,
    /// What it is about, by the hook.
    pub payload: Value,
}

/// What a guard answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardReply {
    /// Whether it may go on.
    pub verdict: Ruling,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// With `change`: what it goes on with, in the form of what was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

impl GuardReply {
    /// It may go on.
    #[must_use]
    pub const fn allow() -> Self {
        Self { verdict: Ruling::Allow, reason: String::new(), payload: None }
    }

    /// It may not.
    #[must_use]
    pub const fn refuse(reason: String) -> Self {
        Self { verdict: Ruling::Refuse, reason, payload: None }
    }

    /// It may with this instead.
    #[must_use]
    pub const fn change(reason: String, payload: Value) -> Self {
        Self { verdict: Ruling::Change, reason, payload: Some(payload) }
    }
}

/// Why a guard gave no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardFailure {
    /// Nobody serves its subject.
    Gone,
    /// It did not answer in time.
    Hung,
    /// What it answered is no verdict; why.
    Garbage(String),
    /// It could not be asked; why.
    NotAsked(String),
}

impl GuardFailure {
    /// What went wrong with a guard, and how to mend it, in a sentence.
    #[must_use]
    pub fn about(&self, rule: &GuardRule) -> String {
        let GuardRule { name, timeout_ms, .. } = rule;
        match self {
            Self::Gone => format!(
                "guard {name} is gone: no process serves the subject guard.{name}; start it, or take [guards.{name}] out \
                 of the settings"
            ),
            Self::Hung => format!(
                "guard {name} did not answer within {timeout_ms} ms; look at its process, or raise guards.{name}.timeout"
            ),
            Self::Garbage(why) => format!(
                "guard {name} answered what is no verdict ({why}); it has to answer {{\"verdict\": \"allow\", \"change\" or \
                 \"refuse\", \"reason\": …}}"
            ),
            Self::NotAsked(why) => format!(
                "guard {name} could not be asked ({why}); give it another hook, or set guards.{name}.on_failure"
            ),
        }
    }
}

/// The verdict of a guard, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GuardVerdict {
    /// The guard.
    pub guard: String,
    /// What it said, or what holds because it said nothing.
    pub verdict: Ruling,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it gave no verdict, so that its setting `on_failure` decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

impl GuardVerdict {
    /// What became of asking a guard, and what it goes on with if that is something else. `fits` says what is wrong with
    /// something that is to stand in its place: a change that cannot be made is no verdict.
    #[must_use]
    pub fn of(
        rule: &GuardRule,
        asked: Result<GuardReply, GuardFailure>,
        fits: impl FnOnce(&Value) -> Result<(), String>,
    ) -> (Self, Option<Value>) {
        let failure = match asked {
            Ok(GuardReply { verdict: Ruling::Change, reason, payload: Some(payload) }) => {
                match fits(&payload) {
                    Ok(()) => return (Self::said(rule, Ruling::Change, &reason), Some(payload)),
                    Err(wrong) => GuardFailure::Garbage(format!("its change cannot be made: {wrong}")),
                }
            }
            Ok(GuardReply { verdict: Ruling::Change, .. }) => {
                GuardFailure::Garbage("a change without `payload`".to_owned())
            }
            Ok(GuardReply { verdict, reason, .. }) => return (Self::said(rule, verdict, &reason), None),
            Err(failure) => failure,
        };
        (Self::failed(rule, &failure), None)
    }

    fn said(rule: &GuardRule, verdict: Ruling, reason: &str) -> Self {
        Self { guard: rule.name.clone(), verdict, reason: one_line(reason, REASON_KEPT), failed: false }
    }

    fn failed(rule: &GuardRule, failure: &GuardFailure) -> Self {
        let verdict = match rule.on_failure {
            OnFailure::Allow => Ruling::Allow,
            OnFailure::Refuse => Ruling::Refuse,
        };
        Self {
            guard: rule.name.clone(),
            verdict,
            reason: one_line(&failure.about(rule), REASON_KEPT),
            failed: true,
        }
    }

    /// Whether it is no more than that the guard had nothing against it.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self.verdict, Ruling::Allow) && !self.failed
    }
}

/// `changed by guard secrets: an e-mail address`, in a line.
impl std::fmt::Display for GuardVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { guard, verdict, reason, failed } = self;
        let why = if reason.is_empty() { "no reason given" } else { reason };
        match (verdict, failed) {
            (Ruling::Allow, true) => write!(f, "allowed without a verdict: {why}"),
            (Ruling::Refuse, true) => write!(f, "refused without a verdict: {why}"),
            (Ruling::Allow, false) => write!(f, "allowed by guard {guard}"),
            (Ruling::Change, _) => write!(f, "changed by guard {guard}: {why}"),
            (Ruling::Refuse, false) => write!(f, "refused by guard {guard}: {why}"),
        }
    }
}

/// What the guards of a hook said of one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Guarded {
    /// How many of them had nothing against it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub allowed: u32,
    /// What the others said, in the order in which they were asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<GuardVerdict>,
    /// What it goes on with, where one of them changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Value>,
}

impl Guarded {
    /// Takes note of a verdict, and of what it changed.
    pub fn push(&mut self, verdict: GuardVerdict, changed: Option<Value>) {
        if changed.is_some() {
            self.changed = changed;
        }
        if verdict.is_plain() {
            self.allowed += 1;
        } else {
            self.verdicts.push(verdict);
        }
    }

    /// The refusal, if one of them refused: nobody is asked after it.
    #[must_use]
    pub fn refusal(&self) -> Option<&GuardVerdict> {
        self.verdicts.last().filter(|last| last.verdict == Ruling::Refuse)
    }

    /// Why it may not go on, in a sentence that names the guard.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        self.refusal().map(ToString::to_string)
    }

    /// Whether no guard was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `2 allowed; changed by guard secrets: …`, in a line.
impl std::fmt::Display for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let allowed = (self.allowed > 0).then(|| format!("{} allowed", self.allowed));
        let said = self.verdicts.iter().map(ToString::to_string);
        f.write_str(&allowed.into_iter().chain(said).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(name: &str) -> GuardRule {
        let (hooks, on_failure) = (vec![Hook::BeforeTool], OnFailure::Refuse);
        let (tools, roles) = (Vec::new(), Vec::new());
        GuardRule { name: name.to_owned(), hooks, on_failure, timeout_ms: 500, tools, roles }
    }

    #[test]
    fn a_guard_is_asked_where_its_rule_says() {
        let worker: Role = "worker".parse().unwrap();
        let all = rule("g");
        let tools = GuardRule { tools: vec!["file.*".into()], ..rule("g") };
        let roles = GuardRule { roles: vec!["writer".into()], ..rule("g") };
        let table = [
            (&all, Hook::BeforeTool, "calculator", true),
            (&all, Hook::BeforeModel, "calculator", false),
            (&tools, Hook::BeforeTool, "file.write", true),
            (&tools, Hook::BeforeTool, "calculator", false),
            (&roles, Hook::BeforeTool, "calculator", false),
        ];
        for (rule, hook, tool, asked) in table {
            assert_eq!(rule.watches(hook, Some(&worker), Some(tool)), asked, "{rule:?} {hook:?} {tool}");
        }
        assert!(tools.watches(Hook::BeforeTool, None, None), "where no tool is concerned, all are asked");
    }

    #[test]
    fn a_goal_adds_guards_and_takes_none_away() {
        let weak = GuardRule { on_failure: OnFailure::Allow, ..rule("b") };
        let fleet = [rule("b")];
        assert_eq!(joined(&fleet, &[]), fleet);
        assert_eq!(joined(&fleet, &[weak]), fleet);
        assert_eq!(joined(&fleet, &[rule("a"), rule("no name")]), [rule("a"), rule("b")]);
        let patient = GuardRule { timeout_ms: u64::MAX, ..rule("a") };
        assert_eq!(joined(&[], &[patient])[0].timeout_ms, LONGEST_TIMEOUT_MS);
        let wordy = GuardRule { tools: vec!["x".to_owned(); MOST_NAMED + 1], ..rule("a") };
        assert_eq!(joined(&fleet, &[wordy]), fleet);
        let many: Vec<GuardRule> = (10..90).map(|n| rule(&format!("a{n}"))).collect();
        let all = joined(&fleet, &many);
        assert!(all.len() == MOST_GUARDS && all.contains(&fleet[0]), "{all:?}");
    }

    #[test]
    fn what_is_no_verdict_is_decided_by_its_setting() {
        let open = GuardRule { on_failure: OnFailure::Allow, ..rule("g") };
        let failures = [
            GuardFailure::Gone,
            GuardFailure::Hung,
            GuardFailure::Garbage("x".into()),
            GuardFailure::NotAsked("y".into()),
        ];
        for failure in failures {
            for (rule, wanted) in [(rule("g"), Ruling::Refuse), (open.clone(), Ruling::Allow)] {
                let (verdict, changed) = GuardVerdict::of(&rule, Err(failure.clone()), |_| Ok(()));
                assert_eq!((verdict.verdict, verdict.failed, changed), (wanted, true, None), "{failure:?}");
                assert!(verdict.reason.contains("guard g") && !verdict.is_plain(), "{verdict}");
            }
        }
    }

    #[test]
    fn a_change_counts_where_it_fits() {
        let fits = |value: &Value| if value.is_object() { Ok(()) } else { Err("no object".to_owned()) };
        let of = |reply| GuardVerdict::of(&rule("g"), Ok(reply), fits);
        let (verdict, changed) = of(GuardReply::change("a key".into(), json!({})));
        assert_eq!((verdict.to_string().as_str(), changed), ("changed by guard g: a key", Some(json!({}))));
        for reply in [
            GuardReply::change("x".into(), json!(1)),
            GuardReply { payload: None, ..GuardReply::change("x".into(), json!({})) },
        ] {
            let (verdict, changed) = of(reply);
            assert_eq!((verdict.verdict, verdict.failed, changed), (Ruling::Refuse, true, None), "{verdict}");
        }
        let (refused, _) = of(GuardReply::refuse("no\nsecond line".into()));
        assert_eq!(refused.to_string(), "refused by guard g: no second line");
    }

    #[test]
    fn verdicts_are_counted_and_told() {
        let mut all = Guarded::default();
        assert!(all.is_empty());
        let mut push = |name: &str, reply: GuardReply| {
            let (verdict, changed) = GuardVerdict::of(&rule(name), Ok(reply), |_| Ok(()));
            all.push(verdict, changed);
            all.clone()
        };
        push("a", GuardReply::allow());
        let two = push("b", GuardReply::change("x".into(), json!(1)));
        assert_eq!((two.refused(), two.changed), (None, Some(json!(1))));
        let all = push("c", GuardReply::refuse("no".into()));
        assert_eq!(all.to_string(), "1 allowed; changed by guard b: x; refused by guard c: no");
        assert_eq!(all.refused().as_deref(), Some("refused by guard c: no"));
    }

    #[test]
    fn names_are_tokens_of_subjects() {
        for (name, good) in [
            ("secrets", true),
            ("allow-list", true),
            ("a.b", false),
            ("", false),
            ("A", false),
            ("a b", false),
            ("*", false),
        ] {
            assert_eq!(is_guard_name(name), good, "{name:?}");
        }
    }
}
