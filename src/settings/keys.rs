//! Every key that may be set, read off the declarations of the settings.

use std::collections::BTreeMap;

use muster_shared::setting::{Attributes, Kind, Reach, Sensitivity, Setting};
use muster_shared::text::nearest_name;
use serde_json::Value;

/// The part of a key that stands for any name, such as a role.
const ANY: &str = "*";

/// One key that may be set, such as `limits.max_steps`.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// Its name; `*` stands for any name at that place.
    pub(crate) name: String,
    /// The same with the fields that hold it.
    pub(crate) fields: String,
    /// What the group is about that it belongs to.
    pub(crate) group: &'static str,
    /// What is declared of it; of a key that ends with `*`, of what stands under each name.
    pub(crate) setting: Setting,
    /// Where it takes effect.
    pub(crate) reach: Reach,
    /// How much trust a value in the file of a project needs.
    pub(crate) sensitivity: Sensitivity,
}

impl Key {
    /// What it does.
    pub(crate) fn help(&self) -> &'static str {
        self.setting.help()
    }

    /// Whether its value is a list.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.setting.takes.kind, Kind::List { .. })
    }

    /// Whether its value must not be shown, nor stand in a file beside other settings.
    pub(crate) fn is_secret(&self) -> bool {
        is_secret(&self.name)
    }

    /// Whether a part of it is any name.
    pub(crate) fn has_names(&self) -> bool {
        self.name.contains(ANY)
    }

    /// The environment variable that sets it (for a key without `*`).
    pub(crate) fn variable(&self) -> String {
        variable(&self.name)
    }

    fn matches(&self, name: &str) -> bool {
        matches(&self.name, name)
    }
}

/// What all our variables begin with.
pub(super) const PREFIX: &str = "MUSTER_";

/// The environment variable that sets the key of this name.
pub(crate) fn variable(name: &str) -> String {
    format!("{PREFIX}{}", upper(name))
}

/// Whether a variable without what all begin with is that of this key. Every process asks this of every key and every
/// variable at its start, so nothing is allocated for it.
fn is_variable_of(name: &str, rest: &str) -> bool {
    name.len() == rest.len() && name.bytes().map(upper_byte).eq(rest.bytes())
}

/// Whether this name is the key, in which `*` stands for any part.
pub(crate) fn matches(key: &str, name: &str) -> bool {
    let mut wanted = key.split('.');
    let mut given = parts(name).into_iter();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(ANY), Some(part)) if !part.is_empty() => {}
            (Some(want), Some(part)) if want == part => {}
            _ => return false,
        }
    }
}

/// Whether the value under this name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "password" | "token" | "secret" | "api_key" | "seed" | "webhook")
        || last.ends_with("_token")
        || last.ends_with("_password")
}

/// The parts of a key as it is written: between dots, where a part in quotes may hold dots itself.
pub(crate) fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for letter in name.chars() {
        match (letter, parts.last_mut()) {
            ('"', _) => quoted = !quoted,
            ('.', _) if !quoted => parts.push(String::new()),
            (_, Some(part)) => part.push(letter),
            (_, None) => {}
        }
    }
    parts
}

/// A part of a key as it is written: in quotes when it holds a dot.
pub(crate) fn written(part: &str) -> String {
    if part.contains('.') { format!("\"{part}\"") } else { part.to_owned() }
}

/// All keys that may be set.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    keys: Vec<Key>,
}

impl Keys {
    /// The keys of declared settings, in order of declaration.
    pub(crate) fn of(settings: &'static [Setting]) -> Self {
        let mut keys = Vec::new();
        collect(settings, &Above { name: "", fields: "", about: "", attributes: None }, &mut keys);
        Self { keys }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    /// The key that this name is.
    pub(crate) fn find(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.matches(name))
    }

    /// The name of the key that these fields hold; the fields themselves where they have no other name.
    pub(crate) fn of_fields<'a>(&'a self, fields: &'a str) -> &'a str {
        let known = self.keys.iter().find(|key| key.fields == fields);
        known.map_or(fields, |key| key.name.as_str())
    }

