//! Repairing JSON, behind a trait so that the library can be exchanged.

/// Makes JSON out of what is nearly JSON.
pub trait JsonRepair {
    /// The repaired text, or `None` when it is beyond repair. Callers check size and depth before.
    fn repair(&self, text: &str) -> Option<String>;
}

/// The `jsonrepair` crate.
#[derive(Debug, Clone, Copy, Default)]
pub struct LibraryRepair;

impl JsonRepair for LibraryRepair {
    fn repair(&self, text: &str) -> Option<String> {
        let options = jsonrepair::Options { fenced_code_blocks: false, ..jsonrepair::Options::default() };
        jsonrepair::repair_to_string(text, &options).ok()
    }
}
