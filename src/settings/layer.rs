//! One source of settings, in the form that the merging library takes.

use std::fmt;

use config::{ConfigError, Map, Source, Value, ValueKind};

use super::held::kind_of;
use super::keys::{Keys, parts, written};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// Nobody set it, and how much is done for a goal gives it a value.
    Effort {
        /// How much.
        name: &'static str,
        /// Where that was set, if it was.
        from: Option<String>,
    },
    /// A line of a file.
    File {
        /// The file as it was named.
        path: String,
        /// From 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str(super::DEFAULT),
            Self::Effort { name, from: None } => write!(f, "effort {name}"),
            Self::Effort { name, from: Some(from) } => write!(f, "effort {name} ({from})"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One source: values under their keys, each with its origin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    values: Vec<(Vec<String>, ValueKind, Origin)>,
}

impl Layer {
    /// Adds a value under a dotted key.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<ValueKind>, origin: Origin) {
        self.values.push((parts(key), value.into(), origin));
    }

    /// The text that is set last under this key, with its origin.
    pub(crate) fn text(&self, key: &str) -> Option<(&str, &Origin)> {
        let wanted = parts(key);
        self.values.iter().rev().find_map(|(path, value, origin)| match value {
            ValueKind::String(text) if *path == wanted => Some((text.as_str(), origin)),
            _ => None,
        })
    }

    /// What holds where nobody sets anything.
    pub(crate) fn of_defaults(keys: &Keys) -> Self {
        let plain = keys.iter().filter(|key| !key.has_names());
        let values =
            plain.map(|key| (parts(&key.name), kind_of(&key.setting.written(None)), Origin::Default));
        Self { values: values.filter(|(_, value, _)| *value != ValueKind::Nil).collect() }
    }

    /// Last value under this key; null if it is not set.
    pub(crate) fn value(&self, key: &str) -> serde_json::Value {
        let wanted = parts(key);
        let kind =
            self.values.iter().rev().find(|(path, ..)| *path == wanted).map(|(_, kind, _)| kind.clone());
        let value = kind.and_then(|kind| Value::new(None, kind).try_deserialize().ok());
        value.unwrap_or_default()
    }

    /// Whether a key is set.
    pub(crate) fn has(&self, key: &str) -> bool {
        let wanted = parts(key);
        self.values.iter().any(|(path, ..)| *path == wanted)
    }

    /// The keys that are set, each with its value and origin as text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, String, String)> {
        self.values.iter().map(|(path, value, origin)| (joined(path), value.to_string(), origin.to_string()))
    }

    /// All but the values of these keys.
    pub(crate) fn without(mut self, is_out: impl Fn(&str) -> bool) -> Self {
        self.values.retain(|(path, ..)| !is_out(&joined(path)));
        self
    }

    /// The keys that are set, with their origins.
    pub(crate) fn origins(&self) -> impl Iterator<Item = (String, &Origin)> {
        self.values.iter().map(|(path, _, origin)| (joined(path), origin))
    }
}

/// A key as it is written.
fn joined(path: &[String]) -> String {
    path.iter().map(|part| written(part)).collect::<Vec<_>>().join(".")
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        let mut root = Map::new();
        for (path, kind, origin) in &self.values {
            insert(&mut root, path, Value::new(Some(&origin.to_string()), kind.clone()));
        }
        Ok(root)
    }
}

fn insert(table: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        table.insert(first.clone(), value);
        return;
    }
    let inner = table.entry(first.clone()).or_insert_with(|| Value::new(None, ValueKind::Table(Map::new())));
    if !matches!(inner.kind, ValueKind::Table(_)) {
        inner.kind = ValueKind::Table(Map::new());
    }
    if let ValueKind::Table(inner) = &mut inner.kind {
        insert(inner, rest, value);
    }
}
