//! Documents of OpenAPI (3.0, 3.1): each operation that a tool file chooses becomes a tool that calls it. The document says what
//! the arguments are and where they go; where calls go to stands in the tool file alone.

mod document;
mod operation;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use muster_tools::patterns::means;

use super::ToolFile;
use super::http::{Http, Method};
use document::Document;

/// Most operations that one file may choose.
const MOST_OPERATIONS: usize = 64;

/// Operations of a document, as a tool file chooses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenApi {
    /// The document, relative to the tool file.
    pub document: PathBuf,
    /// Before the paths of the document.
    base: String,
    host: String,
    /// Names of operations, or their beginnings with a `*`.
    operations: Vec<String>,
    headers: BTreeMap<String, String>,
}

impl OpenApi {
    /// Operations of a document at this address.
    ///
    /// # Errors
    /// Says what is wrong with the address.
    pub(super) fn new(
        document: PathBuf,
        base: &str,
        operations: Vec<String>,
        headers: BTreeMap<String, String>,
    ) -> Result<Self, String> {
        if base.contains(['{', '}', '?', '#']) {
            return Err("the base is an address without places, query and fragment".to_owned());
        }
        let host = Http::new(base, Method::Get, BTreeMap::new(), Vec::new())?.host();
        Ok(Self { document, base: base.trim_end_matches('/').to_owned(), host, operations, headers })
    }

    /// The host with its port.
    pub(super) fn host(&self) -> String {
        self.host.clone()
    }

    /// What it calls, as the file has it.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} of {} at {}", self.operations.join(", "), self.document.display(), self.base)
    }

    /// A tool for each operation that the file chooses; and what is wrong with those that cannot be called.
    ///
    /// # Errors
    /// When the document cannot be used.
    pub(super) fn expand(
        &self,
        file: &ToolFile,
        folder: &Path,
    ) -> Result<(Vec<ToolFile>, Vec<String>), String> {
        let path = folder.join(&self.document);
        let unusable = |why| format!("the document {} cannot be used: {why}", path.display());
        let document = Document::read(&path).map_err(unusable)?;
        let all = document.operations().map_err(unusable)?;
        let chosen: Vec<_> = all
            .iter()
            .filter(|one| self.operations.iter().any(|pattern| means(pattern, &one.name)))
            .collect();
        if chosen.len() > MOST_OPERATIONS {
            let count = chosen.len();
            return Err(format!(
                "`operations` means {count} operations, {MOST_OPERATIONS} are the most: name fewer"
            ));
        }
        let is_unknown = |pattern: &&String| !chosen.iter().any(|one| means(pattern, &one.name));
        let unknown = self.operations.iter().filter(is_unknown);
        let mut faults: Vec<String> = unknown
            .map(|pattern| format!("{} has no operation {pattern}", self.document.display()))
            .collect();
        let (mut files, mut names) = (Vec::new(), BTreeSet::new());
        for one in chosen {
            match one.tool(self, file, &document) {
                Ok(tool) if names.insert(tool.name.clone()) => files.push(tool),
                Ok(tool) => faults.push(format!("two operations would be called {}", tool.name)),
                Err(why) => faults.push(format!("the operation {} is left out: {why}", one.name)),
            }
        }
        Ok((files, faults))
    }
}
