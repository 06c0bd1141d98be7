//! `compare`: things side by side, by criteria. Values that are given are taken; scores for the rest come from the model.
//! The ranking is always computed.

use std::fmt::Write as _;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::think::{MAX_MATERIAL, needs_a_model};
use super::{Thinking, text_of};
use crate::tools::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

pub(super) const COMPARE: &str = "compare";
/// Most things, and most criteria.
const MAX_SIDE: usize = 20;

pub(super) struct Compare;

#[async_trait]
impl Tool for Compare {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            COMPARE,
            "Compares things by criteria and ranks them. Give each thing its values where they are known: then the ranking is \
             computed from them. Where values lack, the model scores from 0 to 10 by the text that you give.",
            json!({
                "items": {
                    "type": "array", "minItems": 2, "maxItems": MAX_SIDE,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "minLength": 1},
                            "text": {"type": "string", "description": "what is known of it"},
                            "values": {"type": "object", "additionalProperties": {"type": "number"}, "description": "value by criterion"}
                        },
                        "required": ["name"]
                    }
                },
                "criteria": {
                    "type": "array", "minItems": 1, "maxItems": MAX_SIDE,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "minLength": 1},
                            "weight": {"type": "number", "minimum": 0, "description": "1 by default"},
                            "better": {"type": "string", "enum": ["more", "less"], "description": "more by default"}
                        },
                        "required": ["name"]
                    }
                }
            }),
            &["items", "criteria"],
        )
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        if !lacking(&arguments).is_empty() {
            return Err(needs_a_model(COMPARE));
        }
        Ok(ToolOutput::text(ranked_by(&arguments, &Value::Null)))
    }
}

struct Criterion<'a> {
    name: &'a str,
    weight: f64,
    less_is_better: bool,
}

fn criteria(arguments: &Value) -> Vec<Criterion<'_>> {
    let all = arguments["criteria"].as_array().into_iter().flatten().take(MAX_SIDE);
    all.map(|criterion| Criterion {
        name: text_of(criterion, "name"),
        weight: criterion["weight"].as_f64().unwrap_or(1.0).max(0.0),
        less_is_better: criterion["better"] == "less",
    })
    .collect()
}

fn items(arguments: &Value) -> Vec<&Value> {
    arguments["items"].as_array().into_iter().flatten().take(MAX_SIDE).collect()
}

fn given(item: &Value, criterion: &str) -> Option<f64> {
    item["values"][criterion].as_f64()
}

/// The criteria for which some thing has no value. They are scored for all things alike.
fn lacking(arguments: &Value) -> Vec<&str> {
    let lacks =
        |criterion: &Criterion<'_>| items(arguments).iter().any(|item| given(item, criterion.name).is_none());
    criteria(arguments).iter().filter(|criterion| lacks(criterion)).map(|criterion| criterion.name).collect()
}

pub(super) fn by_model(arguments: &Value) -> Option<Thinking> {
    let lacking = lacking(arguments);
    let items = items(arguments);
    let text: String =
        items.iter().map(|item| format!("{}: {}\n", text_of(item, "name"), text_of(item, "text"))).collect();
    if lacking.is_empty() || items.len() < 2 || text.len() > MAX_MATERIAL {
        return None;
    }
    let names: Vec<&str> = items.iter().map(|item| text_of(item, "name")).collect();
    Some(Thinking {
        system: "You score things for an agent, each by each criterion, from 0 (worst) to 10 (best), by what is said of them \
                 alone. Where nothing is said, score 5 and say so."
            .to_owned(),
        text: format!("Criteria: {}\n\nThings:\n{text}", lacking.join(", ")),
        schema: json!({
            "type": "object",
            "properties": {"scores": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "item": {"type": "string", "enum": names},
                        "criterion": {"type": "string", "enum": lacking},
                        "score": {"type": "number", "minimum": 0, "maximum": 10},
                        "why": {"type": "string"}
                    },
                    "required": ["item", "criterion", "score", "why"]
                }
            }},
            "required": ["scores"]
        }),
    })
}

