//! How much is done for a goal, as one choice: values for settings that nobody set. They lie between the defaults and the
//! settings file, so that whatever is set by itself holds.

use config::ValueKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::layer::{Layer, Origin};

/// The setting that names it.
pub(crate) const KEY: &str = "ask.effort";

/// A setting of agents that says of their own results what a run's `limits.verification` says of all.
const OWN_VERIFICATION: &str = "agent.limits.verification";

/// How much is done for a goal.
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
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effort {
    /// One agent, and its result is the report: no plan, no reflection, no changes, no check by a model. 1 to 5 model
    /// calls for most goals.
    Quick,
    /// Starts as one agent; planned if the goal lists several items or that agent requests it. Reflects after failures and
    /// surprises only. 1 to 15 model calls for most goals.
    #[default]
    Standard,
    /// Plans, reflects on every task, refines, verifies critical tasks, improves plans from earlier runs, has a writer
    /// write. About three times the calls of standard.
    Thorough,
}

impl Effort {
    /// What it means for each setting.
    fn values(self) -> Vec<(&'static str, ValueKind)> {
        let (planning, reflection, writer, verification) = match self {
            Self::Quick => ("never", "none", "unless-single", "off"),
            Self::Standard => ("auto", "when-needed", "unless-single", "cited"),
            Self::Thorough => ("always", "full", "always", "own"),
        };
        vec![
            ("limits.planning", planning.into()),
            ("limits.reflection", reflection.into()),
            ("limits.writer", writer.into()),
            ("limits.verification", verification.into()),
            ("limits.iterate_plans", (self == Self::Thorough).into()),
            ("limits.draft_review", "off".into()),
            ("limits.max_refinements", ValueKind::I64(if self == Self::Quick { 0 } else { 3 })),
        ]
    }
}

/// What a setting is where nobody set anything, if the effort says.
pub(super) fn usual(key: &str) -> Option<Value> {
    let values = Effort::default().values().into_iter();
    values.filter(|(known, _)| *known == key).find_map(|(_, value)| match value {
        ValueKind::Boolean(flag) => Some(flag.into()),
        ValueKind::I64(number) => Some(number.into()),
        ValueKind::String(text) => Some(text.into()),
        _ => None,
    })
}

/// What the effort in force gives to settings that none of these layers, the least first, sets.
pub(super) fn layer(others: &[&Layer]) -> Layer {
    let set = others.iter().rev().find_map(|layer| layer.text(KEY));
    // What is no effort is refused where the setting is read.
    let effort = set.and_then(|(name, _)| name.parse::<Effort>().ok()).unwrap_or_default();
    let from = set.map(|(_, origin)| origin.to_string());
    let mut layer = Layer::default();
    let has_own = others.iter().any(|layer| layer.text(OWN_VERIFICATION).is_some());
    let values = effort.values().into_iter().filter(|(key, _)| !(has_own && *key == "limits.verification"));
    for (key, value) in values {
        layer.set(key, value, Origin::Effort { name: effort.into(), from: from.clone() });
    }
    layer
}

/// How the origin of a value reads that an effort gives.
const PREFIX: &str = "effort ";

/// Where the effort was set that gives a value of this origin: an empty text where nobody set it; nothing where no effort
/// gives the value.
pub(crate) fn set_by(origin: &str) -> Option<&str> {
    let rest = origin.strip_prefix(PREFIX)?;
    Some(rest.split_once(" (").map_or("", |(_, from)| from.trim_end_matches(')')))
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{ModelVerification, Planning, ReflectionLevel, RunLimits, Writing};

    use super::super::{Inputs, Loaded, load};
    use super::*;

    fn loaded(toml: &str, flags: &[(&str, &str, &str)]) -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("muster.toml"), toml).unwrap();
        let flags = flags
            .iter()
            .map(|(key, value, flag)| ((*key).to_owned(), (*value).to_owned(), (*flag).to_owned()));
        load(&Inputs { folder: folder.path().to_owned(), flags: flags.collect(), ..Inputs::default() })
            .unwrap()
    }

    fn origin<'a>(loaded: &'a Loaded, key: &str) -> &'a str {
        &loaded.effective.iter().find(|one| one.key == key).unwrap().origin
    }

    #[test]
    fn thorough_is_the_full_sequence_as_records_without_any_have_it() {
        let loaded = loaded("[ask]\neffort = \"thorough\"\n", &[]);
        assert_eq!(loaded.settings.limits, RunLimits::default());
        assert_eq!(origin(&loaded, "limits.reflection"), "effort thorough (muster.toml:2)");
    }

    #[test]
    fn standard_and_quick_ask_models_less_often() {
        let standard = loaded("", &[]);
        let limits = &standard.settings.limits;
        assert_eq!((limits.planning, limits.reflection), (Planning::Auto, ReflectionLevel::WhenNeeded));
        assert_eq!((limits.writer, limits.verification), (Writing::UnlessSingle, ModelVerification::Cited));
        assert!(!limits.iterate_plans);
        assert_eq!(origin(&standard, "limits.reflection"), "effort standard");
        let quick = loaded("", &[(KEY, "quick", "--effort")]);
        let limits = &quick.settings.limits;
        assert_eq!((limits.planning, limits.reflection), (Planning::Never, ReflectionLevel::None));
        assert_eq!((limits.verification, limits.max_refinements), (ModelVerification::Off, 0));
        assert_eq!(origin(&quick, "limits.planning"), "effort quick (--effort)");
    }

    #[test]
    fn what_is_set_by_itself_holds_and_the_last_effort_counts() {
        let file = "[ask]\neffort = \"quick\"\n[limits]\nreflection = \"brief\"\n";
        let mixed = loaded(file, &[(KEY, "thorough", "--effort"), ("limits.planning", "never", "--set")]);
        let limits = &mixed.settings.limits;
        assert_eq!((limits.planning, limits.reflection), (Planning::Never, ReflectionLevel::Brief));
        assert_eq!((limits.writer, limits.max_refinements), (Writing::Always, 3));
        assert_eq!(origin(&mixed, "limits.writer"), "effort thorough (--effort)");
        let own = loaded("[agent.limits]\nverification = \"full\"\n", &[]);
        assert_eq!(own.settings.limits.verification, ModelVerification::Own);
    }

    #[test]
    fn an_origin_says_where_the_effort_was_set() {
        for (origin, wanted) in [
            ("effort standard", Some("")),
            ("effort quick (--effort)", Some("--effort")),
            ("effort quick (environment MUSTER_ASK_EFFORT)", Some("environment MUSTER_ASK_EFFORT")),
            ("muster.toml:3", None),
        ] {
            assert_eq!(set_by(origin), wanted);
        }
    }

    #[test]
    fn no_effort_that_there_is_none_of() {
        let flags = vec![(KEY.to_owned(), "much".to_owned(), "--effort".to_owned())];
        let wrong = load(&Inputs { folder: "/nowhere".into(), flags, ..Inputs::default() }).unwrap_err();
        assert!(wrong.to_string().contains("ask.effort"), "{wrong}");
    }
}
