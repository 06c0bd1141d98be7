use std::sync::Arc;

use muster_shared::flow::{Citation, Finding, LeafRef, RolePermissions, TaskResult, Wait};
use muster_shared::ids::TaskIndex;

use super::*;
use crate::tools::{ToolContext, ToolEngine, ToolResult, ToolSettings, ToolStatus, standard_registry};

fn known() -> ToolContext {
    let citations = vec![Citation { path: "docs/a.md".into(), line: 12, quote: String::new() }];
    let finding =
        Finding { text: "Plans nest at most 20 levels deep.".into(), citations, ..Finding::default() };
    let result = TaskResult {
        conclusion: "Depth is limited. Width is limited to 8 tasks.".into(),
        findings: vec![finding],
        ..TaskResult::default()
    };
    let leaf = LeafRef {
        index: TaskIndex::top(2),
        name: "Look".into(),
        goal: "Look it up".into(),
        query: None,
        result,
    };
    ToolContext { results: Arc::new(vec![leaf]), ..ToolContext::new("r", "1") }
}

async fn call(name: &str, arguments: Value) -> ToolResult {
    let engine = ToolEngine::new(Arc::new(standard_registry(&ToolSettings::default()).unwrap()));
    engine.call(name, arguments, &known()).await
}

#[tokio::test]
async fn results_of_other_tasks_are_searched() {
    let found = call("search", json!({"query": "How deep do plans nest?"})).await;
    assert!(
        found.content.starts_with("- Plans nest at most 20 levels deep. [task 2, docs/a.md:12]"),
        "{found:?}"
    );
    let nothing = call("search", json!({"query": "zebra"})).await;
    assert!(nothing.content.contains("say anything of it"), "{nothing:?}");
}

#[tokio::test]
async fn an_assertion_is_held_against_what_is_known() {
    for (assertion, verdict) in [
        ("6 * 7 = 42", "holds"),
        (
            "Plans nest at most 20 levels deep",
            "not decided: no number or date contradicts it, these statements come nearest",
        ),
        ("Plans nest at most 30 levels deep", "contradicted"),
        ("Zebras are striped", "not decided: nothing is known of it"),
    ] {
        let found = call("validate", json!({"assertion": assertion})).await;
        assert_eq!(found.data.unwrap()["verdict"], verdict, "{assertion}: {}", found.content);
    }
}

#[tokio::test]
async fn without_a_model_only_computations_are_done() {
    let made = call("transform", json!({"text": "b\na", "into": "sorted lines"})).await;
    assert_eq!(made.content, "a\nb");
    for (name, arguments) in [
        ("transform", json!({"text": "b", "into": "French"})),
        ("analyze", json!({"material": "x"})),
        ("generate", json!({"what": "x"})),
        ("compare", json!({"items": [{"name": "a"}, {"name": "b"}], "criteria": [{"name": "ease"}]})),
    ] {
        let made = call(name, arguments).await;
        assert_eq!(made.status, ToolStatus::Refused, "{name}: {}", made.content);
    }
}

#[test]
fn what_is_thought_becomes_an_observation() {
    let action = |name: &str| Action { name: name.into(), arguments: json!({"material": "m", "what": "w"}) };
    assert!(thinking(&action("analyze")).is_some() && thinking(&action("generate")).is_some());
    assert_eq!(thinking(&action("calculator")), None);
    let said = json!({"summary": "So.", "parts": ["one"], "open": ["two"]});
    assert_eq!(in_words(&action("analyze"), &said), "So.\nParts:\n- one\nOpen:\n- two");
    assert_eq!(in_words(&action("generate"), &json!({"text": "t"})), "t");
}

