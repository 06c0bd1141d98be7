use serde_json::json;

use super::*;
use crate::ids::QuestionId;

fn one(name: &str, of: &Value) -> Form {
    Form::Values(json!({ "type": "object", "properties": { name: of }, "required": [name] }))
}

fn trip() -> Form {
    Form::Values(json!({
        "type": "object",
        "properties": {
            "guests": { "type": "integer", "minimum": 1, "description": "how many come" },
            "meal": { "type": "string", "enum": ["fish", "none"], "default": "none" },
            "when": { "type": "string", "format": "date" },
        },
        "required": ["guests", "when"],
    }))
}

#[test]
fn a_person_gives_values_alone_or_as_an_object_declines_or_is_told_what_to_say() {
    let text = json!({ "type": "string" });
    let table = [
        (one("name", &text), "Ann", json!({ "name": "Ann" })),
        (one("name", &text), " 12 ", json!({ "name": "12" })),
        (one("n", &json!({ "type": "integer" })), "12", json!({ "n": 12 })),
        (one("n", &json!({ "type": "number" })), "1.5", json!({ "n": 1.5 })),
        (one("ok", &json!({ "type": "boolean" })), "No", json!({ "ok": false })),
        (one("ok", &json!({ "type": "boolean" })), "true", json!({ "ok": true })),
        (
            one("of", &json!({ "type": "array", "items": { "type": "string" } })),
            "a, b",
            json!({ "of": ["a", "b"] }),
        ),
        (
            trip(),
            r#"{"guests": 2, "when": "2026-11-27"}"#,
            json!({ "guests": 2, "when": "2026-11-27", "meal": "none" }),
        ),
        (Form::Values(json!({ "type": "object" })), "yes", json!({})),
        (Form::Visit("https://example.org/pay".to_owned()), "Done", json!({})),
    ];
    for (form, said, values) in table {
        assert_eq!(form.fault(), None);
        assert_eq!(form.read(said), Ok(Given::Values(values)), "{said}");
        assert_eq!(form.read(" Decline "), Ok(Given::Declined));
    }
    for (form, said, wanted) in [
        (trip(), "two", "guests"),
        (trip(), r#"{"guests": 0, "when": "x"}"#, "minimum"),
        (trip(), r#"{"guests": 1}"#, "when"),
        (trip(), r#"{"guests": 1, "when": "x", "meal": "meat"}"#, "fish"),
        (trip(), r#"{"guests": 1, "when": "x", "wine": true}"#, "not asked for"),
        (trip(), "{", "no JSON object"),
        (one("n", &json!({ "type": "integer" })), "many", "whole number"),
        (Form::Values(json!({ "type": "object" })), "perhaps", "say `done`"),
        (Form::Visit("https://example.org/pay".to_owned()), "later", "https://example.org/pay"),
        (one("name", &text), &"x".repeat(20_000), "bytes"),
    ] {
        let why = form.read(said).unwrap_err();
        assert!(why.contains(wanted), "{said}: {why}");
    }
}

#[test]
fn what_no_person_can_be_asked_for_is_told() {
    for (form, wanted) in [
        (Form::Values(json!({ "type": "array" })), "an object"),
        (one("deep", &json!({ "type": "object" })), "no plain value"),
        (one("deep", &json!({ "type": "array", "items": { "type": "object" } })), "no plain value"),
        (one("any", &json!({})), "no plain value"),
        (one("bad", &json!({ "type": "string", "pattern": "(" })), "cannot be used"),
        (one("long", &json!({ "type": "string", "description": "x".repeat(20_000) })), "bytes"),
        (Form::Visit("javascript:alert(1)".to_owned()), "https://"),
        (Form::Visit(format!("https://{}", "x".repeat(3_000))), "bytes"),
    ] {
        let fault = form.fault().unwrap();
        assert!(fault.contains(wanted), "{fault}");
    }
    let many = (0..=MAX_FIELDS).map(|n| (n.to_string(), json!({ "type": "string" }))).collect::<Map<_, _>>();
    assert!(Form::Values(json!({ "type": "object", "properties": many })).fault().is_some());
}

#[test]
fn a_form_says_what_it_asks_for() {
    let form = trip();
    let told: Vec<String> = form
        .fields()
        .iter()
        .map(|field| format!("{} {} {}", field.name, field.kind, field.is_optional))
        .collect();
    assert_eq!(
        told,
        [
            "guests a whole number false",
            "meal one of fish, none, none if left out true",
            "when text (date) false"
        ]
    );
    assert_eq!(form.fields()[0].about, "how many come");
    assert_eq!(form.how(), r#"'{"guests": …, "meal": …, "when": …}'"#);
}

#[test]
fn what_came_of_it_is_what_was_recorded() {
    let form = CallForm { id: "q-1".to_owned(), form: one("name", &json!({ "type": "string" })) };
    let reply = |text: Option<&str>, by: Option<&str>| Reply {
        question: QuestionId(1),
        text: text.map(str::to_owned),
        by: by.map(str::to_owned),
    };
    for (reply, said) in [
        (reply(Some("Bob"), Some("ann")), r#"ann gave {"name":"Bob"}"#),
        (reply(Some("decline"), Some("ann")), "ann declined"),
        (reply(None, None), "nobody answered in time"),
    ] {
        let came = form.reply(&reply);
        assert_eq!(came.to_string(), said);
        assert_eq!(serde_json::from_value::<FormReply>(json!(came)).unwrap(), came);
    }
}
