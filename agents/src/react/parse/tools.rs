//! The tools a model was offered, and what it meant by a name.

use serde_json::Value;

use crate::model::chat::ToolDecl;

/// The action that ends a task, when `Final Answer:` is written.
pub(super) const SUBMIT: &str = muster_shared::flow::Action::SUBMIT;

pub(super) struct KnownTools<'a> {
    tools: &'a [ToolDecl],
}

impl<'a> KnownTools<'a> {
    pub(super) fn new(tools: &'a [ToolDecl]) -> Self {
        Self { tools }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// The tool meant by `raw`: a known one in whatever spelling, else `raw` itself when it can be a name.
    pub(super) fn resolve(&self, raw: &str) -> Option<String> {
        let name = bare_name(raw);
        if let Some(known) = self.known(name) {
            return Some(known.to_owned());
        }
        is_name(name).then(|| name.to_owned())
    }

    /// The known tool meant by `raw`.
    pub(super) fn known(&self, raw: &str) -> Option<&'a str> {
        let name = bare_name(raw);
        let plain = plain(name);
        self.names()
            .find(|known| *known == name)
            .or_else(|| self.names().find(|known| !plain.is_empty() && self::plain(known) == plain))
    }

    /// Whether `tool` takes an argument `name`.
    pub(super) fn takes(&self, tool: &str, name: &str) -> bool {
        self.properties(tool).is_some_and(|properties| properties.contains_key(name))
    }

    /// The argument that a bare value given to `tool` is meant for: the only required one, the only one, or the
    /// first that is a text.
    pub(super) fn main_argument(&self, tool: &str) -> Option<String> {
        let required: Vec<&str> = self
            .schema(tool)
            .and_then(|schema| schema.get("required"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let [only] = required.as_slice() {
            return Some((*only).to_owned());
        }
        let properties = self.properties(tool)?;
        if properties.len() == 1 {
            return properties.keys().next().cloned();
        }
        let is_text =
            |name: &str| properties.get(name).and_then(|schema| schema.get("type")) == Some(&"string".into());
        required
            .into_iter()
            .chain(properties.keys().map(String::as_str))
            .find(|name| is_text(name))
            .map(str::to_owned)
    }

    fn schema(&self, tool: &str) -> Option<&'a Value> {
        self.tools.iter().find(|known| known.name == tool).map(|known| &known.parameters)
    }

    fn properties(&self, tool: &str) -> Option<&'a serde_json::Map<String, Value>> {
        self.schema(tool)?.get("properties")?.as_object()
    }
}

/// A name without quotes, markup, namespace, brackets and template tokens.
fn bare_name(raw: &str) -> &str {
    let mut name = raw.trim();
    for cut in ["<|", "<｜", "(", "\n"] {
        name = name.split(cut).next().unwrap_or_default();
    }
    name =
        name.trim().trim_matches(['"', '\'', '`', '*', '<', '>', '[', ']', '.', ',', ':', '“', '”']).trim();
    for prefix in ["functions.", "function.", "tools.", "tool.", "default_api.", "function:", "tool:"] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    name.strip_suffix(".call").unwrap_or(name).trim()
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether `name` can name a tool; words that say "none" cannot.
fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    let nothing = ["none", "null", "na", "noaction", "nothing", "undefined", "tbd"];
    begins && name.len() <= 64 && name.chars().all(fits) && !nothing.contains(&plain(name).as_str())
}
