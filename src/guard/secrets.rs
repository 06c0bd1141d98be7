//! The guard `secrets`: finds keys, tokens, private keys and what is somebody's own, and puts a mark in its place. Pure.

use std::collections::BTreeMap;

use muster_shared::flow::{GuardReply, GuardRequest};
use muster_shared::secret::{REDACTED, Redactor};
use serde_json::Value;

use super::personal;

/// What a secret is called.
const KEY: &str = "key or token";

/// Where a message holds the calls of its model.
const CALLS: &str = "calls";

/// What was taken out, with how often.
type Taken = BTreeMap<&'static str, usize>;

/// The verdict: changed where anything was taken out, else allowed.
pub(crate) fn verdict(request: &GuardRequest) -> GuardReply {
    let (mut payload, mut taken) = (request.payload.clone(), Taken::new());
    redact_value(&mut payload, &mut taken);
    if taken.is_empty() { GuardReply::allow() } else { GuardReply::change(in_words(&taken), payload) }
}

/// `took out 2 e-mail addresses, 1 IBAN`.
fn in_words(taken: &Taken) -> String {
    let plural = |what: &str| match what {
        personal::EMAIL => "e-mail addresses".to_owned(),
        KEY => "keys or tokens".to_owned(),
        other => format!("{other}s"),
    };
    let parts = taken.iter().map(|(what, count)| match count {
        1 => format!("1 {what}"),
        many => format!("{many} {}", plural(what)),
    });
    format!("took out {}", parts.collect::<Vec<_>>().join(", "))
}

fn redact_value(value: &mut Value, taken: &mut Taken) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let Some(redacted) = redact(text, taken) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, taken)),
        // What a model called itself cannot be changed before it is asked again.
        Value::Object(fields) => {
            fields
                .iter_mut()
                .filter(|(name, _)| *name != CALLS)
                .for_each(|(_, field)| redact_value(field, taken));
        }
    }
}

/// The text without what was found in it; nothing when there is nothing to find.
fn redact(text: &str, taken: &mut Taken) -> Option<String> {
    let known = Redactor::default().redact(text).into_owned();
    let count = |text: &str| text.matches(REDACTED).count();
    let found = count(&known).saturating_sub(count(text));
    let mut current = known;
    if found > 0 {
        *taken.entry(KEY).or_default() += found;
    }
    for one in personal::find(&current).into_iter().rev() {
        *taken.entry(one.what).or_default() += 1;
        current.replace_range(one.at, &format!("[redacted {}]", one.what));
    }
    (current != text).then_some(current)
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{Hook, Ruling};
    use serde_json::json;

    use super::*;

    fn asked(payload: Value) -> GuardReply {
        let run = "0190a1b2c3d4700080000000000000aa".parse().unwrap();
        let (agent, role) = ("worker-1".to_owned(), "worker".to_owned());
        verdict(&GuardRequest { hook: Hook::BeforeTool, run, task: None, agent, role, payload })
    }

    #[test]
    fn what_is_found_is_taken_out_wherever_it_stands() {
        let reply = asked(json!({
            "tool": "mail.send",
            "arguments": { "to": ["ann@example.com", "bob@example.com"], "text": "pay DE89 3704 0044 0532 0130 00", "n": 4 },
        }));
        assert_eq!(reply.verdict, Ruling::Change);
        assert_eq!(reply.reason, "took out 1 IBAN, 2 e-mail addresses");
        assert_eq!(
            reply.payload.unwrap(),
            json!({
                "tool": "mail.send",
                "arguments": {
                    "to": ["[redacted e-mail address]", "[redacted e-mail address]"], "text": "pay [redacted IBAN]", "n": 4,
                },
            })
        );
        let called = json!({ "messages": [{ "role": "assistant", "content": "", "calls": [{ "to": "ann@example.com" }] }] });
        assert_eq!(asked(called), GuardReply::allow());
        assert_eq!(asked(json!({ "content": "nothing of the kind, on 2024-01-31" })), GuardReply::allow());
    }

    #[test]
    fn keys_and_tokens_are_found() {
        let keys = [
            format!("sk-{}", "abcdEFGH1234567890abcd"),
            format!("ghp_{}", "abcdEFGH1234567890abcdEFGH1234567890"),
            format!("AKIA{}", "ABCDEFGHIJKLMNOP"),
            format!("xoxb-{}", "1234567890-abcdef"),
            format!("sk_live_{}", "abcdEFGH12345678"),
            format!("glpat-{}", "abcdEFGH1234567890ab"),
            format!("hf_{}", "abcdEFGH1234567890abcdEFGH1234"),
            format!("npm_{}", "abcdEFGH1234567890abcdEFGH1234567890"),
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0000\n-----END RSA PRIVATE KEY-----".to_owned(),
            "https://me:hunter2hunter2@example.org/".to_owned(),
        ];
        for key in keys {
            let reply = asked(json!({ "content": format!("it is {key} .") }));
            assert_eq!(reply.verdict, Ruling::Change, "{key}");
            assert!(reply.reason.contains("1 key or token"), "{key}: {}", reply.reason);
            let content = reply.payload.unwrap()["content"].as_str().unwrap().to_owned();
            assert!(content.contains(REDACTED) && !content.contains(&key), "{content}");
            assert_eq!(asked(json!({ "content": content })), GuardReply::allow(), "twice is once");
        }
    }
}
