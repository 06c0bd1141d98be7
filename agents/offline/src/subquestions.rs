//! A goal taken apart into the questions it asks, and what a research task asks.

use muster_shared::flow::{PlanTask, SearchQuery, TaskQuery};
use regex::Regex;

use super::question::question;
use super::text::{capitalise, normalise_space, sentences, shorten, words};

/// Most questions made of one goal.
pub(super) const MAX_SUBQUESTIONS: usize = 6;
/// Longest question, in characters.
const MAX_SUBQUESTION: usize = 400;

/// The question that a task asks of documents: as it was planned, else the words of its goal. Words that were changed
/// since count, not the fields beside them.
pub(super) fn asked_by(goal: &str, query: Option<&TaskQuery>) -> SearchQuery {
    let goal = normalise_space(goal);
    match query {
        Some(TaskQuery::Search(query)) if normalise_space(&goal_of(query)) == goal => {
            SearchQuery { question: normalise_space(&query.question), ..query.clone() }
        }
        _ => SearchQuery { question: goal, ..SearchQuery::default() },
    }
}

/// The question that a task of a plan asks.
pub(super) fn asked_in(task: &PlanTask) -> SearchQuery {
    asked_by(&task.goal, task.query.as_ref())
}

/// A question in words, as the goal of a task.
pub(super) fn goal_of(query: &SearchQuery) -> String {
    match (query.widened, query.also.as_slice()) {
        (false, _) => query.question.clone(),
        (true, []) => format!("Search more widely: {}", query.question),
        (true, also) => format!("Search more widely: {} (also: {})", query.question, also.join(", ")),
    }
}

pattern!(
    JOINT,
    r"(?i)(?:[,;]\s*(?:and\s+|or\s+|but\s+)?|\s+(?:and|as well as)\s+)(?P<next>(?:(?:in|at|by|for|to|under|with|of|on)\s+(?:what|which|whom)|how|why|when|where|who|what|which|whether)\b)"
);
pattern!(
    COMMAND_JOINT,
    r"(?i)[,;]?\s+(?:and(?:\s+then)?|then)\s+(?P<next>(?:explain|describe|list|compare|summari[sz]e|compute|calculate|find|tell|show|name|say|check|write|state|identify)\b)"
);
pattern!(
    LEAD_IN,
    r"(?i)^(?:(?:please|kindly|hi|hello)\b[,!]?\s*|(?:can|could|would|will) you (?:please )?|i (?:want|need|would like|'d like) (?:you )?to (?:know|find out|understand|see|learn)?:?\s*|(?:tell|show) (?:me|us)\s+(?:about\s+)?|find out\s+|let me know\s+|(?:write|make|create|prepare|give me|produce) (?:me )?(?:a|an|the) (?:short |brief |detailed |full )?(?:report|summary|overview|note)\s+(?:on|about|of|that (?:explains|says|describes))\s+|(?:research|investigate)\s+)"
);
pattern!(BULLET, r"^\s*(?:[-*•]|\d{1,2}[.)])\s+");
pattern!(
    ENUMERATION,
    r"(?i)^(?P<lead>(?:explain|describe|list|name|summari[sz]e|define|identify|outline|discuss|what (?:is|are))\s+)(?P<items>[^?.!]+?)(?P<end>[?.!]*)$"
);
pattern!(POINTS_BACK, r"(?i)\b(?:it|its|they|them|their|theirs|this|these|those|that one|he|she)\b");

/// The questions a goal asks, in order, each able to stand on its own.
pub(super) fn subquestions(goal: &str) -> Vec<String> {
    let mut subquestions: Vec<String> = Vec::new();
    let mut subject = String::new();
    for clause in clauses(goal) {
        let says_nothing = question(&clause, &[]).terms.iter().all(|term| term.light);
        if says_nothing && !subquestions.is_empty() && !POINTS_BACK.is_match(&clause) {
            continue;
        }
        let subquestion = on_its_own(&clause, &subject);
        let found = subject_of(&clause);
        if !found.is_empty() {
            subject = found;
        }
        if !subquestions.iter().any(|known| known.eq_ignore_ascii_case(&subquestion)) {
            subquestions.push(subquestion);
        }
    }
    if subquestions.is_empty() {
        subquestions.push(shorten(&normalise_space(goal), MAX_SUBQUESTION));
    }
    join_surplus(subquestions)
}

