//! Tools of the optional crates, one feature each: `web`, `sandbox`, `data`, `readers`. Tools allocate on their first call.

#[cfg(not(all(feature = "web", feature = "sandbox", feature = "data", feature = "readers")))]
mod absent;
#[cfg(feature = "data")]
mod data;
#[cfg(feature = "readers")]
mod readers;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "web")]
mod web;

use std::sync::Arc;

#[cfg(not(feature = "data"))]
use absent::data;
#[cfg(not(feature = "readers"))]
use absent::readers;
#[cfg(not(feature = "sandbox"))]
use absent::sandbox;
#[cfg(not(feature = "web"))]
use absent::web;
use muster_tools::Tool;
use muster_tools::patterns::means;

use crate::AgentSettings;

pub use readers::{document_extractor, document_reader};
pub use sandbox::program_runner;
pub use web::http_caller;

/// An optional crate with tools.
struct Edge {
    /// The name of its feature.
    name: &'static str,
    is_present: bool,
    tools: &'static [&'static str],
}

const EDGES: [Edge; 3] = [
    Edge {
        name: "web",
        is_present: cfg!(feature = "web"),
        tools: &["fetch", "fetch_file", "web_search", "http_request"],
    },
    Edge {
        name: "sandbox",
        is_present: cfg!(feature = "sandbox"),
        tools: &["shell", "python", "javascript"],
    },
    Edge {
        name: "data",
        is_present: cfg!(feature = "data"),
        tools: &["sql", "sql.save", "chart", "workspace.edit", "workspace.search"],
    },
];

/// Returns the feature that a pattern needs and that this build lacks. The pattern `*` means the tools that exist.
#[must_use]
pub fn absent_feature(pattern: &str) -> Option<&'static str> {
    let is_meant = |edge: &&Edge| pattern != "*" && edge.tools.iter().any(|tool| means(pattern, tool));
    EDGES.iter().filter(|edge| !edge.is_present).find(is_meant).map(|edge| edge.name)
}

/// Returns the tools of the optional crates that this build has.
pub(super) fn edge_tools(settings: &AgentSettings) -> Vec<Arc<dyn Tool>> {
    let reader = document_reader(&settings.documents);
    [web::tools(settings, reader.clone()), sandbox::tools(settings), data::tools(settings, reader)].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use muster_tools::settings::{HttpSettings, SearchProvider, SearchSettings};

    use super::*;

    #[test]
    fn each_edge_lists_the_tools_of_its_crate() {
        let mut settings = AgentSettings::default();
        settings.tool.search = SearchSettings { provider: SearchProvider::File, ..SearchSettings::default() };
        settings.tool.http =
            HttpSettings { hosts: vec!["api.example.org".to_owned()], ..HttpSettings::default() };
        let listed: BTreeSet<_> =
            EDGES.iter().filter(|edge| edge.is_present).flat_map(|edge| edge.tools).collect();
        let specs: Vec<_> = edge_tools(&settings).iter().map(|tool| tool.spec().name).collect();
        let found: BTreeSet<_> = specs.iter().map(String::as_str).collect();
        assert_eq!(found, listed.into_iter().copied().collect());
    }
}
