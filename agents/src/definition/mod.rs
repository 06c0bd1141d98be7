//! Specialists defined by a file (`*.agent.md`): front matter between two lines `---`, then sections in Markdown.
//!
//! Reading is pure; what is wrong with a file is said with its line and column.

mod contract;
mod front;
mod sections;

use std::time::Duration;

use muster_shared::claim::{Danger, TrustClaim};
use muster_shared::flow::RolePermissions;
use muster_shared::ids::Role;
use muster_shared::wire::Advertised;
use sha2::{Digest, Sha256};

pub use contract::{Contract, Schema};
pub use muster_shared::text::Fault;
pub use sections::Sections;

use crate::settings::AgentSettings;

/// What the names of such files end in.
pub const EXTENSION: &str = ".agent.md";
/// Largest file, in bytes.
pub const MAX_BYTES: u64 = 64 * 1024;

/// A specialist, as its file defines it.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The role that it brings into the fleet.
    pub role: Role,
    /// What it is for, in a sentence or two.
    pub description: String,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// The model it asks unless settings or the run name another.
    pub model: Option<String>,
    /// Tools it may use: names, `prefix.*`, or `*`. A worker's when absent.
    pub tools: Option<Vec<String>>,
    /// What it may do at all; everything when absent.
    pub permissions: Option<RolePermissions>,
    /// What it takes on and what it gives.
    pub contract: Contract,
    /// Its limits.
    pub limits: DefinitionLimits,
    /// What stands below the front matter.
    pub sections: Sections,
    /// First 16 hexadecimal digits of the SHA-256 of the file: tells one version from another.
    pub hash: String,
}

/// Limits of a specialist. The fleet's own hold where they are lower.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefinitionLimits {
    /// Most steps of one task.
    pub steps: Option<u32>,
    /// Tasks done at the same time.
    pub slots: Option<u32>,
    /// Time for one task.
    pub deadline: Option<Duration>,
}

impl Definition {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let (front, body) = front::split(text)?;
        let matter = front::read(front)?;
        let hash = hex::encode(Sha256::digest(text)).chars().take(16).collect();
        Ok(Self {
            role: matter.role,
            description: matter.description,
            capabilities: matter.capabilities,
            model: matter.model,
            tools: matter.tools,
            permissions: matter.permissions,
            contract: matter.contract,
            limits: matter.limits,
            sections: Sections::read(body),
            hash,
        })
    }

    /// Claims of the file, which need the user's consent. Each key has a class in this function: a new key does not compile without one.
    #[must_use]
    pub fn claims(&self) -> Vec<TrustClaim> {
        let Self {
            // Harmless: a new role, and text for models.
            role: _,
            description: _,
            capabilities: _,
            contract: _,
            sections: _,
            hash: _,
            // Narrowing: the settings and rights of the user hold over them.
            tools: _,
            permissions: _,
            limits: DefinitionLimits { steps: _, slots: _, deadline: _ },
            // Needs consent.
            model,
        } = self;
        model.iter().map(|model| TrustClaim::new(Danger::Model, "model", model)).collect()
    }

    /// Settings with what the definition says where they say nothing of its role.
    #[must_use]
    pub fn settle(&self, mut settings: AgentSettings) -> AgentSettings {
        if let Some(slots) = self.limits.slots {
            settings.slots.entry(self.role.clone()).or_insert(slots);
        }
        if let Some(model) = &self.model {
            settings.models.entry(self.role.clone()).or_insert_with(|| model.clone());
        }
        if let Some(permissions) = self.permissions {
            settings.permissions.entry(self.role.clone()).or_insert(permissions);
        }
        settings
    }

    /// What the registry shows of it.
    #[must_use]
    pub fn advertised(&self) -> Advertised {
        Advertised {
            description: self.description.clone(),
            capabilities: self.capabilities.clone(),
            contract: self.contract.schemas(),
        }
    }
}

#[cfg(test)]
mod tests;
