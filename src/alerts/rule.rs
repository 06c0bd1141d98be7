//! What a rule is about: its condition, the unit of its threshold, and what holds where a user says nothing. Pure.

use std::fmt;
use std::time::Duration;

use muster_shared::span;
use serde::{Deserialize, Serialize};

use crate::render::figures;

/// What a rule looks at. Each has a rule of its name that comes with Muster.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    /// The share of a tool's calls that fail, within the window.
    ToolFailures,
    /// The mean time of a step of a role, within the window.
    StepTime,
    /// How long a run's oldest open question has waited for a person.
    Questions,
    /// The share of its budget that a run, or the fleet, has used.
    Budget,
    /// How often a process was started again, within the window.
    Restarts,
    /// How many dead letters there are.
    DeadLetters,
    /// For how long nothing was written about a run that waits for nobody.
    Stalled,
    /// How many runs wait for a role, or an orchestrator, that nobody has.
    MissingRole,
    /// How full the record is. New goals are refused from 80% on.
    RecordFull,
}

/// In what a threshold is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Percent, from 0 to 100.
    Percent,
    /// Time, in milliseconds.
    Span,
    /// A number of things.
    Count,
}

/// Longest time that a threshold may be.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// Largest number that a threshold may be.
const MOST: f64 = 1e9;

impl Unit {
    /// What a person wrote, in this unit.
    ///
    /// # Errors
    /// Says what it has to be.
    pub(crate) fn read(self, text: &str) -> Result<f64, &'static str> {
        let text = text.trim();
        match self {
            Self::Percent => {
                let number = text.strip_suffix('%').map(str::trim_end).and_then(|number| number.parse().ok());
                let within = number.filter(|number| (0.0..=100.0).contains(number));
                within.ok_or("it must be a share from 0% to 100%, such as 20%")
            }
            Self::Span => {
                let time = span::parse(text).filter(|time| *time <= LONGEST);
                time.map(millis).ok_or("it must be a span of time up to 30d, such as 30s or 10m")
            }
            Self::Count => {
                let number = text.parse::<u32>().ok().map(f64::from).filter(|number| *number <= MOST);
                number.ok_or("it must be a whole number, such as 3")
            }
        }
    }

    /// A value in words.
    pub(crate) fn shown(self, value: f64) -> String {
        match self {
            Self::Percent => format!("{}%", (value * 10.0).round() / 10.0),
            // Whole seconds are enough for people, where there are any.
            Self::Span => figures::span(Duration::from_secs_f64((value / 1000.0).clamp(0.0, 1e12))),
            Self::Count => format!("{value:.0}"),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a threshold, of 30 days at most")]
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_millis() as f64
}

impl Condition {
    /// All there are.
    pub(crate) const ALL: [Self; 9] = [
        Self::ToolFailures,
        Self::StepTime,
        Self::Questions,
        Self::Budget,
        Self::Restarts,
        Self::DeadLetters,
        Self::Stalled,
        Self::MissingRole,
        Self::RecordFull,
    ];

    /// Its word in settings, which is also the name of the rule that comes with Muster.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ToolFailures => "tool_failures",
            Self::StepTime => "step_time",
            Self::Questions => "questions",
            Self::Budget => "budget",
            Self::Restarts => "restarts",
            Self::DeadLetters => "dead_letters",
            Self::Stalled => "stalled",
            Self::MissingRole => "missing_role",
            Self::RecordFull => "record_full",
        }
    }

    /// The condition of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|condition| condition.as_str() == name)
    }

    /// In what its threshold is measured.
    pub(crate) const fn unit(self) -> Unit {
        match self {
            Self::ToolFailures | Self::Budget | Self::RecordFull => Unit::Percent,
            Self::StepTime | Self::Questions | Self::Stalled => Unit::Span,
            Self::Restarts | Self::DeadLetters | Self::MissingRole => Unit::Count,
        }
    }

    /// The threshold where none is set.
    pub(crate) const fn usual(self) -> f64 {
        match self {
            Self::ToolFailures => 20.0,
            Self::StepTime => 30_000.0,
            Self::Questions => 300_000.0,
            Self::Budget => 80.0,
            Self::Restarts => 2.0,
            Self::DeadLetters | Self::MissingRole => 0.0,
            Self::Stalled => 600_000.0,
            // Before goals are refused.
            Self::RecordFull => 70.0,
        }
    }

    /// How long it must hold where nothing is set: whoever of a role is started again is missed for a moment.
    pub(crate) const fn usual_lasts(self) -> Duration {
        match self {
            Self::MissingRole => Duration::from_secs(30),
            Self::ToolFailures
            | Self::StepTime
            | Self::Questions
            | Self::Budget
            | Self::Restarts
            | Self::DeadLetters
            | Self::Stalled
            | Self::RecordFull => Duration::ZERO,
        }
    }

    /// The fewest calls or steps of which a share or a mean is made, where nothing is set.
    pub(crate) const fn usual_least(self) -> u32 {
        match self {
            Self::ToolFailures => 5,
            Self::StepTime => 3,
            Self::Questions
            | Self::Budget
            | Self::Restarts
            | Self::DeadLetters
            | Self::Stalled
            | Self::MissingRole
            | Self::RecordFull => 0,
        }
    }

    /// What is measured, in words that a value follows.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::ToolFailures => "calls of the tool that failed",
            Self::StepTime => "mean time of a step",
            Self::Questions => "time that a question has waited",
            Self::Budget => "budget used",
            Self::Restarts => "restarts",
            Self::DeadLetters => "dead letters",
            Self::Stalled => "time without an entry",
            Self::MissingRole => "runs that wait for it",
            Self::RecordFull => "record used",
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much an alert matters to its user. Muster makes no difference.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Good to know.
    Info,
    /// Somebody should look.
    #[default]
    Warning,
    /// Somebody has to look now.
    Critical,
}

