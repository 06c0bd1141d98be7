//! What of the page is pure is tried where it runs: in the browser.

use super::Seen;

/// Each check of `logic.js` holds.
pub(super) fn holds(seen: &Seen<'_>) {
    let told = seen.js(include_str!("logic.js"));
    let failed = told["failed"].as_array().unwrap();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(told["passed"].as_u64().unwrap() > 60, "{told}");
}
