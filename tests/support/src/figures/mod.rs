//! Figures: what was measured, what is aimed at, and the bare counterpart of the same series.

mod compare;
mod series;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use compare::{Comparison, Row, Verdict, better, compare};
pub use series::{Kept, Machine, Series, append, read};

/// What a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Mebibytes of memory.
    #[serde(rename = "MiB")]
    Mib,
    /// So many a second: the more, the better.
    #[serde(rename = "/s")]
    PerSecond,
    /// Percent of one core.
    #[serde(rename = "%")]
    Percent,
    /// How many times something.
    #[serde(rename = "x")]
    Times,
    /// Things counted: messages, writes, entries, bytes. The same on every machine.
    #[serde(rename = "counted")]
    Count,
}

impl Unit {
    /// Whether more of it is better.
    #[must_use]
    pub const fn more_is_better(self) -> bool {
        match self {
            Self::PerSecond => true,
            Self::Millis | Self::Mib | Self::Percent | Self::Times | Self::Count => false,
        }
    }
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The number.
    pub number: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Measured {
    /// A time.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self { number: time.as_secs_f64() * 1000.0, unit: Unit::Millis }
    }

    /// Memory.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sizes of memory are far below 2^52")]
    pub fn memory(bytes: u64) -> Self {
        Self { number: bytes as f64 / (1024.0 * 1024.0), unit: Unit::Mib }
    }

    /// So many a second.
    #[must_use]
    pub const fn rate(per_second: f64) -> Self {
        Self { number: per_second, unit: Unit::PerSecond }
    }

    /// A share of one core.
    #[must_use]
    pub const fn percent(percent: f64) -> Self {
        Self { number: percent, unit: Unit::Percent }
    }

    /// How many times something.
    #[must_use]
    pub const fn times(times: f64) -> Self {
        Self { number: times, unit: Unit::Times }
    }

    /// Things counted.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub const fn count(count: u64) -> Self {
        Self { number: count as f64, unit: Unit::Count }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        let text = match self.unit {
            Unit::Millis => format!("{number:.2} ms"),
            Unit::Mib => format!("{number:.1} MiB"),
            Unit::PerSecond => format!("{number:.1} /s"),
            Unit::Percent => format!("{number:.3} %"),
            Unit::Times => format!("{number:.2} x"),
            Unit::Count => format!("{number:.0}"),
        };
        f.pad(&text)
    }
}

/// What is aimed at, in the unit of the figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// No more than so many times the bare counterpart.
    TimesBare(f64),
}

/// The same work without Muster, measured in the same series.
#[derive(Debug, Clone, PartialEq)]
pub struct Bare {
    /// What it is.
    pub what: String,
    /// What was measured.
    pub measured: Measured,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is. The same words in every series.
    pub what: String,
    /// What was measured.
    pub measured: Measured,
    /// What is aimed at.
    pub aim: Option<Aim>,
    /// The bare counterpart.
    pub bare: Option<Bare>,
    /// Whether it is compared with earlier series: not where it is too small to be told from noise.
    pub judged: bool,
}

impl Figure {
    /// A figure without an aim.
    #[must_use]
    pub fn new(what: impl Into<String>, measured: Measured) -> Self {
        Self { what: what.into(), measured, aim: None, bare: None, judged: true }
    }

    /// Adds what is aimed at.
    #[must_use]
    pub const fn aiming(mut self, aim: Aim) -> Self {
        self.aim = Some(aim);
        self
    }

    /// Adds the bare counterpart.
    #[must_use]
    pub fn against(mut self, what: impl Into<String>, measured: Measured) -> Self {
        self.bare = Some(Bare { what: what.into(), measured });
        self
    }

    /// The same, shown and not compared with earlier series.
    #[must_use]
    pub const fn shown_only(mut self) -> Self {
        self.judged = false;
        self
    }

    /// How many times the bare counterpart it is.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        ratio(self.measured.number, self.bare.as_ref().map(|bare| bare.measured.number))
    }

    /// Whether the aim is reached.
    #[must_use]
    pub fn reached(&self) -> Option<bool> {
        let number = self.measured.number;
        match self.aim? {
            Aim::AtMost(most) => Some(number <= most),
            Aim::AtLeast(least) => Some(number >= least),
            Aim::TimesBare(most) => self.ratio().map(|ratio| ratio <= most),
        }
    }

    /// The aim in words.
    #[must_use]
    pub fn aim(&self) -> String {
        let of = |number: f64| Measured { number, ..self.measured };
        match self.aim {
            None => String::new(),
            Some(Aim::AtMost(most)) => format!("<= {}", short(of(most))),
            Some(Aim::AtLeast(least)) => format!(">= {}", short(of(least))),
            Some(Aim::TimesBare(most)) => format!("<= {most} x bare"),
        }
    }
}

/// Aims are round numbers.
fn short(measured: Measured) -> String {
    let text = measured.to_string();
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = number.strip_suffix(".00").or_else(|| number.strip_suffix(".0")).unwrap_or(number);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().to_owned()
}

/// How many times `bare` goes into a number; nothing without one.
fn ratio(number: f64, bare: Option<f64>) -> Option<f64> {
    bare.filter(|bare| *bare > 0.0).map(|bare| number / bare)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn aims_are_judged_and_said_in_the_unit_of_the_figure() {
        let time = |ms: u64| Figure::new("a time", Measured::time(Duration::from_millis(ms)));
        for (figure, said, reached) in [
            (time(20).aiming(Aim::AtMost(20.0)), "<= 20 ms", Some(true)),
            (time(21).aiming(Aim::AtMost(20.0)), "<= 20 ms", Some(false)),
            (Figure::new("a rate", Measured::rate(24.0)).aiming(Aim::AtLeast(25.0)), ">= 25 /s", Some(false)),
            (
                Figure::new("a share", Measured::percent(0.05)).aiming(Aim::AtMost(0.1)),
                "<= 0.1 %",
                Some(true),
            ),
            (Figure::new("a count", Measured::count(514)).aiming(Aim::AtMost(130.0)), "<= 130", Some(false)),
            (time(3).aiming(Aim::TimesBare(2.0)), "<= 2 x bare", None),
            (
                time(3).aiming(Aim::TimesBare(2.0)).against("bare", Measured::time(Duration::from_millis(2))),
                "<= 2 x bare",
                Some(true),
            ),
            (time(3), "", None),
        ] {
            assert_eq!(figure.aim(), said);
            assert_eq!(figure.reached(), reached, "{figure:?}");
        }
    }
}
