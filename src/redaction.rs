//! The redactor of this process, for output, which does not go through the event log.

use std::sync::{Arc, OnceLock};

use muster_shared::secret::Redactor;
use serde_json::Value;

static OWN: OnceLock<Arc<Redactor>> = OnceLock::new();

/// Makes this redactor the one of [`redacted`]. The first call wins.
pub(crate) fn keep(redactor: &Arc<Redactor>) {
    // Only a test opens several sets of settings in one process.
    let _ = OWN.set(Arc::clone(redactor));
}

/// Before the settings are read: one that knows the forms alone.
fn own() -> Arc<Redactor> {
    OWN.get().cloned().unwrap_or_default()
}

/// Text without secrets.
pub(crate) fn redacted(text: &str) -> String {
    own().redact(text).into_owned()
}

/// JSON without secrets. Its strings are judged one by one, so that it stays JSON; `write` has its form.
pub(crate) fn redacted_json(text: String, write: fn(&Value) -> serde_json::Result<String>) -> String {
    let own = own();
    if !own.hits(text.as_bytes()) {
        return text;
    }
    let mut value = serde_json::from_str(&text).unwrap_or_default();
    own.redact_value(&mut value);
    write(&value).unwrap_or_default()
}
