//! Conversations: a goal may follow earlier runs, whose turns it brings along (R11).

use serde::{Deserialize, Serialize};

use crate::ids::RunId;
use crate::text::within_bytes;

/// Most turns that are kept; the oldest go first.
pub const MAX_TURNS: usize = 8;

/// Longest question that is kept of a turn, in bytes.
const MAX_ASKED: usize = 1_000;

/// Longest answer that is kept of a turn, in bytes.
const MAX_ANSWERED: usize = 3_000;

/// Most lessons of one turn.
const MAX_ITEMS: usize = 8;

/// Longest lesson, in bytes.
const MAX_ITEM: usize = 300;

/// Most that the turns of a goal may hold together, in bytes. What [`follow`] makes is within it.
pub const MAX_BYTES: usize = MAX_TURNS * (MAX_ASKED + MAX_ANSWERED + MAX_ITEMS * MAX_ITEM);

/// One earlier run that a goal follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Turn {
    /// The run.
    pub run: RunId,
    /// What was asked, in the person's words.
    pub asked: String,
    /// What was answered, or why nothing was.
    pub answered: String,
    /// What was learnt of plans, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
}

impl Turn {
    /// How much it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let items = self.lessons.iter().map(String::len).sum::<usize>();
        self.asked.len() + self.answered.len() + items
    }

    fn fitted(self) -> Self {
        let items = |items: Vec<String>| {
            let cut_short = items.into_iter().map(|item| within_bytes(item.trim(), MAX_ITEM));
            let mut kept: Vec<String> = Vec::new();
            for item in cut_short.filter(|item| !item.is_empty()) {
                if kept.len() < MAX_ITEMS && !kept.contains(&item) {
                    kept.push(item);
                }
            }
            kept
        };
        Self {
            run: self.run,
            asked: within_bytes(self.asked.trim(), MAX_ASKED),
            answered: within_bytes(self.answered.trim(), MAX_ANSWERED),
            lessons: items(self.lessons),
        }
    }
}

/// The conversation with one more turn, within its limits.
#[must_use]
pub fn follow(earlier: &[Turn], next: Turn) -> Vec<Turn> {
    let mut turns: Vec<Turn> = earlier.iter().filter(|turn| turn.run != next.run).cloned().collect();
    turns.push(next);
    let surplus = turns.len().saturating_sub(MAX_TURNS);
    turns.drain(..surplus);
    turns.into_iter().map(Turn::fitted).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turn(n: u128, asked: &str) -> Turn {
        Turn {
            run: RunId::from_uuid(uuid::Uuid::from_u128(n)),
            asked: asked.to_owned(),
            answered: "Paris.".to_owned(),
            lessons: Vec::new(),
        }
    }

    #[test]
    fn the_oldest_turns_go_first() {
        let mut turns = Vec::new();
        for n in 1..=20 {
            turns = follow(&turns, turn(n, &n.to_string()));
        }
        let asked: Vec<&str> = turns.iter().map(|turn| turn.asked.as_str()).collect();
        assert_eq!(asked, ["13", "14", "15", "16", "17", "18", "19", "20"]);
    }

    proptest! {
        #[test]
        fn a_conversation_keeps_to_its_limits(
            texts in proptest::collection::vec(("\\PC{0,4000}", proptest::collection::vec("\\PC{0,400}", 0..12)), 0..12),
        ) {
            let mut turns: Vec<Turn> = Vec::new();
            for (n, (text, items)) in (1..).zip(texts) {
                let next = Turn {
                    answered: text.clone(),
                    lessons: items,
                    ..turn(n, &text)
                };
                turns = follow(&turns, next);
            }
            prop_assert!(turns.len() <= MAX_TURNS);
            prop_assert!(turns.iter().map(Turn::bytes).sum::<usize>() <= MAX_BYTES);
        }
    }
}
