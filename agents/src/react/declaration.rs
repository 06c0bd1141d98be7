//! How the record holds the tools that were declared to a model: once in the object store, as an object named by the hash
//! of its bytes, which calls refer to. While the store does not hold it, they stand in the call itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use muster_bus::{BusError, Store};
use muster_shared::flow::{ModelCall, Step};
use muster_shared::ids::TaskId;
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use muster_shared::secret::Redactor;
use muster_shared::sync::lock;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::record::DECLARED;

/// Most declarations of which a process remembers that the store holds them. It has one role, which has some kinds of
/// tasks.
const MOST_REMEMBERED: usize = 64;

/// Tools as they are declared to a model.
#[derive(Debug)]
pub struct Declaration {
    object: String,
    bytes: Bytes,
}

impl Declaration {
    /// The declaration of these tools.
    #[must_use]
    pub fn new(tools: &[Value]) -> Self {
        let bytes = serde_json::to_vec(tools).unwrap_or_default();
        Self { object: name(&bytes), bytes: bytes.into() }
    }

    /// The object that holds it, for a call that refers to it.
    #[must_use]
    pub fn by_name(&self) -> Value {
        Value::from(self.object.as_str())
    }

    /// The tools themselves, for a call that holds them.
    #[must_use]
    pub fn in_place(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// Whether this is what a call declared.
    #[must_use]
    pub fn is(&self, declared: &Value) -> bool {
        match declared {
            Value::String(object) => *object == self.object,
            Value::Array(tools) => Self::new(tools).object == self.object,
            _ => false,
        }
    }
}

/// How a call declares its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclareAs {
    /// By the object that holds them.
    Name,
    /// By themselves.
    Whole,
}

/// SHA-256 in hexadecimal, as all objects are named that are known by their content.
fn name(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The declarations that this process knows the store to hold.
pub struct DeclarationStore {
    store: Store,
    redactor: Arc<Redactor>,
    known: Arc<Mutex<HashMap<String, Putting>>>,
}

/// How far an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Putting {
    UnderWay,
    /// The store held it when this was how often the connection had been made: after an outage it is looked up again.
    Held {
        connections: u64,
    },
    /// There is a secret in it. Messages are redacted, objects are not.
    Never,
}

impl DeclarationStore {
    /// None is known yet.
    #[must_use]
    pub fn new(store: Store, redactor: Arc<Redactor>) -> Self {
        Self { store, redactor, known: Arc::default() }
    }

    /// Begins to put a declaration into the store unless it is known to be there. Nobody waits for it: until it is
    /// there, calls hold their tools themselves.
    pub fn begin(&self, declaration: &Arc<Declaration>) {
        let connections = self.store.connections();
        let secret = || self.redactor.hits(&declaration.bytes);
        let mut known = lock(&self.known);
        match known.get(&declaration.object) {
            Some(Putting::UnderWay | Putting::Never) => return,
            Some(Putting::Held { connections: then }) if *then == connections => return,
            Some(Putting::Held { .. }) | None => {}
        }
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        let putting = if secret() { Putting::Never } else { Putting::UnderWay };
        known.insert(declaration.object.clone(), putting);
        drop(known);
        if putting == Putting::UnderWay {
            let (store, known) = (self.store.clone(), Arc::clone(&self.known));
            tokio::spawn(put(store, known, Arc::clone(declaration), connections));
        }
    }

    /// How a call of now declares these tools.
    #[must_use]
    pub fn how(&self, declaration: &Declaration) -> DeclareAs {
        let held = Putting::Held { connections: self.store.connections() };
        match lock(&self.known).get(&declaration.object) {
            Some(putting) if *putting == held => DeclareAs::Name,
            _ => DeclareAs::Whole,
        }
    }
}

async fn put(
    store: Store,
    known: Arc<Mutex<HashMap<String, Putting>>>,
    declaration: Arc<Declaration>,
    connections: u64,
) {
    let put = store.put(declaration.bytes.clone()).await;
    let mut known = lock(&known);
    match put {
        Ok(object) => drop(known.insert(object, Putting::Held { connections })),
        Err(error) => {
            tracing::debug!(%error, "declared tools are not in the object store; steps hold them");
            known.remove(&declaration.object);
        }
    }
}

/// Declarations that a record refers to, by the objects that hold them.
#[derive(Debug, Clone, Default)]
pub struct Declarations(BTreeMap<String, Vec<Value>>);

impl Declarations {
    /// Those that the calls of a task refer to, or those of all tasks. What is not in the store, or is not what its name
    /// promises, is left out: whoever asks for it is told.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn of(store: &Store, entries: &[Entry], task: Option<&TaskId>) -> Result<Self, BusError> {
        let mut found = BTreeMap::new();
        for object in referred_to(entries, task) {
            let bytes = match store.get(&object).await {
                Ok(bytes) => bytes,
                Err(BusError::TooLarge { .. }) => None,
                Err(error) => return Err(error),
            };
            if let Some(tools) = bytes.and_then(|bytes| read(&object, &bytes)) {
                found.insert(object, tools);
            }
        }
        Ok(Self(found))
    }

    /// The tools that this object holds.
    #[must_use]
    pub fn tools(&self, object: &str) -> Option<&[Value]> {
        self.0.get(object).map(Vec::as_slice)
    }
}

#[cfg(test)]
impl FromIterator<Declaration> for Declarations {
    fn from_iter<T: IntoIterator<Item = Declaration>>(all: T) -> Self {
        let tools = |one: Declaration| read(&one.object, &one.bytes).map(|tools| (one.object, tools));
        Self(all.into_iter().filter_map(tools).collect())
    }
}

fn read(object: &str, bytes: &[u8]) -> Option<Vec<Value>> {
    (name(bytes) == object).then(|| serde_json::from_slice(bytes).ok()).flatten()
}

/// The objects that calls refer to.
#[must_use]
pub fn referred_to(entries: &[Entry], task: Option<&TaskId>) -> BTreeSet<String> {
    let mut objects = BTreeSet::new();
    for entry in entries {
        let RecordEvent::Agent(key, event) = &entry.event else { continue };
        if task.is_some_and(|task| *task != key.task) {
            continue;
        }
        let calls = step_of(event).into_iter().flat_map(|step| &step.calls);
        objects.extend(calls.filter_map(named).filter(|name| is_hash(name)).map(str::to_owned));
    }
    objects
}

/// The step that an event holds.
fn step_of(event: &AgentEvent) -> Option<&Step> {
    match event {
        AgentEvent::ToolStarted(begun) => Some(&begun.step),
        AgentEvent::Step(step) => Some(step),
        AgentEvent::Outcome(outcome) => outcome.last_step.as_deref(),
        _ => None,
    }
}

/// The object that a call refers to.
fn named(call: &ModelCall) -> Option<&str> {
    call.parameters[DECLARED].as_str()
}

/// A record may hold what others wrote: only what is named by its content is asked for.
fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
#[path = "declaration_tests.rs"]
mod tests;
