//! All that is known of a setting: `muster config --explain KEY`.

use muster_shared::setting::{Kind, Word};
use serde::Serialize;
use serde_json::Value;

use super::effort;
use super::error::advice_for_unknown;
use super::keys::{Key, Keys, variable};
use super::sections::Settings;
use super::{DEFAULT, Loaded};

/// A setting with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Explained {
    /// Its key; `NAME` stands for any name.
    pub(crate) key: String,
    /// What it does.
    pub(crate) help: String,
    /// What the group is about that it belongs to.
    pub(crate) group: String,
    /// What it is now, with where that comes from; nothing where nobody set anything under a name.
    pub(crate) value: Value,
    /// Where that comes from.
    pub(crate) origin: String,
    /// What it is when nobody sets it.
    pub(crate) default: Value,
    /// What it may be.
    pub(crate) takes: String,
    /// The words that it may be, with what they mean.
    pub(crate) words: Vec<(String, String)>,
    /// The unit of its numbers.
    pub(crate) unit: String,
    /// Reach: user, project or fleet.
    pub(crate) reach: &'static str,
    /// Sensitivity: harmless, narrowing or needs trust.
    pub(crate) sensitivity: &'static str,
    /// How a settings file sets it; nothing for a secret.
    pub(crate) file: Option<String>,
    /// The environment variable that sets it; nothing for a name that a variable cannot bear.
    pub(crate) variable: Option<String>,
    /// The flag that sets it; nothing for a secret.
    pub(crate) flag: Option<String>,
}

/// Explains a setting, or each setting of a group.
///
/// # Errors
/// When there is none of this name: what may have been meant.
pub(crate) fn explain(loaded: &Loaded, name: &str) -> Result<Vec<Explained>, String> {
    let keys = Keys::of(Settings::SETTINGS);
    if let Some(key) = keys.find(name) {
        return Ok(vec![one(loaded, name, key)]);
    }
    let plain = name.replace("NAME", "*");
    if let Some(key) = keys.iter().find(|key| key.name == plain) {
        return Ok(vec![one(loaded, name, key)]);
    }
    if keys.is_group(name) {
        let all = keys.under(name).into_iter();
        let explained = all.filter_map(|name| keys.find(&name).map(|key| one(loaded, &name, key)));
        return Ok(explained.collect());
    }
    Err(advice_for_unknown(name, &keys))
}

fn one(loaded: &Loaded, name: &str, key: &Key) -> Explained {
    let now = loaded.effective.iter().find(|one| one.key == name);
    let takes = key.setting.takes;
    let all = match takes.kind {
        Kind::Words(words) | Kind::List { words, .. } => words(),
        _ => Vec::new(),
    };
    let variable =
        if name.contains(['"', '/']) || name.contains("NAME") { None } else { Some(variable(name)) };
    let default = effort::usual(name).unwrap_or_else(|| key.setting.written(None));
    let sample = if takes.example.is_empty() { toml(&default) } else { takes.example.to_owned() };
    let (group, last) = name.rsplit_once('.').unwrap_or(("", name));
    let is_open = !key.is_secret();
    Explained {
        key: name.to_owned(),
        help: key.help().to_owned(),
        group: key.group.to_owned(),
        value: now.map_or(Value::Null, |one| one.value.clone()),
        origin: now.map_or_else(|| DEFAULT.to_owned(), |one| one.origin.clone()),
        default,
        takes: takes.to_string(),
        words: all.into_iter().map(|Word { word, meaning }| (word, meaning)).collect(),
        unit: takes.unit.to_owned(),
        reach: key.reach.as_str(),
        sensitivity: key.sensitivity.as_str(),
        file: is_open.then(|| format!("[{group}] {last} = {sample}")),
        flag: is_open.then(|| format!("--set {name}={}", sample.trim_matches('"'))),
        variable,
    }
}

/// A value as TOML writes it.
pub(super) fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inputs, load};
    use super::*;

    fn loaded() -> Loaded {
        let variables = [("MUSTER_LIMITS_BUDGET_COST", "1.5"), ("MUSTER_BUS_TOKEN", "hunter2-hunter2")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        load(&Inputs { folder: "/nowhere".into(), variables, ..Inputs::default() }).unwrap()
    }

    #[test]
    fn every_setting_is_explained() {
        let loaded = loaded();
        for key in Keys::of(Settings::SETTINGS).iter() {
            let explained = explain(&loaded, &key.name.replace('*', "NAME")).unwrap();
            let [one] = &explained[..] else { unreachable!("{}", key.name) };
            assert!(!one.help.is_empty() && !one.takes.is_empty(), "{one:?}");
            assert_eq!(one.variable.is_none(), key.has_names(), "{one:?}");
        }
    }

    #[test]
    fn an_explanation_says_what_it_is_now_and_how_it_is_set() {
        let explained = explain(&loaded(), "limits.budget.cost").unwrap().remove(0);
        assert_eq!(
            explained,
            Explained {
                key: "limits.budget.cost".to_owned(),
                help: "Most that it may cost, in US dollars.".to_owned(),
                group: "The most that a whole run may use; `muster run --max-cost`, `--max-tokens` and `--max-calls` \
                        override it."
                    .to_owned(),
                value: 1.5.into(),
                origin: "environment MUSTER_LIMITS_BUDGET_COST".to_owned(),
                default: Value::Null,
                takes: "a number from 0 to 1000000000".to_owned(),
                words: Vec::new(),
                unit: "US dollars".to_owned(),
                reach: "project",
                sensitivity: "narrowing",
                file: Some("[limits.budget] cost = 1.5".to_owned()),
                variable: Some("MUSTER_LIMITS_BUDGET_COST".to_owned()),
                flag: Some("--set limits.budget.cost=1.5".to_owned()),
            }
        );
        let words = explain(&loaded(), "fleet.budget_per").unwrap().remove(0).words;
        assert_eq!(words[0].0, "day");
        let secret = explain(&loaded(), "bus.token").unwrap().remove(0);
        assert_eq!((secret.value, secret.file, secret.flag), ("[set]".into(), None, None));
    }

    #[test]
    fn a_group_is_explained_whole_and_a_wrong_name_has_a_near_one() {
        let budget = explain(&loaded(), "limits.budget").unwrap();
        let keys: Vec<&str> = budget.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, ["limits.budget.model_calls", "limits.budget.tokens", "limits.budget.cost"]);
        assert!(
            explain(&loaded(), "limits.max_stepz").unwrap_err().contains("did you mean limits.max_steps?")
        );
        let worker = explain(&loaded(), "fleet.scale.worker").unwrap().remove(0);
        assert_eq!(worker.variable.as_deref(), Some("MUSTER_FLEET_SCALE_WORKER"));
    }
}
