//! What is told: one notice for all series of a rule that changed alike at the same time. Pure.

use muster_shared::ids::RunId;
use muster_shared::text::counted;
use muster_shared::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rule::{Condition, Severity};

/// Most series that a notice names; of more it says how many.
pub(crate) const MOST_NAMED: usize = 10;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// It holds now.
    Fired,
    /// It still holds.
    Repeated,
    /// It holds no more.
    Resolved,
    /// Nothing: somebody tries a destination.
    Test,
}

impl Change {
    /// Its word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Repeated => "repeated",
            Self::Resolved => "resolved",
            Self::Test => "test",
        }
    }
}

/// One of those that a notice is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// The tool, role, run or process.
    pub(crate) series: String,
    /// What was measured last: percent, milliseconds, or a number.
    pub(crate) value: f64,
    /// Since when it holds, or held.
    pub(crate) since: Millis,
    /// The run, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// What there is to say of it, on one line. May hold what models and documents say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
}

/// What somebody is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notice {
    /// Names it: told a second time it has the same.
    pub(crate) id: String,
    /// When it came about.
    pub(crate) at: Millis,
    /// The rule.
    pub(crate) rule: String,
    /// What the rule looks at.
    pub(crate) when: Condition,
    /// How much it matters.
    pub(crate) severity: Severity,
    /// What happened.
    pub(crate) change: Change,
    /// The threshold: percent, milliseconds, or a number.
    pub(crate) above: f64,
    /// About whom.
    pub(crate) series: Vec<Named>,
    /// How many more.
    #[serde(default)]
    pub(crate) more: usize,
}

impl Notice {
    /// What is sent to try a destination.
    pub(crate) fn test(id: String, at: Millis) -> Self {
        let named = Named {
            series: "test".to_owned(),
            value: 1.0,
            since: at,
            run: None,
            detail: "sent by `muster alerts test`; nothing is wrong".to_owned(),
        };
        Self {
            id,
            at,
            rule: "test".to_owned(),
            when: Condition::DeadLetters,
            severity: Severity::Info,
            change: Change::Test,
            above: 0.0,
            series: vec![named],
            more: 0,
        }
    }

    /// It in one line.
    pub(crate) fn line(&self) -> String {
        let what = match self.change {
            Change::Fired => "fires",
            Change::Repeated => "still fires",
            Change::Resolved => "is over",
            Change::Test => return "a test of this destination: nothing is wrong".to_owned(),
        };
        let each = self.series.iter().map(|one| self.named(one)).collect::<Vec<_>>().join("; ");
        let more = match self.more {
            0 => String::new(),
            more => format!("; and {}", counted(more, "more", "more")),
        };
        format!("alert {} {what} ({}): {each}{more}", self.rule, self.severity.as_str())
    }

    fn named(&self, one: &Named) -> String {
        let unit = self.when.unit();
        let detail = match one.detail.as_str() {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        let series = &one.series;
        format!(
            "{series}: {} {}, above {}{detail}",
            self.when.what(),
            unit.shown(one.value),
            unit.shown(self.above)
        )
    }

    /// It for programs: `type`, `timestamp` and `data`, as receivers of signed webhooks know them.
    pub(crate) fn body(&self) -> Value {
        let unit = self.when.unit();
        let series = self.series.iter().map(|one| {
            json!({
                "name": one.series, "value": one.value, "shown": unit.shown(one.value), "since": one.since,
                "run": one.run, "detail": one.detail,
            })
        });
        json!({
            "type": format!("alert.{}", self.change.as_str()),
            "timestamp": timestamp(self.at),
            "text": self.line(),
            "data": {
                "id": self.id, "at": self.at, "rule": self.rule, "when": self.when, "severity": self.severity,
                "change": self.change, "above": self.above, "threshold": unit.shown(self.above),
                "series": series.collect::<Vec<_>>(), "more": self.more,
            },
        })
    }
}

/// A time as RFC 3339 has it.
fn timestamp(at: Millis) -> String {
    let at = i64::try_from(at.0).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}
