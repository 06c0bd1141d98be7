//! Comparison of a value in the file of a project with the user's value, or the default. Pure.

use std::cmp::Ordering;

use muster_shared::flow::Rights;
use muster_shared::flow::rights::{Allowed, ToolNames};
use muster_shared::setting::{Kind, Sensitivity, Takes, millis};
use serde_json::{Value, json};

use super::keys::Key;

/// Group of rights. Their order is `Rights::narrowed_by`.
const RIGHTS: &str = "limits.rights.";

/// Returns true if a value that replaces another one needs the user's consent. Both are written values; null is no value. A
/// value that cannot be compared needs consent.
pub(super) fn widens(key: &Key, before: &Value, now: &Value) -> bool {
    if let Some(right) = key.name.strip_prefix(RIGHTS) {
        return !is_narrower_right(right, before, now);
    }
    let takes = &key.setting.takes;
    let held = |written: &Value| key.setting.held(written).unwrap_or_else(|| written.clone());
    let (before, now) = (held(before), held(now));
    let order = |none: f64| rank(takes, &before, none).partial_cmp(&rank(takes, &now, none));
    match key.sensitivity {
        Sensitivity::Harmless => false,
        Sensitivity::Trust => true,
        Sensitivity::Narrowing => !before.is_null(),
        Sensitivity::Lower => !order(f64::INFINITY).is_some_and(Ordering::is_ge),
        Sensitivity::Higher => !order(f64::NEG_INFINITY).is_some_and(Ordering::is_le),
        Sensitivity::Fewer => !covers(&before, &now),
        Sensitivity::More => !covers(&now, &before),
    }
}

/// Returns true if a right is at most as wide as another one.
fn is_narrower_right(right: &str, before: &Value, now: &Value) -> bool {
    let rights = |value: &Value| match value {
        Value::Null => Some(Rights::default()),
        value => serde_json::from_value(json!({ right: value })).ok(),
    };
    rights(before).zip(rights(now)).is_some_and(|(before, now)| before.narrowed_by(&now) == now)
}

/// Numeric order of a value: words by their position, false before true.
fn rank(takes: &Takes, held: &Value, none: f64) -> f64 {
    match (held, takes.kind) {
        (Value::Null, _) => none,
        (Value::Bool(flag), _) => f64::from(u8::from(*flag)),
        (Value::Number(number), _) => number.as_f64().unwrap_or(f64::NAN),
        (Value::String(text), Kind::Words(words)) => {
            let known = words().iter().position(|word| word.word == *text);
            known.and_then(|at| u32::try_from(at).ok()).map_or(f64::NAN, f64::from)
        }
        #[expect(clippy::cast_precision_loss, reason = "the order alone is used")]
        (Value::String(_), _) => millis(held).map_or(f64::NAN, |millis| millis as f64),
        (Value::Array(_) | Value::Object(_), _) => f64::NAN,
    }
}

/// Returns true if a list of names and patterns covers another one. Null covers everything.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let (Some(all), Some(part)) = (wide.as_array(), narrow.as_array()) else { return wide.is_null() };
    let has_exceptions = all.iter().filter_map(Value::as_str).any(|item| item.starts_with('!'));
    if !has_exceptions && part.iter().all(|item| all.contains(item)) {
        return true;
    }
    let read = |list: &[Value]| Allowed::<ToolNames>::read(list.iter().filter_map(Value::as_str)).ok();
    read(all).zip(read(part)).is_some_and(|(all, part)| all.meet(&part) == part)
}
