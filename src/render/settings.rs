//! `muster config`.

use serde_json::Value;

use super::table;
use crate::settings::Effective;

/// Settings with their values and origins.
pub(crate) fn table(settings: &[Effective]) -> String {
    let rows =
        settings.iter().map(|one| vec![one.key.clone(), shown(&one.value), one.origin.clone()]).collect();
    table::plain(&["SETTING", "VALUE", "FROM"], rows, &[], None)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_line_with_value_and_origin() {
        let one = |key: &str, value: Value, origin: &str| Effective {
            key: key.into(),
            value,
            origin: origin.into(),
            doc: String::new(),
        };
        let text = table(&[
            one("limits.max_steps", 10.into(), "default"),
            one("bus.url", Value::Null, "default"),
            one("bus.token", "[set]".into(), "environment MUSTER_BUS_TOKEN"),
        ]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["limits.max_steps", "10", "default"]);
        assert_eq!(lines[2], ["bus.url", "-", "default"]);
        assert_eq!(lines[3], ["bus.token", "[set]", "environment", "MUSTER_BUS_TOKEN"]);
    }
}
