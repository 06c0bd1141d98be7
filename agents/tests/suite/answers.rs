//! The answer parser against a corpus of malformed answers: what is recovered, and what must not be taken for an action.

use std::path::Path;

use muster_agents::model::chat::{ChatAnswer, FinishReason, TokenUsage, ToolCall, ToolDecl, Wasted};
use muster_agents::react::parse::{
    AnswerForm, MAX_BYTES, ParseFailure, ParsedAnswer, ask_again_for_document, parse_answer, parse_document,
    parse_whole_document,
};
use serde_json::{Value, json};

/// The least share of actions to be recovered (W2).
const WANTED: f64 = 0.95;

struct StepContext {
    name: String,
    answer: ChatAnswer,
    /// The action's name and arguments, unless nothing must be found.
    expected: Option<(String, Value)>,
}

fn text_answer(text: &str) -> ChatAnswer {
    ChatAnswer {
        text: text.to_owned(),
        reasoning: None,
        tool_calls: Vec::new(),
        usage: TokenUsage::default(),
        wasted: Wasted::default(),
        model: "m".into(),
        provider: "p".into(),
        finish: FinishReason::Stop,
        millis: 0,
    }
}

fn native_answer(tool: &str, raw: &str) -> ChatAnswer {
    let call = ToolCall {
        id: "c1".into(),
        name: tool.into(),
        arguments: serde_json::from_str(raw).unwrap_or_else(|_| json!(raw)),
        raw: raw.into(),
        signatures: Vec::new(),
        signer: None,
    };
    ChatAnswer { tool_calls: vec![call], finish: FinishReason::ToolCalls, ..text_answer("") }
}

fn tools() -> Vec<ToolDecl> {
    let tool = |name: &str, parameters: Value| ToolDecl {
        name: name.into(),
        description: String::new(),
        parameters,
    };
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    vec![
        tool(
            "search",
            json!({"type": "object", "properties": {"query": text, "limit": number}, "required": ["query"]}),
        ),
        tool(
            "read",
            json!({"type": "object", "properties": {"path": text, "line": number}, "required": ["path"]}),
        ),
        tool(
            "write_file",
            json!({"type": "object", "properties": {"path": text, "content": text}, "required": ["path", "content"]}),
        ),
        tool(
            "calculate",
            json!({"type": "object", "properties": {"expression": text}, "required": ["expression"]}),
        ),
        tool("list_files", json!({"type": "object", "properties": {}})),
        tool(
            "submit",
            json!({"type": "object", "properties": {"answer": text, "success": {"type": "boolean"}}, "required": ["answer"]}),
        ),
    ]
}

fn cases() -> Vec<StepContext> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/malformed");
    ["json", "lines", "yaml", "tags", "native", "none"]
        .iter()
        .flat_map(|file| {
            let text = std::fs::read_to_string(folder.join(format!("{file}.txt"))).unwrap();
            text.split("=== ").skip(1).map(|block| case(file, block)).collect::<Vec<_>>()
        })
        .collect()
}

fn case(file: &str, block: &str) -> StepContext {
    let (name, rest) = block.split_once('\n').unwrap();
    let at = rest.rfind("\n--- ").unwrap_or_else(|| panic!("{file}: {name} expects nothing"));
    let (body, expected) = (&rest[..at], rest[at + 5..].trim());
    let answer = if let Some(native) = name.strip_prefix("native ") {
        native_answer(native.split_once(':').unwrap().0, body)
    } else if name.starts_with("cut: ") {
        ChatAnswer { finish: FinishReason::Length, ..text_answer(body) }
    } else {
        text_answer(body)
    };
    let expected = (expected != "none").then(|| {
        let (name, arguments) = expected.split_once(' ').unwrap();
        (
            name.to_owned(),
            serde_json::from_str(arguments).unwrap_or_else(|_| panic!("{file}: {name}: {arguments}")),
        )
    });
    StepContext { name: format!("{file}: {name}"), answer, expected }
}

