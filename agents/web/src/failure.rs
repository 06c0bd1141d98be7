//! What goes wrong on the web, in words for a model.

use muster_shared::text::quoted;
use muster_tools::ToolFailure;

use crate::guard::Refused;
use crate::transfer::NoAnswer;

/// Why nothing was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WebFailure {
    /// It is not reached. With the URL of the hop.
    Refused { url: String, why: Refused },
    /// The site does not want it.
    Robots { url: String },
    /// Nobody answered.
    NoAnswer { host: String, why: NoAnswer },
    /// The call took too long as a whole.
    TimedOut { seconds: u64 },
    /// A setting is wrong.
    Setting(String),
}

impl From<WebFailure> for ToolFailure {
    fn from(failure: WebFailure) -> Self {
        match failure {
            WebFailure::Refused { why: Refused::NoRight(refusal), .. } => Self::NoRight(refusal),
            WebFailure::Refused { url, why } => {
                Self::Refused(format!("{} is not fetched: {why}. Use another source.", shown(&url)))
            }
            WebFailure::Robots { url } => Self::Refused(format!(
                "{} is not fetched: the site's robots.txt does not let programs read it. Use another source.",
                shown(&url)
            )),
            WebFailure::NoAnswer { host, why } => of_no_answer(&host, &why),
            WebFailure::TimedOut { seconds } => Self::Unavailable(format!(
                "It was given up after {seconds} s, the time limit. Try again later, or use another source."
            )),
            WebFailure::Setting(what) => Self::Failed(format!(
                "The web cannot be used here: {what}. Somebody has to mend the setting; go on without."
            )),
        }
    }
}

fn of_no_answer(host: &str, why: &NoAnswer) -> ToolFailure {
    let words = format!("{host}: {why}.");
    match why {
        NoAnswer::Refused(_) => ToolFailure::Refused(format!("{words} Use another source.")),
        NoAnswer::NotConnected(_) | NoAnswer::TimedOut => {
            ToolFailure::Unavailable(format!("{words} Try again later, or use another source."))
        }
        NoAnswer::TooLarge { .. } | NoAnswer::Certificate(_) | NoAnswer::Packed(_) | NoAnswer::Broken(_) => {
            ToolFailure::Failed(format!("{words} Use another source."))
        }
    }
}

/// A URL as it is shown: on one line, and not for ever.
pub(crate) fn shown(url: &str) -> String {
    quoted(url, 300)
}
