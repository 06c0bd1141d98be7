//! Reading what a model submitted: lenient in form (a text for a list of one, a number in quotes), strict in
//! substance, and with complaints that the model can act on.

use serde_json::{Map, Value};

/// Most items that are read of one list.
pub(super) const MAX_ITEMS: usize = 200;

/// What is wrong with a document, one line each.
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// Notes a fault.
    pub fn add(&mut self, fault: impl Into<String>) {
        self.0.push(fault.into());
    }

    /// The value, if nothing was wrong.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, Vec<String>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

/// A JSON object that a model wrote.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    fields: &'a Map<String, Value>,
}

impl<'a> Document<'a> {
    /// The value as a document, if it is an object.
    #[must_use]
    pub fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(|fields| Self { fields })
    }

    /// The field as it stands; `null` counts as absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// A text; empty when absent. Numbers and truth values are taken by their text.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.get(name).map(as_text).unwrap_or_default().trim().to_owned()
    }

    /// A text that must be there.
    pub fn needed_text(&self, name: &str, faults: &mut Faults) -> String {
        let text = self.text(name);
        if text.is_empty() {
            faults.add(format!("`{name}` is missing or empty"));
        }
        text
    }

    /// Items of a list. Any other value counts as a list of one.
    #[must_use]
    pub fn items(&self, name: &str) -> &'a [Value] {
        match self.get(name) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(one) => std::slice::from_ref(one),
        }
    }

    /// A list of texts; a single text counts as a list of one. Empty ones are left out.
    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<String> {
        let items = self.items(name).iter().map(|item| as_text(item).trim().to_owned());
        items.filter(|item| !item.is_empty()).take(MAX_ITEMS).collect()
    }

    /// A truth value; `false` when absent.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => matches!(text.trim().to_lowercase().as_str(), "true" | "yes"),
            _ => false,
        }
    }

    /// A whole number that is not negative, also in quotes.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A share in percent; a fraction up to 1 is taken as one.
    #[must_use]
    pub fn percent(&self, name: &str) -> Option<u8> {
        let value = match self.get(name)? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.trim().trim_end_matches('%').parse().ok()?,
            _ => return None,
        };
        let fraction = value.fract() != 0.0 && value < 1.0;
        let percent = if fraction { value * 100.0 } else { value };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=100")]
        Some(percent.clamp(0.0, 100.0).round() as u8)
    }

    /// The objects of a list; a single object counts as a list of one. What is no object is a fault.
    pub fn documents(&self, name: &str, faults: &mut Faults) -> Vec<Document<'a>> {
        let mut documents = Vec::new();
        for (at, item) in self.items(name).iter().take(MAX_ITEMS).enumerate() {
            match Document::of(item) {
                Some(document) => documents.push(document),
                None => faults.add(format!("`{name}[{at}]` must be an object")),
            }
        }
        documents
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn form_is_read_leniently() {
        let value = json!({
            "list": "one", "many": ["a", " ", 3], "flag": "Yes", "n": "12", "half": 0.5, "full": 90, "one": 1,
            "sure": "75%", "nothing": null
        });
        let document = Document::of(&value).unwrap();
        assert_eq!(document.texts("list"), ["one"]);
        assert_eq!(document.texts("many"), ["a", "3"]);
        assert!(document.flag("flag"));
        assert_eq!(document.number("n"), Some(12));
        assert_eq!(document.percent("half"), Some(50));
        assert_eq!(document.percent("full"), Some(90));
        assert_eq!(document.percent("one"), Some(1));
        assert_eq!(document.percent("sure"), Some(75));
        assert!(document.get("nothing").is_none());
        let mut faults = Faults::default();
        assert!(document.documents("list", &mut faults).is_empty());
        assert!(faults.into_result(()).is_err());
    }
}
