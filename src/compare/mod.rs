//! Two sides held against each other: success, cost and time, with intervals. Pure.

pub(crate) mod samples;
pub(crate) mod stats;

use serde::Serialize;

use crate::eval::stats::{Share, share};
use samples::Sample;
use stats::{Difference, Pairs, Says};

/// One side: what it is called, and what its tasks or runs came to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) samples: Vec<Sample>,
}

/// What two sides came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// What was counted: tasks, or runs.
    pub(crate) of: &'static str,
    /// Whether the same was done by both, and pairs are compared.
    pub(crate) paired: bool,
    /// How many pairs there are, or how many of the smaller side.
    pub(crate) least: usize,
    pub(crate) first: SideSummary,
    pub(crate) second: SideSummary,
    pub(crate) measures: Vec<Measured>,
}

/// One side in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SideSummary {
    pub(crate) name: String,
    pub(crate) count: usize,
    pub(crate) success: Share,
    pub(crate) mean_cost_micros: Option<f64>,
    pub(crate) mean_ms: Option<f64>,
}

/// What both differ by in one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    pub(crate) measure: &'static str,
    pub(crate) difference: Option<Difference>,
    pub(crate) says: Says,
}

/// Compares two sides; pairs, where both did the same.
pub(crate) fn compare(of: &'static str, first: &Side, second: &Side) -> Comparison {
    let pairs = samples::pairs(&first.samples, &second.samples);
    let paired = !pairs.is_empty();
    // What only one of them did says nothing beside what both did.
    let (mine, theirs): (Vec<&Sample>, Vec<&Sample>) = if paired {
        pairs.iter().copied().unzip()
    } else {
        (first.samples.iter().collect(), second.samples.iter().collect())
    };
    let least = mine.len().min(theirs.len());
    let (one, other) = (summary(&first.name, &mine), summary(&second.name, &theirs));
    let success =
        if paired { stats::of_pairs(counted(&pairs)) } else { stats::of_shares(one.success, other.success) };
    let means = |value: fn(&Sample) -> f64| match paired {
        true => stats::of_paired_means(
            &pairs.iter().map(|(one, other)| (value(one), value(other))).collect::<Vec<_>>(),
        ),
        false => {
            let of = |side: &[&Sample]| side.iter().map(|sample| value(sample)).collect::<Vec<_>>();
            stats::of_means(&of(&mine), &of(&theirs))
        }
    };
    let measured = |measure, difference: Option<Difference>| Measured {
        measure,
        difference,
        says: difference.map_or(Says::TooLittle, |difference| difference.says(least)),
    };
    let measures = vec![
        measured("success", success),
        measured("cost", means(|sample| sample.cost_micros)),
        measured("time", means(|sample| sample.ms)),
    ];
    Comparison { of, paired, least, first: one, second: other, measures }
}

fn counted(pairs: &[(&Sample, &Sample)]) -> Pairs {
    let mut counted = Pairs::default();
    for (one, other) in pairs {
        match (one.done, other.done) {
            (true, true) => counted.both += 1,
            (true, false) => counted.first += 1,
            (false, true) => counted.second += 1,
            (false, false) => counted.neither += 1,
        }
    }
    counted
}

fn summary(name: &str, samples: &[&Sample]) -> SideSummary {
    let done = samples.iter().filter(|sample| sample.done).count();
    let mean = |value: fn(&Sample) -> f64| {
        let sum: f64 = samples.iter().map(|sample| value(sample)).sum();
        (!samples.is_empty()).then(|| sum / samples.len() as f64)
    };
    SideSummary {
        name: name.to_owned(),
        count: samples.len(),
        success: share(done, samples.len()),
        mean_cost_micros: mean(|sample| sample.cost_micros),
        mean_ms: mean(|sample| sample.ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, samples: &[(&str, bool, f64)]) -> Side {
        let of = |(key, done, cost): &(&str, bool, f64)| Sample {
            key: (*key).to_owned(),
            done: *done,
            cost_micros: *cost,
            ms: 2.0 * cost,
        };
        Side { name: name.to_owned(), samples: samples.iter().map(of).collect() }
    }

    #[test]
    fn what_both_did_is_compared_pair_by_pair() {
        let keys: Vec<String> = (0..10).map(|at| at.to_string()).collect();
        let of = |done: bool, more: f64| -> Vec<(&str, bool, f64)> {
            keys.iter()
                .zip([1.0, 5.0, 9.0, 2.0, 7.0, 3.0, 8.0, 4.0, 6.0, 10.0])
                .map(|(key, cost)| (key.as_str(), done, cost + more))
                .collect()
        };
        let mut usual = of(true, 0.0);
        usual.push(("alone", false, 1e9));
        let found = compare("tasks", &side("usual", &usual), &side("tried", &of(true, 1.0)));
        assert!(found.paired && found.least == 10 && found.first.count == 10);
        let cost = &found.measures[1];
        assert!(cost.says == Says::More && cost.difference.is_some_and(|by| (by.by - 1.0).abs() < 1e-9));
        assert_eq!(found.measures[0].says, Says::NoDifference);
        let apart: Vec<(&str, bool, f64)> =
            of(false, 1.0).into_iter().map(|(_, done, cost)| ("", done, cost)).collect();
        let found = compare("tasks", &side("usual", &of(true, 0.0)), &side("tried", &apart));
        assert!(!found.paired && found.measures[0].says == Says::Less);
        assert_eq!(found.measures[1].says, Says::NoDifference, "the same difference is lost among them");
    }

    #[test]
    fn too_little_is_said_to_be_so() {
        let few = compare("tasks", &side("a", &[("", true, 1.0)]), &side("b", &[]));
        assert!(few.measures.iter().all(|measured| measured.says == Says::TooLittle), "{few:?}");
        assert_eq!((few.least, few.second.mean_ms), (0, None));
    }
}
