#![allow(clippy::unwrap_used)]
use super::super::tests::captured;
use super::*;
use crate::model_server::SeenMessage;

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
    captured("weak:3b", messages, body)
}

fn said(reply: &Reply) -> String {
    format!("{reply:?}")
}

const SUM: &str =
    "{\"thought\":\"t\",\"action\":\"calculator\",\"arguments\":{\"expression\":\"17.5 / 100 * 2480\"}}";
const SEEN: &str = "<<<n0 observation of calculator\n17.5 / 100 * 2480 = 434\nn0>>>\n\nStep 2 of 10.";

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
