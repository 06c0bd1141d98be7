//! Fleets of different shapes: how many there are of each role, what they can do, and how tasks are given out. What
//! stands still does so in one shape and not in another.

use std::io;
use std::process::Stdio;

use crate::fleet::{Fleet, Folder};
use crate::process::Running;

/// How many agents of the role that does the work there are.
const WORKERS: [u8; 6] = [2, 1, 3, 5, 4, 8];
/// How tasks are given out.
const PATTERNS: [Option<&str>; 4] = [None, Some("committee:3"), Some("auction"), Some("redundant:2")];

/// What a fleet is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    orchestrators: u8,
    workers: u8,
    reflectors: u8,
    /// Whether specialists do the work. They differ in what they can do, and each task needs some of it.
    pub(super) specialists: bool,
    /// How tasks are given out.
    pub(super) pattern: Option<&'static str>,
    /// Whether some tries fail.
    pub(super) fails: bool,
}

impl Shape {
    /// How many different ones are drawn before some come again.
    pub const DIFFERENT: usize = WORKERS.len() * PATTERNS.len();

    /// The shape of this number: the first is a small fleet like the one that comes up by itself.
    #[must_use]
    pub fn of(number: usize) -> Self {
        let at = number % Self::DIFFERENT;
        // Neighbours differ in everything, so that a few of them show much.
        let workers = WORKERS[at % WORKERS.len()];
        let pattern = PATTERNS[(at + at / 12) % PATTERNS.len()];
        Self {
            orchestrators: if at == 0 { 2 } else { 1 + u8::try_from(at % 3).unwrap_or(1) },
            workers,
            reflectors: if at % 5 == 4 { 2 } else { 1 },
            specialists: at % 4 == 3 || at % 7 == 5,
            pattern,
            fails: at % 3 == 1,
        }
    }

    /// The shape in a few words.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { orchestrators, workers, reflectors, specialists, pattern, fails } = self;
        let who = if *specialists { "specialists" } else { "workers" };
        let reflectors = if *reflectors > 1 { ", 2 reflectors" } else { "" };
        let pattern = pattern.map(|pattern| format!(", {pattern}")).unwrap_or_default();
        let fails = if *fails { ", some tries fail" } else { "" };
        format!("{orchestrators} orchestrators, {workers} {who}{reflectors}{pattern}{fails}")
    }

    /// The role that does the work.
    pub(super) const fn role(&self) -> &'static str {
        if self.specialists { "clerk" } else { "worker" }
    }

    /// What the fleet is told of it.
    pub(super) fn scale(&self) -> Vec<String> {
        let mut all = vec![format!("orchestrator={}", self.orchestrators)];
        all.push(format!("reflector={}", self.reflectors));
        all.push(format!("{}={}", self.role(), self.workers));
        all
    }

    /// Writes down what specialists are.
    pub(super) fn define(&self, folder: &Folder) -> io::Result<()> {
        if self.specialists {
            folder.write("agents/clerk.agent.md", clerk("sums"))?;
            folder.write("another.agent.md", clerk("sums, products"))?;
        }
        Ok(())
    }

    /// One more specialist, which can do more than the others and is left alone.
    pub(super) fn another(&self, fleet: &Fleet) -> io::Result<Option<Running>> {
        if !self.specialists {
            return Ok(None);
        }
        let mut command = fleet.folder().command(&["agent", "another.agent.md"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(|child| Some(Running(child)))
    }
}

fn clerk(capabilities: &str) -> String {
    format!(
        "---\nrole: clerk\ndescription: Adds up.\ncapabilities: [{capabilities}]\ntools: [calculator]\n---\nAdd up.\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn so_many_are_different() {
        let all: BTreeSet<String> = (0..Shape::DIFFERENT).map(|number| Shape::of(number).name()).collect();
        assert_eq!(all.len(), Shape::DIFFERENT, "{all:#?}");
        assert_eq!(Shape::of(0).name(), "2 orchestrators, 2 workers");
        assert!(all.iter().any(|name| name.contains("specialists")));
    }
}
