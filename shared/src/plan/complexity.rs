//! Whether a goal is small enough to be done without a plan (R10).

use std::collections::BTreeSet;

use crate::flow::{Goal, Plan, PlanTask, Specialty};
use crate::ids::{Role, TaskIndex};

/// Most words of a small goal.
const MOST_WORDS: usize = 14;

/// How questions begin that one worker can answer.
const QUESTIONS: [&str; 13] =
    ["what", "who", "whom", "whose", "when", "where", "which", "how", "is", "are", "was", "were", "does"];

/// How orders begin that one worker can carry out.
const ORDERS: [&str; 6] = ["calculate", "compute", "translate", "define", "spell", "convert"];

/// Words that speak of several things, of steps, or of a piece of work.
const MANIFOLD: [&str; 35] = [
    "and",
    "or",
    "then",
    "also",
    "each",
    "every",
    "all",
    "both",
    "several",
    "various",
    "list",
    "compare",
    "comparison",
    "versus",
    "vs",
    "difference",
    "differences",
    "between",
    "why",
    "explain",
    "analyse",
    "analyze",
    "research",
    "report",
    "summary",
    "steps",
    "plan",
    "design",
    "build",
    "implement",
    "first",
    "pros",
    "cons",
    "these",
    "documents",
];

/// Of how many words a goal is that is small: one short question, or one short order, with nothing that speaks of more. Nothing when a
/// plan should be made. Without certainty a goal counts as not small: a plan for a small goal costs a call, a missing
/// one costs the answer.
#[must_use]
pub fn small(goal: &Goal) -> Option<usize> {
    if goal.corpus.is_some() {
        return None;
    }
    let text = goal.text.trim();
    let words: Vec<String> = text.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect();
    let first = words.iter().find(|word| !matches!(word.as_str(), "and" | "then" | "please" | "so"))?;
    let follows_on = !goal.conversation.is_empty();
    let asks = QUESTIONS.contains(&first.as_str()) || ORDERS.contains(&first.as_str());
    let elliptic = follows_on && text.ends_with('?');
    let leading = words.iter().take_while(|word| *word != first).count();
    let single = words.iter().skip(leading).all(|word| !MANIFOLD.contains(&word.as_str()));
    let sentences = text.trim_end_matches(['.', '?', '!']).contains(['?', '!', '\n', ';', ':']);
    let commas = text.matches(", ").count() > usize::from(follows_on);
    if !(asks || elliptic) || !single || sentences || commas || words.len() > MOST_WORDS {
        return None;
    }
    Some(words.len())
}

/// Words that ask for something of each of many.
const OF_EACH: [&str; 4] = ["each", "every", "all", "both"];

/// From so many things on that a goal lists, or asks, each is worth a task of its own.
const SEPARABLE: usize = 3;

/// From so many words on a goal is large.
const LARGE: usize = 150;

/// From so many documents on, something that is wanted of each of them is more than one agent's work.
const MANY_DOCUMENTS: u64 = 8;

/// Why a goal is planned at once: it is large, has parts that can be done apart, or names what a specialist is for. Nothing
/// when one agent begins with it, which is the rule: a plan costs calls, and that agent can still ask for one.
#[must_use]
pub fn separable(goal: &Goal, specialists: &[Specialty]) -> Option<String> {
    let text = goal.text.trim();
    if let Some(specialist) = specialists.iter().find(|specialist| is_named(text, specialist)) {
        return Some(format!("it names what {} is for", specialist.role));
    }
    let items = text.lines().filter(|line| is_item(line)).count();
    if items >= SEPARABLE {
        return Some(format!("it lists {items} things"));
    }
    let questions = text.matches('?').count();
    if questions >= SEPARABLE {
        return Some(format!("it asks {questions} questions"));
    }
    let words: Vec<String> = text.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect();
    if words.len() >= LARGE {
        return Some(format!("it is large: {} words", words.len()));
    }
    let of_each = words.iter().any(|word| OF_EACH.contains(&word.as_str()));
    let documents = goal.corpus.as_ref().map_or(0, |corpus| corpus.files);
    (of_each && documents >= MANY_DOCUMENTS).then(|| format!("it wants something of {documents} documents"))
}

/// Whether a line is one of a list: `- this`, `2. that`, `c) another`.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(['-', '*', '•']) {
        return line.chars().nth(1).is_some_and(char::is_whitespace);
    }
    let Some((mark, rest)) = line.split_once(['.', ')']) else { return false };
    let is_mark = mark.len() <= 2 && !mark.is_empty() && mark.chars().all(char::is_alphanumeric);
    let counts = mark.chars().all(|letter| letter.is_ascii_digit()) || mark.chars().count() == 1;
    is_mark && counts && rest.starts_with(char::is_whitespace)
}

