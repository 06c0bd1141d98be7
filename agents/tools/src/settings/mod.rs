//! Settings of the optional tool crates. Every build reads the same settings, whichever of these crates it links.

pub mod data;
pub mod documents;
pub mod mcp;
pub mod programs;
pub mod web;

pub use self::{
    data::SqlSettings,
    documents::{DocumentSettings, PoolLimits, ReadLimits},
    mcp::McpSettings,
    programs::{Part, SandboxSettings},
    web::{HttpSettings, SearchProvider, SearchSettings, SecretHeader, WebSettings},
};