/// More questions than fit are asked together in the last one.
fn join_surplus(mut subquestions: Vec<String>) -> Vec<String> {
    if subquestions.len() > MAX_SUBQUESTIONS {
        let surplus = subquestions.split_off(MAX_SUBQUESTIONS - 1).join(" ");
        subquestions.push(shorten(&surplus, MAX_SUBQUESTION));
    }
    subquestions
}

fn clauses(goal: &str) -> Vec<String> {
    let mut clauses = Vec::new();
    for line in lines(goal) {
        for range in sentences(&line) {
            for part in split_before(&line[range], &COMMAND_JOINT) {
                for part in split_before(&part, &JOINT) {
                    clauses.extend(enumerated(without_lead_in(&part)));
                }
            }
        }
    }
    clauses.retain(|clause| words(clause).next().is_some());
    clauses
}

/// Paragraphs and list items, each on one line.
fn lines(goal: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in goal.lines() {
        let is_bullet = BULLET.is_match(line);
        let text = BULLET.replace(line, "").trim().to_owned();
        match lines.last_mut() {
            Some(last) if open && !is_bullet && !text.is_empty() => {
                last.push(' ');
                last.push_str(&text);
            }
            _ => lines.push(text.clone()),
        }
        open = !text.is_empty();
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Cuts a sentence before each further question in it.
fn split_before(text: &str, joint: &Regex) -> Vec<String> {
    let mut parts = Vec::new();
    let mut start = 0;
    for found in joint.captures_iter(text) {
        let (Some(all), Some(next)) = (found.get(0), found.name("next")) else { continue };
        let before = text[start..all.start()].trim();
        // "when" and "which" after a comma often begin a relative clause; a question has words of its own.
        if words(before).count() < 2 || words(&text[next.start()..]).count() < 3 {
            continue;
        }
        if is_relative(&text[all.start()..next.start()], &text[next.start()..], before) {
            continue;
        }
        parts.push(before.to_owned());
        start = next.start();
    }
    parts.push(text[start..].trim().to_owned());
    parts
}

/// ", which…", ", where…" without an "and" only go on with what was said, unless they ask as "which X is…"
/// does after another question.
fn is_relative(joint: &str, next: &str, before: &str) -> bool {
    let first = |text: &str| words(text).next().map(|word| word.text.to_lowercase()).unwrap_or_default();
    if joint.to_lowercase().contains("and")
        || !matches!(first(next).as_str(), "which" | "where" | "who" | "when" | "whether")
    {
        return false;
    }
    let asked_before = QUESTION_WORDS.contains(&first(before).as_str());
    !(asked_before && INVERTED.is_match(next))
}

const QUESTION_WORDS: &[&str] = &["what", "how", "why", "when", "where", "who", "which", "whose"];

pattern!(
    INVERTED,
    r"(?i)^(?:(?:where|when|who|whom)\s+|which\s+(?:\w+\s+){1,3}?)(?:is|are|was|were|can|could|do|does|did|will|would|should|may|must|has|have)\b"
);

fn without_lead_in(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(found) = LEAD_IN.find(rest).filter(|found| found.end() < rest.len() && !found.is_empty()) {
        rest = rest[found.end()..].trim();
    }
    rest
}

/// "Describe the lease, the fence and the record" asks three things.
fn enumerated(clause: &str) -> Vec<String> {
    let whole = vec![clause.to_owned()];
    let Some(found) = ENUMERATION.captures(clause) else { return whole };
    let items: Vec<&str> =
        ITEM_JOINT.split(&found["items"]).map(str::trim).filter(|item| !item.is_empty()).collect();
    let stands_alone = |item: &&str| {
        let count = words(item).count();
        let first = words(item).next().map(|word| word.text.to_lowercase()).unwrap_or_default();
        let is_named =
            matches!(first.as_str(), "the" | "a" | "an" | "its" | "their" | "how" | "why" | "what");
        (1..=7).contains(&count) && is_named
    };
    let all_short = items.iter().all(|item| words(item).count() <= 2);
    let shares_tail = items.last().is_some_and(|last| TAIL.is_match(last))
        && items.iter().filter(|item| TAIL.is_match(item)).count() == 1;
    if items.len() < 2 || items.len() > 5 || !(all_short || items.iter().all(stands_alone)) || shares_tail {
        return whole;
    }
    let lead = found["lead"].trim();
    let end = &found["end"];
    items
        .iter()
        .map(|item| {
            let lead =
                if lead.eq_ignore_ascii_case("what are") && !item.ends_with('s') { "What is" } else { lead };
            format!("{lead} {item}{end}")
        })
        .collect()
}

pattern!(ITEM_JOINT, r"(?i)\s*,\s*(?:and|or)\s+|\s*,\s*|\s+and\s+");
pattern!(TAIL, r"(?i)\b(?:of|in|for|on|with|between|to|from)\b");

/// The question with the subject named when it only points back to it.
fn on_its_own(clause: &str, subject: &str) -> String {
    let text =
        capitalise(shorten(&normalise_space(clause), MAX_SUBQUESTION).trim_end_matches([',', ';', ' ', ':']));
    let text = closed(&text);
    let points_back = !subject.is_empty() && POINTS_BACK.is_match(&text);
    let says_little = question(&text, &[]).terms.iter().filter(|term| !term.light).count() < 3;
    if points_back && says_little { format!("{text} (about: {subject})") } else { text }
}

/// With a question mark where it is a question.
fn closed(text: &str) -> String {
    let first = words(text).next().map(|word| word.text.to_lowercase()).unwrap_or_default();
    let asks = matches!(
        first.as_str(),
        "what"
            | "how"
            | "why"
            | "when"
            | "where"
            | "who"
            | "which"
            | "whose"
            | "is"
            | "are"
            | "does"
            | "do"
            | "can"
    );
    let bare = text.trim_end_matches(['.', ' ']);
    if asks && !bare.ends_with('?') { format!("{bare}?") } else { text.to_owned() }
}

/// The telling words of a question, as its subject.
fn subject_of(clause: &str) -> String {
    let asked = question(clause, &[]);
    let telling: Vec<&str> =
        asked.terms.iter().filter(|term| !term.light).map(|term| term.word.as_str()).collect();
    telling.into_iter().take(4).collect::<Vec<_>>().join(" ")
}

/// A few words that name a question.
pub(super) fn title_of(subquestion: &str) -> String {
    let plain = subquestion.trim_end_matches(['?', '.', '!']);
    let plain = plain.split(" (about:").next().unwrap_or(plain);
    shorten(plain, 60)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn goals_come_apart_into_questions() {
        let table: &[(&str, &[&str])] = &[
            (
                "What limits delegation loops, and how does a run survive the death of a worker?",
                &["What limits delegation loops?", "How does a run survive the death of a worker?"],
            ),
            ("What is a run?", &["What is a run?"]),
            (
                "What is the record? Why is it the only truth?",
                &["What is the record?", "Why is it the only truth? (about: record)"],
            ),
            (
                "Please explain the lease, the fence and the record.",
                &["Explain the lease.", "Explain the fence.", "Explain the record."],
            ),
            ("Describe how tasks are offered and retried", &["Describe how tasks are offered and retried"]),
            (
                "What are the limits on width, depth and count of the plan?",
                &["What are the limits on width, depth and count of the plan?"],
            ),
            ("- What is A1?\n- How does B2 start?\n", &["What is A1?", "How does B2 start?"]),
            ("Tell me about snapshots", &["Snapshots"]),
            (
                "List the roles and explain how they share work",
                &["List the roles", "Explain how they share work (about: roles)"],
            ),
            (
                "How fast is rhai, and what can it not do?",
                &["How fast is rhai?", "What can it not do? (about: fast rhai)"],
            ),
            (
                "What happens to secrets, which languages can agents be written in?",
                &["What happens to secrets?", "Which languages can agents be written in?"],
            ),
            ("How does it find the file, which is large?", &["How does it find the file, which is large?"]),
            ("", &[""]),
        ];
        for (goal, expected) in table {
            assert_eq!(subquestions(goal), *expected, "{goal}");
        }
    }

    #[test]
    fn a_question_is_taken_from_the_fields_unless_somebody_changed_the_words() {
        let also = vec!["a, b".to_owned(), "c)".to_owned()];
        let wider = SearchQuery { question: "Why X (also: so)?".to_owned(), also, widened: true };
        let query = Some(TaskQuery::Search(wider.clone()));
        assert_eq!(asked_by(&goal_of(&wider), query.as_ref()), wider);
        let changed = asked_by("Why  Y?", query.as_ref());
        assert_eq!(changed, SearchQuery { question: "Why Y?".to_owned(), ..SearchQuery::default() });
        assert_eq!(asked_by("Why Y?", None), changed);
    }

    proptest! {
        #[test]
        fn every_goal_has_questions(goal in "([\\PC]{0,20}|what is |, and how |\\?|\n|- ){0,20}") {
            let found = subquestions(&goal);
            prop_assert!((1..=MAX_SUBQUESTIONS).contains(&found.len()));
            prop_assert_eq!(&found, &subquestions(&goal));
        }
    }
}
