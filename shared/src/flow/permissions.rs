//! Permissions of a role: what a role may do beyond thinking (W7). What is not allowed is refused, and the model is told so.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// One thing that a role may do or not.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RolePermission {
    /// Make plans of its own within a task.
    Plan,
    /// Call tools.
    Tools,
    /// Ask people.
    People,
    /// Use blueprints.
    Blueprints,
    /// Hand part of a task over.
    Delegate,
    /// Ask peers, and tell them things.
    Peers,
}

impl RolePermission {
    /// What goes through it, after "may".
    #[must_use]
    pub const fn as_words(self) -> &'static str {
        match self {
            Self::Plan => "plan within a task",
            Self::Tools => "call tools",
            Self::People => "ask people",
            Self::Blueprints => "use blueprints",
            Self::Delegate => "delegate",
            Self::Peers => "ask peers",
        }
    }
}

/// Permissions of a role, written as a list. A role without a list has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<RolePermission>", into = "Vec<RolePermission>")]
pub struct RolePermissions {
    /// Whether it may make plans of its own within a task.
    pub plan: bool,
    /// Whether it may call tools.
    pub tools: bool,
    /// Whether it may ask people.
    pub people: bool,
    /// Whether it may use blueprints.
    pub blueprints: bool,
    /// Whether it may hand part of its task over.
    pub delegate: bool,
    /// Whether it may ask peers, and tell them things.
    pub peers: bool,
}

impl Default for RolePermissions {
    fn default() -> Self {
        Self::OPEN
    }
}

impl From<Vec<RolePermission>> for RolePermissions {
    fn from(listed: Vec<RolePermission>) -> Self {
        let has = |permission| listed.contains(&permission);
        Self {
            plan: has(RolePermission::Plan),
            tools: has(RolePermission::Tools),
            people: has(RolePermission::People),
            blueprints: has(RolePermission::Blueprints),
            delegate: has(RolePermission::Delegate),
            peers: has(RolePermission::Peers),
        }
    }
}

impl From<RolePermissions> for Vec<RolePermission> {
    fn from(permissions: RolePermissions) -> Self {
        RolePermission::VARIANTS.iter().copied().filter(|one| permissions.is_open(*one)).collect()
    }
}

impl RolePermissions {
    /// Everything is allowed.
    pub const OPEN: Self =
        Self { plan: true, tools: true, people: true, blueprints: true, delegate: true, peers: true };

    /// Whether this is allowed.
    #[must_use]
    pub const fn is_open(self, permission: RolePermission) -> bool {
        match permission {
            RolePermission::Plan => self.plan,
            RolePermission::Tools => self.tools,
            RolePermission::People => self.people,
            RolePermission::Blueprints => self.blueprints,
            RolePermission::Delegate => self.delegate,
            RolePermission::Peers => self.peers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_allowed_and_nothing_else() {
        let permissions: RolePermissions = serde_json::from_str(r#"["people", "plan"]"#).unwrap_or_default();
        let listed: Vec<RolePermission> = permissions.into();
        assert_eq!(listed, [RolePermission::Plan, RolePermission::People]);
        let all: Vec<RolePermission> = RolePermissions::default().into();
        assert_eq!(all, RolePermission::VARIANTS);
    }
}
