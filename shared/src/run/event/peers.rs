//! What tasks, and people, tell each other.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::payload::{Payload, Words};
use crate::flow::{ContextAuthor, ContextEntry};
use crate::ids::{TaskId, TaskIndex};
use crate::plan::check::list;
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::peers::Shared;
use crate::run::state::RunState;
use crate::time::Millis;

/// A task, or a person by a value, told others something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct InformationShared {
    /// Its number in the run, from 1.
    pub number: u32,
    /// The task that tells it; nothing when a person does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<TaskIndex>,
    /// The person who tells it; empty when a task does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub person: String,
    /// The value of the shared context that it tells: what was told of that one before is told no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The tasks that are told.
    pub to: Vec<TaskIndex>,
    /// What it says.
    pub text: String,
}

impl Payload for InformationShared {
    fn task(&self) -> Option<TaskId> {
        self.from.clone().map(TaskId::Leaf)
    }

    fn text(&self, words: Words<'_>) -> String {
        let from = self.from.as_ref().map_or_else(|| self.person.clone(), TaskIndex::to_string);
        let (number, to, text) = (self.number, list(&self.to), words.brief(&self.text));
        format!("{from} shares information {number} with {to}: {text}")
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let known =
            |index: &&TaskIndex| run.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(*index));
        if let Some(unknown) = self.from.iter().chain(&self.to).find(|index| !known(index)) {
            let task = unknown.to_task_id();
            return Err(ApplyError::UnknownTask { task });
        }
        let wanted = run.peers.next_number();
        if self.number != wanted {
            return Err(ApplyError::WrongInformation { run: run.id, wanted, found: self.number });
        }
        if let Some(key) = &self.key {
            // Only what a value is now is worth telling.
            run.peers.shared.retain(|_, before| before.key.as_ref() != Some(key));
        }
        run.peers.shared.insert(self.number, self.told(now));
        Ok(())
    }
}

impl InformationShared {
    fn told(&self, at: Millis) -> Shared {
        let Self { from, person, key, to, text, .. } = self.clone();
        Shared { from, person, key, to, text, at }
    }
}

/// A value of the shared context was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ContextWritten {
    /// Its key.
    pub key: String,
    /// What it is.
    pub value: Value,
    /// Its version, from 1.
    pub version: u32,
    /// Who wrote it.
    pub by: ContextAuthor,
}

impl Payload for ContextWritten {
    fn task(&self) -> Option<TaskId> {
        match &self.by {
            ContextAuthor::Task { task, .. } => Some(task.to_task_id()),
            ContextAuthor::Person(_) => None,
        }
    }

    fn text(&self, words: Words<'_>) -> String {
        let Self { key, version, by, .. } = self;
        format!("{by} writes context.{key} (version {version}): {}", words.brief(&self.value.to_string()))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let Self { key, value, version, by } = self;
        let wanted = run.peers.context.get(key).map_or(0, |entry| entry.version).saturating_add(1);
        if *version != wanted {
            return Err(ApplyError::WrongContext { key: key.clone(), wanted, found: *version });
        }
        match by {
            ContextAuthor::Task { task, .. } => {
                run.peers.wrote.entry(task.clone()).or_default().insert(key.clone());
            }
            // Goals say what this value is.
            ContextAuthor::Person(_) => run.take_approvals_back(),
        }
        let entry = ContextEntry { value: value.clone(), version: *version, by: by.clone(), at: now };
        run.peers.context.insert(key.clone(), entry);
        Ok(())
    }
}
