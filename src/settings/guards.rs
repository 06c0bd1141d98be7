//! The guards of a fleet: when each is asked, and what holds when it gives no verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use muster_shared::flow::guard::{MOST_GUARDS, MOST_NAMED, is_guard_name};
use muster_shared::flow::{GuardRule, Hook, OnFailure};
use muster_shared::settings;
use serde::{Deserialize, Serialize};

use super::Effective;
use super::error::SettingsError;

/// The section.
pub(super) const SECTION: &str = "guards";

/// The guards, by name.
pub(crate) type GuardSettingsByName = BTreeMap<String, GuardSettings>;

settings! {
    /// A guard: a process that is asked at hooks of a run whether it may go on so.
    #[derive(PartialEq, Eq)]
    pub(crate) struct GuardSettings {
        /// Whether it is asked. To name a guard is enough.
        pub(crate) enabled: bool = true => flag(); Project Narrowing,
        /// What it is: secrets (finds keys and personal data), allow-list (holds tool calls against a file), or program (yours;
        /// you start it). As its name says where it is secrets or allow-list, else program.
        pub(crate) kind: Option<GuardKind> = None => words::<GuardKind>().example("\"secrets\""); Project Narrowing,
        /// The file of an allow-list.
        pub(crate) file: Option<PathBuf> = None => text().example("\"tools.toml\""); Project Narrowing,
        /// When it is asked: before_model, before_tool, after_observation, before_plan, before_report. All of them for
        /// secrets, before_tool for an allow-list; a program has to say.
        pub(crate) hooks: Vec<Hook> = Vec::new() => list_of::<Hook>().example("[\"before_tool\", \"before_report\"]"); Project Narrowing,
        /// What holds when it gives no verdict, because it is gone, takes too long or answers what is none: refuse or allow.
        pub(crate) on_failure: OnFailure = OnFailure::Refuse => words::<OnFailure>(); Project Narrowing,
        /// How long its verdict is waited for.
        #[serde(with = "muster_shared::span")]
        pub(crate) timeout: Duration = Duration::from_secs(5) => span(1, MINUTE); Project Narrowing,
        /// The tools that it is asked about, where one is concerned (`file.*`); all when empty.
        pub(crate) tools: Vec<String> = Vec::new() => list(); Project Narrowing,
        /// The roles whose agents it is asked about, where one is concerned; all when empty.
        pub(crate) roles: Vec<String> = Vec::new() => list(); Project Narrowing,
    }
}

/// What a guard is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::EnumMessage, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuardKind {
    /// `muster guard secrets`: finds keys and personal data, and takes them out.
    Secrets,
    /// `muster guard allow-list FILE`: holds tool calls against a file.
    AllowList,
    /// A program of the user's, which the user starts.
    Program,
}

impl GuardSettings {
    /// What a guard of this name is.
    pub(crate) fn kind(&self, name: &str) -> GuardKind {
        self.kind.unwrap_or(match name {
            "secrets" => GuardKind::Secrets,
            "allow-list" => GuardKind::AllowList,
            _ => GuardKind::Program,
        })
    }

    /// When it is asked.
    fn hooks(&self, name: &str) -> Vec<Hook> {
        match (self.hooks.is_empty(), self.kind(name)) {
            (false, _) => self.hooks.clone(),
            (true, GuardKind::Secrets) => Hook::ALL.to_vec(),
            (true, GuardKind::AllowList) => vec![Hook::BeforeTool],
            (true, GuardKind::Program) => Vec::new(),
        }
    }

    /// What goes into the limits of runs.
    fn rule(&self, name: &str) -> GuardRule {
        let timeout_ms = self.timeout.as_millis() as u64;
        let (hooks, on_failure) = (self.hooks(name), self.on_failure);
        let (tools, roles) = (self.tools.clone(), self.roles.clone());
        GuardRule { name: name.to_owned(), hooks, on_failure, timeout_ms, tools, roles }
    }

    /// What is wrong with it: the part, and what it has to be.
    fn fault(&self, name: &str) -> Option<(&'static str, String)> {
        if !is_guard_name(name) {
            let rule = "the name of a guard is lower-case letters, digits, - and _, 48 at most".to_owned();
            return Some(("enabled", rule));
        }
        if self.hooks(name).is_empty() {
            let words = Hook::ALL.map(Hook::as_str).join(", ");
            return Some(("hooks", format!("say when this guard is asked: {words}")));
        }
        if self.kind(name) == GuardKind::AllowList && self.file.is_none() {
            return Some(("file", "say which file the allow-list is in".to_owned()));
        }
        let lists = [("tools", &self.tools), ("roles", &self.roles)];
        let long = lists.into_iter().find(|(_, list)| list.len() > MOST_NAMED);
        long.map(|(part, _)| (part, format!("it may name {MOST_NAMED} at most")))
    }
}

