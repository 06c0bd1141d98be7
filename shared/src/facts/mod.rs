//! Typed values in text: numbers with units, and dates. Pure.

mod contradiction;

pub use contradiction::{CitedText, Contradiction, contradictions};