/// What ends within a text was cut: nobody knows how it goes on, so nothing of it is done, whatever is said of its end.
#[test]
fn an_action_that_ends_within_a_text_is_never_carried_out() {
    let torn = [
        r#"{"thought": "Write it.", "action": "write_file", "action_input": {"path": "deal.md", "content": "the buyer shall NOT pay more than"#,
        r#"{"action": "submit", "action_input": {"answer": "The buyer must not"#,
        r#"{"answer": "The buyer must not"#,
        "Thought: Write it.\nAction: submit\nAction Input: {\"answer\": \"The buyer must not",
        "<tool_call>\n{\"name\": \"submit\", \"arguments\": {\"answer\": \"The buyer must not",
        "<function=submit>{\"answer\": \"The buyer must not",
        "```json\n{\"action\": \"submit\", \"action_input\": {\"answer\": \"The buyer must not",
    ];
    let finishes = [FinishReason::Stop, FinishReason::Length, FinishReason::Other(String::new())];
    for text in torn {
        for finish in &finishes {
            let answer = ChatAnswer { finish: finish.clone(), ..text_answer(text) };
            let parsed = parse_answer(&answer, &tools());
            assert!(parsed.is_err(), "{finish:?}: {text}: {parsed:?}");
            let schema = &tools()[5].parameters;
            let document = parse_whole_document::<Value>(text, schema, finish.may_be_cut());
            assert!(document.is_err(), "{finish:?}: {text}: {document:?}");
        }
    }
    let call =
        native_answer("write_file", r#"{"path": "deal.md", "content": "the buyer shall NOT pay more than"#);
    assert_eq!(parse_answer(&call, &tools()), Err(ParseFailure::CutOff));
    // Cut at a limit before the arguments began.
    let call = ChatAnswer { finish: FinishReason::Length, ..native_answer("list_files", "") };
    assert_eq!(parse_answer(&call, &tools()), Err(ParseFailure::CutOff));
    let nothing = ChatAnswer { finish: FinishReason::Length, ..text_answer("") };
    assert_eq!(parse_answer(&nothing, &tools()), Err(ParseFailure::CutOff));
}

#[test]
fn what_only_lacks_its_brackets_counts_where_the_model_had_said_all() {
    let text = r#"{"action": "submit", "action_input": {"answer": "done"#.to_owned() + "\"";
    let with = |finish: FinishReason| parse_answer(&ChatAnswer { finish, ..text_answer(&text) }, &tools());
    assert_eq!(with(FinishReason::Stop).unwrap().action.arguments, json!({"answer": "done"}));
    assert_eq!(with(FinishReason::Length), Err(ParseFailure::CutOff));
    assert_eq!(with(FinishReason::Other(String::new())), Err(ParseFailure::CutOff));
}

#[test]
fn the_corpus_is_recovered_and_prose_is_never_an_action() {
    let tools = tools();
    let (mut wanted, mut recovered, mut false_actions) = (0_usize, 0_usize, Vec::new());
    let mut missed = Vec::new();
    let cases = cases();
    for case in &cases {
        let got = parse_answer(&case.answer, &tools);
        match (&case.expected, got) {
            (Some((name, arguments)), got) => {
                wanted += 1;
                match got {
                    Ok(parsed) if parsed.action.name == *name && parsed.action.arguments == *arguments => {
                        recovered += 1
                    }
                    other => missed.push(format!("{}: {:?}", case.name, other.map(|parsed| parsed.action))),
                }
            }
            (None, Ok(parsed)) => false_actions.push(format!("{}: {:?}", case.name, parsed.action)),
            (None, Err(_)) => {}
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred cases")]
    let share = recovered as f64 / wanted as f64;
    println!(
        "malformed answers recovered: {recovered} of {wanted} ({:.1} %); false actions: {} of {}",
        share * 100.0,
        false_actions.len(),
        cases.len() - wanted
    );
    for line in &missed {
        println!("  missed {line}");
    }
    assert_eq!(false_actions, Vec::<String>::new());
    assert!(
        wanted >= 160 && cases.len() - wanted >= 20,
        "the corpus has shrunk: {wanted} of {}",
        cases.len()
    );
    assert!(share >= WANTED, "only {share}: {missed:#?}");
}

fn parse(text: &str) -> Result<ParsedAnswer, ParseFailure> {
    parse_answer(&text_answer(text), &tools())
}

#[test]
fn deep_and_large_answers_are_refused_before_any_repair() {
    for text in [
        "[".repeat(10_000),
        "{\"a\":".repeat(10_000),
        format!("{{\"action\": \"search\", \"action_input\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000)),
    ] {
        assert!(matches!(parse(&text), Err(ParseFailure::TooDeep { .. })));
        assert!(matches!(parse_document::<Value>(&text, &json!({})), Err(ParseFailure::TooDeep { .. })));
        let native = native_answer("search", &text);
        assert!(matches!(parse_answer(&native, &tools()), Err(ParseFailure::TooDeep { .. })));
    }
    let large = format!("{{\"action\": \"search\", \"action_input\": \"{}\"}}", "x".repeat(MAX_BYTES));
    assert!(matches!(parse(&large), Err(ParseFailure::TooLarge { .. })));
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let mut native = native_answer("search", "{}");
    native.tool_calls[0].arguments = deep;
    assert!(matches!(parse_answer(&native, &tools()), Err(ParseFailure::TooDeep { .. })));
}

#[test]
fn hostile_answers_are_read_in_bounded_time() {
    let hostile = [
        "{".repeat(60) + "\"a".repeat(100_000).as_str(),
        "{\"a\": \"".to_owned() + "\" ".repeat(100_000).as_str(),
        "{'a' ".repeat(60) + "'".repeat(150_000).as_str(),
        "{} ".repeat(80_000),
        "Action: ".repeat(30_000),
        "<think>".repeat(30_000),
        "[{".repeat(31) + "x".repeat(200_000).as_str(),
        "<search>".repeat(30_000),
        "{{".repeat(30) + "}}{{".repeat(50_000).as_str(),
    ];
    for text in hostile {
        let begun = std::time::Instant::now();
        let _ = parse(&text);
        println!("{:?} for {:.40}", begun.elapsed(), text);
        assert!(begun.elapsed().as_secs() < 20, "{:?} for {:.40}", begun.elapsed(), text);
    }
}

/// Texts from which a repair library once never came back.
#[test]
fn repair_ends_whatever_the_text() {
    let texts = [
        "[*a''<|im_end|>é}",
        "[\"a\" .None/.\n]",
        "{action---\n\"a\"/\n&a &a ]trueaction*a- }",
        "[']{)'<|im_end|>}",
        "{```query- *a&a é循\\\"a\".}",
        "[\"a\"'*/('/<think>&a .循query循}",
    ];
    for text in texts {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _ = jsonrepair_rs::jsonrepair(text);
            let _ = parse(text);
            let _ = parse(&format!("{{\"action\": \"search\", \"action_input\": {text}"));
            let _ = done.send(());
        });
        assert!(ended.recv_timeout(std::time::Duration::from_secs(20)).is_ok(), "no end with {text:?}");
    }
}

#[test]
fn thoughts_are_kept_apart() {
    let parsed = parse(
        r#"{"thought": "t", "reasoning": "r", "plan": ["a", "b"], "criticism": "c", "action": "search", "action_input": {"query": "x"}}"#,
    )
    .unwrap();
    assert_eq!(parsed.thought.as_deref(), Some("t"));
    assert_eq!(parsed.reasoning.as_deref(), Some("r"));
    assert_eq!(parsed.plan.as_deref(), Some("a\nb"));
    assert_eq!(parsed.criticism.as_deref(), Some("c"));
    assert_eq!((parsed.form, parsed.repaired), (AnswerForm::Json, false));

    let parsed = parse("<think>deep</think>Thought: I look.\nAction: search\nAction Input: x").unwrap();
    assert_eq!(parsed.thought.as_deref(), Some("I look."));
    assert_eq!(parsed.reasoning.as_deref(), Some("deep"));
    assert_eq!(parsed.form, AnswerForm::ActionLines);

    let mut native = native_answer("search", r#"{"query": "x"}"#);
    native.text = "Thought: I look.".into();
    native.reasoning = Some("deep".into());
    native.tool_calls.push(native.tool_calls[0].clone());
    let parsed = parse_answer(&native, &tools()).unwrap();
    assert_eq!(parsed.thought.as_deref(), Some("I look."));
    assert_eq!(parsed.reasoning.as_deref(), Some("deep"));
    assert_eq!((parsed.form, parsed.more.len()), (AnswerForm::Native, 1));
    assert_eq!(parsed.action.call_id.as_deref(), Some("c1"));
}

#[test]
fn failures_are_typed_and_tell_the_model_what_to_send() {
    type StepContext = (&'static str, fn(&ParseFailure) -> bool);
    let kinds: &[StepContext] = &[
        ("", |failure| matches!(failure, ParseFailure::Empty)),
        ("Just prose.", |failure| matches!(failure, ParseFailure::NoAction)),
        ("[declined] for policy reasons", |failure| matches!(failure, ParseFailure::Refusal { .. })),
        (r#"{"a": 1}"#, |failure| matches!(failure, ParseFailure::NoActionName)),
    ];
    for (text, is) in kinds {
        let failure = parse(text).unwrap_err();
        assert!(is(&failure), "{text:?}: {failure:?}");
    }
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Plan {
    title: String,
    note: Option<String>,
    tasks: Vec<String>,
}

fn plan_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "note": {"type": "string"},
            "tasks": {"type": "array", "items": {"type": "string"}, "minItems": 1}
        },
        "required": ["title", "tasks"]
    })
}

#[test]
fn documents_are_found_repaired_and_checked() {
    let good = [
        r#"{"title": "t", "tasks": ["a"]}"#,
        "Here is the plan:\n```json\n{'title': 't', 'tasks': ['a',],}\n```\nGood luck!",
        r#"{"title": "t", "note": null, "tasks": ["a"]}"#,
        r#"{"plan": {"title": "t", "tasks": ["a"]}}"#,
        r#"[{"title": "t", "tasks": ["a"]}]"#,
        "<think>{\"title\": \"no\", \"tasks\": [\"x\"]}</think>{\"title\": \"t\", \"tasks\": [\"a\"]}",
        r#"{"title": "t", "tasks": ["a"]"#,
        "The shape is {\"title\": 1}. So: {\"title\": \"t\", \"tasks\": [\"a\"]}",
    ];
    for text in good {
        let plan: Plan =
            parse_document(text, &plan_schema()).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert_eq!(plan, Plan { title: "t".into(), note: None, tasks: vec!["a".into()] }, "{text}");
    }

    let failure = parse_document::<Plan>(r#"{"title": "t", "tasks": ["a", 7]}"#, &plan_schema()).unwrap_err();
    assert!(matches!(&failure, ParseFailure::DoesNotFit { path, .. } if path == "/tasks/1"), "{failure:?}");
    let words = ask_again_for_document(&failure, &plan_schema());
    assert!(words.contains("/tasks/1") && words.contains("minItems"), "{words}");

    assert_eq!(parse_document::<Plan>("No plan today.", &plan_schema()), Err(ParseFailure::NoAction));
    assert_eq!(parse_document::<Plan>("", &plan_schema()), Err(ParseFailure::Empty));
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn well_formed_answers_are_read_exactly(name in "[a-z_]{1,20}", query in any::<String>(), limit in any::<i64>()) {
            prop_assume!(!["none", "null", "na", "noaction", "nothing", "undefined", "tbd"].contains(&name.replace('_', "").as_str()));
            prop_assume!(!query.contains(['\u{feff}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\0']));
            let arguments = json!({"query": query, "limit": limit, "nested": {"a": [query]}});
            let text = json!({"thought": "t", "action": name, "action_input": arguments}).to_string();
            let parsed = parse_answer(&text_answer(&text), &[]).unwrap();
            prop_assert_eq!(parsed.action.name, name);
            prop_assert_eq!(parsed.action.arguments, arguments);
            prop_assert!(!parsed.repaired);
        }
    }
}
