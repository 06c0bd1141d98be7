//! Results that contradict each other (O3): what counts as the same subject, when two values differ, and who is right.
//! Pure; neither what is found nor what is decided depends on the order in which results came.

pub mod agreement;
pub mod compare;
pub mod detect;
mod meant;
pub mod near;
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
pub use detect::{Found, detect};
pub use meant::same_statement;
pub use near::{Near, near};
pub use next::{Answer, ConflictFacts, Next, Word, next};
pub use position::{Position, Says, positions};
pub use read::read_value;
pub use side::Side;
pub use subject::Subject;
pub use verdict::{ConflictVerdict, as_said, by_authority, by_confidence, by_majority, by_methods};
