//! Repairing JSON, behind a trait so that the library can be exchanged.

/// Makes JSON out of what is nearly JSON.
pub trait JsonRepair {
    /// The repaired text, or `None` when it is beyond repair. Callers check size and depth before.
    fn repair(&self, text: &str) -> Option<String>;
}

/// The `jsonrepair-rs` crate. Others were tried and never came back from some texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct LibraryRepair;

impl JsonRepair for LibraryRepair {
    fn repair(&self, text: &str) -> Option<String> {
        jsonrepair_rs::jsonrepair(text).ok()
    }
}
