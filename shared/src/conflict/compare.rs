//! Whether two values claimed of one subject agree.

use super::read::read_value;
use crate::flow::{ClaimValue, Finite};
use crate::text::normalise_space;
use crate::text::unit::{self, Dimension, Unit};

/// How two values stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// They say the same.
    Agree,
    /// They contradict each other.
    Differ,
    /// No rule tells.
    Unclear,
}

/// How far apart numbers may lie and still agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// Of the larger of the two, in percent; in percent points where both are percentages.
    pub percent: u8,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { percent: 5 }
    }
}

impl Tolerance {
    /// Whether two values claimed of one subject agree.
    #[must_use]
    pub fn agrees(self, one: &ClaimValue, other: &ClaimValue) -> bool {
        compare(one, other, self) == Comparison::Agree
    }
}

/// What rounding may make of numbers that are the same.
const ROUNDING: f64 = 1e-9;

/// How far apart temperatures may lie, in degrees Celsius for each percent of tolerance.
const DEGREES: f64 = 0.2;

/// Compares two values claimed of one subject. Both orders give the same.
#[must_use]
pub fn compare(one: &ClaimValue, other: &ClaimValue, tolerance: Tolerance) -> Comparison {
    match (&plain(one), &plain(other)) {
        (ClaimValue::Number { value: a, unit: of_a }, ClaimValue::Number { value: b, unit: of_b }) => {
            numbers(&Quantity::read(*a, of_a), &Quantity::read(*b, of_b), tolerance)
        }
        (ClaimValue::Date(a), ClaimValue::Date(b)) => {
            when(a.starts_with(b.as_str()) || b.starts_with(a.as_str()))
        }
        (ClaimValue::Date(date), ClaimValue::Number { value, unit })
        | (ClaimValue::Number { value, unit }, ClaimValue::Date(date)) => year_and_date(date, *value, unit),
        (ClaimValue::Verdict(a), ClaimValue::Verdict(b)) => when(a == b),
        (ClaimValue::Category(a), ClaimValue::Category(b)) => when(is_same_text(a, b)),
        (ClaimValue::Text(a) | ClaimValue::Category(a), ClaimValue::Text(b) | ClaimValue::Category(b)) => {
            if is_same_text(a, b) {
                Comparison::Agree
            } else {
                Comparison::Unclear
            }
        }
        (
            ClaimValue::Number { .. }
            | ClaimValue::Date(_)
            | ClaimValue::Verdict(_)
            | ClaimValue::Category(_)
            | ClaimValue::Text(_),
            _,
        ) => Comparison::Unclear,
    }
}

const fn when(agree: bool) -> Comparison {
    if agree { Comparison::Agree } else { Comparison::Differ }
}

/// The value as the rules read it: whoever made the claim may have sent a number or a verdict as words.
fn plain(value: &ClaimValue) -> ClaimValue {
    match value {
        ClaimValue::Date(text) | ClaimValue::Text(text) => {
            read_value(text, "").unwrap_or_else(|| value.clone())
        }
        ClaimValue::Number { .. } | ClaimValue::Category(_) | ClaimValue::Verdict(_) => value.clone(),
    }
}

/// A number in a unit.
struct Quantity {
    value: Finite,
    unit: Unit,
}

impl Quantity {
    fn read(value: Finite, unit: &str) -> Self {
        Self { value, unit: unit::read(unit) }
    }

    /// So much of it in the base unit of what is measured.
    fn in_base(&self) -> f64 {
        self.unit.in_base(self.value.get())
    }
}

fn numbers(one: &Quantity, other: &Quantity, tolerance: Tolerance) -> Comparison {
    let (unit_a, unit_b) = (&one.unit, &other.unit);
    match (&unit_a.dimension, &unit_b.dimension) {
        (Dimension::None, known) if *known != Dimension::None => {
            return bare_number(one.in_base(), other, tolerance);
        }
        (known, Dimension::None) if *known != Dimension::None => {
            return bare_number(other.in_base(), one, tolerance);
        }
        (_, _) => {}
    }
    let (a, b) = (one.in_base(), other.in_base());
    let percent = f64::from(tolerance.percent);
    let exact = ROUNDING * a.abs().max(b.abs()).max(1.0);
    let within = |most: f64| (a - b).abs() <= most.max(exact);
    let relative = percent / 100.0 * a.abs().max(b.abs());
    match (&unit_a.dimension, &unit_b.dimension) {
        (Dimension::Percent, Dimension::Percent) => when(within(percent)),
        (Dimension::Temperature, Dimension::Temperature) => when(within(percent * DEGREES)),
        (dimension, same) if dimension == same => when(within(relative)),
        // A share such as 0.3 is 30 %.
        (Dimension::Percent, Dimension::None)
            if is_share(b) && (a - b * 100.0).abs() <= percent.max(exact) =>
        {
            Comparison::Agree
        }
        (Dimension::None, Dimension::Percent)
            if is_share(a) && (b - a * 100.0).abs() <= percent.max(exact) =>
        {
            Comparison::Agree
        }
        // A number without a unit may be meant in any.
        (Dimension::None, _) | (_, Dimension::None) if within(relative) => Comparison::Agree,
        (
            Dimension::Percent
            | Dimension::Temperature
            | Dimension::Of(_)
            | Dimension::Other(_)
            | Dimension::None,
            _,
        ) => Comparison::Unclear,
    }
}

/// A number without a unit is meant in the unit of the other, or is a share of a whole where that is a percentage.
fn bare_number(bare: f64, measured: &Quantity, tolerance: Tolerance) -> Comparison {
    let (unit, percent, base) = (&measured.unit, f64::from(tolerance.percent), measured.in_base());
    let same_unit = unit.in_base(bare);
    let readings = match &unit.dimension {
        Dimension::Percent if is_share(bare) && base >= 1.0 => vec![bare * 100.0],
        Dimension::Percent if (0.0..=1.0).contains(&bare) => vec![bare, bare * 100.0],
        Dimension::Percent
        | Dimension::Temperature
        | Dimension::Of(_)
        | Dimension::Other(_)
        | Dimension::None => vec![bare, same_unit],
    };
    let most = |reading: f64| match &unit.dimension {
        Dimension::Percent => percent,
        Dimension::Temperature => percent * DEGREES,
        Dimension::Of(_) | Dimension::Other(_) | Dimension::None => {
            percent / 100.0 * reading.abs().max(base.abs())
        }
    };
    let exact = |reading: f64| ROUNDING * reading.abs().max(base.abs()).max(1.0);
    let is_near = |reading: &f64| (reading - base).abs() <= most(*reading).max(exact(*reading));
    when(readings.iter().any(is_near))
}

/// Whether a number without a unit may be a part of a whole.
fn is_share(number: f64) -> bool {
    number > 0.0 && number < 1.0
}

fn is_year(number: f64) -> bool {
    number.fract() == 0.0 && (1000.0..=2999.0).contains(&number)
}

fn year_and_date(date: &str, value: Finite, unit: &str) -> Comparison {
    let year: Option<f64> = date.get(..4).and_then(|year| year.parse().ok());
    match year {
        Some(year) if unit.trim().is_empty() && is_year(value.get()) => {
            when((year - value.get()).abs() < ROUNDING)
        }
        Some(_) | None => Comparison::Unclear,
    }
}

/// Whether two texts are equal except for case, white space and a full stop at the end.
fn is_same_text(one: &str, other: &str) -> bool {
    let plain = |text: &str| normalise_space(text).trim_end_matches('.').to_lowercase();
    plain(one) == plain(other)
}
