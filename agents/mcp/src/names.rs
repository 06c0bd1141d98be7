//! Names of tools: `namespace.tool`, as the registry and every model provider accept them. Pure.
//!
//! Models see a dot as an underscore. So that no two tools of different servers are ever seen under one name, a namespace
//! has no underscore: the first one always ends it.

use std::collections::{BTreeMap, BTreeSet};

use muster_tools::spec::MAX_NAME;
use sha2::{Digest, Sha256};

/// Longest namespace, in characters: the larger part of a name is the tool's.
pub(crate) const MAX_NAMESPACE: usize = 24;
/// Letters of the hash that tells names apart.
const HASH: usize = 8;

/// Names of the tools that we add to a server's own; no tool of a server is served under them.
pub(crate) const RESERVED: [&str; 5] =
    ["get_prompt", "list_prompts", "list_resources", "list_resource_templates", "read_resource"];

/// The namespaces of servers by their names. They follow from the names alone: in whatever order, the same.
#[must_use]
pub fn namespaces<'a>(servers: &[&'a str]) -> BTreeMap<&'a str, String> {
    let plain = |name: &str| -> String { mapped(name, |c| c.is_ascii_alphanumeric() || c == '-', '-') };
    let mut wanted: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in servers {
        wanted.entry(plain(name)).or_default().insert(name);
    }
    let of = |name: &'a str| {
        let plain = plain(name);
        let alone = wanted.get(&plain).is_none_or(|names| names.len() == 1);
        let fits = !plain.is_empty() && plain.len() <= MAX_NAMESPACE;
        // Whoever is called exactly so keeps the name; whoever only would be is told apart.
        let namespace =
            if fits && (alone || plain == name) { plain } else { told_apart(&plain, name, MAX_NAMESPACE) };
        (name, namespace)
    };
    servers.iter().map(|name| of(name)).collect()
}

/// The second parts of the names of a server's tools, by the names that the server gives them. A tool that has a name
/// already keeps it, so that no new tool takes the place of one that is known.
#[must_use]
pub fn tool_names(
    namespace: &str,
    tools: &BTreeSet<&str>,
    kept: &BTreeMap<&str, &str>,
) -> BTreeMap<String, String> {
    let room = MAX_NAME.saturating_sub(namespace.len() + 1);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let usable = |part: &str| {
        !part.is_empty() && part.len() <= room && part.chars().all(is_part) && !RESERVED.contains(&part)
    };
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for tool in tools {
        let known = kept.get(tool).filter(|part| usable(part) && !taken.contains(**part));
        if let Some(part) = known {
            taken.insert((*part).to_owned());
            names.insert((*tool).to_owned(), (*part).to_owned());
        }
    }
    // Those whose name is usable as it is come first: no other tool takes it from them.
    let new = |tool: &&&str| !names.contains_key(**tool);
    let (exact, others): (Vec<&str>, Vec<&str>) =
        tools.iter().filter(new).copied().partition(|tool| usable(tool));
    for tool in exact.into_iter().chain(others) {
        let plain = mapped(tool, is_part, '_');
        let free = usable(&plain) && !taken.contains(&plain);
        let part = if free { plain } else { told_apart(&plain, tool, room) };
        if taken.insert(part.clone()) {
            names.insert(tool.to_owned(), part);
        }
    }
    names
}

fn mapped(name: &str, fine: impl Fn(char) -> bool, instead: char) -> String {
    name.chars().map(|c| if fine(c) { c } else { instead }).collect()
}

/// The beginning of a name with the hash of the whole of it.
fn told_apart(plain: &str, whole: &str, room: usize) -> String {
    let hash = hex_of(&Sha256::digest(whole.as_bytes()));
    let kept: String = plain.chars().take(room.saturating_sub(HASH + 1)).collect();
    format!("{kept}-{}", hash.get(..HASH).unwrap_or(&hash))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
