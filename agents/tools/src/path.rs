//! Paths that stay inside a workspace by their form alone.

use muster_shared::text::{is_control, quoted};

use crate::workspace::WorkspaceError;

/// Longest path, in bytes.
pub const MAX_PATH: usize = 200;

/// Most parts of a path.
pub const MAX_DEPTH: usize = 8;

/// A relative path without `.`, `..`, empty parts, hidden names, or characters that steer a terminal or hide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Checks a path; a leading `./` is let pass.
    ///
    /// # Errors
    /// [`WorkspaceError::BadPath`] with what is wrong.
    pub fn parse(path: &str) -> Result<Self, WorkspaceError> {
        let plain = path.strip_prefix("./").unwrap_or(path);
        match fault(plain) {
            None => Ok(Self(plain.to_owned())),
            Some(reason) => Err(WorkspaceError::BadPath { path: quoted(path, MAX_PATH), reason }),
        }
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders above the file, outermost first, and the name of the file.
    #[must_use]
    pub fn split(&self) -> (Vec<&str>, &str) {
        let mut parts: Vec<&str> = self.0.split('/').collect();
        let name = parts.pop().unwrap_or_default();
        (parts, name)
    }
}

impl std::fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("it is empty");
    }
    if path.len() > MAX_PATH {
        return Some("it is longer than 200 bytes");
    }
    if path.starts_with('/') {
        return Some("it must be relative");
    }
    if path.contains(|c: char| is_control(c) || matches!(c, '\\' | ':')) {
        return Some("characters that steer or hide, `\\` and `:` are not allowed");
    }
    if path.split('/').count() > MAX_DEPTH {
        return Some("it has more than 8 parts");
    }
    path.split('/').find_map(|part| match part {
        "" => Some("it has an empty part"),
        "." | ".." => Some("`.` and `..` are not allowed"),
        hidden if hidden.starts_with('.') => Some("hidden names are not allowed"),
        _ => None,
    })
}
