//! Permissions of a role: what a role may do beyond thinking (W7). What is not allowed is refused, and the model is told so.

use serde::{Deserialize, Serialize};

use crate::settings;

/// One thing that a role may do or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// All permissions.
    pub const ALL: [Self; 6] =
        [Self::Plan, Self::Tools, Self::People, Self::Blueprints, Self::Delegate, Self::Peers];

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

settings! {
    /// What a role may do. Everything unless something is closed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    #[serde(default, deny_unknown_fields)]
    pub struct RolePermissions {
        /// Whether it may make plans of its own within a task.
        pub plan: bool = true => flag(),
        /// Whether it may call tools.
        pub tools: bool = true => flag(),
        /// Whether it may ask people.
        pub people: bool = true => flag(),
        /// Whether it may use blueprints.
        pub blueprints: bool = true => flag(),
        /// Whether it may hand part of its task over.
        pub delegate: bool = true => flag(),
        /// Whether it may ask peers, and tell them things.
        pub peers: bool = true => flag(),
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
    fn a_gate_that_is_not_named_is_open() {
        let permissions: Result<RolePermissions, _> = serde_json::from_str(r#"{"people": false}"#);
        let permissions = permissions.unwrap_or_default();
        let open: Vec<RolePermission> =
            RolePermission::ALL.into_iter().filter(|permission| permissions.is_open(*permission)).collect();
        assert_eq!(
            open,
            [
                RolePermission::Plan,
                RolePermission::Tools,
                RolePermission::Blueprints,
                RolePermission::Delegate,
                RolePermission::Peers
            ]
        );
    }
}
