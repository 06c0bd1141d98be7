//! A run's state as it stood at a position, to be kept aside. A cache only: whoever cannot use one folds the record.
//!
//! The run's secret is not in it, so that whoever reads the store does not learn it; it is taken from the first entry
//! of the record when the state is restored.

use serde::{Deserialize, Serialize};

use super::chain::Chain;
use super::event::{AgentEvent, AgentKey, Entry, RecordEvent, RunEvent};
use super::state::{RunState, Seen};
use crate::ids::{AgentId, Seq, TaskId};

/// Distinguishes builds that derive or serialize the state differently: the release, a revision and the digest of the
/// state's shape. Raise the revision when [`apply`](super::apply()) derives another state from the same events. A test
/// compares the digest with the types.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-3-9cb606070822f01f");

/// A run's state as it stood at a position of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// See [`VERSION`].
    version: String,
    /// Who made the newest decision.
    author: Option<AgentId>,
    /// Where the run was created.
    created: Seq,
    state: RunState,
    pending: Vec<(Seq, AgentKey, AgentEvent)>,
    seen: Vec<(TaskId, Seen)>,
    chain: Chain,
}

impl Snapshot {
    /// The state as it stands. `created` is the place of the first entry, `author` who made the newest decision.
    #[must_use]
    pub fn of(run: &RunState, created: Seq, author: Option<AgentId>) -> Self {
        let pending = run.pending.iter().map(|(seq, (key, event))| (*seq, key.clone(), event.clone()));
        let seen = run.seen.iter().map(|(task, seen)| (task.clone(), seen.clone()));
        Self {
            version: VERSION.to_owned(),
            author,
            created,
            chain: Chain::default(),
            pending: pending.collect(),
            seen: seen.collect(),
            state: RunState {
                secret: String::new(),
                pending: std::collections::BTreeMap::new(),
                seen: std::collections::BTreeMap::new(),
                ..run.clone()
            },
        }
    }

    /// The same with the run's hash chain, as far as the record was read for the state.
    #[must_use]
    pub fn with_chain(self, chain: Chain) -> Self {
        Self { chain, ..self }
    }

    /// The run's hash chain.
    #[must_use]
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Whether this build can go on from it.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.version == VERSION
    }

    /// The place of the entry that [`Snapshot::restore`] needs.
    #[must_use]
    pub const fn created(&self) -> Seq {
        self.created
    }

    /// The state, with who made the newest decision. `first` is the entry that created the run; nothing when it is not.
    #[must_use]
    pub fn restore(self, first: &Entry) -> Option<(RunState, Option<AgentId>)> {
        if (first.run, first.seq) != (self.state.id, self.created) {
            return None;
        }
        let secret = secret_in(first)?.to_owned();
        let pending = self.pending.into_iter().map(|(seq, key, event)| (seq, (key, event))).collect();
        let seen = self.seen.into_iter().collect();
        Some((RunState { secret, pending, seen, ..self.state }, self.author))
    }
}

fn secret_in(first: &Entry) -> Option<&str> {
    let RecordEvent::Decided(decided) = &first.event else { return None };
    decided.events.iter().find_map(|event| {
        if let RunEvent::RunCreated(created) = event { Some(created.secret.as_str()) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::wire::schema::tests::sorted;

    /// The schema without its documentation.
    fn shape(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields =
                    fields.iter().filter(|(name, field)| *name != "description" || !field.is_string());
                Value::Object(fields.map(|(name, field)| (name.clone(), shape(field))).collect())
            }
            Value::Array(items) => items.iter().map(shape).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn version_names_the_shape_of_the_state() {
        let shape = sorted(&shape(schemars::schema_for!(Snapshot).as_value()));
        let digest = hex::encode(&Sha256::digest(shape.to_string())[..8]);
        assert!(
            VERSION.ends_with(&digest),
            "the serialized shape of the run's state changed: end VERSION in snapshot.rs with {digest}"
        );
    }
}
