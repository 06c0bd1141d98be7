//! Every key that may be set, read off the settings types themselves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// The part of a key that stands for any name, such as a role.
const ANY: &str = "*";

/// How deep settings may nest.
const MAX_DEPTH: usize = 8;

/// Likeness from which a known key is worth suggesting.
const LIKE_ENOUGH: f64 = 0.7;

/// One key that may be set, such as `limits.max_steps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Its name; `*` stands for any name at that place.
    pub(crate) name: String,
    /// What it does.
    pub(crate) doc: String,
    /// Whether its value is a list.
    pub(crate) is_list: bool,
    /// Whether its value is a number.
    pub(crate) is_number: bool,
}

impl Key {
    /// Whether its value must not be shown, nor stand in a file beside other settings.
    pub(crate) fn is_secret(&self) -> bool {
        is_secret(&self.name)
    }

    /// The environment variable that sets it (for a key without `*`).
    pub(crate) fn variable(&self) -> String {
        format!("MUSTER_{}", self.name.replace(['.', '-'], "_").to_ascii_uppercase())
    }

    fn matches(&self, name: &str) -> bool {
        matches(&self.name, name)
    }
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
            (None | Some(_), None | Some(_)) => return false,
        }
    }
}

/// Whether the value under this name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "password" | "token" | "secret" | "api_key" | "seed")
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
    /// The keys of a settings type, in order of declaration.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let schema = schemars::schema_for!(T).to_value();
        // Every process of a fleet does this when it begins, and keeps the room that it took: nothing is copied.
        let none = Map::new();
        let definitions = schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
        let mut keys = Vec::new();
        collect(&schema, definitions, "", "", 0, &mut keys);
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
        let given_parent = name.rsplit_once('.').map_or("", |(parent, _)| parent);
        let likeness = |known: &String| {
            let known_parent = known.rsplit_once('.').map_or("", |(parent, _)| parent);
            let last = |n: &str| n.rsplit('.').next().map(str::to_owned).unwrap_or_default();
            // Under the right group, the last part decides; elsewhere the whole name.
            if known_parent == given_parent {
                strsim::jaro_winkler(&last(known), &last(name))
            } else {
                strsim::jaro_winkler(known, name) - 0.05
            }
        };
        let best =
            names.into_iter().map(|known| (likeness(&known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
        best.filter(|(likeness, _)| *likeness >= LIKE_ENOUGH).map(|(_, known)| known)
    }

    /// The key that an environment variable sets, with the name it has there.
    pub(crate) fn of_variable(&self, variable: &str) -> Option<(String, &Key)> {
        let plain = self.keys.iter().find(|key| key.variable() == variable);
        if let Some(key) = plain {
            return Some((key.name.clone(), key));
        }
        self.keys.iter().find_map(|key| {
            let (before, after) = key.name.split_once(ANY)?;
            let (before, after) = (upper(before), upper(after));
            let middle = variable.strip_prefix(&format!("MUSTER_{before}"))?.strip_suffix(after.as_str())?;
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

fn collect(
    schema: &Value,
    definitions: &Map<String, Value>,
    name: &str,
    doc: &str,
    depth: usize,
    keys: &mut Vec<Key>,
) {
    let resolved = resolve(schema, definitions);
    let properties = resolved.get("properties").and_then(Value::as_object);
    let by_pattern =
        resolved.get("patternProperties").and_then(Value::as_object).and_then(|all| all.values().next());
    let any = resolved.get("additionalProperties").filter(|more| more.is_object()).or(by_pattern);
    if depth < MAX_DEPTH && (properties.is_some() || any.is_some()) {
        for (property, inner) in properties.into_iter().flatten() {
            collect(inner, definitions, &join(name, property), &doc_of(inner, definitions), depth + 1, keys);
        }
        if let Some(inner) = any {
            collect(inner, definitions, &join(name, ANY), doc, depth + 1, keys);
        }
        return;
    }
    let is = |kinds: &[&str]| type_names(resolved).any(|kind| kinds.contains(&kind));
    keys.push(Key {
        name: name.to_owned(),
        doc: doc.to_owned(),
        is_list: is(&["array"]),
        is_number: is(&["integer", "number"]),
    });
}

/// Follows references, and the first branch of an option that is not null.
fn resolve<'a>(schema: &'a Value, definitions: &'a Map<String, Value>) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"));
        if let Some(target) = reference.and_then(|name| definitions.get(name)) {
            schema = target;
            continue;
        }
        let branches = schema.get("anyOf").and_then(Value::as_array);
        match branches
            .and_then(|all| all.iter().find(|b| b.get("type").and_then(Value::as_str) != Some("null")))
        {
            Some(branch) => schema = branch,
            None => return schema,
        }
    }
    schema
}

fn type_names(schema: &Value) -> impl Iterator<Item = &str> {
    let kind = schema.get("type");
    let one = kind.and_then(Value::as_str);
    let many = kind.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    one.into_iter().chain(many)
}

fn doc_of(schema: &Value, definitions: &Map<String, Value>) -> String {
    let text = |schema: &Value| schema.get("description").and_then(Value::as_str).map(str::to_owned);
    text(schema).or_else(|| text(resolve(schema, definitions))).unwrap_or_default().replace('\n', " ")
}

fn join(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
}

#[cfg(test)]
mod tests {
    #![allow(dead_code)]
    use super::*;

    #[derive(JsonSchema)]
    struct Outer {
        /// How loud.
        volume: u32,
        inner: Option<Inner>,
        roles: BTreeMap<String, Inner>,
    }

    #[derive(JsonSchema)]
    struct Inner {
        /// Most steps.
        max_steps: u32,
        token: Option<String>,
        names: Vec<String>,
    }

    fn keys() -> Keys {
        Keys::of::<Outer>()
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
        assert_eq!(keys().find("inner.max_steps").map(|k| k.doc.clone()), Some("Most steps.".to_owned()));
        assert!(keys().find("inner.names").is_some_and(|key| key.is_list));
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
    }

    #[test]
    fn secrets_are_known_by_name() {
        for (name, secret) in [
            ("bus.password", true),
            ("inner.token", true),
            ("models.openai.api_key", true),
            ("bus.url", false),
        ] {
            assert_eq!(is_secret(name), secret, "{name}");
        }
    }
}
