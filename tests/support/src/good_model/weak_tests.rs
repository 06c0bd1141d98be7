#![allow(clippy::unwrap_used)]
use std::time::Duration;

use super::*;
use crate::model_server::{Protocol, SeenMessage};

const SYSTEM: &str = "You are somebody.\n\nAnswer with one JSON object:\n{\"thought\": \"why\", \"action\": \"name\", \
    \"arguments\": {…}}\n\nActions:\n- calculator: Computes: sums.\n  arguments: {\"type\":\"object\",\"properties\":\
    {\"expression\":{\"type\":\"string\"}},\"required\":[\"expression\"]}\n- submit: ends the task.\n  arguments: \
    {\"type\":\"object\",\"properties\":{\"ending\":{\"type\":\"string\"},\"conclusion\":{\"type\":\"string\"},\
    \"findings\":{\"type\":\"array\"}},\"required\":[\"ending\",\"conclusion\"]}";
const TASK: &str = "Do this:\n<<<n0 task\nWhat is 17.5 % of 2480?\nn0>>>\n";

fn message(role: &str, text: &str) -> SeenMessage {
    SeenMessage { role: role.into(), text: text.into(), ..SeenMessage::default() }
}

fn request(said: &[(&str, &str)], body: Value) -> CapturedRequest {
    let mut messages = vec![message("system", SYSTEM), message("user", TASK)];
    messages.extend(said.iter().map(|(role, text)| message(role, text)));
    CapturedRequest {
        number: 1,
        at: Duration::ZERO,
        protocol: Protocol::OpenAi,
        model: "weak:3b".into(),
        stream: false,
        key: None,
        messages,
        tools: Vec::new(),
        body,
        violations: Vec::new(),
    }
}

fn said(reply: &Reply) -> String {
    format!("{reply:?}")
}

const SUM: &str =
    "{\"thought\":\"t\",\"action\":\"calculator\",\"arguments\":{\"expression\":\"17.5 / 100 * 2480\"}}";
const SEEN: &str = "<<<n0 observation of calculator\n17.5 / 100 * 2480 = 434\nn0>>>\n\nStep 2 of 10.";

#[test]
fn it_acts_in_words_by_what_the_prompt_tells() {
    let first = Seen::of(&request(&[], json!({})));
    let call = in_good_faith(&first).in_words();
    let call: Value = serde_json::from_str(&call).unwrap();
    assert_eq!(
        (&call["action"], &call["arguments"]),
        (&json!("calculator"), &json!({"expression": "17.5 / 100 * 2480"}))
    );
    let next = Seen::of(&request(&[("assistant", SUM), ("user", SEEN)], json!({})));
    assert_eq!(next.observed.len(), 1);
    let last: Value = serde_json::from_str(&in_good_faith(&next).in_words()).unwrap();
    assert_eq!(last["action"], "submit");
    assert!(last["arguments"]["conclusion"].as_str().unwrap().contains("434"), "{last}");
}

#[test]
fn each_slip_says_something_else_than_was_meant() {
    let seen = Seen::of(&request(&[("assistant", SUM), ("user", SEEN)], json!({})));
    let good = in_good_faith(&seen);
    let meant = said(&written(&good.in_words(), false));
    let of_citation = [Slip::FalseLine, Slip::FalseNumber];
    for slip in Slip::ALL.into_iter().filter(|slip| !of_citation.contains(slip)) {
        assert!(slip.fits(&seen, &good), "{slip:?}");
        assert_ne!(said(&slipped(slip, &seen, &good)), meant, "{slip:?}");
    }
}

#[test]
fn its_server_refuses_what_it_cannot_take() {
    let asked = |nature: Nature, body: Value| {
        let model = WeakModel::new(nature);
        let reply = model.answer(&request(&[], body));
        (said(&reply), model.happened())
    };
    let tools = json!({"tools": [{"type": "function", "function": {"name": "x", "parameters": {}}}]});
    let (reply, happened) = asked(Nature::default(), tools.clone());
    assert!(reply.contains("does not support tools") && happened.with_tools == 1, "{reply}");
    let ignoring = Nature { tools: NativeTools::Ignored, ..Nature::default() };
    assert!(asked(ignoring, tools).0.contains("calculator"));
    let short = Nature { context: 100, ..Nature::default() };
    let (reply, happened) = asked(short, json!({}));
    assert!(reply.contains("maximum context length") && happened.too_long == 1, "{reply}");
    let (reply, happened) = asked(Nature::default(), json!({"max_tokens": 8_100}));
    assert!(reply.contains("maximum context length") && happened.longest > 100, "{reply}");
}

#[test]
fn slips_follow_the_seed() {
    let made = |seed| {
        let model = WeakModel::new(Nature { slips: 50, seed, ..Nature::default() });
        (0..60).for_each(|_| drop(model.answer(&request(&[], json!({})))));
        model.happened().slips
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
    let times: usize = made(1).values().sum();
    assert!((15..45).contains(&times), "{times}");
}
