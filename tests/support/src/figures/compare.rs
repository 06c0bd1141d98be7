//! What became of each figure since an earlier series: pure.

use super::series::{Kept, Series};
use super::{Figure, Measured, Unit, ratio};

/// A figure may be worse by so much before it counts: series differ a little from one another.
const TOLERATED: f64 = 0.10;

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Not worse by more than is tolerated. How many times the earlier one it is, above 1 being worse.
    Holds(f64),
    /// Worse by more than that.
    Worse(f64),
    /// Not compared: a time without a counterpart says more of the machine than of Muster, as does a ratio of another
    /// machine.
    Shown,
    /// There is no earlier one.
    New,
}

/// A figure beside an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The figure.
    pub figure: Figure,
    /// What was measured then.
    pub before: Option<Measured>,
    /// How many times its counterpart it was then.
    pub ratio_before: Option<f64>,
    /// What became of it.
    pub verdict: Verdict,
}

/// A series beside an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// All figures.
    pub rows: Vec<Row>,
    /// Whether the earlier series is of the same machine. Else only what is counted is compared.
    pub same_machine: bool,
    /// When the earlier series was kept, and of which commit.
    pub of: Option<(String, String)>,
}

impl Comparison {
    /// The figures that are worse.
    pub fn worse(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.verdict, Verdict::Worse(_)))
    }
}

/// Compares figures with the newest kept series of the same machine; without one, what is counted with the newest of
/// any machine.
#[must_use]
pub fn compare(figures: &[Figure], machine: &super::Machine, kept: &[Series]) -> Comparison {
    let same = kept.iter().rev().find(|series| series.machine == *machine);
    let before = same.or_else(|| kept.last());
    let row = |figure: &Figure| {
        let earlier = before.and_then(|series| series.figures.get(&figure.what));
        Row {
            figure: figure.clone(),
            before: earlier.map(Kept::measured),
            ratio_before: earlier.and_then(Kept::ratio),
            verdict: earlier.map_or(Verdict::New, |earlier| judge(figure, earlier, same.is_some())),
        }
    };
    Comparison {
        rows: figures.iter().map(row).collect(),
        same_machine: same.is_some(),
        of: before.map(|series| (series.date.clone(), series.commit.clone())),
    }
}

fn judge(figure: &Figure, earlier: &Kept, same_machine: bool) -> Verdict {
    let unit = figure.measured.unit;
    if earlier.unit != unit {
        return Verdict::New;
    }
    if !figure.judged || !(same_machine || unit == Unit::Count) {
        return Verdict::Shown;
    }
    let (now, then) = match (figure.ratio(), earlier.ratio()) {
        (Some(now), Some(then)) => (now, then),
        (None, None) if unit == Unit::Count => (figure.measured.number, earlier.number),
        (None, None) => return Verdict::Shown,
        (Some(_), None) | (None, Some(_)) => return Verdict::New,
    };
    let change = if unit.more_is_better() { grown(then, now) } else { grown(now, then) };
    if change > 1.0 + TOLERATED { Verdict::Worse(change) } else { Verdict::Holds(change) }
}

/// How many times `then` it is. What was nothing and is something has grown without limit.
fn grown(now: f64, then: f64) -> f64 {
    if now <= then {
        ratio(now, Some(then)).unwrap_or(1.0)
    } else {
        ratio(now, Some(then)).unwrap_or(f64::INFINITY)
    }
}

