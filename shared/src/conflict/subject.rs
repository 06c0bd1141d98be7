//! Subject of a claim: the text that the model wrote.

use crate::text::normalise_space;

/// Subject of a claim in the form in which subjects are compared: equal except for case and white space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject(String);

impl Subject {
    /// Reads a subject. Returns nothing if the text is blank.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let subject = normalise_space(text).to_lowercase();
        (!subject.is_empty()).then_some(Self(subject))
    }
}
