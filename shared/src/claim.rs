//! Claims of files of a project, which need the user's consent (`muster trust`). Each format of files returns its claims from
//! one function that names every key: a new key does not compile without a class.

use serde::{Deserialize, Serialize};

/// One effect of a file that needs the user's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustClaim {
    /// Kind of the effect.
    pub what: Danger,
    /// The key in the file.
    pub key: String,
    /// The value, as people read it.
    pub value: String,
}

impl TrustClaim {
    /// A claim of a key.
    pub fn new(what: Danger, key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what, key: key.into(), value: value.into() }
    }

    /// A claim of a key with named values, as they are written; none without values.
    pub fn of_values<'a>(
        what: Danger,
        key: impl Into<String>,
        values: impl Iterator<Item = (&'a String, &'a str)>,
    ) -> Option<Self> {
        let shown = values.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ");
        (!shown.is_empty()).then(|| Self::new(what, key, shown))
    }
}

/// Kind of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Danger {
    /// Runs a program.
    Program,
    /// Names the recipient of a secret, or a file that is sent as a secret.
    Secret,
    /// Chooses a bus, or the credentials for it.
    Bus,
    /// Lets other machines connect to a bus of this machine.
    Network,
    /// Writes files outside of the project.
    Outside,
    /// Changes a guard of the user.
    Guard,
    /// Changes the rights of tasks in the user's settings.
    Rights,
    /// Admits people to the dashboard, or gives documents to their runs.
    Visitors,
    /// Allows tools that are off by default.
    Tools,
    /// Reaches a host.
    Host,
    /// Reads a file outside of the project.
    Read,
    /// Chooses models.
    Model,
    /// Raises a limit of calls, tokens or cost.
    Spending,
    /// Changes approvals.
    People,
    /// Replaces prompts.
    Prompt,
    /// Changes the deletion of runs.
    Retention,
    /// A file that takes effect with its present content.
    File,
    /// A file that another user can change.
    Foreign,
    /// Changes the recipients and times of alerts.
    Alerts,
    /// Keys of a fleet that came with the project: their maker is its operator.
    Keys,
}

impl Danger {
    /// In words, after "it would".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Program => "run a program",
            Self::Secret => "say where keys of models are sent, or which file or variable is a secret",
            Self::Bus => "point at a bus",
            Self::Network => "let other machines reach the fleet's bus, or its figures",
            Self::Outside => "write outside of the project",
            Self::Guard => "change a guard of yours",
            Self::Rights => "change what your own settings let tasks use",
            Self::Visitors => "say who is let in to the dashboard",
            Self::Tools => "let agents call tools that run programs, reach other machines or spend",
            Self::Host => "reach a host",
            Self::Read => "read a file outside of the project",
            Self::Model => "choose models",
            Self::Spending => "raise a limit of calls, tokens or cost",
            Self::People => "change approvals",
            Self::Prompt => "replace prompts",
            Self::Retention => "change when runs are deleted",
            Self::File => "take effect as it is now",
            Self::Foreign => "be read, though others can change it",
            Self::Alerts => "say where alerts are sent, and when",
            Self::Keys => "say who belongs to the fleet here, and who is its operator",
        }
    }
}
