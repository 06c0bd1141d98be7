use muster_shared::flow::{ModelCall, ObservationStatus};
use serde_json::json;

use super::*;
use crate::testing::step;

fn searched(number: u32, bytes: usize) -> Step {
    let mut made = step(number, "corpus.search", json!({"query": "x", "k": 5}), ObservationStatus::Success);
    let mut text = format!("docs/a{number}.md:10-13 (A > B)\n10| The limit is eight.\n");
    text.push_str(&"words and words\n".repeat(bytes / 16));
    text.push_str("\nb.md:7 (C)\n7| end\nnot a place: 12\nhttp://x.y:80z");
    made.observation.as_mut().unwrap().content = text;
    made.thought.text = "a long thought".to_owned();
    made
}

#[test]
fn a_step_in_short_keeps_what_was_done_the_head_and_the_places() {
    let whole = searched(3, 2_000);
    let short = shortened(&whole, Detail::SHORT);
    let seen = &short.observation.as_ref().unwrap().content;
    assert!(seen.starts_with("docs/a3.md:10-13 (A > B)\n10| The limit is eight.\n"), "{seen}");
    assert!(seen.ends_with("it showed docs/a3.md:10-13, b.md:7]") && seen.len() < 400, "{seen}");
    assert_eq!((short.number, short.thought.text.as_str(), &short.action), (3, "", &whole.action));
    assert!(short.calls.is_empty());
    let brief = shortened(&whole, Detail::BRIEF);
    assert!(brief.observation.unwrap().content.len() < seen.len());
    // What is little stays.
    let little = step(1, "calculator", json!({"expression": "1+1"}), ObservationStatus::Success);
    assert_eq!(shortened(&little, Detail::BRIEF).observation, little.observation);
    let mut hardly = little;
    hardly.observation.as_mut().unwrap().content = "x".repeat(250);
    assert_eq!(shortened(&hardly, Detail::SHORT).observation, hardly.observation, "it would be longer");
}

#[test]
fn long_arguments_are_cut_unless_a_provider_signed_them() {
    let text = "é".repeat(400);
    let arguments = json!({"path": "a.md", "text": text, "list": [1, 2, 3, 4, 5]});
    let mut written = step(1, "workspace.write", arguments.clone(), ObservationStatus::Success);
    let short = shortened(&written, Detail::SHORT).action.arguments;
    assert_eq!((&short["path"], short["list"].as_array().unwrap().len()), (&json!("a.md"), 3));
    assert!(short["text"].as_str().unwrap().len() < 260, "{short}");
    let signed = ModelCall { signatures: vec!["mark".to_owned()], ..written.calls[0].clone() };
    written.calls = vec![signed];
    assert_eq!(shortened(&written, Detail::BRIEF).action.arguments, arguments);
}

fn conversation(sizes: &[usize]) -> (Vec<Kept<ChatMessage>>, Vec<ShownStep>) {
    let mut messages: Vec<Kept<ChatMessage>> = vec![ChatMessage::user("task").into()];
    let mut steps = Vec::new();
    for size in sizes {
        messages.push(ChatMessage::user("x".repeat(*size)).into());
        let form = |most: usize| vec![ChatMessage::user("y".repeat(most.min(*size))).into()];
        steps.push(ShownStep { messages: 1, shorter: vec![form(10), form(100)] });
    }
    (messages, steps)
}

#[test]
fn the_oldest_are_shortened_first_and_the_newest_never() {
    let lengths = |messages: &[Kept<ChatMessage>]| {
        messages[1..].iter().map(|message| message.content.len()).collect::<Vec<_>>()
    };
    // The room, the place of the first change, what is left of each step.
    for (room, changed, left) in [
        (4_004, None, [1_000, 1_000, 1_000, 1_000]),
        (4_000, Some(1), [100, 100, 1_000, 1_000]),
        (2_000, Some(1), [100, 100, 100, 1_000]),
        (1_600, Some(1), [10, 10, 100, 1_000]),
        (100, Some(1), [10, 10, 10, 1_000]),
    ] {
        let (mut messages, mut steps) = conversation(&[1_000; 4]);
        assert_eq!(compact(&mut messages, &mut steps, room), changed, "{room}");
        assert_eq!(lengths(&messages), left, "{room}");
        let kept = left.iter().rev().take_while(|length| **length == 1_000).count();
        assert_eq!(whole(&steps), kept, "{room}");
        assert_eq!(compact(&mut messages, &mut steps, room.max(4_004)), None);
    }
}
