use rmcp::model::{CallToolResult, ReadResourceResult};
use serde_json::json;

use super::*;

const LIMITS: ResultLimits = ResultLimits { text: 1_000, file: 10, files: 2 };

fn told(result: Value) -> Told {
    of_call(serde_json::from_value::<CallToolResult>(result).unwrap(), LIMITS)
}

fn words(told: &Told) -> Vec<String> {
    let word = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::File(file) => format!("<{}:{}>", file.media_type, file.bytes.len()),
    };
    told.pieces.iter().map(word).collect()
}

#[test]
fn every_kind_of_content_is_told() {
    let told = told(json!({"content": [
        {"type": "text", "text": "Hello."},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAA=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "x://1", "name": "one"},
        {"type": "resource", "resource": {"uri": "x://2", "text": "Inside."}},
    ], "structuredContent": {"a": 1}}));
    assert_eq!(
        words(&told),
        [
            "Hello.",
            "<image/png:3>",
            "<audio/wav:2>",
            "[resource x://1: one; read it with read_resource]",
            "[x://2]\nInside.",
        ]
    );
    assert_eq!(told.data, Some(json!({"a": 1})));
    assert!(!told.failed);
}

#[test]
fn files_that_pass_a_limit_are_left_out_and_it_is_said() {
    let told = told(json!({"content": [
        {"type": "image", "data": "A".repeat(40), "mimeType": "image/png"},
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    ]}));
    assert_eq!(
        words(&told),
        [
            "[image/png left out: it is larger than what is taken]",
            "[image/png left out: it is not base64]",
            "<image/png:3>",
            "<image/png:3>",
            "[image/png left out: too many files in one result]",
        ]
    );
}

#[test]
fn data_alone_is_shown_as_text_and_data_too_deep_is_not_passed_on() {
    let shallow = told(json!({"content": [], "structuredContent": {"a": 1}}));
    assert_eq!(words(&shallow), ["{\"a\":1}"]);
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!([deep]);
    }
    let deep = told(json!({"content": [], "structuredContent": deep}));
    assert_eq!((words(&deep).len(), deep.data), (1, None));
}

#[test]
fn a_resource_that_is_no_text_becomes_a_file() {
    let result = json!({"contents": [{"uri": "x://1", "blob": "AAAA"}, {"uri": "x://2", "text": "t"}]});
    let told = of_resource(serde_json::from_value::<ReadResourceResult>(result).unwrap(), LIMITS);
    assert_eq!(words(&told), ["<application/octet-stream:3>", "[x://2]\nt"]);
}

#[tokio::test]
async fn without_a_workspace_a_file_is_named_and_said_to_be_not_kept() {
    let told = told(json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}));
    let output = keep(told, "s", LIMITS, &ToolContext::new("r", "1")).await;
    assert_eq!(output.content, "[image/png, 3 bytes: not kept, the run has no workspace]");
}

#[tokio::test]
async fn a_long_text_is_cut() {
    let told = told(json!({"content": [{"type": "text", "text": "x".repeat(5_000)}]}));
    let output = keep(told, "s", LIMITS, &ToolContext::new("r", "1")).await;
    assert!(output.content.len() < 1_100 && output.content.ends_with("[cut: 5000 bytes in all]"));
}