    /// Whether this name is a group of keys, such as `limits`.
    pub(crate) fn is_group(&self, name: &str) -> bool {
        let given = parts(name);
        self.keys.iter().any(|key| {
            let parts: Vec<&str> = key.name.split('.').collect();
            parts.len() > given.len()
                && parts.iter().zip(&given).all(|(want, part)| *want == ANY || *want == part)
        })
    }

    /// The keys of a group, as they are written; `NAME` stands for any name.
    pub(crate) fn under(&self, group: &str) -> Vec<String> {
        let depth = parts(group).len();
        let within = |key: &&Key| {
            let above: Vec<&str> = key.name.split('.').take(depth).collect();
            key.name.split('.').count() > depth && matches(&above.join("."), group)
        };
        let whole = |key: &Key| {
            let below = key.name.split('.').skip(depth).map(|part| if part == ANY { "NAME" } else { part });
            std::iter::once(group).chain(below).collect::<Vec<_>>().join(".")
        };
        self.keys.iter().filter(within).map(whole).collect()
    }

    /// The known name most like this one, if one is like enough.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let mut names: Vec<String> = Vec::new();
        for key in &self.keys {
            let parts: Vec<&str> = key.name.split('.').collect();
            names.extend((1..=parts.len()).map(|n| parts[..n].join(".")));
        }
        nearest_name(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// The key that an environment variable sets, with the name it has there.
    pub(crate) fn of_variable(&self, variable: &str) -> Option<(String, &Key)> {
        let rest = variable.strip_prefix(PREFIX)?;
        let plain = self.keys.iter().find(|key| is_variable_of(&key.name, rest));
        if let Some(key) = plain {
            return Some((key.name.clone(), key));
        }
        self.keys.iter().find_map(|key| {
            let (before, after) = key.name.split_once(ANY)?;
            let (before, after) = (upper(before), upper(after));
            let middle = rest.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?;
            (!middle.is_empty()).then(|| (key.name.replacen(ANY, &middle.to_ascii_lowercase(), 1), key))
        })
    }

    /// The variables that are set by name, for finding the nearest.
    pub(crate) fn variables(&self) -> BTreeMap<String, &Key> {
        self.keys.iter().map(|key| (key.variable(), key)).collect()
    }
}

fn upper(part: &str) -> String {
    part.replace(['.', '-'], "_").to_ascii_uppercase()
}

/// The same for one byte.
const fn upper_byte(byte: u8) -> u8 {
    match byte {
        b'.' | b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    }
}

fn collect(settings: &'static [Setting], above: &Above<'_>, keys: &mut Vec<Key>) {
    for setting in settings {
        let (name, fields) = (join(above.name, setting.name()), join(above.fields, setting.field));
        let attributes = above.attributes.or(setting.takes.attributes);
        let (name, fields, setting) = match setting.takes.kind {
            Kind::Named(takes) => {
                let setting = Setting { takes: *takes, default: || Value::Null, ..*setting };
                (join(&name, ANY), join(&fields, ANY), setting)
            }
            _ => (name, fields, *setting),
        };
        match setting.takes.kind {
            Kind::Internal => {}
            Kind::Group(inner) => {
                let about = setting.help();
                collect(inner, &Above { name: &name, fields: &fields, about, attributes }, keys);
            }
            _ => keys.extend(above.key(name, fields, setting, attributes)),
        }
    }
}

/// The group that settings belong to.
struct Above<'a> {
    name: &'a str,
    fields: &'a str,
    about: &'static str,
    attributes: Option<Attributes>,
}

impl Above<'_> {
    /// A key in it. Every declaration has attributes: it does not compile without them.
    fn key(
        &self,
        name: String,
        fields: String,
        setting: Setting,
        attributes: Option<Attributes>,
    ) -> Option<Key> {
        let Attributes { reach, sensitivity } = attributes?;
        Some(Key { name, fields, group: self.about, setting, reach, sensitivity })
    }
}