impl Severity {
    /// Its word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rule {
    /// Its name.
    pub(crate) name: String,
    /// What it looks at.
    pub(crate) when: Condition,
    /// It holds while what it measures is more than this: percent, milliseconds, or a number.
    pub(crate) above: f64,
    /// How far back it looks, of conditions that have a window.
    #[serde(with = "muster_shared::span")]
    pub(crate) window: Duration,
    /// The fewest calls or steps that it judges by.
    pub(crate) least: u32,
    /// How long it must hold before it fires.
    #[serde(with = "muster_shared::span")]
    pub(crate) lasts: Duration,
    /// How long it must not hold before it is over.
    #[serde(with = "muster_shared::span")]
    pub(crate) clear: Duration,
    /// How often it is told again while it fires; never when zero.
    #[serde(with = "muster_shared::span")]
    pub(crate) repeat: Duration,
    /// How much it matters.
    pub(crate) severity: Severity,
    /// Who is told.
    pub(crate) to: Vec<String>,
}

impl Rule {
    /// Its threshold in words.
    pub(crate) fn threshold(&self) -> String {
        self.when.unit().shown(self.above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_and_shown_in_their_unit() {
        for (unit, text, value) in [
            (Unit::Percent, "20%", Ok(20.0)),
            (Unit::Percent, " 12.5 % ", Ok(12.5)),
            (Unit::Percent, "20", Err("such as 20%")),
            (Unit::Percent, "101%", Err("from 0% to 100%")),
            (Unit::Percent, "NaN%", Err("from 0% to 100%")),
            (Unit::Span, "30s", Ok(30_000.0)),
            (Unit::Span, "30", Err("a span of time")),
            (Unit::Span, "31d", Err("up to 30d")),
            (Unit::Count, "3", Ok(3.0)),
            (Unit::Count, "-1", Err("a whole number")),
            (Unit::Count, "2.5", Err("a whole number")),
        ] {
            match (unit.read(text), value) {
                (Ok(read), Ok(value)) => assert!((read - value).abs() < 1e-9, "{text}: {read}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (read, wanted) => unreachable!("{text}: {read:?}, not {wanted:?}"),
            }
        }
        assert_eq!(Unit::Percent.shown(33.333), "33.3%");
        assert_eq!(Unit::Count.shown(4.0), "4");
    }

    #[test]
    fn every_condition_has_a_name_of_its_own() {
        for condition in Condition::ALL {
            assert_eq!(Condition::named(condition.as_str()), Some(condition));
            assert_eq!(serde_json::json!(condition), condition.as_str());
        }
        assert_eq!(Condition::named("nothing"), None);
    }
}
