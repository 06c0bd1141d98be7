//! Results that contradict each other (O3): when two values differ, and which side is right. Only typed values are compared:
//! numbers with units, dates, verdicts, and categories. Pure; the order in which results arrive changes nothing.

pub mod agreement;
pub mod compare;
pub mod detect;
pub mod next;
pub mod position;
pub mod read;
pub mod side;
pub mod subject;
pub mod verdict;

#[cfg(test)]
mod tests;

pub use agreement::agreement;
pub use compare::{Comparison, Tolerance, compare};
pub use detect::{DetectedConflict, detect};
pub use next::{Answer, ConflictFacts, Next, Word, next};
pub use position::{Position, positions};
pub use read::read_value;
pub use side::Side;
pub use subject::Subject;
pub use verdict::{ConflictVerdict, as_said, by_authority, by_confidence, by_majority, by_methods};
