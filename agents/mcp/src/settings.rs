//! Settings of the MCP client: `[tool.mcp]`.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of the MCP client.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct McpSettings {
        /// The file that names MCP servers, as other tools write it.
        pub file: PathBuf = PathBuf::from("mcp.json") => text(),
        /// Servers whose hints about their tools are believed: what they call read-only is called again freely, what they
        /// call idempotent is repeated when its end is not known. A server can lie.
        pub trusted: Vec<String> = Vec::new() => list().example("[\"time\"]"),
        /// Whether a tool that a known server did not have before waits until a person accepts it. A changed tool always does.
        pub hold_new_tools: bool = false => flag(),
        /// Most servers in the file.
        pub max_servers: u32 = 32 => whole(1, 1_000),
        /// Most tools of one server; the rest are left out.
        pub max_tools: u32 = 200 => whole(1, 1_000),
        /// Longest description of a tool, in bytes; a longer one is cut.
        pub max_description: u64 = 4 * KIB => bytes(100, 64 * KIB),
        /// Largest schema of a tool's arguments, in bytes of JSON; a tool with a larger one is refused.
        pub max_schema: u64 = 64 * KIB => bytes(KIB, MIB),
        /// Largest message of a server, in bytes. A larger one is thrown away, and what waited for it runs out of time.
        pub max_message: u64 = 8 * MIB => bytes(64 * KIB, 256 * MIB),
        /// Longest text of one result, in bytes; the rest is cut.
        pub max_text: u64 = 256 * KIB => bytes(KIB, 16 * MIB),
        /// Largest picture, sound or other file in a result, in bytes; a larger one is left out.
        pub max_file: u64 = MIB => bytes(KIB, 64 * MIB),
        /// Most files of one result.
        pub max_files: u32 = 16 => whole(0, 1_000),
        /// How long a server may take to start and to say what it has.
        #[serde(with = "muster_shared::span")]
        pub start_limit: Duration = Duration::from_secs(30) => span(100, 10 * MINUTE),
        /// How long a call may take, with its wait for its turn and with what a person is asked in it.
        #[serde(with = "muster_shared::span")]
        pub call_limit: Duration = Duration::from_secs(60) => span(100, 10 * MINUTE),
        /// Calls that one server works on at the same time; others wait their turn.
        pub calls_at_once: u32 = 8 => whole(1, 1_000),
        /// Most calls that wait for their turn; further ones are refused.
        pub calls_waiting: u32 = 64 => whole(0, 10_000),
        /// Questions of one server to people that are open at the same time; further ones are declined.
        pub questions_at_once: u32 = 4 => whole(1, 100),
        /// Servers whose tools may ask a person something in the middle of a call (elicitation): the names before those of their
        /// tools, or `*`. The task waits for the answer, as for any question to a person.
        pub elicitation: Vec<String> = vec!["*".to_owned()] => list(),
        /// Most questions to a person in one call of a tool.
        pub elicitation_calls: u32 = 8 => whole(1, 64),
        /// How often a server is started again within `restart_window` before it is given up.
        pub restarts: u32 = 5 => whole(0, 1_000),
        /// The time in which restarts are counted.
        #[serde(with = "muster_shared::span")]
        pub restart_window: Duration = Duration::from_secs(600) => span(1_000, DAY),
        /// The wait before the first restart; it doubles with each one within the window, up to 30 s.
        #[serde(with = "muster_shared::span")]
        pub restart_pause: Duration = Duration::from_millis(250) => span(1, 30 * SECOND),
        /// How long a server that is to end has before it is killed, after each request to end.
        #[serde(with = "muster_shared::span")]
        pub end_limit: Duration = Duration::from_secs(2) => span(10, MINUTE),
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
