//! `muster doctor`.

use serde::Serialize;

use super::figures;
use super::paint::Paint;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckResult {
    /// As it should be.
    Ok,
    /// Works, but look at it.
    Warn,
    /// Must be mended.
    Fail,
}

/// One check of the installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// What was looked at.
    what: String,
    /// How it went.
    pub(crate) verdict: CheckResult,
    /// What was found.
    pub(crate) found: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl Check {
    /// A check that went well.
    pub(crate) fn ok(what: &str, found: impl Into<String>) -> Self {
        Self { what: what.to_owned(), verdict: CheckResult::Ok, found: found.into(), mend: None }
    }

    /// Something to look at.
    pub(crate) fn warn(what: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict: CheckResult::Warn, mend: Some(mend.into()), ..Self::ok(what, found) }
    }

    /// Something to mend.
    pub(crate) fn fail(what: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict: CheckResult::Fail, ..Self::warn(what, found, mend) }
    }
}

/// One line for each check, and one more that says how to mend it.
pub(crate) fn list(checks: &[Check], paint: Paint) -> String {
    let width = checks.iter().map(|check| check.what.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for check in checks {
        let verdict = match check.verdict {
            CheckResult::Ok => paint.good("ok  "),
            CheckResult::Warn => paint.warn("warn"),
            CheckResult::Fail => paint.bad("fail"),
        };
        let space = " ".repeat(width - check.what.chars().count());
        lines.push(format!("{verdict}  {}{space}  {}", check.what, figures::one_line(&check.found, 200)));
        if let Some(mend) = &check.mend {
            lines.push(format!("{}{}", " ".repeat(width + 8), paint.dim(&format!("→ {mend}"))));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_line_and_says_how_to_mend_it() {
        let checks = [Check::ok("server", "2.15.1"), Check::fail("folder", "cannot write", "chmod u+w .")];
        let text = list(&checks, Paint::PLAIN);
        assert_eq!(text, "ok    server  2.15.1\nfail  folder  cannot write\n              → chmod u+w .");
    }
}
