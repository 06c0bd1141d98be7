//! What the tasks of a run asked and told each other.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flow::context::{MAX_KEY, is_key, type_of};
use crate::flow::{ContextEntry, ContextLimits, Information, Plan};
use crate::ids::TaskIndex;
use crate::time::Millis;

/// What tasks asked and told each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct PeerTalk {
    /// How many requests there were.
    pub requests: u32,
    /// What was told, by its number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<u32, Shared>,
    /// What they know in common, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, ContextEntry>,
    /// What of it tasks asked for: keys, and beginnings of keys with a `*`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<TaskIndex, BTreeSet<String>>,
    /// Which keys tasks wrote.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wrote: BTreeMap<TaskIndex, BTreeSet<String>>,
}

/// Something that a task, or a person by a value, told others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Shared {
    /// The task that told it; nothing when a person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<TaskIndex>,
    /// The person who told it; empty when a task did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub person: String,
    /// The value that it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The tasks that are told.
    pub to: Vec<TaskIndex>,
    /// What it says.
    pub text: String,
    /// When.
    pub at: Millis,
}

impl PeerTalk {
    /// Whether nobody asked or told anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests == 0 && self.shared.is_empty() && self.context.is_empty()
    }

    /// The version that a value has once it is written.
    ///
    /// # Errors
    /// Why it cannot be written, and what to do. Whoever saw another version than there is is told what there is.
    pub fn check_write(
        &self,
        limits: &ContextLimits,
        key: &str,
        value: &Value,
        seen: u32,
    ) -> Result<u32, String> {
        if !is_key(key) {
            let short: String = key.chars().take(MAX_KEY).collect();
            return Err(format!(
                "{short:?} is no key: it is a letter and then letters, digits, -, _ and ., {MAX_KEY} at most"
            ));
        }
        let bytes = value.to_string().len();
        if bytes > usize::try_from(limits.max_bytes).unwrap_or(usize::MAX) {
            return Err(format!(
                "the value has {bytes} bytes, {} is the most: keep it short",
                limits.max_bytes
            ));
        }
        let Some(there) = self.context.get(key) else { return self.check_new(limits, key, value, seen) };
        if there.version != seen {
            return Err(format!(
                "{key} has version {} now, not {seen}: {} (written by {}). Take it into account, and name version {} to \
                 write it",
                there.version,
                there.text(),
                there.by,
                there.version
            ));
        }
        let (was, is) = (type_of(&there.value), type_of(value));
        if was == is {
            Ok(there.version.saturating_add(1))
        } else {
            Err(format!("{key} is a {was} and stays one; the value is a {is}: write it under another key"))
        }
    }

    fn check_new(&self, limits: &ContextLimits, key: &str, value: &Value, seen: u32) -> Result<u32, String> {
        let most = usize::try_from(limits.max_entries).unwrap_or(usize::MAX);
        if value.is_null() {
            Err("there is no value: give a text, a number, yes or no, a list or an object".to_owned())
        } else if seen != 0 {
            Err(format!("{key} is not there, and has no version {seen}: name version 0 to write it"))
        } else if self.context.len() >= most {
            Err(format!(
                "there are {most} values already, which is the most: write one of those that are there"
            ))
        } else {
            Ok(1)
        }
    }

    /// What the shared context has of a key, or of all keys that begin so.
    #[must_use]
    pub fn find(&self, key: &str, prefix: bool) -> BTreeMap<String, ContextEntry> {
        let meant = |name: &&String| if prefix { name.starts_with(key) } else { *name == key };
        let found = self.context.iter().filter(|(name, _)| meant(name));
        found.map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    /// Whether a task asked for a key.
    fn asked_for(&self, task: &TaskIndex, key: &str) -> bool {
        self.asked.get(task).into_iter().flatten().any(|asked| match asked.strip_suffix('*') {
            Some(beginning) => key.starts_with(beginning),
            None => asked == key,
        })
    }

    /// Whether a task has to do with a key: it asked for it, wrote it, or was told of it before.
    #[must_use]
    pub fn knows_of(&self, task: &TaskIndex, key: &str) -> bool {
        let wrote = || self.wrote.get(task).is_some_and(|keys| keys.contains(key));
        let was_told = |told: &Shared| told.key.as_deref() == Some(key) && told.to.contains(task);
        self.asked_for(task, key) || wrote() || self.shared.values().any(was_told)
    }

    /// The number of what is told next.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        self.shared.last_key_value().map_or(0, |(number, _)| *number).saturating_add(1)
    }

    /// What a leaf was told since a time, oldest first. What was told to a task that was split since is told to its parts.
    #[must_use]
    pub fn heard_by(&self, plan: &Plan, leaf: &TaskIndex, since: Millis) -> Vec<Information> {
        let concerns = |told: &Shared| told.to.iter().any(|to| to == leaf || leaf.is_below(to));
        let told = self.shared.iter().filter(|(_, told)| told.at >= since && concerns(told));
        told.map(|(number, told)| Information {
            number: *number,
            from: told.from.clone(),
            name: match &told.from {
                Some(from) => plan.tasks.get(from).map(|task| task.name.clone()).unwrap_or_default(),
                None => told.person.clone(),
            },
            text: told.text.clone(),
        })
        .collect()
    }
}
