//! Results: one row for each run, as JSON Lines; and what they come to, by goal and setting.

use muster_shared::ids::RunId;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};

use super::check::Checked;
use super::stats::{Share, Spread, share, spread};

/// One run of one goal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) suite: String,
    pub(crate) goal: String,
    /// The name of what is compared; empty where nothing is.
    #[serde(default)]
    pub(crate) setting: String,
    /// From 1.
    pub(crate) repeat: u32,
    /// The run in the record; nothing where none was begun.
    pub(crate) run: Option<RunId>,
    pub(crate) at: Millis,
    pub(crate) exit: u8,
    pub(crate) calls: u64,
    pub(crate) tool_calls: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost_micros: u64,
    pub(crate) millis: u64,
    pub(crate) checks: Vec<Checked>,
}

impl Row {
    /// Whether every check passed.
    pub(crate) fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

/// What the runs of one goal with one setting come to.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    pub(crate) goal: String,
    pub(crate) setting: String,
    pub(crate) passed: Share,
    pub(crate) calls: Spread,
    pub(crate) prompt_tokens: Spread,
    pub(crate) cost_micros: Spread,
    pub(crate) millis: Spread,
}

/// What rows come to, in the order in which goals and settings first stand there.
pub(crate) fn summaries(rows: &[Row]) -> Vec<Summary> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let key = (row.goal.as_str(), row.setting.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter().map(|(goal, setting)| summary(goal, setting, rows)).collect()
}

fn summary(goal: &str, setting: &str, rows: &[Row]) -> Summary {
    let own: Vec<&Row> = rows.iter().filter(|row| row.goal == goal && row.setting == setting).collect();
    let of = |value: fn(&Row) -> u64| spread(&own.iter().map(|row| value(row) as f64).collect::<Vec<_>>());
    Summary {
        goal: goal.to_owned(),
        setting: setting.to_owned(),
        passed: share(own.iter().filter(|row| row.passed()).count(), own.len()),
        calls: of(|row| row.calls),
        prompt_tokens: of(|row| row.prompt_tokens),
        cost_micros: of(|row| row.cost_micros),
        millis: of(|row| row.millis),
    }
}

/// Reads rows from JSON Lines.
///
/// # Errors
/// The line that is no row, and why.
pub(crate) fn read(text: &str) -> Result<Vec<Row>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1)))
        .collect()
}

/// Rows as JSON Lines.
///
/// # Errors
/// When a row cannot be written as JSON.
pub(crate) fn written(rows: &[Row]) -> Result<String, serde_json::Error> {
    let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
    Ok(lines?.join("\n") + "\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(goal: &str, setting: &str, calls: u64, passed: bool) -> Row {
        let why = if passed { String::new() } else { "9, at most 5".to_owned() };
        Row {
            suite: "s".to_owned(),
            goal: goal.to_owned(),
            setting: setting.to_owned(),
            repeat: 1,
            run: None,
            at: Millis(1),
            exit: 0,
            calls,
            tool_calls: 1,
            prompt_tokens: calls * 1000,
            output_tokens: 10,
            cost_micros: 0,
            millis: 1500,
            checks: vec![Checked { check: "calls".to_owned(), passed, why }],
        }
    }

    #[test]
    fn rows_are_summed_by_goal_and_setting() {
        let rows =
            [row("a", "x", 5, true), row("a", "y", 9, false), row("a", "x", 7, true), row("b", "x", 1, true)];
        let sums = summaries(&rows);
        let keys: Vec<(&str, &str, usize, usize)> = sums
            .iter()
            .map(|sum| (sum.goal.as_str(), sum.setting.as_str(), sum.passed.passed, sum.passed.of))
            .collect();
        assert_eq!(keys, [("a", "x", 2, 2), ("a", "y", 0, 1), ("b", "x", 1, 1)]);
        assert!((sums[0].calls.median - 6.0).abs() < 1e-9);
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let rows = [row("a", "x", 5, true), row("a", "y", 9, false)];
        let text = written(&rows).unwrap();
        assert_eq!(written(&read(&text).unwrap()).unwrap(), text);
        assert!(read("{}").unwrap_err().starts_with("line 1: "));
    }
}
