//! What other tasks told the one in hand: from its offer, and by word that comes while it is worked on. The loop takes it up
//! where a step begins and keeps it with the step, so that it is heard once, whoever works on the task.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use muster_shared::flow::{Information, Step};
use muster_shared::sync::lock;

/// Most that waits to be heard at a time; the rest is told when the task is offered or begun again.
const MOST: usize = 100;

/// What a task has been told and has not heard yet, and how the run stands as far as it was told. Clones are the same
/// mailbox.
#[derive(Debug, Clone, Default)]
pub struct Mailbox {
    waiting: Arc<Mutex<BTreeMap<u32, Information>>>,
    progress: Arc<Mutex<String>>,
}

impl Mailbox {
    /// A mailbox with what the offer tells.
    #[must_use]
    pub fn with(told: &[Information]) -> Self {
        let mailbox = Self::default();
        mailbox.put(told);
        mailbox
    }

    /// Puts something in. What is in it already stays as it is.
    pub fn put(&self, told: &[Information]) {
        let mut waiting = lock(&self.waiting);
        for one in told {
            if waiting.len() < MOST {
                waiting.entry(one.number).or_insert_with(|| one.clone());
            }
        }
    }

    /// Takes note of how the run stands now.
    pub fn show(&self, progress: String) {
        if !progress.is_empty() {
            *lock(&self.progress) = progress;
        }
    }

    /// How the run stands, where the task was told since it was offered. It stays: each step is told anew.
    #[must_use]
    pub fn progress(&self) -> Option<String> {
        let progress = lock(&self.progress).clone();
        (!progress.is_empty()).then_some(progress)
    }

    /// Takes out what no step has heard, oldest first.
    #[must_use]
    pub fn take(&self, steps: &[Step]) -> Vec<Information> {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let heard = |number: u32| steps.iter().flat_map(|step| &step.heard).any(|one| one.number == number);
        waiting.into_values().filter(|one| !heard(one.number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step;
    use muster_shared::flow::ObservationStatus;

    fn told(number: u32) -> Information {
        let text = format!("word {number}");
        Information { number, from: Some(muster_shared::ids::TaskIndex::top(1)), name: "look".into(), text }
    }

    #[test]
    fn the_progress_is_shown_until_there_is_newer() {
        let mailbox = Mailbox::default();
        assert_eq!(mailbox.progress(), None);
        mailbox.show("[x] 1 look".into());
        mailbox.show(String::new());
        assert_eq!(
            [mailbox.progress(), mailbox.progress()].map(Option::unwrap_or_default),
            ["[x] 1 look"; 2]
        );
    }

    #[test]
    fn everything_is_heard_once_however_often_it_is_told() {
        let mailbox = Mailbox::with(&[told(2), told(1)]);
        mailbox.put(&[told(2), told(3)]);
        let before = Step {
            heard: vec![told(1)],
            ..step(1, "x", serde_json::Value::Null, ObservationStatus::Success)
        };
        assert_eq!(mailbox.take(std::slice::from_ref(&before)), [told(2), told(3)]);
        let after = Step { number: 2, heard: vec![told(2), told(3)], ..before.clone() };
        mailbox.put(&[told(1), told(3), told(4)]);
        assert_eq!(mailbox.take(&[before, after]), [told(4)]);
        let many: Vec<Information> = (10..500).map(told).collect();
        mailbox.put(&many);
        assert_eq!(mailbox.take(&[]).len(), MOST);
    }
}
