//! What guards may put in the place of what they are asked about. Pure.

use serde_json::Value;

/// Largest text that a guard may put in the place of what a tool answered, in bytes.
const MOST_CONTENT: usize = 64 * 1024;

/// What is wrong with what is to stand in the place of an observation.
///
/// # Errors
/// Says it in a sentence.
pub fn content_fits(changed: &Value) -> Result<(), String> {
    match changed["content"].as_str() {
        None => Err("`content` is no text".to_owned()),
        Some(text) if text.len() > MOST_CONTENT => {
            Err(format!("`content` has {} bytes, {MOST_CONTENT} is the most", text.len()))
        }
        Some(_) => Ok(()),
    }
}

/// What is wrong with what is to stand in the place of so many messages: each stands in the place of one.
///
/// # Errors
/// Says it in a sentence.
pub fn messages_fit(changed: &Value, count: usize) -> Result<(), String> {
    let messages = changed["messages"].as_array().ok_or_else(|| "`messages` is no list".to_owned())?;
    if messages.len() != count {
        return Err(format!("it has {} messages in the place of {count}", messages.len()));
    }
    match messages.iter().position(|message| !message["content"].is_string()) {
        Some(at) => Err(format!("`messages[{at}].content` is no text")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_in_the_place_of_something_has_its_form() {
        assert_eq!(content_fits(&json!({ "content": "x" })), Ok(()));
        for wrong in
            [json!({}), json!({ "content": 1 }), json!("x"), json!({ "content": "x".repeat(70_000) })]
        {
            assert!(content_fits(&wrong).is_err());
        }
        assert_eq!(messages_fit(&json!({ "messages": [{ "content": "x" }] }), 1), Ok(()));
        for wrong in [
            json!({}),
            json!({ "messages": [] }),
            json!({ "messages": [{ "content": 1 }] }),
            json!({ "messages": ["x"] }),
            json!({ "messages": [{ "content": "x" }, { "content": "x" }] }),
        ] {
            assert!(messages_fit(&wrong, 1).is_err(), "{wrong}");
        }
    }
}
