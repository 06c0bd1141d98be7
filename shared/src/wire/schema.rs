//! The published schemas of all messages.
//!
//! The tests of this module generate the files from the types and fail when a file is out of date. To update them:
//! `UPDATE_GOLDEN=1 cargo nextest run -p muster-shared --lib schema`.

#[cfg(test)]
pub(crate) mod tests;

/// JSON Schema (2020-12) of the envelope. Its definitions include the types of all messages.
pub const JSON_SCHEMA: &str = include_str!("schema/messages.json");

/// AsyncAPI 3.0 document: the messages on each subject, in MessagePack or JSON.
pub const ASYNCAPI: &str = include_str!("schema/asyncapi.json");

/// JSON Schema (2020-12) of each request to a task gateway, by verb.
pub const GATEWAY_REQUESTS: &str = include_str!("schema/gateway.json");
