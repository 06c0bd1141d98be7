//! Why a server cannot be used.

use std::time::Duration;

/// Why a server cannot be used; in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// Its program cannot be started.
    #[error("the MCP server `{server}` cannot be started: {reason}; look at its `command` and `cwd`")]
    NotStarted {
        /// The server.
        server: String,
        /// What the system says.
        reason: String,
    },
    /// It did not answer in time.
    #[error("the MCP server `{server}` did not answer within {} s{last_words}", limit.as_secs_f32())]
    NoAnswer {
        /// The server.
        server: String,
        /// How long was waited.
        limit: Duration,
        /// What it wrote to its standard error at last.
        last_words: String,
    },
    /// It answered something that leads nowhere.
    #[error("no connection to the MCP server `{server}`: {reason}{last_words}")]
    NoConnection {
        /// The server.
        server: String,
        /// What went wrong.
        reason: String,
        /// What it wrote to its standard error at last.
        last_words: String,
    },
    /// It wants to know who asks, and nobody has told it.
    #[error("the MCP server `{server}` wants an authorization: `muster mcp login {server}`")]
    NeedsAuthorization {
        /// The server.
        server: String,
    },
    /// The authorization came to nothing.
    #[error("the MCP server `{server}` was not authorized: {reason}")]
    NotAuthorized {
        /// The server.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// What is kept of an authorization cannot be used.
    #[error(
        "the token of the MCP server `{server}` cannot be used: {reason}; `muster mcp logout {server}` removes it"
    )]
    NoToken {
        /// The server.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// What it lists of its tools cannot be read.
    #[error("the MCP server `{server}` does not say what tools it has: {reason}")]
    NoList {
        /// The server.
        server: String,
        /// What went wrong.
        reason: String,
    },
}
