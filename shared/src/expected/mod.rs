//! Whether a result is in the form that its task expects: JSON, a list of so many items, a number, yes or no, a table, a
//! file. Only what a rule can tell for certain is told; all else is for a model to judge. Pure.

mod count;
mod demand;
mod measure;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::flow::{ClaimValue, TaskResult};
use crate::text::{beginning, normalise_space};
use demand::{Demand, Form};

/// Longest piece of a result that is shown with what it lacks, in characters.
const LONGEST: usize = 80;

/// What of the expected output a result does not hold, one line each; nothing where no rule says otherwise. `files` are
/// those of the run's workspace, as far as they are known: without them nothing is said about files.
#[must_use]
pub fn unmet(expected: &str, result: &TaskResult, files: Option<&[String]>) -> Vec<String> {
    let demands = demand::read(expected);
    let values = values(result);
    let texts = [result.body.trim(), result.conclusion.trim()];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    let texts = if texts.is_empty() { vec![""] } else { texts };
    let unmet_by = |demand: &Demand| {
        let faults: Option<Vec<String>> =
            texts.iter().map(|text| fault(demand, text, &values, result, files)).collect();
        faults.and_then(|faults| faults.into_iter().next())
    };
    let faults = demands.iter().filter_map(unmet_by);
    let what = shown(expected);
    faults.map(|fault| format!("expected was {what:?}, and {fault}")).collect()
}

fn fault(
    demand: &Demand,
    text: &str,
    values: &[Value],
    result: &TaskResult,
    files: Option<&[String]>,
) -> Option<String> {
    match demand {
        Demand::Json(form, keys) => {
            no_json(*form, keys, values).map(|fault| format!("{fault}: {:?}", shown(text)))
        }
        Demand::Count(measure, bound) => {
            let counts = measure::counts(*measure, text, values, result);
            let fits = counts.iter().any(|count| bound.holds(*count));
            (!fits).then(|| {
                let found = counts.first().map_or_else(|| "none".to_owned(), ToString::to_string);
                format!("{bound} {} are meant; there are {found}", measure.into_str())
            })
        }
        Demand::Number { only } => {
            let claims_number =
                || result.claims.iter().any(|claim| matches!(claim.value, ClaimValue::Number { .. }));
            let given = measure::is_number(text, *only) || values.iter().any(holds_number) || claims_number();
            (!given).then(|| {
                format!("no number is given{}: {:?}", if *only { " alone" } else { "" }, shown(text))
            })
        }
        Demand::YesOrNo => {
            let given = measure::says_yes_or_no(text)
                || values.iter().any(holds_verdict)
                || result.claims.iter().any(|claim| matches!(claim.value, ClaimValue::Verdict(_)));
            (!given).then(|| format!("neither yes nor no is said: {:?}", shown(text)))
        }
        Demand::Table => {
            let given =
                measure::has_table(text) || values.iter().any(|value| value.is_array() || value.is_object());
            (!given).then(|| format!("there is no table: {:?}", shown(text)))
        }
        Demand::File(name) => {
            let files = files?;
            let is_there = |path: &&String| *path == name || path.ends_with(&format!("/{name}"));
            (!files.iter().any(|path| is_there(&path))).then(|| format!("no file {name} was written"))
        }
    }
}

/// What of a result can be read as JSON: its data, its text, and what stands in the text.
fn values(result: &TaskResult) -> Vec<Value> {
    let data = result.data.as_deref().cloned();
    let texts = [&result.conclusion, &result.body];
    data.into_iter().chain(texts.into_iter().flat_map(|text| measure::json_in(text))).collect()
}

fn no_json(form: Form, keys: &[String], values: &[Value]) -> Option<String> {
    let fits = |value: &&Value| match form {
        Form::Any => true,
        Form::Array => value.is_array(),
        Form::Object => value.is_object(),
    };
    let Some(first) = values.iter().find(fits) else {
        return Some(format!("there is no {}", form.in_words()));
    };
    let lacks = |value: &Value| keys.iter().filter(|key| !holds(value, key)).cloned().collect::<Vec<_>>();
    let missing = lacks(first);
    let complete = values.iter().filter(fits).any(|value| lacks(value).is_empty());
    (!complete).then(|| format!("it lacks {}", missing.join(", ")))
}

/// Whether JSON has a key, at whatever depth: many wrap what they were asked for.
fn holds(value: &Value, key: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| holds(item, key)),
        Value::Object(fields) => fields.contains_key(key) || fields.values().any(|field| holds(field, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn holds_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => measure::is_number(text, false),
        Value::Array(items) => items.iter().any(holds_number),
        Value::Object(fields) => fields.values().any(holds_number),
        Value::Null | Value::Bool(_) => false,
    }
}

fn holds_verdict(value: &Value) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::String(text) => measure::says_yes_or_no(text),
        Value::Array(items) => items.iter().any(holds_verdict),
        Value::Object(fields) => fields.values().any(holds_verdict),
        Value::Null | Value::Number(_) => false,
    }
}

fn shown(text: &str) -> String {
    beginning(&normalise_space(text), LONGEST)
}