/// The guards that are asked, as they go into the limits of runs.
///
/// # Errors
/// Names the setting that cannot work, and what it has to be.
pub(super) fn rules(
    guards: &GuardSettingsByName,
    effective: &[Effective],
) -> Result<Vec<GuardRule>, SettingsError> {
    let asked = guards.iter().filter(|(_, guard)| guard.enabled);
    if asked.clone().count() > MOST_GUARDS {
        return Err(SettingsError::too_many(SECTION, guards.len(), MOST_GUARDS));
    }
    let rule = |(name, guard): (&String, &GuardSettings)| match guard.fault(name) {
        None => Ok(guard.rule(name)),
        Some(fault) => Err(SettingsError::of_part(effective, SECTION, name, fault)),
    };
    asked.map(rule).collect()
}

/// Files that the user's own settings name lie beside these, not in whatever project a fleet is brought up in: that could put
/// another list in the place of the user's.
pub(super) fn beside_own(
    guards: &mut GuardSettingsByName,
    own: Option<&Path>,
    is_own: impl Fn(&str) -> bool,
) {
    let Some(folder) = own.and_then(Path::parent) else { return };
    for (name, guard) in guards {
        let key = format!("{SECTION}.{}.file", super::keys::written(name));
        if let Some(file) = guard.file.as_mut().filter(|_| is_own(&key)) {
            *file = folder.join(&*file);
        }
    }
}

/// The guard that a key is about.
pub(super) fn named(key: &str) -> Option<String> {
    let mut parts = super::keys::parts(key).into_iter();
    (parts.next()? == SECTION).then(|| parts.next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::{Care, Inputs, Loaded, load};
    use super::*;

    fn with(toml: &str) -> Result<Loaded, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("muster.toml"), toml).unwrap();
        load(&Inputs { folder: folder.path().to_owned(), ..Inputs::default() })
    }

    #[test]
    fn to_name_a_guard_is_enough() {
        let rules = with("[guards.secrets]\n").unwrap().settings.limits.guards;
        let [rule] = &rules[..] else { unreachable!("{rules:?}") };
        assert_eq!((rule.name.as_str(), rule.hooks.len(), rule.timeout_ms), ("secrets", 5, 5_000));
        assert_eq!(rule.on_failure, OnFailure::Refuse);
        assert!(with("[guards.secrets]\nenabled = false\n").unwrap().settings.limits.guards.is_empty());
        assert!(with("").unwrap().settings.limits.guards.is_empty());
        let own = "[guards.mine]\nhooks = [\"before_tool\"]\non_failure = \"allow\"\ntimeout = \"250ms\"\ntools = [\"file.*\"]\n";
        let [rule] = &with(own).unwrap().settings.limits.guards[..] else { unreachable!() };
        assert_eq!(
            (&rule.hooks[..], rule.on_failure, rule.timeout_ms),
            (&[Hook::BeforeTool][..], OnFailure::Allow, 250)
        );
        assert_eq!(rule.tools, ["file.*"]);
    }

    #[test]
    fn the_users_list_lies_beside_the_users_settings() {
        let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = home.path().join("muster.toml");
        let list = "[guards.allow-list]\nfile = \"tools.toml\"\n";
        std::fs::write(&own, list).unwrap();
        let inputs = Inputs { own: Some(own), folder: folder.path().to_owned(), ..Inputs::default() };
        let file =
            |inputs: &Inputs| load(inputs).unwrap().settings.guards["allow-list"].file.clone().unwrap();
        assert_eq!(file(&inputs), home.path().join("tools.toml"));
        std::fs::write(folder.path().join("muster.toml"), list).unwrap();
        let of_project = Inputs { own: None, ..inputs };
        assert_eq!(file(&of_project), PathBuf::from("tools.toml"), "that of a project lies in it");
        for outside in ["/proc/self/environ", "../tools.toml"] {
            std::fs::write(folder.path().join("muster.toml"), list.replace("tools.toml", outside)).unwrap();
            assert!(matches!(load(&of_project), Err(SettingsError::Untrusted { .. })), "{outside}");
            let lenient = load(&Inputs { care: Care::Lenient, ..of_project.clone() }).unwrap();
            assert!(lenient.settings.guards.is_empty(), "{outside}");
        }
    }

    #[test]
    fn a_guard_that_cannot_work_is_refused_with_what_it_lacks() {
        for (toml, words) in [
            ("[guards.mine]\n", "guards.mine.hooks"),
            ("[guards.mine]\nhooks = [\"befor_tool\"]\n", "befor_tool"),
            ("[guards.allow-list]\n", "which file"),
            ("[guards.\"No Name\"]\nkind = \"secrets\"\n", "lower-case letters"),
            ("[guards.secrets]\ntimeout = \"2h\"\n", "guards.secrets.timeout"),
            ("[guards.secrets]\non_failure = \"shrug\"\n", "shrug"),
            ("[guards]\nsecrets = 1\n", "guards.secrets"),
        ] {
            let error = with(toml).map(|loaded| loaded.settings.limits.guards).unwrap_err();
            assert!(error.to_string().contains(words), "{toml}: {error}");
        }
    }
}
