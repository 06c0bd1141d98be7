//! Holding a plan, or a report, against the person's own words (P8). By rule, and cautious: what is named as not
//! covered is spoken of by not a single word.

use std::collections::BTreeSet;

use crate::text::normalise_space;
use crate::text::stop::is_light_in_question;

/// Most parts of a goal that are looked at.
const MOST_PARTS: usize = 40;

/// Longest part that is named, in characters.
const LONGEST: usize = 200;

/// Words that say how an answer is to look, not what it is to say.
const FORM: &str = "answer bit brief briefly bullet chapter cite citation clear clearly complete concise count detail \
    detailed document documents end english few final format formatted german heading headline html hundred into json \
    language length line long markdown maximum minimum note number numbered page paragraph plain precise quote reader \
    reference report result section sentence short shortly simple single source step style summarise summarize summary \
    table text title together tone translate ten three four five six seven eight nine word";

/// Words by which a part of a goal says what is to be made: the report is that, and need not say so.
const MAKING: &str = "advise answer compile compose create deliver draft give make prepare produce recommend report suggest \
    write";

/// What a task was for, and what it gave.
#[derive(Debug, Clone, Default)]
pub struct Contribution<'a> {
    /// Its name, its goal, what was expected of it, and the goals of the tasks above it.
    pub asked: Vec<&'a str>,
    /// Its conclusion and its findings.
    pub gave: Vec<&'a str>,
}

