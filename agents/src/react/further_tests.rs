use muster_shared::flow::{RolePermission, RolePermissions};

use super::*;
use crate::react::toolset::Toolset;

#[test]
fn tools_beside_the_base_are_found_by_asking() {
    let described = |name: &str, what: &str| {
        Arc::new(ToolSpec::new(name, what, json!({"type": "object", "properties": {}})))
    };
    let all = || {
        vec![
            described("calculator", "Computes."),
            described("delegate", "Hands a part over to another agent."),
            described("ask_peer", "Asks another agent a question."),
        ]
    };
    let toolset = Toolset::with_base(all(), &["calculator"], json!({}));
    assert_eq!(toolset.names(), ["calculator", FIND_TOOL, USE_TOOL, "submit"]);
    assert!(toolset.is_further("delegate") && toolset.find("ask_peer").is_some());
    let told = toolset.told_of("hand over a part");
    assert!(
        told.contains("- delegate:") && told.contains("arguments:") && !told.contains("ask_peer"),
        "{told}"
    );
    let none = toolset.told_of("fly");
    assert!(none.contains("- ask_peer: Asks") && none.contains("- delegate: Hands"), "{none}");
    // Where all tools are of the base, nothing is to be found.
    let whole = Toolset::with_base(all(), &["calculator", "delegate", "ask_peer"], json!({}));
    assert_eq!(whole.names(), ["ask_peer", "calculator", "delegate", "submit"]);
    let closed = RolePermissions { delegate: false, ..RolePermissions::OPEN };
    let shut = |ability: &Ability| match ability.name.as_str() {
        "delegate" => Arc::new(ToolSpec { permission: RolePermission::Delegate, ..(**ability).clone() }),
        _ => Arc::clone(ability),
    };
    let closed =
        Toolset::with_base(all().iter().map(shut).collect(), &["calculator"], json!({})).behind(closed);
    assert!(!closed.is_further("delegate") && closed.find("delegate").is_some());
    assert!(!closed.told_of("hand over a part").contains("delegate"));
    let call = json!({"tool": "delegate", "arguments": {"goal": "g"}});
    assert_eq!(used_tool(USE_TOOL, &call), Some(("delegate".to_owned(), json!({"goal": "g"}))));
    assert_eq!(used_tool("calculator", &call), None);
}
