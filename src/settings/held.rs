//! From how people write settings to how types hold them: `limits.task_deadline = "10m"` is held as
//! `task_deadline_ms: 600000`.

use config::{Config, Map, Value, ValueKind};
use muster_shared::setting::{Kind, Setting, Takes};
use serde_json::{Value as Json, json};

use super::error::SettingsError;
use super::keys::Key;
use super::sections::Settings;

/// The merged values as types hold them.
///
/// # Errors
/// When a span of time or an amount of money is none.
pub(super) fn held(merged: &Config) -> Result<Config, SettingsError> {
    let mut held = Config::default();
    if let ValueKind::Table(values) = merged.cache.kind.clone() {
        held.cache.kind = ValueKind::Table(table(values, Settings::SETTINGS, "")?);
    }
    Ok(held)
}

/// A value as it was given, where types do not write what they hold.
pub(super) fn as_given(merged: &Config, name: &str, key: &Key) -> Json {
    let given = match key.setting.takes.kind {
        Kind::Whole { .. } => merged.get::<u64>(name).ok().map(Json::from),
        Kind::Flag => merged.get_bool(name).ok().map(Json::from),
        Kind::List { .. } => merged.get::<Vec<String>>(name).ok().map(Json::from),
        _ => merged.get::<Value>(name).ok().and_then(|value| json_of(&value.kind)),
    };
    key.setting.written(given.and_then(|given| key.setting.held(&given)).as_ref())
}

fn table(
    values: Map<String, Value>,
    settings: &[Setting],
    above: &str,
) -> Result<Map<String, Value>, SettingsError> {
    let mut held = Map::new();
    for (name, value) in values {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match settings.iter().find(|setting| setting.name() == name) {
            Some(setting) => held.insert(setting.field.to_owned(), field(value, setting, &key)?),
            None => held.insert(name, value),
        };
    }
    Ok(held)
}

/// Groups within what has a name of its own; all else of it is held as it is written.
fn named(
    names: Map<String, Value>,
    settings: &[Setting],
    above: &str,
) -> Result<Map<String, Value>, SettingsError> {
    let mut held = Map::new();
    for (name, value) in names {
        let origin = value.origin().map(str::to_owned);
        let kind = match value.kind {
            ValueKind::Table(mut fields) => {
                for setting in settings.iter().filter(|setting| matches!(setting.takes.kind, Kind::Group(_)))
                {
                    if let Some(group) = fields.remove(setting.name()) {
                        let key = format!("{above}.{name}.{}", setting.name());
                        fields.insert(setting.field.to_owned(), field(group, setting, &key)?);
                    }
                }
                ValueKind::Table(fields)
            }
            other => other,
        };
        held.insert(name, Value::new(origin.as_ref(), kind));
    }
    Ok(held)
}

fn field(value: Value, setting: &Setting, key: &str) -> Result<Value, SettingsError> {
    let origin = value.origin().map(str::to_owned);
    let kind = match (setting.takes.kind, value.kind) {
        (Kind::Group(inner), ValueKind::Table(values)) => ValueKind::Table(table(values, inner, key)?),
        (Kind::Named(Takes { kind: Kind::Group(inner), .. }), ValueKind::Table(names)) => {
            ValueKind::Table(named(names, inner, key)?)
        }
        // No other field below a name is held in another form than it is written in.
        (_, kind) => match json_of(&kind) {
            Some(written) => match setting.held(&written) {
                Some(held) if held == written => kind,
                Some(held) => kind_of(&held),
                None => return Err(wrong(setting, key, origin.as_deref(), &written)),
            },
            None => kind,
        },
    };
    Ok(Value::new(origin.as_ref(), kind))
}

fn wrong(setting: &Setting, key: &str, origin: Option<&str>, written: &Json) -> SettingsError {
    let place = origin.map_or_else(|| key.to_owned(), |origin| format!("{key} (from {origin})"));
    let problem = match setting.takes.kind {
        Kind::Span { .. } => format!("{place}: {written} is not {}", setting.takes.unit),
        _ => format!("{place} must be {}, not {written}", setting.takes),
    };
    SettingsError::Value { problem }
}

/// A plain value; none for lists and tables, which are held as they are written.
fn json_of(kind: &ValueKind) -> Option<Json> {
    match kind {
        ValueKind::Nil => Some(Json::Null),
        ValueKind::Boolean(flag) => Some(json!(flag)),
        ValueKind::I64(number) => Some(json!(number)),
        ValueKind::U64(number) => Some(json!(number)),
        // JSON has no word for what is no number; it must not pass for nothing.
        ValueKind::Float(number) if !number.is_finite() => Some(json!(number.to_string())),
        ValueKind::Float(number) => Some(json!(number)),
        ValueKind::String(text) => Some(json!(text)),
        _ => None,
    }
}

/// The same value for the library that merges.
pub(super) fn kind_of(json: &Json) -> ValueKind {
    match json {
        Json::Null | Json::Object(_) => ValueKind::Nil,
        Json::Bool(flag) => ValueKind::Boolean(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => ValueKind::I64(number),
            (None, Some(number)) => ValueKind::U64(number),
            (None, None) => ValueKind::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => ValueKind::String(text.clone()),
        Json::Array(items) => {
            ValueKind::Array(items.iter().map(|item| Value::new(None, kind_of(item))).collect())
        }
    }
}
