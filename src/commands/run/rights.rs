//! What tasks of a run may use, as flags say it. Pure.

use muster_shared::flow::rights::{Allowed, PatternKind};
use muster_shared::flow::{Goal, Rights};
use serde_json::{Value, json};

use crate::args::RightsArgs;
use crate::exit::{Failure, usage};

/// The limit that they are set by.
const LIMIT: &str = "rights";

/// What the flags leave to tasks.
///
/// # Errors
/// When one of them names nothing that can be allowed.
pub(super) fn wished(args: &RightsArgs) -> Result<Rights, Failure> {
    Ok(Rights {
        tools: list("tools", &args.allow_tools, &args.deny_tools)?,
        documents: list("docs", &args.allow_docs, &args.deny_docs)?,
        ..Rights::default()
    })
}

fn list<K: PatternKind>(what: &str, allow: &[String], deny: &[String]) -> Result<Allowed<K>, Failure> {
    let all = allow.iter().cloned().chain(deny.iter().map(|left_out| format!("!{left_out}")));
    if allow.is_empty() && deny.is_empty() {
        return Ok(Allowed::all());
    }
    Allowed::read(all).map_err(|why| usage!("--allow-{what}, --deny-{what}: {why}"))
}

/// Narrows the rights that go with a goal. What its settings say holds as well.
pub(super) fn narrow(goal: &mut Goal, wish: &Rights) {
    if wish.is_open() {
        return;
    }
    let set = goal.set_limits.get(LIMIT).cloned().unwrap_or_else(|| json!({}));
    // Settings were read before: what they say can be read.
    let set: Rights = serde_json::from_value(set).unwrap_or_default();
    if let Ok(rights @ Value::Object(_)) = serde_json::to_value(set.narrowed_by(wish)) {
        goal.set_limits.insert(LIMIT.to_owned(), rights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_narrow_what_settings_say() {
        let mut goal = Goal::new("g");
        goal.set_limits
            .insert(LIMIT.to_owned(), json!({ "tools": ["calculator", "search"], "people": false }));
        let tools = Allowed::read(["!search"]).unwrap_or_default();
        narrow(&mut goal, &Rights { tools, ..Rights::default() });
        assert_eq!(goal.set_limits[LIMIT], json!({ "tools": ["calculator"], "people": false }));
        let before = goal.clone();
        narrow(&mut goal, &Rights::default());
        assert_eq!(goal, before);
    }
}
