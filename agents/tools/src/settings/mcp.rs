//! Settings of the MCP client: `[tool.mcp]`.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::settings;

settings! {
    /// Settings of the MCP client.
    #[derive(PartialEq)]
    pub struct McpSettings {
        /// The file that names MCP servers, as other tools write it.
        pub file: PathBuf = PathBuf::from("mcp.json") => text(); Fleet Trust,
        /// Servers whose hints about their tools are believed: what they call read-only is called again freely, what they
        /// call idempotent is repeated when its end is not known. A server can lie.
        pub trusted: Vec<String> = Vec::new() => list().example("[\"time\"]"); Fleet Trust,
        /// Whether a tool that a known server did not have before waits until a person accepts it. A changed tool always does.
        pub hold_new_tools: bool = false => flag(); Fleet Trust,
        /// Most tools of one server; the rest are left out.
        pub max_tools: u32 = 200 => internal(),
        /// How long a server may take to start and to say what it has.
        #[serde(with = "muster_shared::span")]
        pub start_limit: Duration = Duration::from_secs(30) => internal(),
        /// How long a call may take, including its wait in the queue and the questions that it asks a person.
        #[serde(with = "muster_shared::span")]
        pub call_limit: Duration = Duration::from_secs(60) => internal(),
        /// Calls that one server works on at the same time; others wait their turn.
        pub calls_at_once: u32 = 8 => internal(),
        /// Most calls that wait for their turn; further ones are refused.
        pub calls_waiting: u32 = 64 => internal(),
        /// Servers whose tools may ask a person something in the middle of a call (elicitation): the names before those of their
        /// tools, or `*`. The task waits for the answer, as for any question to a person.
        pub elicitation: Vec<String> = vec!["*".to_owned()] => list(); Fleet Trust,
        /// How often a server is started again within `restart_window` before it is given up.
        pub restarts: u32 = 5 => internal(),
        /// The wait before the first restart; it doubles with each one within the window, up to 30 s.
        #[serde(with = "muster_shared::span")]
        pub restart_pause: Duration = Duration::from_millis(250) => internal(),
        /// How long a server that is to end has before it is killed, after each request to end.
        #[serde(with = "muster_shared::span")]
        pub end_limit: Duration = Duration::from_secs(2) => internal(),
    }
}

impl McpSettings {
    /// Whether the tools of the server with this name before theirs may ask a person.
    #[must_use]
    pub fn may_elicit(&self, namespace: &str) -> bool {
        self.elicitation.iter().any(|name| name == namespace || name == "*")
    }

    /// Whether this server's hints are believed.
    #[must_use]
    pub fn trusts(&self, server: &str) -> bool {
        self.trusted.iter().any(|name| name == server)
    }
}
