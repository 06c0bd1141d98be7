//! axe, which finds what people with other eyes, ears or hands cannot use. It is fetched for the tests, by its checksum.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Page;

/// What of it counts.
const COUNTS: [&str; 2] = ["serious", "critical"];

/// The script.
pub struct Axe {
    source: String,
}

impl Axe {
    /// Has it fetched, unless it is there, and read.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn fetch(project: &Path) -> io::Result<Self> {
        let script = project.join("tests/support/fetch-axe.sh");
        let output = Command::new("sh").arg(script).output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Self { source: std::fs::read_to_string(path)? })
    }

    /// What it finds serious or critical on a page, one line each.
    ///
    /// # Errors
    /// When it does not run.
    pub fn findings(&self, page: &Page) -> io::Result<Vec<String>> {
        if page.js("typeof axe")? == "undefined" {
            page.js(&format!("{};0", self.source))?;
        }
        let found = page.js(
            "axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations.map((one) => [one.impact, \
             `${one.id}: ${one.help}: ${one.nodes.slice(0, 4).map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join(' | ')}`]))",
        )?;
        let all = found.as_array().cloned().unwrap_or_default();
        let counts = |one: &Value| COUNTS.iter().any(|impact| one[0] == *impact);
        Ok(all
            .iter()
            .filter(|one| counts(one))
            .map(|one| one[1].as_str().unwrap_or_default().to_owned())
            .collect())
    }
}
