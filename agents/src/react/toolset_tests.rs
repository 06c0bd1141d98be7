use std::collections::BTreeMap;

use muster_shared::flow::{BlueprintCall, RolePermission};
use muster_shared::ids::Role;
use serde_json::json;

use super::*;

fn ability(name: &str) -> Ability {
    let parameters =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    Arc::new(ToolSpec::new(name, "does it", parameters))
}

#[test]
fn a_task_sees_the_tools_it_names_and_the_ways_to_a_person() {
    let all = ["calculator", "corpus.read", "corpus.search", "escalate", "request_info"];
    let cases: [(&[&str], &[&str]); 5] = [
        (&[], &all),
        (&["calculator"], &["calculator", "escalate", "request_info"]),
        (&["corpus.*"], &["corpus.read", "corpus.search", "escalate", "request_info"]),
        (&["corpus_search", "workspace.write"], &["corpus.search", "escalate", "request_info"]),
        // Its role has none of these: it does what it can with what it has.
        (&["workspace.write"], &all),
    ];
    for (named, seen) in cases {
        let tools = named.iter().map(|name| (*name).to_owned()).collect();
        let task = PlanTask { tools, ..PlanTask::new("n", "g", Role::Worker) };
        let left = narrowed(all.iter().map(|name| ability(name)).collect(), &task);
        let names: Vec<&str> = left.iter().map(|ability| ability.name.as_str()).collect();
        assert_eq!(names, seen, "{named:?}");
    }
    for (named, looks) in [("corpus_read", true), ("corpus.search", true), ("calculator", false)] {
        let task = PlanTask { tools: vec![named.to_owned()], ..PlanTask::new("n", "g", Role::Worker) };
        let with_look = all.iter().chain(&[LOOK]).map(|name| ability(name)).collect();
        let left = narrowed(with_look, &task);
        assert_eq!(left.iter().any(|ability| ability.name == LOOK), looks, "{named}");
    }
    let task = PlanTask {
        tools: vec!["calculator".to_owned()],
        blueprint: Some(BlueprintCall { name: "weekly".to_owned(), params: BTreeMap::new() }),
        ..PlanTask::new("n", "g", Role::Worker)
    };
    let left = narrowed(vec![ability("calculator"), ability(BLUEPRINT), ability("plan")], &task);
    assert_eq!(left.len(), 2, "what does it stays: {left:?}");
}

#[test]
fn what_failed_a_task_is_withheld_unless_it_is_all_there_is() {
    let all = ["calculator", "corpus.read", "corpus.search", "escalate", "request_info"];
    let cases: [(&[&str], &[&str], &[&str]); 8] = [
        (&all, &[], &all),
        (&all, &["calculator"], &["corpus.read", "corpus.search", "escalate", "request_info"]),
        (&all, &["corpus_search"], &["calculator", "corpus.read", "escalate", "request_info"]),
        (&all, &["*", "corpus.*", "unheard_of"], &all),
        (&all, &["escalate", "request_info"], &all),
        (&all, &["calculator", "corpus.read", "corpus.search"], &all),
        (&["calculator", "escalate"], &["calculator"], &["calculator", "escalate"]),
        (&[], &["calculator"], &[]),
    ];
    for (all, withheld, seen) in cases {
        let withheld: Vec<String> = withheld.iter().map(|name| (*name).to_owned()).collect();
        let left = without(all.iter().map(|name| ability(name)).collect(), &withheld);
        let names: Vec<&str> = left.iter().map(|ability| ability.name.as_str()).collect();
        assert_eq!(names, seen, "{withheld:?}");
    }
}

fn toolset() -> Toolset {
    let submit = json!({"type": "object", "properties": {"conclusion": {"type": "string"}}});
    Toolset::new(vec![ability("corpus.search"), ability("calculator")], submit)
}

#[test]
fn the_same_tools_are_declared_once() {
    let (one, other) = (toolset(), toolset());
    assert!(Arc::ptr_eq(&one.table, &other.table));
    assert!(Arc::ptr_eq(&one.table, &one.clone().behind(RolePermissions::OPEN).table));
    let fewer = Toolset::new(vec![ability("calculator")], one.submit_schema().clone());
    assert_eq!(fewer.names(), ["calculator", "submit"]);
    let else_ended = Toolset::new(vec![ability("corpus.search"), ability("calculator")], json!({}));
    assert!(!Arc::ptr_eq(&one.table, &else_ended.table));
    for number in 0..2 * MOST_KNOWN {
        drop(Toolset::new(vec![ability(&format!("tool.{number}"))], json!({})));
    }
    assert!(KNOWN.lock().unwrap().len() <= MOST_KNOWN);
    assert_eq!(toolset().declarations(), one.declarations());
}

#[test]
fn what_is_closed_is_not_declared_and_found_all_the_same() {
    let closed = ToolSpec { permission: RolePermission::Delegate, ..(*ability("delegate")).clone() };
    let permissions = RolePermissions { delegate: false, ..RolePermissions::OPEN };
    let left = Toolset::new(vec![ability("calculator"), Arc::new(closed)], json!({})).behind(permissions);
    assert_eq!(left.names(), ["calculator", "submit"]);
    assert!(left.find("delegate").is_some());
}

#[test]
fn tools_are_found_by_either_name() {
    assert_eq!(toolset().find("corpus_search").unwrap().name, "corpus.search");
    assert_eq!(toolset().find(" corpus.search").unwrap().name, "corpus.search");
    assert!(toolset().find("corpus").is_none());
}

#[test]
fn near_names_are_offered_and_far_ones_are_not() {
    for (asked, meant) in [
        ("corpus_serach", Some("corpus.search")),
        ("search", Some("corpus.search")),
        ("calculate", Some("calculator")),
        ("submitt", Some("submit")),
        ("zzzz", None),
    ] {
        assert_eq!(toolset().nearest(asked).as_deref(), meant, "{asked}");
    }
}

#[test]
fn a_thought_among_the_arguments_is_taken_out() {
    let (arguments, thought) = take_thought(&json!({"thought": "so", "query": "x"}));
    assert_eq!((arguments, thought.as_deref()), (json!({"query": "x"}), Some("so")));
}
