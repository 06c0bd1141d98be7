//! Citations of a report, checked by the rules for agents.

use muster_agents::react::lookup::cited_in;
use muster_corpus::look_up_among;
use muster_shared::flow::LookedUp;

use super::check::Documents;

/// How many places a report cites, and what is wrong with those that are not true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Citations {
    pub(crate) cited: usize,
    pub(crate) faults: Vec<String>,
}

/// Looks up every place that a report cites.
pub(crate) fn citations(report: &str, documents: &Documents) -> Citations {
    let places = cited_in(report);
    let cited = places.len();
    let faults = match look_up_among(documents, &places) {
        Ok(found) => {
            let looked = places.into_iter().zip(found);
            let looked =
                looked.map(|(place, found)| LookedUp { path: place.path, line: place.line, words: 0, found });
            looked.filter_map(|place| fault(&place)).collect()
        }
        Err(error) => vec![error.to_string()],
    };
    Citations { cited, faults }
}

/// The fault of a place; a quote on another line is a fault too.
fn fault(place: &LookedUp) -> Option<String> {
    let moved = || {
        let line = place.found.standing()?.line?;
        let LookedUp { path, line: cited, .. } = place;
        Some(format!("the quote is not at {path}:{cited}; it is on line {line}"))
    };
    place.fault().or_else(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Documents {
        let lines = [
            "# Limits",
            "",
            "A loop ends after five hops,",
            "whatever the model says.",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "Birds sing in the morning.",
        ];
        Documents::from([("docs/a.md".to_owned(), lines.join("\n"))])
    }

    fn faults(report: &str) -> Vec<String> {
        citations(report, &documents()).faults
    }

    #[test]
    fn what_is_true_passes() {
        for report in [
            "A loop ends after five hops (`a.md:3`).",
            "- Loops: the model cannot say when it *ends* [docs/a.md:3-4].",
            "It says “ends after five hops, whatever the model says” (a.md:3).",
            "See `a.md:3`.",
            "At 10:30 we met, http://x.org:80 was down, 12.5:3 is a ratio.",
        ] {
            assert_eq!(faults(report), Vec::<String>::new(), "{report}");
        }
        assert_eq!(citations("at 10:30, http://x.org:80, 12.5:3, a.md:3.", &documents()).cited, 1);
    }

    #[test]
    fn what_is_false_is_told() {
        for (report, wanted) in [
            ("A loop ends after five hops (`b.md:3`).", "the document b.md does not exist"),
            ("A loop ends after five hops (`a.md:9998`).", "a.md has 12 lines"),
            ("“A loop ends after five hops” (`a.md:12`).", "it is on line 3"),
            ("It says “ends after six hops” (`a.md:3`).", "does not contain the quote"),
        ] {
            let said = faults(report);
            assert!(said.len() == 1 && said[0].contains(wanted), "{report}: {said:?}");
        }
    }
}
