//! The MCP client: tools of servers that others wrote, as tools of ours.
//!
//! [`parse`] reads `mcp.json`. [`McpServer::start`] starts one server of it and keeps it going; its tools implement
//! [`Tool`](muster_tools::Tool). What a server says of its tools is [pinned](Pins): one that is later described otherwise is
//! held back until a person accepts it. Questions of a server to people go to the caller of its tool.

mod callbacks;
mod config;
mod connect;
mod definition;
mod desk;
mod doing;
mod error;
mod host;
mod listing;
mod names;
mod oauth;
mod pins;
mod plain;
mod private;
mod process;
mod request;
mod restart;
mod result;
mod server;
mod tool;

pub use self::{
    callbacks::{Callbacks, PinKeeper},
    config::{
        ChildCommand, ConfigError, Environment, HttpEndpoint, LeftOut, McpFile, Reached, Reading,
        ServerConfig, parse,
    },
    definition::{DefinitionLimits, Hints, ListedTool, ToolDefinition, difference},
    error::McpError,
    names::{namespaces, tool_names},
    oauth::{Authorization, authorization, authorize, forget},
    pins::{HeldDefinition, Pin, Pins, PinsError, Review, ReviewRules, ServedTool, ToolNews},
    restart::{Deaths, Restart, RestartRules},
    server::{McpServer, ServerState, ToolChanges},
    tool::McpTool,
};
