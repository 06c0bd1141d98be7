//! Tests that cannot be made everywhere.

/// Set to 1, it turns what would be passed over into a failure: `make neighbours` sets it.
const NO_SKIP: &str = "MUSTER_NO_SKIP";

/// Says that a test cannot be made here, and why.
///
/// # Panics
/// Where nothing may be passed over (`MUSTER_NO_SKIP=1`).
#[expect(clippy::print_stderr, reason = "whoever reads of a test that passed is told that it was none")]
pub fn skipped(what: &str, why: &str) {
    assert!(std::env::var(NO_SKIP).as_deref() != Ok("1"), "{what}: {why}");
    eprintln!("SKIPPED: {what}: {why}");
}
