//! Names of tools as settings write them.

use serde::{Deserialize, Serialize};

/// Which tools are meant: by their names, by the beginning of their names (`web.*`), or all (`*`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolPatterns(Vec<String>);

impl ToolPatterns {
    /// The tools that these patterns mean.
    #[must_use]
    pub const fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    /// Whether a tool is meant.
    #[must_use]
    pub fn mean(&self, tool: &str) -> bool {
        self.0.iter().any(|pattern| means(pattern, tool))
    }
}

/// Longest name that a file gives a tool, in bytes. With the name of its server it is within what providers accept.
const MAX_NAME: usize = 48;

/// Whether a file can give a tool this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_letter)
}

/// Whether a pattern means a tool.
#[must_use]
pub fn means(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => tool == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_meant_by_name_by_the_beginning_of_it_or_all_together() {
        for (pattern, tool, meant) in [
            ("shell", "shell", true),
            ("shell", "shell.run", false),
            ("web.*", "web.fetch", true),
            ("web.*", "website", false),
            ("*", "anything", true),
            ("", "anything", false),
        ] {
            assert_eq!(means(pattern, tool), meant, "{pattern} {tool}");
        }
        let patterns = ToolPatterns::new(vec!["shell".to_owned(), "web.*".to_owned()]);
        assert!(patterns.mean("web.search") && patterns.mean("shell") && !patterns.mean("sql"));
        assert!(!ToolPatterns::default().mean("shell"), "nothing is meant where nothing is said");
    }
}
