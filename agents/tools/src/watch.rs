//! Who is asked about calls that a tool makes of others: a model's own calls are judged before they come to the engine.

use async_trait::async_trait;
use serde_json::Value;

use crate::result::ToolResult;

/// Is asked about each call that a tool makes of another one.
#[async_trait]
pub trait CallWatch: Send + Sync {
    /// The arguments with which the call is made.
    ///
    /// # Errors
    /// Says why it may not be made.
    async fn before(&self, tool: &str, arguments: Value) -> Result<Value, String>;

    /// What of its result may be used.
    async fn after(&self, tool: &str, arguments: &Value, result: ToolResult) -> ToolResult;
}