/// The better one of two measurements of the same figure: what disturbs a series makes it worse, never better.
#[must_use]
pub fn better(one: Figure, other: Figure) -> Figure {
    let value = |figure: &Figure| figure.ratio().unwrap_or(figure.measured.number);
    let other_is = if one.measured.unit.more_is_better() {
        value(&other) > value(&one)
    } else {
        value(&other) < value(&one)
    };
    if other_is { other } else { one }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::Machine;
    use super::*;

    fn machine(cores: usize) -> Machine {
        Machine { cpu: "a processor".into(), cores, kernel: "6.1".into(), memory_gib: 8 }
    }

    fn time(what: &str, ms: u64, bare: Option<u64>) -> Figure {
        let of = |ms: u64| Measured::time(Duration::from_millis(ms));
        let figure = Figure::new(what, of(ms));
        match bare {
            Some(bare) => figure.against("bare", of(bare)),
            None => figure,
        }
    }

    fn rate(per_second: f64, bare: f64) -> Figure {
        Figure::new("figure", Measured::rate(per_second)).against("bare", Measured::rate(bare))
    }

    fn count(count: u64) -> Figure {
        Figure::new("figure", Measured::count(count))
    }

    fn series(figures: &[Figure], cores: usize) -> Series {
        let figures: BTreeMap<String, Kept> =
            figures.iter().map(|figure| (figure.what.clone(), Kept::of(figure))).collect();
        Series { date: "2026-11-22".into(), commit: "abc".into(), machine: machine(cores), figures }
    }

    fn verdict(now: Figure, before: Figure, cores_before: usize) -> Verdict {
        let kept = [series(&[before], cores_before)];
        compare(&[now], &machine(2), &kept).rows[0].verdict
    }

    #[test]
    fn a_ratio_may_get_worse_by_a_tenth_and_no_more() {
        let t = |ms, bare| time("figure", ms, bare);
        for (now, before, expected) in [
            (t(200, Some(10)), t(200, Some(10)), "holds"),
            (t(220, Some(10)), t(200, Some(10)), "holds"),
            (t(221, Some(10)), t(200, Some(10)), "worse"),
            // A machine that is twice as slow says nothing.
            (t(400, Some(20)), t(200, Some(10)), "holds"),
            // The same time on a machine that is twice as fast is twice as bad.
            (t(200, Some(5)), t(200, Some(10)), "worse"),
            (t(100, Some(10)), t(200, Some(10)), "holds"),
            // Of a rate, more is better.
            (rate(10.0, 100.0), rate(12.0, 100.0), "worse"),
            (rate(12.0, 100.0), rate(10.0, 100.0), "holds"),
            (rate(9.5, 100.0), rate(10.0, 100.0), "holds"),
            // What is counted needs no counterpart.
            (count(514), count(514), "holds"),
            (count(566), count(514), "worse"),
            (count(130), count(514), "holds"),
            (count(1), count(0), "worse"),
            (count(0), count(0), "holds"),
            // A time without a counterpart is shown.
            (t(900, None), t(200, None), "shown"),
            (t(900, Some(10)).shown_only(), t(200, Some(10)), "shown"),
            // What had no counterpart, or another unit, is another figure.
            (t(200, Some(10)), t(200, None), "new"),
            (t(200, Some(10)), count(200), "new"),
        ] {
            let found = match verdict(now.clone(), before.clone(), 2) {
                Verdict::Holds(_) => "holds",
                Verdict::Worse(_) => "worse",
                Verdict::Shown => "shown",
                Verdict::New => "new",
            };
            assert_eq!(found, expected, "{now:?} after {before:?}");
        }
    }

    #[test]
    fn of_another_machine_only_counts_are_compared() {
        assert_eq!(verdict(time("figure", 900, Some(1)), time("figure", 200, Some(10)), 64), Verdict::Shown);
        assert!(matches!(verdict(count(900), count(100), 64), Verdict::Worse(_)));
        let kept = [series(&[count(100)], 64)];
        let compared = compare(&[count(900)], &machine(2), &kept);
        assert!(!compared.same_machine);
        assert_eq!(compared.worse().count(), 1);
    }

    #[test]
    fn the_newest_series_of_this_machine_counts() {
        let kept = [series(&[count(900)], 2), series(&[count(100)], 2), series(&[count(900)], 64)];
        let compared = compare(&[count(200)], &machine(2), &kept);
        assert!(compared.same_machine);
        assert_eq!(compared.rows[0].before, Some(Measured::count(100)));
        assert!(matches!(compared.rows[0].verdict, Verdict::Worse(_)));
        assert_eq!(compare(&[count(200)], &machine(2), &[]).rows[0].verdict, Verdict::New);
    }

    #[test]
    fn of_two_measurements_the_better_one_is_taken() {
        let t = |ms, bare| time("figure", ms, bare);
        assert_eq!(better(t(200, Some(10)), t(150, Some(10))), t(150, Some(10)));
        assert_eq!(better(t(200, Some(10)), t(150, Some(5))), t(200, Some(10)));
        assert_eq!(better(rate(9.0, 10.0), rate(8.0, 10.0)), rate(9.0, 10.0));
        assert_eq!(better(count(3), count(2)), count(2));
    }
}
