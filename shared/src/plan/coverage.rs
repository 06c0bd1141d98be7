//! Holding a plan, or a report, against the person's own words (P8). By rule, and cautious: what is named as not
//! covered is spoken of by not a single word.

use std::collections::BTreeSet;

/// Most parts of a goal that are looked at.
const MOST_PARTS: usize = 40;

/// Longest part that is named, in characters.
const LONGEST: usize = 200;

/// Words that say nothing of what is asked.
const LIGHT: &str = "a about across after again all also am among an and any anything are around as ask asked at be \
    because been before being between both but by can could create describe did do does done each either else even \
    every everything explain find first for from further get give given good had has have having he her here him his \
    how i if in into is it its just keep know last least less let like list long look made make many me mention might \
    more most much must my name need needs new next no nor not nothing now of off on once one only or other our out \
    over own part people per please point produce provide put report same say see several she should show since so \
    some something still such sum take tell than that the their them then there these they thing things this those \
    through to too two under until up upon us use used using very want was way we well were what when where whether \
    which while who whole whom whose why will with within without work would write you your";

/// The parts of a goal: its sentences, and what is listed in them.
#[must_use]
pub fn parts(goal: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let sentences = goal.split(['\n', '?', '!', ';']).flat_map(|line| line.split(". "));
    for part in sentences.flat_map(|sentence| sentence.split(", ")).flat_map(|part| part.split(" and ")) {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = part.strip_prefix("and ").unwrap_or(&part);
        let part = part.trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned();
        if !part.is_empty() && !parts.contains(&part) && parts.len() < MOST_PARTS {
            parts.push(part);
        }
    }
    parts
}

/// The parts of a goal of which the texts speak with not a single word that matters.
pub fn uncovered<'a>(goal: &str, texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let spoken: BTreeSet<String> = texts.into_iter().flat_map(stems).collect();
    let is_open = |part: &String| {
        let own: BTreeSet<String> = stems(part).collect();
        !own.is_empty() && !own.iter().any(|stem| speaks_of(&spoken, stem))
    };
    parts(goal).into_iter().filter(is_open).map(|part| part.chars().take(LONGEST).collect()).collect()
}

/// Whether one of the words is this one, or one that begins or is begun by it: `compute` and `computation` differ
/// by their ends.
fn speaks_of(spoken: &BTreeSet<String>, stem: &str) -> bool {
    const ALIKE: usize = 5;
    let head: String = stem.chars().take(ALIKE).collect();
    let from_head = spoken.range(head.clone()..).take_while(|word| word.starts_with(&head));
    spoken.contains(stem) || (stem.chars().count() >= ALIKE && from_head.count() > 0)
}

fn stems(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| !word.is_empty() && !is_light(word)).map(|word| match word.strip_suffix('s') {
        Some(stem) if stem.chars().count() > 3 => stem.to_owned(),
        Some(_) | None => word,
    })
}

fn is_light(word: &str) -> bool {
    LIGHT.split_whitespace().any(|light| light == word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_no_task_speaks_of_is_named() {
        let goal = "How do leases work, who renews them and what happens to orphans? Mention Jepsen.";
        let tasks = ["Find out how a lease is renewed", "Describe what happens when an orphan is found"];
        assert_eq!(uncovered(goal, tasks), ["Mention Jepsen"]);
        assert_eq!(uncovered(goal, ["nothing of the kind"]).len(), 4);
        assert!(uncovered(goal, [goal]).is_empty());
    }

    #[test]
    fn words_that_differ_by_their_ends_are_the_same() {
        assert!(uncovered("Compute the sums.", ["a computation"]).is_empty());
        assert!(uncovered("Who wrote it?", ["anything"]).len() <= 1);
    }

    proptest! {
        #[test]
        fn a_goal_covers_itself(goal in "(\\PC|\n){0,300}", other in "\\PC{0,100}") {
            prop_assert!(uncovered(&goal, [goal.as_str(), other.as_str()]).is_empty());
            let open = uncovered(&goal, [other.as_str()]);
            prop_assert!(open.len() <= MOST_PARTS && open.iter().all(|part| part.chars().count() <= LONGEST));
        }
    }
}
