//! Files that define specialists (`*.agent.md`), as the command line reads them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};
use muster_agents::definition::{Definition, Fault, MAX_BYTES};

use crate::trust::{self, Trust};

/// Why a file defines no specialist, with the place in it.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum AgentFileError {
    /// The file cannot be read.
    #[error("cannot read the agent file {path}: {reason}", path = path.display())]
    #[diagnostic(help("an agent file is a text of at most {} KiB, such as deploy/examples/fact-checker.agent.md", MAX_BYTES / 1024))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It is not the user's own.
    #[error("{path} does not count: {fault}", path = path.display())]
    #[diagnostic(help("{mend}; `muster trust FILE` lets it count as it is now"))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: String,
        /// What to do about it.
        mend: String,
    },
    /// The user has not trusted its claims.
    #[error("{reason}")]
    Untrusted {
        /// The claims, or the changes since the file was trusted.
        reason: String,
    },
    /// Something in it is wrong.
    #[error("{path}:{line}:{column}: {what}", path = path.display())]
    #[diagnostic(help("{advice}"))]
    Faulty {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        what: String,
        /// What to do about it.
        advice: String,
        /// The file's text.
        #[source_code]
        source_code: Arc<NamedSource<String>>,
        /// Where.
        #[label("here")]
        at: SourceSpan,
    },
}

impl AgentFileError {
    /// Returns true if ownership or consent, and not its text, keeps the file from taking effect.
    pub(crate) const fn is_foreign(&self) -> bool {
        match self {
            Self::Foreign { .. } | Self::Untrusted { .. } => true,
            Self::Unreadable { .. } | Self::Faulty { .. } => false,
        }
    }
}

/// Reads a file that was named.
pub(crate) fn read_own(path: &Path, trust: &Trust) -> Result<Definition, AgentFileError> {
    Ok(read(path, |text| trust.fault_of_named(path, text))?.0)
}

/// Reads a file that was found in a folder.
pub(crate) fn read_found(path: &Path, folder: &Path, trust: &Trust) -> Result<Definition, AgentFileError> {
    let (definition, items) = read(path, |text| trust.fault_of_found(path, folder, text))?;
    trust.consent(path, items).map_err(|reason| AgentFileError::Untrusted { reason })?;
    Ok(definition)
}

/// Items of an agent file that need the user's consent; empty if the file cannot be read.
pub(crate) fn wanted(path: &Path) -> Vec<trust::Item> {
    read(path, |_| None).map(|(_, items)| items).unwrap_or_default()
}

/// Reads a file with which nothing is wrong, and its items that need the user's consent.
fn read(
    path: &Path,
    fault: impl Fn(&str) -> Option<trust::Fault>,
) -> Result<(Definition, Vec<trust::Item>), AgentFileError> {
    let unreadable = |reason| AgentFileError::Unreadable { path: path.to_owned(), reason };
    let text = muster_agents::input::text(path, MAX_BYTES).map_err(unreadable)?;
    if let Some(fault) = fault(&text) {
        let (path, mend) = (path.to_owned(), fault.mend());
        return Err(AgentFileError::Foreign { fault: fault.about(&path), path, mend });
    }
    let definition = Definition::parse(&text).map_err(|fault| faulty(path, text.clone(), fault))?;
    let items = trust::items_of(path, &text, &definition.claims(), &BTreeSet::new());
    Ok((definition, items))
}

fn faulty(path: &Path, text: String, Fault { line, column, what, advice }: Fault) -> AgentFileError {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within = text[before..].lines().next().unwrap_or_default();
    let within = within.char_indices().nth(column - 1).map_or(within.len(), |(at, _)| at);
    let advice = if advice.is_empty() {
        "see deploy/examples/fact-checker.agent.md for how an agent file looks".to_owned()
    } else {
        advice
    };
    AgentFileError::Faulty {
        path: path.to_owned(),
        line,
        column,
        what,
        advice,
        at: (before + within, 0).into(),
        source_code: Arc::new(NamedSource::new(path.display().to_string(), text)),
    }
}
