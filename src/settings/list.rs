//! Values as they are written in flags and in the environment: plain text, and lists.

use config::{Value, ValueKind};
use toml::de::DeValue;

use super::error::SettingsError;
use super::file::plain_value;
use super::keys::Key;
use super::layer::Origin;

/// A text as the value of a setting. A list is written as TOML (`["a", "b"]`), or its items with commas between them.
pub(super) fn value_of(
    text: &str,
    name: &str,
    key: &Key,
    origin: &Origin,
) -> Result<ValueKind, SettingsError> {
    if !key.is_list() {
        return Ok(ValueKind::String(text.to_owned()));
    }
    let text = text.trim();
    if !text.starts_with('[') {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        return Ok(ValueKind::Array(items.map(|item| Value::new(None, item)).collect()));
    }
    let wrong = |reason: &str| SettingsError::List {
        key: name.to_owned(),
        origin: origin.to_string(),
        text: text.to_owned(),
        reason: reason.to_owned(),
    };
    match DeValue::parse(text) {
        Ok(list) => Ok(plain_value(list.get_ref(), 0)),
        Err(error) => Err(wrong(error.message())),
    }
}
