//! `muster eval`.

use muster_shared::time::Millis;

use super::{figures, table};
use crate::eval::stats::{Share, Spread};
use crate::eval::{Row, Summary};

/// Longest reason that is shown, in columns.
const REASON: usize = 300;

/// The suites that come with Muster: name, number of goals, what for.
pub(crate) fn suites(suites: &[(String, usize, String)]) -> String {
    let rows = suites
        .iter()
        .map(|(name, goals, about)| vec![name.clone(), goals.to_string(), about.clone()])
        .collect();
    table::plain(&["SUITE", "GOALS", "ABOUT"], rows, &[1])
}

/// What goals came to, with what did not pass.
pub(crate) fn results(summaries: &[Summary], rows: &[Row]) -> String {
    let compared = summaries.iter().any(|one| !one.setting.is_empty());
    let mut heading = vec!["GOAL", "PASSED", "95 %", "CALLS", "PROMPT TOKENS", "COST", "TIME"];
    if compared {
        heading.insert(1, "SETTING");
    }
    let lines = summaries.iter().map(|one| {
        let mut line = vec![
            one.goal.clone(),
            format!("{}/{}", one.passed.passed, one.passed.of),
            interval(&one.passed),
            spread(&one.calls, figures::count),
            spread(&one.prompt_tokens, figures::count),
            spread(&one.cost_micros, figures::dollars),
            spread(&one.millis, figures::millis),
        ];
        if compared {
            line.insert(1, one.setting.clone());
        }
        line
    });
    let right: Vec<usize> = (1 + usize::from(compared)..heading.len()).collect();
    let mut text = table::plain(&heading, lines.collect(), &right);
    for row in rows.iter().filter(|row| !row.passed()) {
        text += &format!("\n\n{} did not pass:", run_of(row));
        for check in row.checks.iter().filter(|check| !check.passed) {
            text += &format!("\n  {}: {}", check.check, figures::one_line(&check.why, REASON));
        }
    }
    text
}

/// These results beside earlier ones of the same goals.
pub(crate) fn beside(now: &[Summary], before: &[Summary], when: Millis) -> String {
    let earlier =
        |one: &Summary| before.iter().find(|other| other.goal == one.goal && other.setting == one.setting);
    let rows = now.iter().filter_map(|one| {
        let was = earlier(one)?;
        let mut line = vec![one.goal.clone()];
        if !one.setting.is_empty() {
            line[0] = format!("{} {}", one.goal, one.setting);
        }
        line.push(format!(
            "{}/{} → {}/{}",
            was.passed.passed, was.passed.of, one.passed.passed, one.passed.of
        ));
        let then = |was: &Spread, is: &Spread, word: fn(u64) -> String| {
            format!("{} → {}", word(whole(was.median)), word(whole(is.median)))
        };
        line.extend([
            then(&was.calls, &one.calls, figures::count),
            then(&was.prompt_tokens, &one.prompt_tokens, figures::count),
            then(&was.cost_micros, &one.cost_micros, figures::dollars),
            then(&was.millis, &one.millis, figures::millis),
        ]);
        Some(line)
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return "the earlier results have none of these goals".to_owned();
    }
    let heading = ["GOAL", "PASSED", "CALLS", "PROMPT TOKENS", "COST", "TIME"];
    format!("beside those of {}:\n{}", figures::date(when), table::plain(&heading, rows, &[1, 2, 3, 4, 5]))
}

/// A run while the suite goes on.
pub(crate) fn told(row: &Row, nth: usize, of: usize) -> String {
    let failed: Vec<&str> =
        row.checks.iter().filter(|check| !check.passed).map(|check| check.check.as_str()).collect();
    let word =
        if failed.is_empty() { "passed".to_owned() } else { format!("not passed: {}", failed.join(", ")) };
    format!(
        "[{nth}/{of}] {}: {word} ({}, {} prompt tokens, {})",
        run_of(row),
        figures::plural(row.calls, "call"),
        figures::count(row.prompt_tokens),
        figures::millis(row.millis)
    )
}

fn run_of(row: &Row) -> String {
    let setting = if row.setting.is_empty() { String::new() } else { format!(" {}", row.setting) };
    let run = row.run.map_or_else(|| "no run".to_owned(), |run| format!("run {}", run.short()));
    format!("{}{setting}, repeat {}, {run}", row.goal, row.repeat)
}

fn interval(share: &Share) -> String {
    format!("{:.0}–{:.0} %", share.low * 100.0, share.high * 100.0)
}

/// The middle, and the ends where they differ.
fn spread(spread: &Spread, word: impl Fn(u64) -> String) -> String {
    let (least, middle, most) =
        (word(whole(spread.least)), word(whole(spread.median)), word(whole(spread.most)));
    if least == most { middle } else { format!("{middle} ({least}–{most})") }
}

fn whole(number: f64) -> u64 {
    number.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::results::tests::row;
    use crate::eval::summaries;

    #[test]
    fn results_are_a_table_and_what_did_not_pass() {
        let rows = [row("sums", "", 5, true), row("sums", "", 9, false)];
        let text = results(&summaries(&rows), &rows);
        assert_eq!(
            text,
            "GOAL  PASSED    95 %    CALLS     PROMPT TOKENS     COST  TIME\n\
             sums     1/2  9–91 %  7 (5–9)  7.0k (5.0k–9.0k)  $0.0000  1.5s\n\n\
             sums, repeat 1, no run did not pass:\n  calls: 9, at most 5"
        );
    }

    #[test]
    fn settings_stand_side_by_side_and_beside_earlier_results() {
        let rows = [row("sums", "a", 5, true), row("sums", "b", 9, false)];
        let text = results(&summaries(&rows), &rows);
        assert!(text.starts_with("GOAL  SETTING  PASSED"), "{text}");
        assert!(text.contains("\nsums  b           0/1"), "{text}");
        let before = [row("sums", "a", 8, false)];
        let text = beside(&summaries(&rows), &summaries(&before), Millis(0));
        assert!(text.contains("sums a  0/1 → 1/1  8 → 5"), "{text}");
        assert!(!text.contains("sums b"), "{text}");
    }
}
