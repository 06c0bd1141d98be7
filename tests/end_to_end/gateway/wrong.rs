//! What programs should not send: each gets an error that says what to do, and nothing is harmed.

use std::time::{Duration, Instant};

use muster_support::fleet::wait_until;
use muster_support::foreign::Stranger;
use serde_json::{Value, json};

use super::{LIMIT, Program, ROLE, code, numbers, of_role, submit, token, trace};
use crate::support::folder;

/// A request that is wrong: where it is sent, what it says, the code of the error, and words of its message.
type Wrong<'a> = (&'a str, Vec<u8>, &'a str, &'a str);

fn wrong_requests(first: &str) -> Vec<Wrong<'_>> {
    let of = |said: Value| said.to_string().into_bytes();
    let with = |field: &str, value: Value| {
        let mut said = json!({ "token": first, "action": { "name": "count" }, "observation": "x" });
        said[field] = value;
        of(said)
    };
    let of_task = |mut said: Value| {
        said["token"] = json!(first);
        of(said)
    };
    let finish = |result: Value| of_task(json!({ "result": result }));
    let signed = first.split('-').nth(1).unwrap();
    let bytes = (0..signed.len()).step_by(2).map(|at| u8::from_str_radix(&signed[at..at + 2], 16).unwrap());
    let text = String::from_utf8(bytes.collect()).unwrap();
    let forged = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        let hex: String = text.replacen(from, to, 1).bytes().map(|byte| format!("{byte:02x}")).collect();
        first.replacen(signed, &hex, 1)
    };
    let own_run = &text[..32];
    let other_run = "0193f0c0c0c070008000000000000001";
    vec![
        ("step", b"I am done.".to_vec(), "unreadable", "Send one JSON object"),
        ("step", b"{\"token\": ".to_vec(), "unreadable", "cannot be read"),
        ("step", b"{\"token\": \"\x01\"}".to_vec(), "unreadable", "cannot be read"),
        ("step", vec![0xff, 0xfe, 0x00, 0xc1], "unreadable", "MessagePack"),
        ("step", "[".repeat(5000).into_bytes(), "unreadable", "cannot be read"),
        ("step", b"[1, 2]".to_vec(), "invalid", "object"),
        ("step", of(json!("step")), "invalid", "object"),
        ("step", Vec::new(), "invalid", "token"),
        ("step", with("observation", json!("x".repeat(600_000))), "too_large", "is the most"),
        ("step", with("surprise", json!(1)), "invalid", "surprise"),
        ("step", with("action", json!("count")), "invalid", "`action`"),
        ("step", with("action", json!({ "arguments": {} })), "invalid", "name"),
        (
            "step",
            with("observation", json!({ "status": "great", "content": "" })),
            "invalid",
            "`observation`",
        ),
        ("step", with("usage", json!({ "model_calls": -1 })), "invalid", "`usage.model_calls`"),
        ("step", with("usage", json!({ "model_calls": 2.5 })), "invalid", "`usage.model_calls`"),
        ("step", with("id", json!("x".repeat(200))), "invalid", "`id`"),
        ("step", with("id", json!("a\u{7}b")), "invalid", "`id`"),
        ("step", with("token", json!(7)), "invalid", "`token`"),
        ("step", with("token", json!("")), "bad_token", "newest answer"),
        ("step", with("token", json!(format!("{first}00"))), "bad_token", "newest answer"),
        ("step", with("token", json!(forged(" 1 1 ", " 1 2 "))), "bad_token", "newest answer"),
        ("step", with("token", json!(forged(own_run, other_run))), "bad_token", "newest answer"),
        ("finish", finish(json!("seven")), "invalid", "`result`"),
        ("finish", finish(json!({ "data": { "words": 7 } })), "bad_result", "conclusion"),
        ("finish", finish(json!({ "conclusion": 7 })), "bad_result", "`result.conclusion`"),
        (
            "finish",
            finish(json!({ "conclusion": "7", "findings": [{ "claim": "x" }] })),
            "bad_result",
            "findings",
        ),
        (
            "finish",
            finish(json!({ "conclusion": "7", "data": { "words": "seven" } })),
            "bad_result",
            "data.words`",
        ),
        ("finish", finish(json!({ "conclusion": "7" })), "bad_result", "\\\"data\\\" is a required"),
        ("finish", of_task(json!({ "ending": "success" })), "invalid", "`ending`"),
        ("finish", of_task(json!({ "ending": "blocked" })), "bad_result", "reason"),
        ("finish", of_task(json!({ "ending": "agent_failed" })), "bad_result", "`reason`"),
        ("wait", of_task(json!({ "for": { "answer": { "text": " " } } })), "invalid", "for.answer.text"),
        ("wait", of_task(json!({ "for": { "money": 1 } })), "invalid", "`for`"),
        ("beat", of(json!({})), "invalid", "token"),
        ("files", of_task(json!({ "do": "burn" })), "invalid", "`do`"),
        ("files", of_task(json!({ "do": "put", "path": "a\u{1b}b", "text": "" })), "invalid", "`path`"),
        ("model", of_task(json!({ "messages": [] })), "invalid", "`messages`"),
        (
            "model",
            of_task(json!({ "messages": [{ "role": "user", "content": "?" }] })),
            "model_failed",
            "agent.model",
        ),
        ("take", of(json!({ "agent": "a b" })), "invalid", "agent"),
        ("take", of(json!({ "agent": "a-1", "slots": 4_000 })), "invalid", "slots"),
        (
            "take",
            of(json!({ "agent": "a-1", "contract": { "output": { "type": 7 } } })),
            "invalid",
            "contract.output",
        ),
        ("steal", of(json!({})), "unknown", "take, step, finish"),
    ]
}

