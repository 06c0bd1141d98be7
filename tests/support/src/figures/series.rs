//! Series of figures that were kept: one line of JSON each, with the machine they are of.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Figure, Measured, Unit, ratio};

/// What kind of machine figures are of. It names nobody's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The model of its processor.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// The release of its kernel.
    pub kernel: String,
    /// Its memory, in whole GiB.
    pub memory_gib: u64,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (cpus, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
        Self {
            cpu: field(&cpus, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_gib: memory_gib(&memory),
        }
    }
}

/// The first value of a `name: value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// Rounded: the kernel keeps a little of it to itself, not always the same.
fn memory_gib(meminfo: &str) -> u64 {
    let kib = field(meminfo, "MemTotal").and_then(|total| total.split(' ').next()?.parse::<u64>().ok());
    kib.map_or(0, |kib| (kib + 512 * 1024) / (1024 * 1024))
}

/// A figure as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What was measured.
    pub number: f64,
    /// Its unit.
    pub unit: Unit,
    /// What was measured of the bare counterpart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bare: Option<f64>,
}

impl Kept {
    /// A figure to be kept. Four digits after the point are more than is certain.
    #[must_use]
    pub fn of(figure: &Figure) -> Self {
        let round = |number: f64| (number * 10_000.0).round() / 10_000.0;
        Self {
            number: round(figure.measured.number),
            unit: figure.measured.unit,
            bare: figure.bare.as_ref().map(|bare| round(bare.measured.number)),
        }
    }

    /// What was measured.
    #[must_use]
    pub const fn measured(&self) -> Measured {
        Measured { number: self.number, unit: self.unit }
    }

    /// How many times the bare counterpart it was.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        ratio(self.number, self.bare)
    }
}

/// A series of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The day, as `2026-11-22`.
    pub date: String,
    /// The commit that was measured; with a `+` where files differed from it.
    pub commit: String,
    /// The machine.
    pub machine: Machine,
    /// The figures by what they are.
    pub figures: BTreeMap<String, Kept>,
}

/// All series of a file, oldest first; none where there is no file.
///
/// # Errors
/// When the file cannot be read, or a line of it is no series.
pub fn read(path: &Path) -> io::Result<Vec<Series>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let parse = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| io::Error::other(format!("line {}: {error}", at + 1)))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(parse).collect()
}

/// Appends a series to a file.
///
/// # Errors
/// When it cannot be written.
pub fn append(path: &Path, series: &Series) -> io::Result<()> {
    let mut line = serde_json::to_string(series)?;
    line.push('\n');
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        assert_eq!(read(&path).unwrap(), []);
        let figure = Figure::new("W: a time", Measured { number: 12.345_678, unit: Unit::Millis })
            .against("bare", Measured { number: 2.0, unit: Unit::Millis });
        let kept = Kept::of(&figure);
        assert_eq!((kept.number, kept.ratio()), (12.3457, Some(6.172_85)));
        let machine = Machine::this();
        let figures = BTreeMap::from([(figure.what.clone(), kept)]);
        let series = Series { date: "2026-11-22".into(), commit: "abc+".into(), machine, figures };
        append(&path, &series).unwrap();
        append(&path, &series).unwrap();
        assert_eq!(read(&path).unwrap(), [series.clone(), series]);
        fs::write(&path, "{}\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().starts_with("line 1"));
    }

    #[test]
    fn a_machine_is_known_by_its_kind() {
        let machine = Machine::this();
        assert!(machine.cores > 0 && machine.memory_gib > 0 && !machine.kernel.is_empty(), "{machine:?}");
        assert_eq!(field("processor\t: 0\nmodel name\t: AMD EPYC\n", "model name"), Some("AMD EPYC"));
        assert_eq!(memory_gib("MemTotal:       24606000 kB\nMemFree: 1 kB\n"), 23);
    }
}
