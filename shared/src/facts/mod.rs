//! Typed values in text: numbers with units, versions, dates and times. Pure.
//!
//! `value` reads them, `cited` collects those of cited lines, `derivation` computes what follows from them by one step,
//! and `contradiction` compares a statement with them.

mod cited;
mod contradiction;
mod derivation;
#[cfg(test)]
mod tests;
mod value;

pub use cited::CitedText;
pub use contradiction::{Contradiction, contradictions};
