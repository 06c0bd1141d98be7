//! The record of allowed values, `weights.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Name of the record at the top level of the workspace.
pub const RECORD_FILE: &str = "weights.toml";
/// Environment variable that makes the structure test lower the record to the measured values.
pub const UPDATE_VARIABLE: &str = "UPDATE_WEIGHTS";

const HEADER: &str = "\
# Ceilings of the code base. The structure test (tests/structure) measures each value and fails if it differs from the
# record. After a reduction, lower the record: UPDATE_WEIGHTS=1 cargo test -p muster-structure
# Only an issue that grants a budget raises a value, by editing this file.
";

/// Values of the workspace, by section and name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weights(pub BTreeMap<String, BTreeMap<String, u64>>);

/// A measured value that differs from the record.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Difference {
    name: String,
    recorded: u64,
    measured: u64,
}

impl Weights {
    /// Reads the record.
    ///
    /// # Errors
    /// The text is not TOML of this form.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The record as it is written to the file.
    ///
    /// # Errors
    /// A value exceeds the range of TOML integers.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        Ok(format!("{HEADER}\n{}", toml::to_string(self)?))
    }

    /// Sets a measured value.
    pub fn set(&mut self, section: &str, name: &str, value: u64) {
        self.0.entry(section.to_owned()).or_default().insert(name.to_owned(), value);
    }

    /// This record with every value lowered to the measured one. Higher measured values do not change the record, and
    /// names that are no longer measured leave it.
    #[must_use]
    pub fn lowered_to(&self, measured: &Self) -> Self {
        let recorded = |section: &str, name: &str| self.0.get(section).and_then(|all| all.get(name)).copied();
        let lowered = |section: &String, all: &BTreeMap<String, u64>| {
            let lower = |(name, value): (&String, &u64)| {
                (name.clone(), recorded(section, name).unwrap_or(0).min(*value))
            };
            (section.clone(), all.iter().map(lower).collect())
        };
        Self(measured.0.iter().map(|(section, all)| lowered(section, all)).collect())
    }

    /// What to do about each measured value that differs from this record; empty if none does.
    #[must_use]
    pub fn complaints(&self, measured: &Self) -> String {
        let mut text = String::new();
        for Difference { name, recorded, measured } in self.differences(measured) {
            let _ = if measured > recorded {
                writeln!(text, "{name} rose from {recorded} to {measured}: remove code, or get a budget")
            } else {
                writeln!(
                    text,
                    "{name} fell from {recorded} to {measured}: run with {UPDATE_VARIABLE}=1 and commit {RECORD_FILE}"
                )
            };
        }
        text
    }

    fn differences(&self, measured: &Self) -> Vec<Difference> {
        let names = |weights: &Self| -> Vec<(String, String)> {
            let pairs = |(section, all): (&String, &BTreeMap<String, u64>)| {
                all.keys().map(|name| (section.clone(), name.clone())).collect::<Vec<_>>()
            };
            weights.0.iter().flat_map(pairs).collect()
        };
        let mut all = names(self);
        all.extend(names(measured));
        all.sort();
        all.dedup();
        let value = |weights: &Self, section: &str, name: &str| {
            weights.0.get(section).and_then(|all| all.get(name)).copied().unwrap_or(0)
        };
        all.into_iter()
            .map(|(section, name)| Difference {
                recorded: value(self, &section, &name),
                measured: value(measured, &section, &name),
                name: format!("{section} of {name}"),
            })
            .filter(|one| one.recorded != one.measured)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(values: &[(&str, u64)]) -> Weights {
        let mut weights = Weights::default();
        for (name, value) in values {
            weights.set("tokens", name, *value);
        }
        weights
    }

    #[test]
    fn the_record_only_falls() {
        let record = weights(&[("a", 10), ("b", 10), ("gone", 5)]);
        let lowered = record.lowered_to(&weights(&[("a", 8), ("b", 12), ("new", 3)]));
        assert_eq!(lowered, weights(&[("a", 8), ("b", 10), ("new", 0)]));
    }

    #[test]
    fn a_value_above_or_below_the_record_is_a_complaint() {
        let record = weights(&[("a", 10)]);
        assert_eq!(record.complaints(&record), "");
        assert!(record.complaints(&weights(&[("a", 11)])).contains("rose from 10 to 11"));
        assert!(record.complaints(&weights(&[("a", 9)])).contains("UPDATE_WEIGHTS=1"));
        assert!(record.complaints(&weights(&[("a", 10), ("b", 1)])).contains("tokens of b rose from 0 to 1"));
    }

    #[test]
    fn the_written_record_reads_back() -> Result<(), Box<dyn std::error::Error>> {
        let record = weights(&[(".", 10), ("agents/web", 7)]);
        assert_eq!(Weights::parse(&record.to_toml()?)?, record);
        Ok(())
    }
}
