//! The researcher: does leaves that find things out in the documents.

use super::{RoleRules, worker};

/// A researcher ends its tasks as a worker does; its prompt and its tools differ.
pub(super) static RULES: RoleRules = RoleRules {
    name: "researcher",
    template: include_str!("../prompts/researcher.md.j2"),
    tools: &["corpus.*"],
    max_steps: None,
    schema: worker::schema,
    read: worker::read,
    from_prose: Some(worker::FROM_PROSE),
    contract: None,
    specialist: None,
};