#[test]
fn wrong_messages_are_told_what_is_wrong_and_harm_nothing() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let mut program = Program::new(&stranger, "one");
    program.contract = json!({ "output": {
        "type": "object", "required": ["words"], "properties": { "words": { "type": "integer" } },
    } });
    program.enter();
    let (mut asker, run) = submit(folder, &[]);
    let first = token(&program.take());
    assert_eq!(program.stepped(&first, "a"), 1);

    let wrong = wrong_requests(&first);
    assert!(wrong.len() >= 30, "{}", wrong.len());
    for (verb, said, wanted, words) in wrong {
        let shown = String::from_utf8_lossy(&said[said.len().saturating_sub(200)..]).into_owned();
        let answer = stranger.request(&format!("agent.{ROLE}.{verb}"), &said).unwrap();
        let answer: Value =
            serde_json::from_slice(&answer).unwrap_or_else(|error| panic!("{error}: {shown}"));
        let told = answer["error"].to_string();
        assert_eq!(code(&answer), wanted, "{verb} {shown}: {answer}");
        assert!(told.contains(words), "{verb} {shown}: {told}");
        assert!(answer["error"]["message"].as_str().unwrap().len() > 30, "{told}");
    }
    // Nobody takes the name of an agent that is there.
    let listed = folder.json(&["ps", "--json"]).unwrap().to_string();
    let at = listed.find("\"worker-").unwrap() + 1;
    let worker = &listed[at..at + listed[at..].find('"').unwrap()];
    let answer = program.ask("take", &json!({ "agent": worker, "patience_ms": 100 }));
    assert_eq!(code(&answer), "invalid", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(worker), "{answer}");
    // The token of another role, and a role that there is not.
    let said = json!({ "token": first, "action": { "name": "count" }, "observation": "x" }).to_string();
    for (role, wanted) in [("worker", "bad_token"), ("Word", "unknown")] {
        let answer = stranger.request(&format!("agent.{role}.step"), said.as_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(code(&answer), wanted, "{answer}");
    }
    // It is as if nothing had been sent.
    assert_eq!(program.stepped(&first, "b"), 2);
    let result = json!({ "conclusion": "7 words.", "data": { "words": 7 } });
    let finish = json!({ "token": first, "id": "end", "result": result });
    assert_eq!(program.ask("finish", &finish)["recorded"], true);
    for (verb, said) in [
        ("step", json!({ "token": first, "action": { "name": "late" }, "observation": "x" })),
        ("finish", json!({ "token": first, "result": { "conclusion": "8", "data": { "words": 8 } } })),
        ("wait", json!({ "token": first, "for": { "answer": { "text": "Late?" } } })),
        ("files", json!({ "token": first, "do": "put", "path": "late.md", "text": "late" })),
    ] {
        let refused = program.ask(verb, &said);
        assert_eq!((code(&refused), &refused["error"]["over"]), ("ended", &json!(true)), "{verb}: {refused}");
    }
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    let record = trace(folder, &run);
    assert_eq!((numbers(&record), of_role(&record, "outcome").len()), (vec![1, 2], 1));
    assert_eq!(of_role(&record, "outcome")[0]["event"]["product"]["result"]["data"]["words"], 7);
    assert_eq!(folder.json(&["dead", "list", "--json"]).unwrap(), json!([]));
}

/// However many ask for tasks at once, 256 wait, and the rest is told at once.
#[test]
fn a_flood_of_takes_is_bounded() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let answers = stranger.subscribe(&["_INBOX.flood.*"]).unwrap();
    const FLOOD: usize = 400;
    const WAITING: usize = 256;
    let began = Instant::now();
    for n in 0..FLOOD {
        let mut take = Program::new(&stranger, &format!("flood{n}")).who();
        take["patience_ms"] = json!(3_000);
        let take = take.to_string();
        let (subject, reply) = (format!("agent.{ROLE}.take"), format!("_INBOX.flood.{n}"));
        stranger.publish_with_reply(&subject, &reply, take.as_bytes()).unwrap();
    }
    let (mut refused, mut empty) = (0, 0);
    for _ in 0..FLOOD {
        let (_, answer) = answers.next(LIMIT).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        match code(&answer) {
            "busy" => {
                assert_eq!(answer["error"]["retry"], true, "{answer}");
                refused += 1;
            }
            _ => {
                assert_eq!(answer["task"], Value::Null, "{answer}");
                empty += 1;
            }
        }
    }
    assert_eq!(
        (refused, empty),
        (FLOOD - WAITING, WAITING),
        "the others were told that there is nothing, in time"
    );
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // The fleet works as before.
    let program = Program::new(&stranger, "one");
    let mut who = program.who();
    who["patience_ms"] = json!(100);
    wait_until("there is room again", LIMIT, || code(&program.ask("take", &who)) != "busy").unwrap();
    let (mut asker, run) = submit(folder, &[]);
    let finish = json!({ "token": token(&program.taken(|| format!("{:?}\n{}", trace(folder, &run), folder.logs()))), "result": { "conclusion": "7 words." } });
    assert_eq!(program.ask("finish", &finish)["recorded"], true);
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
}
