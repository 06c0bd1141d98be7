//! Claims: what of a result others can be held against. Read leniently: what cannot be made sense of is left out, and no
//! task fails for it.

use muster_shared::conflict::{Subject, read_value};
use muster_shared::flow::{Citation, Claim, ClaimValue, Finite};
use serde_json::{Value, json};

use super::{Document, Faults};

/// What a model is told of them.
pub(super) fn schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "subject": {"type": "string", "description": "what it is about, in full: what, where, when"},
                "value": {
                    "type": ["number", "string", "boolean"],
                    "description": "a number, a date, true or false, or a word or two"
                },
                "unit": {"type": "string"},
                "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
                "evidence": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string"},
                            "line": {"type": "integer", "minimum": 1},
                            "quote": {"type": "string"}
                        },
                        "required": ["path", "line"]
                    }
                },
                "method": {"type": "string", "description": "how you came to the value"}
            },
            "required": ["subject", "value"]
        }
    })
}

/// The claims of a result.
pub(super) fn read(document: &Document<'_>) -> Vec<Claim> {
    document.items("claims").iter().filter_map(claim).take(Claim::MOST).collect()
}

fn claim(item: &Value) -> Option<Claim> {
    let Some(document) = Document::of(item) else {
        let (subject, value) = item.as_str()?.rsplit_once(": ")?;
        return made(subject, read_value(value, "")?);
    };
    let value = value(document.get("value")?, &document.text("unit"))?;
    let method = if document.text("method").is_empty() { "how" } else { "method" };
    Some(Claim {
        confidence: document.percent("confidence").unwrap_or_default(),
        evidence: evidence(&document),
        method: cut(&document.text(method)),
        ..made(&document.text("subject"), value)?
    })
}

fn made(subject: &str, value: ClaimValue) -> Option<Claim> {
    // A subject without a telling word can be held against nothing.
    Subject::of(subject)?;
    Some(Claim {
        subject: cut(subject.trim()),
        value,
        confidence: 0,
        evidence: Vec::new(),
        method: String::new(),
    })
}

fn value(value: &Value, unit: &str) -> Option<ClaimValue> {
    match value {
        Value::Number(number) => {
            let value = Finite::new(number.as_f64()?)?;
            Some(ClaimValue::Number { value, unit: cut(unit) })
        }
        Value::Bool(verdict) => Some(ClaimValue::Verdict(*verdict)),
        Value::String(text) => read_value(text, unit),
        // As the record has them.
        Value::Object(_) => serde_json::from_value(value.clone()).ok(),
        _ => None,
    }
}

fn evidence(document: &Document<'_>) -> Vec<Citation> {
    let ignored = &mut Faults::default();
    let named = ["evidence", "citations"].map(|name| document.documents(name, ignored));
    let places = named.into_iter().flatten().filter_map(|place| {
        let line = place.number("line").and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0)?;
        let path = place.text("path");
        (!path.is_empty()).then(|| Citation { path, line, quote: place.text("quote") })
    });
    places.collect()
}

fn cut(text: &str) -> String {
    text.chars().take(Claim::MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(claims: &Value) -> Vec<Claim> {
        let submitted = json!({ "claims": claims });
        read(&Document::of(&submitted).unwrap())
    }

    fn percent(value: f64) -> ClaimValue {
        ClaimValue::Number { value: Finite::new(value).unwrap(), unit: "%".to_owned() }
    }

    #[test]
    fn claims_are_read_as_models_write_them() {
        for (written, value) in [
            (json!({"subject": "chance of rain", "value": 30, "unit": "%"}), percent(30.0)),
            (json!({"subject": "chance of rain", "value": "30 %"}), percent(30.0)),
            (
                json!({"subject": "chance of rain", "value": {"number": {"value": 30.0, "unit": "%"}}}),
                percent(30.0),
            ),
            (json!("chance of rain: 30 %"), percent(30.0)),
            (json!({"subject": "it holds", "value": true}), ClaimValue::Verdict(true)),
            (json!({"subject": "it holds", "value": "no"}), ClaimValue::Verdict(false)),
            (json!({"subject": "day", "value": "22 Nov 2026"}), ClaimValue::Date("2026-11-22".into())),
        ] {
            let claims = read_all(&json!([written]));
            assert_eq!(claims.first().map(|claim| &claim.value), Some(&value), "{written}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for written in
            [json!({"subject": "", "value": 1}), json!({"subject": "rain"}), json!(7), json!("rain")]
        {
            assert_eq!(read_all(&json!([written])), [], "{written}");
        }
        let many: Vec<Value> =
            (0..200).map(|n| json!({"subject": format!("part {n}"), "value": n})).collect();
        assert_eq!(read_all(&json!(many)).len(), Claim::MOST);
    }

    #[test]
    fn evidence_and_method_are_kept() {
        let claims = read_all(&json!({
            "subject": "chance of rain", "value": "30 %", "confidence": 0.8, "method": "rows of 21 to 22",
            "citations": [{"path": "rain.csv", "line": 3}, {"path": "rain.csv"}],
        }));
        assert_eq!((claims[0].confidence, claims[0].evidence.len()), (80, 1));
        assert_eq!(claims[0].method, "rows of 21 to 22");
    }
}
