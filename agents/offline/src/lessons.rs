//! What searching by rule teaches: whether a wider search pays for a question. Said by whoever reflects, and heeded by
//! whoever plans a run with a like goal.

use std::collections::BTreeSet;

use muster_shared::flow::{SearchQuery, TaskResult};

use super::question::question;
use super::text::shorten;

const PAYS: &str = "a wider search is worth one more task for: ";
const IN_VAIN: &str = "not even a wider search found anything for: ";
/// How it is said of a run that it left a question open.
const OPEN: &str = "stayed uncovered: ";

/// Longest question in a lesson, in characters.
const LONGEST: usize = 160;

/// What a search taught; nothing when the question was answered at once.
pub(super) fn of_search(
    asked: &SearchQuery,
    result: Option<&TaskResult>,
    wants_more: bool,
) -> Option<String> {
    let found_nothing = result.is_none_or(|result| result.findings.is_empty());
    let what = match (asked.widened, found_nothing) {
        (true, true) => IN_VAIN,
        (true, false) => PAYS,
        (false, _) if wants_more => PAYS,
        (false, _) => return None,
    };
    Some(format!("{what}{}", shorten(&asked.question, LONGEST)))
}

/// Whether a question should be searched for more widely from the beginning.
pub(super) fn advise_wider(lessons: &[String], subquestion: &str) -> bool {
    let says = |what: &str| lessons.iter().any(|lesson| is_about(lesson, what, subquestion));
    (says(PAYS) || says(OPEN)) && !says(IN_VAIN)
}

/// Whether a lesson says this of the question. Its telling words count: goals that are alike put them otherwise.
fn is_about(lesson: &str, what: &str, subquestion: &str) -> bool {
    let Some(said) = lesson.strip_prefix(what) else { return false };
    let of_lesson = telling(said.split(" — ").next().unwrap_or(said));
    !of_lesson.is_empty() && of_lesson.is_subset(&telling(subquestion))
}

fn telling(text: &str) -> BTreeSet<String> {
    let terms = question(text, &[]).terms.into_iter();
    terms.filter(|term| !term.light).map(|term| term.stem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_is_heeded_for_the_question_that_it_is_about() {
        let asked = |widened| SearchQuery {
            question: "How does a worker survive an outage?".to_owned(),
            widened,
            ..SearchQuery::default()
        };
        let nothing = TaskResult::default();
        let plain = of_search(&asked(false), Some(&nothing), true).into_iter().collect::<Vec<_>>();
        assert!(advise_wider(&plain, "How could our worker survive an outage?"), "{plain:?}");
        assert!(!advise_wider(&plain, "How does a worker begin?"));
        let in_vain = of_search(&asked(true), Some(&nothing), false);
        let both: Vec<String> = plain.into_iter().chain(in_vain).collect();
        assert!(
            !advise_wider(&both, "How does a worker survive an outage?"),
            "it was tried in vain: {both:?}"
        );
        let open = vec!["stayed uncovered: How are bees fed? — nothing was found on “fed”".to_owned()];
        assert!(advise_wider(&open, "How are the bees fed?"));
        assert_eq!(of_search(&asked(false), Some(&nothing), false), None);
    }
}