/// The parts of a goal: its sentences, and what is listed in them.
#[must_use]
pub fn parts(goal: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let sentences = goal.split(['\n', '?', '!', ';']).flat_map(|line| line.split(". "));
    for part in sentences.flat_map(|sentence| sentence.split(", ")).flat_map(|part| part.split(" and ")) {
        let part = normalise_space(part);
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

/// The parts of a goal that a report does not answer, as far as a rule can tell. An answer need not repeat the question:
/// a part also counts as spoken of where a task speaks of it whose result the report makes use of. Nothing is said of
/// parts about the form of the answer, of those whose words cannot be told apart, and where not a single part is spoken
/// of: such a report is in other words, or in another language.
#[must_use]
pub fn unanswered(goal: &str, told: &[&str], contributions: &[Contribution<'_>]) -> Vec<String> {
    let own_words = bare(goal);
    let repeats_goal = |line: &str| {
        let line = bare(line);
        line.chars().count() >= REPEATED && own_words.starts_with(&line)
    };
    let lines = told.iter().flat_map(|text| text.lines()).filter(|line| !repeats_goal(line));
    let spoken: BTreeSet<String> = lines.flat_map(stems).collect();
    let used = contributions.iter().filter(|task| task.gave.iter().any(|text| is_used(&spoken, text)));
    let through: BTreeSet<String> =
        used.flat_map(|task| task.asked.iter().copied().flat_map(stems)).collect();
    let judged: Vec<String> = parts(goal).into_iter().filter(|part| can_be_judged(part)).collect();
    let is_open =
        |part: &&String| !stems(part).any(|stem| speaks_of(&spoken, &stem) || speaks_of(&through, &stem));
    let open: Vec<&String> = judged.iter().filter(is_open).collect();
    if open.len() == judged.len() {
        return Vec::new();
    }
    open.into_iter().map(|part| part.chars().take(LONGEST).collect()).collect()
}

/// A line with so many letters that is how the goal begins is the goal once more.
const REPEATED: usize = 12;

/// Whether a report makes use of what a task gave: it has a third of its words.
fn is_used(spoken: &BTreeSet<String>, gave: &str) -> bool {
    let gave: BTreeSet<String> = stems(gave).collect();
    let shared = gave.iter().filter(|stem| speaks_of(spoken, stem)).count();
    shared > 0 && shared * 3 >= gave.len()
}

/// Whether a part says what is to be answered, in words that a rule can tell apart.
fn can_be_judged(part: &str) -> bool {
    // Scripts that write words without spaces between them.
    let is_unspaced = |letter: char| matches!(u32::from(letter), 0x0E00..=0x0EFF | 0x2E80..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x2FFFF);
    let first = part.split_whitespace().next().map(str::to_lowercase).unwrap_or_default();
    let is_to_be_made = MAKING.split_whitespace().any(|word| word == first);
    !part.chars().any(is_unspaced) && !is_to_be_made && has_matter(part)
}

/// Whether a part has words that are about what is asked.
fn has_matter(part: &str) -> bool {
    let is_form = |stem: &str| FORM.split_whitespace().any(|word| word == stem);
    stems(part).any(|stem| !is_form(&stem) && !stem.chars().all(|digit| digit.is_ascii_digit()))
}

/// The letters of a text, in lower case.
fn bare(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
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
    words.filter(|word| !word.is_empty() && !is_light_in_question(word)).map(|word| {
        match word.strip_suffix('s') {
            Some(stem) if stem.chars().count() > 3 => stem.to_owned(),
            Some(_) | None => word,
        }
    })
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

    #[test]
    fn a_report_is_held_against_the_words_of_the_goal() {
        let task =
            |asked: &'static str, gave: &'static str| Contribution { asked: vec![asked], gave: vec![gave] };
        let goal = "How do leases work, who renews them and what happens to orphans? Mention Jepsen.";
        let leases =
            "# Leases\n\nA lease lasts for a second; its holder renews it. Orphans are offered again.";
        let none = Vec::new;
        let cases: Vec<(&str, &str, Vec<Contribution<'_>>, &[&str])> = vec![
            (goal, leases, none(), &["Mention Jepsen"]),
            // What repeats the goal answers nothing.
            (
                goal,
                "# How do leases work, who renews them and what happens to orphans? Mention Jepsen.\nLeases.",
                none(),
                &["who renews them", "what happens to orphans", "Mention Jepsen"],
            ),
            // It says itself what it does not answer.
            (goal, "Leases are renewed. Orphans live. Of Jepsen nothing was found.", none(), &[]),
            // Answers in other words than the question's.
            ("Who wrote Faust?", "Goethe.", none(), &[]),
            (
                "What is the capital of France, and what is its population?",
                "Paris has 2.1 million inhabitants, says France.",
                vec![task("Find the population of the capital", "About 2.1 million inhabitants")],
                &[],
            ),
            (
                "Add two and three, and name the largest planet.",
                "The sum is 5.",
                vec![task("Add two and three", "The sum is 5")],
                &["name the largest planet"],
            ),
            // What a task gave counts only where the report makes use of it.
            (
                "Describe apples and pears.",
                "Apples are round.",
                vec![
                    task("Describe pears", "They narrow towards the stalk"),
                    task("Describe apples", "Apples are round"),
                ],
                &["pears"],
            ),
            // How it is to look is no matter of its words.
            (
                "Describe apples in three short paragraphs. Cite your sources. Keep it under 200 words.",
                "Apples are round.",
                none(),
                &[],
            ),
            ("Find out what lichens live on, and write a guide.", "Lichens live on light.", none(), &[]),
            // Nobody can tell.
            ("Was ist ein Apfel, und was ist eine Birne?", "An apple is round, a pear is not.", none(), &[]),
            (
                "\u{6771}\u{4eac}\u{306e}\u{4eba}\u{53e3}\u{306f}? Describe apples.",
                "Apples are round.",
                none(),
                &[],
            ),
            ("Describe apples.", "", none(), &[]),
        ];
        for (goal, told, contributions, open) in cases {
            assert_eq!(unanswered(goal, &[told], &contributions), open, "{goal} {told}");
        }
    }

    proptest! {
        #[test]
        fn a_goal_covers_itself(goal in "(\\PC|\n){0,300}", other in "\\PC{0,100}") {
            prop_assert!(uncovered(&goal, [goal.as_str(), other.as_str()]).is_empty());
            let open = uncovered(&goal, [other.as_str()]);
            let said = unanswered(&goal, &[&other], &[]);
            prop_assert!(said.iter().all(|part| open.contains(part)), "{:?} {:?}", said, open);
            prop_assert!(open.len() <= MOST_PARTS && open.iter().all(|part| part.chars().count() <= LONGEST));
        }
    }
}