#[tokio::test]
async fn a_person_is_asked_only_for_what_is_not_known() {
    let known = call("request_info", json!({"question": "How deep do plans nest?"})).await;
    assert!(known.content.starts_with("Known already:\n- Plans nest at most 20 levels deep."), "{known:?}");
    let arguments = json!({"question": "How deep do plans nest?", "ask_person": true, "default": "20"});
    let asked = call("request_info", arguments).await;
    let Some(wait) = asked.wait.as_deref() else { panic!("{asked:?}") };
    let Wait::Answer(question) = wait else { panic!("{wait:?}") };
    assert_eq!(
        (question.text.as_str(), question.default.as_deref()),
        ("How deep do plans nest?", Some("20"))
    );

    let engine = ToolEngine::new(Arc::new(standard_registry(&ToolSettings::default()).unwrap()));
    let alone = ToolContext {
        permissions: RolePermissions { people: false, ..RolePermissions::OPEN },
        ..self::known()
    };
    let refused = engine.call("request_info", json!({"question": "Which zebra?"}), &alone).await;
    assert_eq!(refused.status, ToolStatus::Refused, "{refused:?}");
}

#[tokio::test]
async fn who_asks_peers_waits_and_names_them_in_one_way() {
    let asked = |result: ToolResult| match result.wait.as_deref() {
        Some(Wait::Peer(request)) => request.in_words(),
        _ => panic!("{result:?}"),
    };
    let cases = [
        (
            "ask_peer",
            json!({"role": "researcher", "question": "Why?"}),
            "help request: researcher is asked: Why?",
        ),
        (
            "ask_peer",
            json!({"capability": "maths", "question": "Why?"}),
            "help request: who can do maths is asked: Why?",
        ),
        ("share_info", json!({"text": "so", "tasks": ["1", " "]}), "information share: to 1: so"),
        ("share_info", json!({"text": "so"}), "information share: to whom it concerns: so"),
        ("request_context", json!({}), "context request: the run"),
        ("request_context", json!({"tasks": ["1-2"], "question": "Why?"}), "context request: 1-2: Why?"),
        ("write_context", json!({"key": "limit", "value": 20}), "context write: limit = 20"),
        ("read_context", json!({"key": "limit"}), "context read: limit"),
        ("read_context", json!({}), "context read: *"),
        ("who_can", json!({"needs": ["maths"]}), "capability query: who can do maths?"),
    ];
    for (tool, arguments, expected) in cases {
        assert_eq!(asked(call(tool, arguments).await), expected);
    }
    for wrong in [json!({"question": "Why?"}), json!({"question": "Why?", "role": "a", "agent": "b"})] {
        let refused = call("ask_peer", wrong).await;
        assert_eq!(refused.status, ToolStatus::Refused, "{refused:?}");
        assert!(refused.content.contains("in one way"), "{refused:?}");
    }
}

#[tokio::test]
async fn who_escalates_or_delegates_waits() {
    let arguments = json!({"trigger": "business_decision", "question": "Buy it?", "choices": ["yes", "no"]});
    let escalated = call("escalate", arguments).await;
    let Some(Wait::Answer(question)) = escalated.wait.as_deref() else { panic!("{escalated:?}") };
    assert_eq!((question.reason.as_str(), question.choices.len()), ("business decision", 2));
    let unfounded = call("escalate", json!({"trigger": "mood", "question": "Buy it?"})).await;
    assert_eq!(unfounded.status, ToolStatus::Refused);
    let delegated =
        call("delegate", json!({"name": "look", "goal": "Look it up.", "role": "Researcher"})).await;
    let Some(Wait::Task(draft)) = delegated.wait.as_deref() else { panic!("{delegated:?}") };
    assert_eq!((draft.name.as_str(), draft.role.as_deref()), ("look", Some("researcher")));
    assert_eq!((draft.pattern.as_deref(), draft.needs.len()), (None, 0));
    let arguments = json!({"name": "look", "goal": "Look it up.", "needs": ["law"], "pattern": "Auction"});
    let bidden = call("delegate", arguments).await;
    let Some(Wait::Task(draft)) = bidden.wait.as_deref() else { panic!("{bidden:?}") };
    assert_eq!(
        (draft.pattern.as_deref(), draft.needs.as_slice()),
        (Some("auction"), &["law".to_owned()][..])
    );
}
