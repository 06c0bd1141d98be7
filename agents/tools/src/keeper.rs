//! Keeping what is too long to be observed at once, so that it can be read on.

use async_trait::async_trait;

/// Largest text that is kept of one result, in bytes; what is longer is kept as far as that.
pub const MOST_KEPT: usize = 4 * 1024 * 1024;

/// A result that is kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResult {
    /// By which it is read on.
    pub id: String,
    /// The text as it is kept, without secrets: places in it are bytes of this.
    pub text: String,
}

/// Keeps results of one task, for whoever works on it.
#[async_trait]
pub trait ResultKeeper: Send + Sync + 'static {
    /// Keeps a text.
    ///
    /// # Errors
    /// Why it cannot be kept.
    async fn keep(&self, text: String) -> Result<KeptResult, String>;

    /// The text that is kept under an id, if there is one.
    ///
    /// # Errors
    /// Why it cannot be read.
    async fn read(&self, id: &str) -> Result<Option<String>, String>;
}
