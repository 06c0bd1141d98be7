//! Comparison of the values in a statement with the lines that it cites.

/// Text that a statement cites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CitedText<'a> {
    /// Cited lines, joined by `\n`.
    pub text: &'a str,
    /// Header row of the table, if the lines are rows of one.
    pub header: Option<&'a str>,
    /// Path of the document. Its extension gives the format: `.csv`, `.tsv`, `.json`, `.md`, and others.
    pub path: &'a str,
}

/// A value of a statement that the cited lines contradict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Value as written in the statement.
    pub stated: String,
    /// Value of the same kind in the cited lines, as written there.
    pub there: String,
}

/// Values of a statement that its cited lines contradict.
///
/// A value is contradicted if the lines contain another value of the same kind (unit, column or key), and the stated
/// value neither occurs there in any notation nor follows from the values there by one step.
#[must_use]
pub fn contradictions(_statement: &str, _cited: &[CitedText<'_>]) -> Vec<Contradiction> {
    Vec::new()
}