fn join(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
}

#[cfg(test)]
mod tests {
    #![allow(dead_code)]
    use muster_shared::settings;

    use super::*;

    settings! {
        struct Outer {
            /// How loud.
            volume: u32 = 1 => whole(0, 9); Project Harmless,
            inner: Inner,
            roles: BTreeMap<String, Inner> = BTreeMap::new() => named("worker", &group(Inner::SETTINGS)),
        }
    }

    settings! {
        struct Inner {
            /// Most steps.
            max_steps: u32 = 1 => whole(0, 9); Project Harmless,
            token: Option<String> = None => secret(); Project Harmless,
            names: Vec<String> = Vec::new() => list(); Project Harmless,
        }
    }

    fn keys() -> Keys {
        Keys::of(Outer::SETTINGS)
    }

    #[test]
    fn every_leaf_of_the_types_is_a_key() {
        let names: Vec<String> = keys().iter().map(|key| key.name.clone()).collect();
        let wanted = [
            "volume",
            "inner.max_steps",
            "inner.token",
            "inner.names",
            "roles.*.max_steps",
            "roles.*.token",
            "roles.*.names",
        ];
        for name in wanted {
            assert!(names.contains(&name.to_owned()), "{name} of {names:?}");
        }
        assert_eq!(names.len(), wanted.len());
        assert_eq!(keys().find("inner.max_steps").map(Key::help), Some("Most steps."));
        assert!(keys().find("inner.names").is_some_and(Key::is_list));
    }

    #[test]
    fn any_name_stands_for_a_part() {
        let keys = keys();
        assert!(keys.find("roles.worker.max_steps").is_some());
        assert!(keys.find("roles.worker").is_none());
        assert!(keys.is_group("roles.worker") && keys.is_group("inner") && !keys.is_group("volume"));
    }

    #[test]
    fn a_group_names_what_is_in_it() {
        assert_eq!(keys().under("inner"), ["inner.max_steps", "inner.token", "inner.names"]);
        assert_eq!(keys().under("roles.worker")[0], "roles.worker.max_steps");
        assert_eq!(keys().under("roles")[0], "roles.NAME.max_steps");
    }

    #[test]
    fn a_name_with_a_dot_stands_in_quotes() {
        assert_eq!(parts("roles.\"gpt-4.1\".max_steps"), ["roles", "gpt-4.1", "max_steps"]);
        assert_eq!(written("gpt-4.1"), "\"gpt-4.1\"");
        assert!(keys().find("roles.\"gpt-4.1\".max_steps").is_some());
        assert!(keys().find("roles.gpt-4.1.max_steps").is_none());
    }

    #[test]
    fn the_nearest_key_is_named() {
        let cases = [
            ("inner.max_step", Some("inner.max_steps")),
            ("inner.maxsteps", Some("inner.max_steps")),
            ("iner", Some("inner")),
            ("volum", Some("volume")),
            ("roles.worker.tokn", Some("roles.*.token")),
            ("xyzzy", None),
        ];
        for (given, wanted) in cases {
            assert_eq!(keys().nearest(given).as_deref(), wanted, "{given}");
        }
    }

    #[test]
    fn variables_name_keys() {
        let keys = keys();
        let name = |variable: &str| keys.of_variable(variable).map(|(name, _)| name);
        assert_eq!(name("MUSTER_INNER_MAX_STEPS").as_deref(), Some("inner.max_steps"));
        assert_eq!(name("MUSTER_ROLES_WORKER_MAX_STEPS").as_deref(), Some("roles.worker.max_steps"));
        assert_eq!(name("MUSTER_NOTHING"), None);
        assert_eq!(name("INNER_MAX_STEPS"), None);
        let missed =
            keys.iter().filter(|key| !key.has_names() && name(&key.variable()).as_ref() != Some(&key.name));
        assert_eq!(missed.map(|key| key.name.as_str()).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
