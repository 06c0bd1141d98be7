//! Comparison of the values in a statement with the lines that it cites.

use super::cited::{CitedText, CitedValues};
use super::derivation::{durations, follows};
use super::value::{self, Kind, Spaces, Value};
use crate::text::unit::Dimension;

/// A value of a statement that the cited lines contradict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Value as written in the statement.
    pub stated: String,
    /// Value of the same kind in the cited lines, as written there.
    pub there: String,
}

/// Largest whole number that often counts items without being written in the text.
const MAX_COUNTED: f64 = 20.0;
/// Fewest digits of a number that names rarely have.
const LONG: usize = 5;
const DAY: f64 = 86_400.0;

/// Values of a statement that its cited lines contradict.
///
/// A value is contradicted if the lines contain another value of the same kind (unit, column or key), and the stated
/// value neither occurs there in any notation nor follows from the values there by one step.
#[must_use]
pub fn contradictions(statement: &str, cited: &[CitedText<'_>]) -> Vec<Contradiction> {
    let there = CitedValues::read(cited);
    let mut found: Vec<Contradiction> = Vec::new();
    for stated in value::read(statement, Spaces::Group).iter().filter(|stated| !stated.is_weak) {
        let other =
            if occurs(stated, &there) || follows(stated, &there) { None } else { same_kind(stated, &there) };
        if let Some(other) = other {
            let contradiction = Contradiction { stated: stated.written.clone(), there: other };
            if !found.contains(&contradiction) {
                found.push(contradiction);
            }
        }
    }
    found
}

/// Whether a stated value occurs in the cited lines in any notation.
fn occurs(stated: &Value, cited: &CitedValues<'_>) -> bool {
    let is_multiple = stated.kind == Kind::Count && stated.numbers != stated.plain;
    cited.values.iter().chain(&cited.headers).any(|there| is_same(stated, there))
        || !is_multiple
            && !matches!(stated.kind, Kind::Measure(_) | Kind::Period | Kind::Time)
            && cited.has_digits(&stated.digits)
}

fn is_same(stated: &Value, there: &Value) -> bool {
    let in_unit = || there.numbers.iter().any(|number| stated.fits(*number));
    let as_written = || there.plain.iter().any(|number| stated.plain.iter().any(|value| value == number));
    match (&stated.kind, &there.kind) {
        (Kind::Date(some), Kind::Date(others)) => {
            some.iter().any(|date| others.iter().any(|other| date.agrees_with(other)))
        }
        (Kind::Date(dates), Kind::Count) => {
            there.is_year()
                && dates
                    .iter()
                    .any(|date| date.year.is_some_and(|year| there.plain.contains(&f64::from(year))))
        }
        (Kind::Count, Kind::Date(dates)) => {
            let mut parts = dates.iter().flat_map(|date| [date.year, Some(date.month), date.day]).flatten();
            parts.any(|part| stated.plain.contains(&f64::from(part)))
        }
        (Kind::Time, Kind::Time) => stated.numbers == there.numbers,
        (Kind::Version | Kind::Name(_), Kind::Version | Kind::Name(_) | Kind::Count) => {
            is_prefix(&stated.digits, &there.digits) || is_prefix(&there.digits, &stated.digits)
        }
        (Kind::Measure(one), Kind::Measure(other)) if one == other => in_unit(),
        (Kind::Measure(Dimension::Of("s")), Kind::Period) => in_unit(),
        (Kind::Measure(_), Kind::Count | Kind::Name(_)) => as_written(),
        (Kind::Period, Kind::Period | Kind::Measure(Dimension::Of("s"))) => there
            .numbers
            .iter()
            .any(|number| stated.numbers.iter().any(|period| (number - period).abs() <= 0.02 * period)),
        (Kind::Unit(base), Kind::Unit(other)) => base == other && stated.numbers == there.numbers,
        (Kind::Unit(base), Kind::Measure(Dimension::Of(other))) => {
            let mut factors = there.numbers.iter().zip(&there.plain).map(|(number, plain)| number / plain);
            base == other && factors.any(|factor| stated.numbers.contains(&factor))
        }
        // "59,100 thousand" is not 59,100.
        (Kind::Count, Kind::Count) if stated.numbers != stated.plain => in_unit(),
        (Kind::Count, Kind::Count | Kind::Name(_) | Kind::Version | Kind::Measure(_)) => {
            as_written() || in_unit()
        }
        (_, _) => false,
    }
}

/// Whether a version is another one or a part of it: `22.0` of `22.0.1`.
fn is_prefix(short: &str, long: &str) -> bool {
    let rest = long.strip_prefix(short).filter(|_| !short.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Another value of the same kind in the cited lines, as written there.
fn same_kind(stated: &Value, cited: &CitedValues<'_>) -> Option<String> {
    let others = cited.values.iter().filter(|there| !there.is_weak);
    let nouns = |there: &&Value| stated.nouns.iter().any(|noun| there.nouns.contains(noun));
    let is_count = |there: &&Value| there.kind == Kind::Count;
    let shown = |there: &Value| there.written.clone();
    match &stated.kind {
        Kind::Date(dates) => {
            let dated = others.clone().find(|there| matches!(there.kind, Kind::Date(_)));
            let has_year = dates.iter().any(|date| date.year.is_some());
            dated.or_else(|| others.clone().find(|there| there.is_year() && has_year)).map(shown)
        }
        Kind::Version => {
            let dots = |value: &Value| value.digits.matches('.').count();
            let is_version = |there: &&Value| matches!(there.kind, Kind::Version | Kind::Name(_));
            others.clone().filter(is_version).find(|there| dots(there) == dots(stated)).map(shown)
        }
        Kind::Measure(dimension) => {
            let measure = nearest(stated, others.clone().filter(|there| there.kind == stated.kind));
            let days = durations(cited).into_iter().map(|seconds| seconds / DAY);
            let between = days.reduce(f64::max).filter(|_| *dimension == Dimension::Of("s"));
            measure.or_else(|| between.map(|days| format!("{days:.0} days between the dates")))
        }
        Kind::Time | Kind::Period => {
            nearest(stated, others.clone().filter(|there| there.kind == stated.kind))
        }
        Kind::Unit(_) => nearest(stated, cited.values.iter().filter(|there| there.kind == stated.kind)),
        Kind::Name(_) => {
            // In German, the word before a number is often in capitals: a long number is compared as one.
            let len = |value: &Value| value.digits.bytes().filter(u8::is_ascii_digit).count();
            let is_long = |value: &Value| len(value) >= LONG && len(value) == len(stated);
            let same_name = nearest(stated, others.clone().filter(|there| there.kind == stated.kind));
            let long = others
                .clone()
                .filter(|there| matches!(there.kind, Kind::Name(_) | Kind::Count) && is_long(there));
            same_name.or_else(|| nearest(stated, long))
        }
        Kind::Count if stated.is_year() => {
            others.clone().find(|there| there.is_year() || has_a_year(there)).map(shown)
        }
        Kind::Count => {
            let of_same = nearest(stated, others.clone().filter(is_count).filter(nouns));
            let is_counted = stated.digits.is_empty()
                || !stated.nouns.is_empty()
                    && stated.plain.iter().all(|value| *value <= MAX_COUNTED && value.fract() == 0.0);
            let any = || nearest(stated, others.clone().filter(is_count).filter(|there| !there.is_year()));
            of_same.or_else(|| if is_counted { None } else { any() })
        }
    }
}

fn has_a_year(value: &Value) -> bool {
    value.dates().iter().any(|date| date.year.is_some())
}

/// The value that is nearest to the stated one, as written.
fn nearest<'a>(stated: &Value, others: impl Iterator<Item = &'a Value>) -> Option<String> {
    let number = stated.numbers.first().copied().unwrap_or_default();
    let distance = |value: &Value| {
        let all = value.numbers.iter().map(|other| (other - number).abs());
        all.reduce(f64::min).unwrap_or(f64::INFINITY)
    };
    others.min_by(|one, other| distance(one).total_cmp(&distance(other))).map(|value| value.written.clone())
}
