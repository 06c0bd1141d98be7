//! What was refused because a guard gave no verdict, counted from the record: the run went on without it, and its answer may
//! be another one than it would have been.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Entry;
use super::event::{GuardsAnswered, RunEvent};
use crate::flow::{Guarded, Note, Ruling};

/// Guards without a verdict, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Unguarded {
    guards: BTreeMap<String, Refused>,
}

/// What was refused for want of one guard's verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// How often.
    pub times: u32,
    /// What was said last of why there is no verdict.
    pub reason: String,
}

impl Unguarded {
    /// What the entries of a record tell.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut all = Self::default();
        entries.into_iter().for_each(|entry| all.note(entry));
        all
    }

    /// Takes note of an entry. What was announced is told again with its step.
    pub fn note(&mut self, entry: &Entry) {
        if let Some(step) = entry.event.step() {
            self.note_all(&step.notes);
        }
        for event in entry.event.events() {
            if let RunEvent::GuardsAnswered(GuardsAnswered { said, .. }) = event {
                self.count(said);
            }
        }
    }

    fn note_all(&mut self, notes: &[Note]) {
        for note in notes {
            if let Note::Guarded { said, .. } = note {
                self.count(said);
            }
        }
    }

    fn count(&mut self, said: &Guarded) {
        for verdict in said.verdicts.iter().filter(|one| one.failed && one.verdict == Ruling::Refuse) {
            let refused = self.guards.entry(verdict.guard.clone()).or_default();
            refused.times = refused.times.saturating_add(1);
            refused.reason.clone_from(&verdict.reason);
        }
    }

    /// Whether nothing was refused so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// A line for each guard: `3 times something was refused without a verdict: guard eye is gone: …`.
    pub fn in_words(&self) -> impl Iterator<Item = String> {
        self.guards.values().map(|Refused { times, reason }| {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("{times} something was refused without a verdict: {reason}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::GuardVerdict;

    #[test]
    fn only_what_was_refused_without_a_verdict_counts() {
        let verdict = |guard: &str, verdict, failed| GuardVerdict {
            guard: guard.to_owned(),
            verdict,
            reason: format!("guard {guard} is gone"),
            failed,
        };
        let mut all = Unguarded::default();
        for one in [
            verdict("eye", Ruling::Refuse, false),
            verdict("open", Ruling::Allow, true),
            verdict("eye", Ruling::Refuse, true),
            verdict("eye", Ruling::Refuse, true),
        ] {
            all.count(&Guarded { verdicts: vec![one], ..Guarded::default() });
        }
        let words: Vec<String> = all.in_words().collect();
        assert_eq!(words, ["2 times something was refused without a verdict: guard eye is gone"]);
        assert!(!all.is_empty() && Unguarded::default().is_empty());
    }
}
