//! `muster compare`.

use super::{figures, table};
use crate::compare::stats::{Difference, LEAST, Says};
use crate::compare::{Comparison, Measured, SideSummary};

/// Both sides, and what they differ by.
pub(crate) fn page(found: &Comparison) -> String {
    let Comparison { of, paired, least, first, second, measures } = found;
    let name = |side: &SideSummary| figures::one_line(&side.name, 40);
    let (one, other) = (name(first), name(second));
    let heading = ["", one.as_str(), other.as_str(), "DIFFERENCE", "95 %", "SAYS"];
    let rows = measures.iter().map(|measured| {
        let (one, other, by, interval) = match measured.measure {
            "success" => (success(first), success(second), points(measured), interval(measured, point)),
            "cost" => (cost(first), cost(second), amount(measured, dollars), interval(measured, dollars)),
            _ => (time(first), time(second), amount(measured, millis), interval(measured, millis)),
        };
        vec![measured.measure.to_owned(), one, other, by, interval, says(measured)]
    });
    let mut text = table::plain(&heading, rows.collect(), &[1, 2, 3, 4]);
    let counted = if *paired {
        format!("{least} {of} that both did, pair by pair")
    } else {
        format!("{} and {} {of}", first.count, second.count)
    };
    text += &format!("\n\nof {counted}");
    if *least < LEAST {
        text += &format!(": too few to say anything, {LEAST} of each are the least");
    }
    text
}

fn success(SideSummary { success, .. }: &SideSummary) -> String {
    let whole = |part: f64| format!("{:.0}", part * 100.0);
    format!("{}/{} ({} to {} %)", success.passed, success.of, whole(success.low), whole(success.high))
}

fn cost(side: &SideSummary) -> String {
    side.mean_cost_micros.map(dollars).unwrap_or_default()
}

fn time(side: &SideSummary) -> String {
    side.mean_ms.map(millis).unwrap_or_default()
}

fn points(measured: &Measured) -> String {
    measured.difference.map(|by| format!("{} points", point(by.by))).unwrap_or_default()
}

fn amount(measured: &Measured, word: fn(f64) -> String) -> String {
    measured.difference.map(|by| word(by.by)).unwrap_or_default()
}

fn interval(measured: &Measured, word: fn(f64) -> String) -> String {
    let told = |Difference { low, high, .. }: Difference| format!("{} to {}", word(low), word(high));
    measured.difference.map(told).unwrap_or_default()
}

fn point(part: f64) -> String {
    format!("{:+.0}", part * 100.0)
}

fn dollars(micros: f64) -> String {
    format!("{}${:.4}", if micros < 0.0 { "-" } else { "" }, micros.abs() / 1e6)
}

fn millis(ms: f64) -> String {
    format!("{ms:.0} ms")
}

/// What it says of the second side.
fn says(Measured { measure, says, .. }: &Measured) -> String {
    match (says, *measure) {
        (Says::TooLittle, _) => "too few",
        (Says::NoDifference, _) => "no difference seen",
        (Says::More, "success") | (Says::Less, "cost" | "time") => "better",
        (Says::More | Says::Less, _) => "worse",
    }
    .to_owned()
}
