//! The composites of an agent: each becomes a tool as soon as all tools that it calls are there, and stays what it is then.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use muster_shared::sync::lock;
use muster_tools::ToolRegistry;
use serde::{Serialize, Serializer};

use crate::file::Composite;
use crate::spec::spec_of;
use crate::tool::CompositeTool;

/// Most composites of one folder.
pub(crate) const MOST_COMPOSITES: usize = 256;

/// The composites of an agent.
#[derive(Debug, Clone, Default)]
pub struct Composites {
    all: Arc<Vec<Arc<Composite>>>,
    /// Those of which was told already why they are no tools.
    told: Arc<Mutex<BTreeSet<String>>>,
}

impl PartialEq for Composites {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

/// They are read from files, and are no setting: there is nothing to write.
impl Serialize for Composites {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl Composites {
    /// These, as far as there is room.
    #[must_use]
    pub fn new(all: Vec<Composite>) -> Self {
        let all = all.into_iter().take(MOST_COMPOSITES).map(Arc::new).collect();
        Self { all: Arc::new(all), told: Arc::default() }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Composite> {
        self.all.iter().map(Arc::as_ref)
    }

    /// The names of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|composite| composite.name.as_str())
    }

    /// Registers those whose tools are all there by now.
    pub fn register(&self, registry: &ToolRegistry) {
        // One that another one calls may come after it.
        let mut before = usize::MAX;
        loop {
            let open: Vec<_> =
                self.all.iter().filter(|composite| registry.get(&composite.name).is_none()).collect();
            if open.is_empty() || open.len() == before {
                return;
            }
            before = open.len();
            for composite in open {
                if let Err(why) = register(composite, registry) {
                    self.tell(&composite.name, &why);
                }
            }
        }
    }

    /// Which tools a composite still waits for; nothing where it waits for none, or there is no such composite.
    #[must_use]
    pub fn missing(&self, name: &str, registry: &ToolRegistry) -> Vec<String> {
        let composite = self.all.iter().find(|composite| composite.name == name);
        let tools = composite.map(|composite| composite.tools()).unwrap_or_default();
        tools.into_iter().filter(|tool| registry.get(tool).is_none()).map(str::to_owned).collect()
    }

    /// Why a composite can be no tool beside these, whatever else comes; nothing where it can.
    #[must_use]
    pub fn fault(&self, name: &str, registry: &ToolRegistry) -> Option<String> {
        let composite = self.all.iter().find(|composite| composite.name == name)?;
        if !self.missing(name, registry).is_empty() || registry.get(name).is_some() {
            return None;
        }
        register(composite, registry).err()
    }

    fn tell(&self, name: &str, why: &str) {
        let mut told = lock(&self.told);
        if told.insert(name.to_owned()) {
            tracing::warn!(tool = name, why, "a composite tool is left out");
        }
    }
}

/// Registers a composite, if all its tools are there.
fn register(composite: &Arc<Composite>, registry: &ToolRegistry) -> Result<(), String> {
    let found: Option<Vec<_>> = composite.tools().into_iter().map(|tool| registry.get(tool)).collect();
    let Some(found) = found else { return Ok(()) };
    let specs: Vec<_> = found.iter().map(|registered| registered.spec()).collect();
    let spec = spec_of(composite, &specs)?;
    let tool = CompositeTool { spec, composite: Arc::clone(composite) };
    registry.register_own(Arc::new(tool)).map_err(|error| error.to_string())
}
