//! A run's state as it stood at a position, to be kept aside. A cache only: whoever cannot use one folds the record.
//!
//! The run's secret is not in it, so that whoever reads the store does not learn it; it is taken from the first entry
//! of the record when the state is restored.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::chain::Chain;
use super::event::{AgentEvent, AgentKey, Entry, RecordEvent, RunEvent};
use super::state::{RunState, Seen};
use crate::ids::{AgentId, Seq, TaskId};

/// To be raised when [`apply`](super::apply()) comes to another state from the same entries and the types stay the
/// same: their shape is part of the version by itself.
const MEANING: u32 = 3;

/// A run's state as it stood at a position of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Snapshot {
    /// See [`Snapshot::current_version`].
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
            version: Self::current_version().to_owned(),
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

    /// Tells builds apart that would come to different states or write them differently.
    #[must_use]
    pub fn current_version() -> &'static str {
        static VERSION: OnceLock<String> = OnceLock::new();
        VERSION.get_or_init(|| {
            let schema = schemars::schema_for!(Snapshot);
            let mut shape = Fnv(0xcbf2_9ce4_8422_2325);
            // Writing into a number cannot fail.
            let _ = write!(shape, "{}", schema.as_value());
            format!("{}-{MEANING}-{:016x}", env!("CARGO_PKG_VERSION"), shape.0)
        })
    }

    /// Whether this build can go on from it.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.version == Self::current_version()
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

/// A hash that is the same in every build (FNV-1a).
struct Fnv(u64);

impl std::fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}
