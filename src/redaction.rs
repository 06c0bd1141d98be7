//! The redactor of this process, for errors and notes, which do not go through the event log.

use std::sync::{Arc, OnceLock};

use muster_shared::secret::Redactor;

static OWN: OnceLock<Arc<Redactor>> = OnceLock::new();

/// Makes this redactor the one of [`redacted`]. The first call wins.
pub(crate) fn keep(redactor: &Arc<Redactor>) {
    // Only a test opens several sets of settings in one process.
    let _ = OWN.set(Arc::clone(redactor));
}

/// Text without secrets.
pub(crate) fn redacted(text: &str) -> String {
    let own = OWN.get();
    own.map_or_else(|| Redactor::default().redact(text), |own| own.redact(text)).into_owned()
}