/// The comparison as a table with its ranking. `said` has the model's scores for what lacks.
pub(super) fn ranked_by(arguments: &Value, said: &Value) -> String {
    let (items, criteria, lacking) = (items(arguments), criteria(arguments), lacking(arguments));
    let mut totals: Vec<(f64, &str)> = items.iter().map(|item| (0.0, text_of(item, "name"))).collect();
    let names: String = totals.iter().map(|(_, name)| format!(" {name} |")).collect();
    let mut table = format!("| criterion | weight |{names}");
    let _ = write!(table, "\n|---|---|{}", "---|".repeat(totals.len()));
    let mut reasons = String::new();
    for criterion in &criteria {
        let scored = lacking.contains(&criterion.name);
        let row: Vec<Option<f64>> = items
            .iter()
            .map(|item| {
                if scored {
                    score(said, text_of(item, "name"), criterion.name)
                } else {
                    given(item, criterion.name)
                }
            })
            .collect();
        let shown: Vec<String> =
            row.iter().map(|value| value.map_or_else(|| "?".to_owned(), |value| value.to_string())).collect();
        let mark = if scored { " (scored)" } else { "" };
        let _ =
            write!(table, "\n| {}{mark} | {} | {} |", criterion.name, criterion.weight, shown.join(" | "));
        let shares = shares(&row, criterion.less_is_better && !scored);
        for ((total, _), share) in totals.iter_mut().zip(shares) {
            *total += share * criterion.weight;
        }
        if scored {
            for one in said["scores"].as_array().into_iter().flatten() {
                if one["criterion"] == criterion.name {
                    let _ = write!(
                        reasons,
                        "\n{}, {}: {}",
                        text_of(one, "item"),
                        criterion.name,
                        text_of(one, "why")
                    );
                }
            }
        }
    }
    totals.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let ranking: Vec<String> =
        totals.iter().map(|(total, name)| format!("{name} ({:.0} %)", share_of(*total, &criteria))).collect();
    format!("{table}\n\nRanking: {}{reasons}", ranking.join(", "))
}

fn score(said: &Value, item: &str, criterion: &str) -> Option<f64> {
    let scores = said["scores"].as_array().into_iter().flatten();
    let mut of_both = scores.filter(|score| score["item"] == item && score["criterion"] == criterion);
    of_both.next()?["score"].as_f64()
}

/// Where each value lies between the worst (0) and the best (1) of its row. One that lacks lies with the worst.
fn shares(row: &[Option<f64>], less_is_better: bool) -> Vec<f64> {
    let known = || row.iter().flatten().copied();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let share = |value: f64| {
        let share = if most > least { (value - least) / (most - least) } else { 1.0 };
        if less_is_better && most > least { 1.0 - share } else { share }
    };
    row.iter().map(|value| value.map_or(0.0, share)).collect()
}

fn share_of(total: f64, criteria: &[Criterion<'_>]) -> f64 {
    let all: f64 = criteria.iter().map(|criterion| criterion.weight).sum();
    if all > 0.0 { 100.0 * total / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_given_are_ranked_by_computation() {
        let arguments = json!({
            "items": [
                {"name": "a", "values": {"speed": 10, "price": 300}},
                {"name": "b", "values": {"speed": 5, "price": 100}},
            ],
            "criteria": [{"name": "speed"}, {"name": "price", "better": "less", "weight": 2}],
        });
        assert_eq!(by_model(&arguments), None);
        let ranked = ranked_by(&arguments, &Value::Null);
        assert!(ranked.contains("| price | 2 | 300 | 100 |"), "{ranked}");
        assert!(ranked.ends_with("Ranking: b (67 %), a (33 %)"), "{ranked}");
    }

    #[test]
    fn what_lacks_is_scored_and_marked() {
        let arguments = json!({
            "items": [{"name": "a", "text": "fast", "values": {"price": 1}}, {"name": "b", "values": {"price": 1}}],
            "criteria": [{"name": "price"}, {"name": "ease"}],
        });
        let thinking = by_model(&arguments).unwrap();
        assert!(
            thinking.text.contains("Criteria: ease") && thinking.text.contains("a: fast"),
            "{}",
            thinking.text
        );
        let said = json!({"scores": [
            {"item": "a", "criterion": "ease", "score": 8, "why": "fast"},
            {"item": "b", "criterion": "ease", "score": 5, "why": "nothing is said"},
        ]});
        let ranked = ranked_by(&arguments, &said);
        assert!(ranked.contains("| ease (scored) | 1 | 8 | 5 |"), "{ranked}");
        assert!(ranked.contains("Ranking: a (100 %), b (50 %)"), "{ranked}");
    }
}
