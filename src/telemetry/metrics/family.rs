//! A family of series: one figure by its labels.

use std::collections::BTreeMap;
use std::sync::Mutex;

use muster_shared::sync::lock;

/// Most series of one family; what would be more goes to one that is called `other`.
const MOST_SERIES: usize = 200;

/// What a family holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// What only grows.
    Counter,
    /// What goes up and down.
    Gauge,
    /// How often something was at most so large.
    Histogram(&'static [f64]),
}

/// A trace in which a figure was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exemplar {
    /// Its id, in hexadecimal.
    pub(crate) trace: String,
    /// What was seen.
    pub(crate) value: f64,
    /// When, in seconds since 1970.
    pub(crate) at: f64,
}

/// What one series holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Series {
    /// A number, with a trace in which it was last added to.
    Number(f64, Option<Exemplar>),
    /// How many lay in each bucket (the last is for what is larger than all), their sum, and a trace for each bucket.
    Buckets(Vec<u64>, f64, Vec<Option<Exemplar>>),
}

/// A family of series.
#[derive(Debug)]
pub(crate) struct Family {
    /// Its name, without the ending of counters.
    pub(crate) name: &'static str,
    /// What it says.
    pub(crate) help: &'static str,
    /// Its unit, which its name ends with; empty where it has none.
    pub(crate) unit: &'static str,
    /// What it holds.
    pub(crate) kind: Kind,
    /// The names of its labels.
    pub(crate) labels: &'static [&'static str],
    series: Mutex<BTreeMap<Vec<String>, Series>>,
}

impl Family {
    pub(crate) const fn new(
        name: &'static str,
        help: &'static str,
        unit: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
    ) -> Self {
        Self { name, help, unit, kind, labels, series: Mutex::new(BTreeMap::new()) }
    }

    /// Adds to a counter or a gauge.
    pub(crate) fn add(&self, labels: &[&str], value: f64, trace: Option<Exemplar>) {
        self.with(labels, |series| {
            if let Series::Number(sum, exemplar) = series {
                *sum += value;
                if trace.is_some() {
                    *exemplar = trace;
                }
            }
        });
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, labels: &[&str], value: f64) {
        self.with(labels, |series| *series = Series::Number(value, None));
    }

    /// Puts what was seen into its bucket.
    pub(crate) fn observe(&self, labels: &[&str], value: f64, trace: Option<Exemplar>) {
        let Kind::Histogram(bounds) = self.kind else { return };
        let at = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        self.with(labels, |series| {
            if let Series::Buckets(counts, sum, exemplars) = series {
                if let Some(count) = counts.get_mut(at) {
                    *count += 1;
                }
                *sum += value;
                if let (Some(place), true) = (exemplars.get_mut(at), trace.is_some()) {
                    *place = trace;
                }
            }
        });
    }

    /// What is known now, by labels.
    pub(crate) fn all(&self) -> Vec<(Vec<String>, Series)> {
        let series = lock(&self.series);
        series.iter().map(|(labels, series)| (labels.clone(), series.clone())).collect()
    }

    fn with(&self, labels: &[&str], change: impl FnOnce(&mut Series)) {
        let mut series = lock(&self.series);
        let mut labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        if series.len() >= MOST_SERIES && !series.contains_key(&labels) {
            labels.iter_mut().for_each(|label| "other".clone_into(label));
        }
        change(series.entry(labels).or_insert_with(|| self.empty()));
    }

    fn empty(&self) -> Series {
        match self.kind {
            Kind::Counter | Kind::Gauge => Series::Number(0.0, None),
            Kind::Histogram(bounds) => {
                Series::Buckets(vec![0; bounds.len() + 1], 0.0, vec![None; bounds.len() + 1])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_bounded_whatever_they_are_called() {
        let family = Family::new("a", "A.", "", Kind::Counter, &["name"]);
        for n in 0..10 * MOST_SERIES {
            family.add(&[&n.to_string()], 1.0, None);
        }
        let all = family.all();
        assert_eq!(all.len(), MOST_SERIES + 1);
        let rest = all.iter().find(|(labels, _)| labels == &["other"]).unwrap();
        assert_eq!(rest.1, Series::Number(9.0 * 200.0, None));
    }

    #[test]
    fn what_is_seen_lies_in_the_first_bucket_that_is_large_enough() {
        let family = Family::new("a", "A.", "", Kind::Histogram(&[0.1, 1.0]), &[]);
        for value in [0.1, 0.5, 1.0, 7.0] {
            family.observe(&[], value, None);
        }
        let (_, series) = family.all().pop().unwrap();
        assert_eq!(series, Series::Buckets(vec![1, 2, 1], 8.6, vec![None, None, None]));
    }
}
