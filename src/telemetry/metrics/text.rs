//! Families as Prometheus reads them: by OpenMetrics, with exemplars, or in its own older form. Pure.

use std::fmt::Write;

use super::family::{Exemplar, Family, Kind, Series};

/// How families are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// OpenMetrics 1.0.
    Open,
    /// The text form of Prometheus.
    Plain,
}

/// What the form is called in headers.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The same of the older form.
pub(crate) const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Form {
    /// The form that somebody takes, by what he says he accepts.
    pub(crate) fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::Open } else { Self::Plain }
    }

    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Open => OPEN_METRICS,
            Self::Plain => PLAIN,
        }
    }

    /// Families in this form. Those of which nothing is known are left out.
    pub(crate) fn write<'a>(self, families: impl Iterator<Item = &'a Family>) -> String {
        let mut out = String::new();
        for family in families {
            // Writing to a text fails for nobody.
            let _ = self.family(&mut out, family);
        }
        if self == Self::Open {
            out.push_str("# EOF\n");
        }
        out
    }

    fn family(self, out: &mut String, family: &Family) -> std::fmt::Result {
        let all = family.all();
        if all.is_empty() {
            return Ok(());
        }
        let (kind, total) = match family.kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
            Kind::Histogram(_) => ("histogram", ""),
        };
        // In the older form a family is called as its samples are.
        let name = match self {
            Self::Open => family.name.to_owned(),
            Self::Plain => format!("{}{total}", family.name),
        };
        writeln!(out, "# HELP {name} {}", family.help)?;
        writeln!(out, "# TYPE {name} {kind}")?;
        if self == Self::Open && !family.unit.is_empty() {
            writeln!(out, "# UNIT {name} {}", family.unit)?;
        }
        for (values, series) in &all {
            let labels: Vec<(&str, &str)> =
                family.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
            match (series, family.kind) {
                (Series::Number(value, exemplar), _) => {
                    write!(out, "{}{total}{} {}", family.name, braces(&labels, None), number(*value))?;
                    self.exemplar(out, exemplar.as_ref().filter(|_| !total.is_empty()))?;
                }
                (Series::Buckets(counts, sum, exemplars), Kind::Histogram(bounds)) => {
                    self.buckets(out, family.name, &labels, (bounds, counts, exemplars))?;
                    let braces = braces(&labels, None);
                    let count: u64 = counts.iter().sum();
                    writeln!(out, "{}_sum{braces} {}", family.name, number(*sum))?;
                    writeln!(out, "{}_count{braces} {count}", family.name)?;
                }
                (Series::Buckets(..), Kind::Counter | Kind::Gauge) => {}
            }
        }
        Ok(())
    }

    fn buckets(
        self,
        out: &mut String,
        name: &str,
        labels: &[(&str, &str)],
        (bounds, counts, exemplars): (&[f64], &[u64], &[Option<Exemplar>]),
    ) -> std::fmt::Result {
        let mut below = 0;
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        for ((bound, count), exemplar) in bounds.zip(counts).zip(exemplars) {
            below += count;
            write!(out, "{name}_bucket{} {below}", braces(labels, Some(&number(bound))))?;
            self.exemplar(out, exemplar.as_ref())?;
        }
        Ok(())
    }

    fn exemplar(self, out: &mut String, exemplar: Option<&Exemplar>) -> std::fmt::Result {
        match exemplar.filter(|_| self == Self::Open) {
            Some(Exemplar { trace, value, at }) => {
                writeln!(out, " # {{trace_id=\"{trace}\"}} {} {at:.3}", number(*value))
            }
            None => writeln!(out),
        }
    }
}

fn braces(labels: &[(&str, &str)], bound: Option<&str>) -> String {
    let pairs = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value == f64::INFINITY {
        return "+Inf".to_owned();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.1}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(value: f64) -> Option<Exemplar> {
        Some(Exemplar { trace: "ab".repeat(16), value, at: 1.5 })
    }

    #[test]
    fn both_forms_are_written_by_their_rules() {
        let calls = Family::new("muster_calls", "Calls.", "", Kind::Counter, &["tool"]);
        calls.add(&["a\"b"], 2.0, seen(1.0));
        let waits = Family::new("muster_wait_seconds", "Waits.", "seconds", Kind::Histogram(&[0.5]), &[]);
        waits.observe(&[], 0.25, seen(0.25));
        waits.observe(&[], 3.0, None);
        let runs = Family::new("muster_runs", "Runs.", "", Kind::Gauge, &[]);
        runs.set(&[], 3.0);
        let nothing = Family::new("muster_nothing", "Nothing.", "", Kind::Gauge, &[]);
        let families = [calls, waits, runs, nothing];
        let trace = "ab".repeat(16);
        assert_eq!(
            Form::Open.write(families.iter()),
            format!(
                "# HELP muster_calls Calls.\n# TYPE muster_calls counter\n\
                 muster_calls_total{{tool=\"a\\\"b\"}} 2.0 # {{trace_id=\"{trace}\"}} 1.0 1.500\n\
                 # HELP muster_wait_seconds Waits.\n# TYPE muster_wait_seconds histogram\n\
                 # UNIT muster_wait_seconds seconds\n\
                 muster_wait_seconds_bucket{{le=\"0.5\"}} 1 # {{trace_id=\"{trace}\"}} 0.25 1.500\n\
                 muster_wait_seconds_bucket{{le=\"+Inf\"}} 2\nmuster_wait_seconds_sum 3.25\n\
                 muster_wait_seconds_count 2\n\
                 # HELP muster_runs Runs.\n# TYPE muster_runs gauge\nmuster_runs 3.0\n# EOF\n"
            )
        );
        let plain = Form::Plain.write(families.iter());
        assert!(
            plain.contains("# TYPE muster_calls_total counter\nmuster_calls_total{tool=\"a\\\"b\"} 2.0\n"),
            "{plain}"
        );
        assert!(
            !plain.contains("trace_id") && !plain.contains("# EOF") && !plain.contains("# UNIT"),
            "{plain}"
        );
    }
}
