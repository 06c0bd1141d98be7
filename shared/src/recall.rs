//! Which lessons of earlier runs a new goal is given: those of runs whose goals have like words. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::flow::RunLessons;
use crate::ids::RunId;
use crate::text::stop::is_light_in_search;

/// Most runs whose lessons are held; the oldest go first.
const MOST_RUNS: usize = 500;
/// Most words of a goal that count.
const MOST_WORDS: usize = 200;
/// The part of a goal's words, by weight, that an earlier goal must have for its lessons to count.
const LIKE_ENOUGH: f64 = 0.4;

/// The lessons of earlier runs, ready to be looked up.
#[derive(Debug, Default)]
pub struct Lessons {
    runs: BTreeMap<RunId, KnownRun>,
    /// In how many goals each word stands.
    spread: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct KnownRun {
    words: BTreeSet<String>,
    kept: RunLessons,
}

impl Lessons {
    /// Takes the lessons of a run in; those it had of the same run give way.
    pub fn learn(&mut self, kept: RunLessons) {
        self.forget(kept.run);
        let words = words(&kept.goal);
        for word in &words {
            *self.spread.entry(word.clone()).or_default() += 1;
        }
        self.runs.insert(kept.run, KnownRun { words, kept });
        while self.runs.len() > MOST_RUNS {
            let oldest = self.runs.iter().min_by_key(|(run, known)| (known.kept.ended_at, **run));
            let Some(oldest) = oldest.map(|(run, _)| *run) else { return };
            self.forget(oldest);
        }
    }

    /// How many runs it knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// At most `most` lessons for a goal: of the likest goals first, of the newest among equals; none twice.
    #[must_use]
    pub fn recall(&self, goal: &str, most: usize) -> Vec<String> {
        let wanted = words(goal);
        let all: f64 = wanted.iter().map(|word| self.weight(word)).sum();
        if wanted.is_empty() || most == 0 {
            return Vec::new();
        }
        let mut like: Vec<(f64, &RunLessons)> = Vec::new();
        for known in self.runs.values() {
            let shared: f64 = wanted.intersection(&known.words).map(|word| self.weight(word)).sum();
            // Two long goals may share many words and little else: both sides count.
            let theirs: f64 = known.words.iter().map(|word| self.weight(word)).sum();
            let likeness = 2.0 * shared / (all + theirs);
            if likeness >= LIKE_ENOUGH {
                like.push((likeness, &known.kept));
            }
        }
        like.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(other.ended_at.cmp(&one.ended_at)));
        let mut recalled: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for lesson in like.into_iter().flat_map(|(_, kept)| &kept.lessons) {
            if recalled.len() < most && seen.insert(words_in_order(lesson)) {
                recalled.push(lesson.clone());
            }
        }
        recalled
    }

    /// A word that few goals have says more of them than one that all have.
    #[expect(clippy::cast_precision_loss, reason = "there are a few hundred runs at most")]
    fn weight(&self, word: &str) -> f64 {
        let (runs, with) = (self.runs.len() as f64, self.spread.get(word).copied().unwrap_or(0) as f64);
        1.0 + (1.0 + (runs - with + 0.5) / (with + 0.5)).ln()
    }

    fn forget(&mut self, run: RunId) {
        let Some(known) = self.runs.remove(&run) else { return };
        for word in known.words {
            if let Some(spread) = self.spread.get_mut(&word) {
                *spread -= 1;
                if *spread == 0 {
                    self.spread.remove(&word);
                }
            }
        }
    }
}

/// The telling words of a text.
fn words(text: &str) -> BTreeSet<String> {
    let telling = words_in_order(text).into_iter().filter(|word| word.chars().count() > 2);
    telling.filter(|word| !is_light_in_search(word)).take(MOST_WORDS).collect()
}

/// All words in lower case, without the ending of the plural.
fn words_in_order(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| singular(word.to_lowercase())).collect()
}

fn singular(word: String) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
        Some(_) | None => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Millis;
    use uuid::Uuid;

    fn kept(run: u128, goal: &str, lessons: &[&str]) -> RunLessons {
        RunLessons {
            run: RunId::from_uuid(Uuid::from_u128(run)),
            goal: goal.to_owned(),
            ended_at: Millis(u64::try_from(run).unwrap_or(0)),
            completed: true,
            lessons: lessons.iter().map(|lesson| (*lesson).to_owned()).collect(),
        }
    }

    fn memory() -> Lessons {
        let mut memory = Lessons::default();
        memory.learn(kept(1, "What limits delegation loops?", &["search for hops", "read the limits page"]));
        memory.learn(kept(
            2,
            "How is the limit of delegation loops set?",
            &["Read the limits page!", "ask twice"],
        ));
        memory.learn(kept(3, "Compare the prices of two boats", &["prices are in euros"]));
        memory
    }

    #[test]
    fn like_goals_are_given_the_lessons_and_none_twice() {
        let memory = memory();
        for (goal, most, wanted) in [
            (
                "what limits a delegation loop",
                5,
                vec!["search for hops", "read the limits page", "ask twice"],
            ),
            ("what limits a delegation loop", 1, vec!["search for hops"]),
            ("what limits a delegation loop", 0, vec![]),
            ("Compare prices of boats and of cars", 5, vec!["prices are in euros"]),
            ("Who wrote the oldest poem?", 5, vec![]),
            ("the and for what", 5, vec![]),
            ("", 5, vec![]),
        ] {
            assert_eq!(memory.recall(goal, most), wanted, "{goal}");
        }
        assert!(Lessons::default().recall("anything", 5).is_empty());
    }

    #[test]
    fn a_run_is_known_once_and_the_oldest_give_way() {
        let mut memory = memory();
        memory.learn(kept(3, "Compare the prices of two boats", &["prices are in dollars"]));
        assert_eq!(
            (memory.len(), memory.recall("prices of boats", 5)),
            (3, vec!["prices are in dollars".to_owned()])
        );
        for run in 10..(10 + MOST_RUNS as u128) {
            memory.learn(kept(run, &format!("topic{run}"), &["l"]));
        }
        assert_eq!(memory.len(), MOST_RUNS);
        assert!(memory.recall("prices of boats", 5).is_empty());
        assert_eq!(memory.spread.len(), MOST_RUNS, "words of forgotten goals are forgotten");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let many: Vec<String> = (0..50).map(|n| format!("lesson\n{}", n / 2)).collect();
        let kept = RunLessons { lessons: many, goal: "g".repeat(9_000), ..kept(1, "", &[]) }.bounded();
        assert_eq!(
            (kept.lessons.len(), kept.lessons[1].as_str()),
            (crate::flow::lesson::MOST_KEPT, "lesson 1")
        );
        assert!(kept.goal.chars().count() < 2_010);
    }
}
