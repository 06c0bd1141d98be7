//! What a sandbox promises, by what it keeps it, and which of it holds on this machine.

use std::collections::BTreeSet;
use std::fmt;

use muster_tools::settings::Part;
use serde::{Deserialize, Serialize};

/// Returns the available mechanisms that enforce a part. One suffices; the others are a second layer.
#[must_use]
pub(crate) fn keepers_of(part: Part, at_hand: &Mechanisms) -> Vec<Mechanism> {
    use Mechanism::{Landlock, LandlockScopes, Namespaces, OtherUser, Seccomp, Subreaper};
    let those = |list: &[Mechanism]| -> Vec<Mechanism> {
        list.iter().copied().filter(|one| at_hand.contains(one)).collect()
    };
    match part {
        Part::Files => those(&[Namespaces, Landlock]),
        Part::Network => those(&[Namespaces, Seccomp]),
        Part::Signals => those(&[Namespaces, LandlockScopes, OtherUser]),
        Part::Syscalls => those(&[Seccomp]),
        Part::Hosts => those(&[Namespaces]),
        // Whoever gathers orphans is of use only as long as the program cannot end it.
        Part::Processes if at_hand.contains(&Namespaces) => vec![Namespaces],
        Part::Processes if those(&[LandlockScopes, OtherUser]).is_empty() => Vec::new(),
        Part::Processes => those(&[Subreaper]),
    }
}

/// What the kernel has to keep a promise by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// Namespaces of its own for users, mounts, processes, network, messages and names.
    Namespaces,
    /// Landlock over files, with the third version of its interface or later: before, files could be cut short.
    Landlock,
    /// Landlock over signals and abstract sockets: the sixth version or later.
    LandlockScopes,
    /// A filter over system calls.
    Seccomp,
    /// A user of its own, where the sandbox is started by root.
    OtherUser,
    /// Orphans of the program come to the stage, which ends them.
    Subreaper,
}

impl Mechanism {
    /// Every mechanism there is.
    pub const ALL: [Self; 6] = [
        Self::Namespaces,
        Self::Landlock,
        Self::LandlockScopes,
        Self::Seccomp,
        Self::OtherUser,
        Self::Subreaper,
    ];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::LandlockScopes => "landlock scopes",
            Self::Seccomp => "seccomp",
            Self::OtherUser => "a user of its own",
            Self::Subreaper => "a subreaper",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Those that are at hand.
pub type Mechanisms = BTreeSet<Mechanism>;

/// Whether one promise holds here, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReport {
    /// The promise.
    pub part: Part,
    /// By what it is kept; by nothing where it is not.
    pub by: Vec<Mechanism>,
}

impl PartReport {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.by.is_empty()
    }
}

/// What holds on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// Each promise.
    pub parts: Vec<PartReport>,
    /// Why something is missing, in words for people, where the kernel said so.
    pub reasons: Vec<String>,
}

impl SandboxReport {
    /// What follows from the mechanisms at hand.
    #[must_use]
    pub fn of(at_hand: &Mechanisms, reasons: Vec<String>) -> Self {
        let parts = Part::ALL.map(|part| PartReport { part, by: keepers_of(part, at_hand) });
        Self { parts: parts.to_vec(), reasons }
    }

    /// Those of the required promises that do not hold.
    #[must_use]
    pub fn missing(&self, required: &[Part]) -> Vec<Part> {
        let holds = |part: &Part| self.parts.iter().any(|one| one.part == *part && one.holds());
        required.iter().copied().filter(|part| !holds(part)).collect()
    }

    /// Why a call is refused, where a required promise does not hold.
    #[must_use]
    pub fn refusal(&self, required: &[Part]) -> Option<String> {
        let missing = self.missing(required);
        let first = missing.first()?;
        let names: Vec<&str> = missing.iter().map(|part| part.as_str()).collect();
        let reasons =
            if self.reasons.is_empty() { String::new() } else { format!(" ({})", self.reasons.join("; ")) };
        Some(format!(
            "programs are not run here: this machine cannot promise that {}{reasons}. Missing: {}. An operator can allow it \
             all the same by `require` of [tool.sandbox]; go on without running programs",
            first.promise(),
            names.join(", "),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mechanism::{Landlock, LandlockScopes, Namespaces, OtherUser, Seccomp, Subreaper};

    fn holding(at_hand: &[Mechanism]) -> Vec<&'static str> {
        let report = SandboxReport::of(&at_hand.iter().copied().collect(), Vec::new());
        report.parts.iter().filter(|part| part.holds()).map(|part| part.part.as_str()).collect()
    }

    #[test]
    fn each_promise_holds_by_what_keeps_it_and_by_nothing_less() {
        let table: [(&[Mechanism], &[&str]); 8] = [
            (&[], &[]),
            (&[Namespaces], &["files", "network", "processes", "signals", "hosts"]),
            (&[Seccomp], &["network", "syscalls"]),
            (&[Landlock, Seccomp, Subreaper], &["files", "network", "syscalls"]),
            (&[Landlock, LandlockScopes, Subreaper], &["files", "processes", "signals"]),
            (&[OtherUser, Subreaper], &["processes", "signals"]),
            (&[OtherUser], &["signals"]),
            (&Mechanism::ALL, &["files", "network", "processes", "signals", "syscalls", "hosts"]),
        ];
        for (at_hand, expected) in table {
            assert_eq!(holding(at_hand), expected, "{at_hand:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_missing_and_why() {
        let report = SandboxReport::of(&[Seccomp].into(), vec!["user namespaces are off".to_owned()]);
        assert_eq!(report.refusal(&[Part::Network]), None);
        let refusal = report.refusal(&[Part::Network, Part::Files, Part::Processes]).unwrap();
        assert!(
            refusal.contains("no file outside") && refusal.contains("user namespaces are off"),
            "{refusal}"
        );
        assert!(refusal.contains("Missing: files, processes"), "{refusal}");
    }
}
