//! Values that follow from cited values by one step: sum, difference, product, ratio, percentage, unit conversion, and
//! time between dates.

use std::collections::BTreeSet;

use super::cited::CitedValues;
use super::value::{Kind, Value};
use crate::text::unit::{self, Dimension};

const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;
/// Most numbers of which every pair is combined; of more, only numbers of one column are.
const MAX_PAIRED: usize = 30;
/// Most numbers that are combined.
const MAX_NUMBERS: usize = 120;
/// Largest number that is a small one, which follows from almost any numbers.
const SMALL: f64 = 20.0;
/// Most numbers from which a small one is computed.
const FEW: usize = 8;

/// Whether a stated number follows from the cited ones.
pub(super) fn follows(stated: &Value, cited: &CitedValues<'_>) -> bool {
    let fits = |number: f64| stated.fits_computed(number);
    match &stated.kind {
        Kind::Measure(dimension) => {
            let (measures, counts) = (measures(cited, &stated.kind), counts(cited));
            let is_time = *dimension == Dimension::Of("s");
            let is_share = || {
                let mut shares =
                    pairs(&distinct(counts.clone())).into_iter().filter(|(_, whole)| *whole != 0.0);
                shares.any(|(part, whole)| {
                    fits(100.0 * part / whole) || fits(100.0 * (part - whole).abs() / whole)
                })
            };
            combines(stated, &measures)
                || measures.is_empty() && combines(&stated.without_unit(), &counts)
                || is_time && durations(cited).into_iter().any(fits)
                || *dimension == Dimension::Percent && is_share()
                || converts(stated, cited)
                || is_multiple(stated, cited)
        }
        Kind::Count => {
            let products = || pairs(&cited.counts.iter().map(|length| (*length, 0)).collect::<Vec<_>>());
            cited.counts.iter().copied().any(fits)
                || combines(stated, &counts(cited))
                || products().into_iter().any(|(one, other)| fits(one * other))
        }
        Kind::Date(_) | Kind::Time | Kind::Version | Kind::Name(_) | Kind::Period | Kind::Unit(_) => false,
    }
}

/// Seconds between the cited dates and years.
pub(super) fn durations(cited: &CitedValues<'_>) -> Vec<f64> {
    let mut days: Vec<f64> = Vec::new();
    let mut years: Vec<f64> = Vec::new();
    for value in &cited.values {
        days.extend(value.dates().iter().filter_map(|date| Some(date.day_number()? as f64)));
        years.extend(value.dates().iter().filter_map(|date| Some(f64::from(date.year?))));
        years.extend(value.plain.iter().copied().filter(|_| value.is_year()));
    }
    let between = |points: Vec<f64>, unit: f64| {
        let points = distinct(points.into_iter().map(|point| (point, 0)).collect());
        pairs(&points)
            .into_iter()
            .filter(|(from, to)| to > from)
            .map(move |(from, to)| (to - from) * unit)
            .collect::<Vec<_>>()
    };
    let mut all = between(days, DAY);
    all.extend(between(years, YEAR));
    all
}

/// Cited numbers of one kind in the base unit, each with its column.
fn measures(cited: &CitedValues<'_>, kind: &Kind) -> Vec<(f64, usize)> {
    let same = cited.values.iter().filter(|value| value.kind == *kind && !value.is_weak);
    same.flat_map(|value| value.numbers.iter().map(|number| (*number, value.column))).collect()
}

/// Cited numbers without their units, each with its column.
fn counts(cited: &CitedValues<'_>) -> Vec<(f64, usize)> {
    let numbers = cited.values.iter().filter(|value| !value.is_weak).flat_map(|value| {
        let numbers = match value.kind {
            Kind::Count => value.numbers.as_slice(),
            Kind::Measure(_) => value.plain.as_slice(),
            Kind::Date(_) | Kind::Time | Kind::Version | Kind::Name(_) | Kind::Period | Kind::Unit(_) => &[],
        };
        numbers.iter().map(|number| (*number, value.column))
    });
    numbers.collect()
}

fn distinct(mut numbers: Vec<(f64, usize)>) -> Vec<(f64, usize)> {
    numbers.sort_by(|one, other| one.1.cmp(&other.1).then(one.0.total_cmp(&other.0)));
    numbers.dedup();
    numbers.truncate(MAX_NUMBERS);
    numbers
}

/// Pairs of different numbers, in both orders.
fn pairs(numbers: &[(f64, usize)]) -> Vec<(f64, f64)> {
    pairs_of(numbers, numbers.len() > MAX_PAIRED)
}

fn pairs_of(numbers: &[(f64, usize)], in_one_column: bool) -> Vec<(f64, f64)> {
    let all = numbers.iter().enumerate().flat_map(|(at, one)| {
        let others = numbers
            .iter()
            .enumerate()
            .filter(move |(other_at, other)| *other_at != at && (!in_one_column || one.1 == other.1));
        others.map(|(_, other)| (one.0, other.0))
    });
    all.collect()
}

/// Whether the stated number is a sum, difference, product or ratio of these. A small whole number follows from almost
/// any numbers: it is computed from a column of few only.
fn combines(stated: &Value, numbers: &[(f64, usize)]) -> bool {
    let fits = |number: f64| stated.fits_computed(number);
    let is_small = stated.plain.iter().any(|value| *value <= SMALL && value.fract() == 0.0);
    let columns: BTreeSet<usize> = numbers.iter().map(|(_, column)| *column).collect();
    let of = |column: usize| numbers.iter().filter(move |number| number.1 == column);
    let all = distinct(numbers.to_vec());
    let is_few = |column: usize| all.iter().filter(|number| number.1 == column).count() <= FEW;
    let inputs: Vec<(f64, usize)> = if is_small && all.len() > FEW {
        all.iter().copied().filter(|(_, column)| is_few(*column)).collect()
    } else {
        all.clone()
    };
    let in_one_column = is_small && all.len() > FEW || inputs.len() > MAX_PAIRED;
    columns.iter().any(|column| fits(of(*column).map(|number| number.0).sum::<f64>()))
        || pairs_of(&inputs, in_one_column).into_iter().any(|(one, other)| {
            fits(one + other)
                || fits((one - other).abs())
                || fits(one * other)
                || other != 0.0 && fits(one / other)
        })
}

/// Whether a number without a unit is the stated one in another unit.
fn converts(stated: &Value, cited: &CitedValues<'_>) -> bool {
    let Kind::Measure(Dimension::Of(base)) = stated.kind else { return false };
    let mut bare =
        cited.values.iter().filter(|value| value.kind == Kind::Count).flat_map(|value| value.plain.iter());
    let factors: Vec<f64> = unit::factors(base).collect();
    bare.any(|number| factors.iter().any(|factor| stated.fits_computed(number * factor)))
}

/// Whether the stated number is a cited one of its kind times or divided by a cited number.
fn is_multiple(stated: &Value, cited: &CitedValues<'_>) -> bool {
    let times = distinct(counts(cited));
    // The same number in another unit is a wrong unit.
    let is_other =
        |value: &&Value| value.kind == stated.kind && !value.is_weak && value.plain != stated.plain;
    cited.values.iter().filter(is_other).flat_map(|value| value.numbers.iter()).any(|one| {
        times
            .iter()
            .any(|(by, _)| stated.fits_computed(one * by) || *by != 0.0 && stated.fits_computed(one / by))
    })
}