/// Whether a text names a specialist, or all words of something that it can do.
fn is_named(text: &str, specialist: &Specialty) -> bool {
    let words = |text: &str| -> BTreeSet<String> {
        let parts = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        parts.map(str::to_lowercase).collect()
    };
    let asked = words(text);
    let role = specialist.role.to_string();
    let named = std::iter::once(&role).chain(&specialist.capabilities).map(|name| words(name));
    named.into_iter().any(|name| !name.is_empty() && name.is_subset(&asked))
}

/// The plan of a goal that is done by one worker: a single task with the goal as it was asked.
#[must_use]
pub fn single_task(goal: &Goal, role: Role) -> Plan {
    let text = goal.text.trim();
    let name = crate::text::within_bytes(&crate::text::normalise_space(text), 60);
    let task = PlanTask {
        expected_output: "The answer to what was asked.".to_owned(),
        ..PlanTask::new(name, crate::text::within_bytes(text, super::check::MAX_TEXT_BYTES), role)
    };
    Plan { goal: text.to_owned(), tasks: [(TaskIndex::top(1), task)].into() }
}

fn bare(word: &str) -> String {
    word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_short_question_is_small_and_nothing_else_is() {
        let small_ones = [
            "What is the capital of France?",
            "capital of France? ",
            "who wrote Faust",
            "Compute 12 % of 3400.",
            "How many bytes has a kibibyte?",
        ];
        for text in small_ones {
            let follows = text.starts_with("capital");
            let mut goal = Goal::new(text);
            if follows {
                assert!(small(&goal).is_none(), "{text}: without a question word it is not certain");
                goal.conversation = vec![crate::flow::Turn {
                    run: crate::ids::RunId::from_uuid(uuid::Uuid::from_u128(1)),
                    asked: "Tell me of Europe.".to_owned(),
                    answered: "It is a continent.".to_owned(),
                    preferences: Vec::new(),
                    lessons: Vec::new(),
                }];
            }
            assert!(small(&goal).is_some(), "{text}");
        }
        let others = [
            "",
            "Work out the eight sums.",
            "What limits delegation loops? How does a run survive the death of a worker?",
            "Compare Rust and Go.",
            "What is the difference between a run and a task?",
            "Write a report on whales.",
            "What is a run, what is a task, what is a step?",
            "What would a person who has never seen a ship before have to learn in order to cross the sea alone?",
            "What follows from these: a is b",
        ];
        for text in others {
            assert_eq!(small(&Goal::new(text)), None, "{text}");
        }
    }

    #[test]
    fn a_goal_begins_as_one_task_unless_it_is_large_or_falls_apart() {
        let auditor = Specialty {
            role: "auditor".parse().unwrap_or(Role::Worker),
            description: "looks for holes".to_owned(),
            capabilities: vec!["licence check".to_owned()],
            tools: Vec::new(),
            gives: Vec::new(),
        };
        let corpus =
            |files| crate::flow::CorpusRef { id: "c".to_owned(), files, bytes: 1, outline: String::new() };
        let with = |text: &str, files| Goal { corpus: Some(corpus(files)), ..Goal::new(text) };
        for (goal, wanted) in [
            (Goal::new("What is 17.5 % of 2480?"), None),
            (with("Compare the four proposals and recommend one.", 4), None),
            (with("Which of all these is the newest?", 7), None),
            (with("Summarise each of these.", 8), Some("8 documents")),
            (with("Who wrote the charter?", 5_000), None),
            (Goal::new("What is a run? What is a task? And a step?"), Some("3 questions")),
            (Goal::new("Two things:\n- one\n- two"), None),
            (Goal::new("Do this:\n- one\n 2. two\n c) three\nthree.times no item"), Some("3 things")),
            (Goal::new("word ".repeat(150)), Some("150 words")),
            (Goal::new("Do a check of the licence, please."), Some("auditor")),
            (Goal::new("Ask the auditor."), Some("auditor")),
            (Goal::new("Check the spelling."), None),
        ] {
            let reason = separable(&goal, std::slice::from_ref(&auditor));
            assert_eq!(reason.is_some(), wanted.is_some(), "{}: {reason:?}", goal.text);
            assert!(reason.unwrap_or_default().contains(wanted.unwrap_or_default()), "{}", goal.text);
        }
    }

    #[test]
    fn documents_need_a_plan() {
        let corpus =
            crate::flow::CorpusRef { id: "c".to_owned(), files: 1, bytes: 1, outline: String::new() };
        assert_eq!(small(&Goal { corpus: Some(corpus), ..Goal::new("What is a run?") }), None);
    }

    #[test]
    fn the_single_task_fits_the_limits_of_plans() {
        let limits = crate::flow::RunLimits::default();
        for text in ["What is a run?".to_owned(), "word ".repeat(3_000), "{{1.result}} {{".to_owned()] {
            let plan = single_task(&Goal::new(text), Role::Worker);
            let problems = super::super::check_plan(&plan, &limits, &[Role::Worker]);
            assert!(plan.tasks.len() == 1 && problems.len() <= 1, "{problems:?}");
        }
    }
}
