//! Evidence that is no document: files of the workspace, addresses, results of tools. Whether it was seen is told by what
//! happened in the task, and by the results that it builds on. Pure.

use std::collections::HashSet;

use muster_corpus::CitedPlace;
use muster_shared::flow::{LeafRef, ObservationStatus, Step, TaskOffered, TaskResult, Work};
use muster_shared::text::numerals;

use super::super::history::History;
use crate::tools::look::LOOK;

/// What was seen of something that is cited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was, and the words stand there as far as can be told.
    Yes,
    /// It was, and the words do not stand there.
    Otherwise,
    /// It never was.
    Never,
}

/// All that a task saw.
pub(super) struct Evidence<'a> {
    history: &'a History,
    offer: &'a TaskOffered,
    results: Vec<&'a TaskResult>,
    /// Numbers that tools gave.
    given: HashSet<String>,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(history: &'a History, offer: &'a TaskOffered) -> Self {
        let result = |leaf: &'a LeafRef| &leaf.result;
        let results = match &offer.work {
            Work::Execute { inputs, .. } => inputs.iter().map(result).collect(),
            Work::Write { results, .. } => results.iter().map(result).collect(),
            _ => Vec::new(),
        };
        Self { history, offer, results, given: given_by_tools(history) }
    }

    /// Whether something was seen in this task or by those before it, and these words in it.
    pub(super) fn seen(&self, what: &str, quote: &str) -> Seen {
        let name = what.trim_start_matches("./");
        if self.offer.goal.contains(name) || self.is_in_results(name) {
            return Seen::Yes;
        }
        let (mut seen, mut holds) = (false, quote.is_empty());
        for (action, observed) in self.history.steps().iter().flat_map(Step::acts) {
            let Some(observed) = observed else { continue };
            let asked = action.arguments.to_string();
            let is_of_corpus = action.name.starts_with("corpus");
            let named = observed.content.contains(name) || asked.contains(name) || action.name == name;
            if observed.status != ObservationStatus::Success || is_of_corpus || !named {
                continue;
            }
            seen = true;
            let written = bare(&asked).contains(&bare(quote));
            holds |= observed.truncated || written || bare(&observed.content).contains(&bare(quote));
        }
        match (seen, holds) {
            (true, true) => Seen::Yes,
            (true, false) => Seen::Otherwise,
            (false, _) => Seen::Never,
        }
    }

    /// Whether a model that looked at this picture in this task said what is said of it: the words that are quoted, else
    /// the numbers that are given. What a picture shows stands in no line of it.
    pub(super) fn was_seen_in(&self, place: &CitedPlace) -> bool {
        let name = |path: &str| path.trim_start_matches("./").to_owned();
        let acts = self.history.steps().iter().flat_map(Step::acts);
        acts.into_iter().any(|(action, seen)| {
            let Some(seen) = seen.filter(|seen| seen.status == ObservationStatus::Success) else {
                return false;
            };
            let path = action.arguments["path"].as_str().unwrap_or_default();
            if action.name != LOOK || name(path) != name(&place.path) {
                return false;
            }
            if !place.quote.is_empty() {
                return bare(&seen.content).contains(&bare(&place.quote));
            }
            let mut known = digits(&seen.content);
            known.extend(self.numbers_asked());
            digits(&place.statement).is_subset(&known)
        })
    }

    fn is_in_results(&self, name: &str) -> bool {
        let cites = |result: &&TaskResult| {
            let mut citations =
                result.findings.iter().filter(|finding| finding.looked_up).flat_map(|f| &f.citations);
            citations.any(|citation| citation.path.trim_start_matches("./") == name)
                || result.body.contains(name)
                || result.conclusion.contains(name)
        };
        self.results.iter().any(cites)
    }

    /// Whether the goal, or a result of a tool other than the search in documents, contains these words.
    pub(super) fn is_given(&self, quote: &str) -> bool {
        let acts = self.history.steps().iter().flat_map(Step::acts);
        let acts = acts.filter(|(action, _)| !action.name.starts_with("corpus"));
        let mut given = acts.filter_map(|(_, seen)| seen.map(|seen| seen.content.as_str()));
        let words = bare(quote);
        bare(&self.offer.goal).contains(&words) || given.any(|text| bare(text).contains(&words))
    }

    /// Numbers that the lines of a place need not contain: the goal or a tool gave them, or results that cite the place.
    pub(super) fn numbers_beside(&self, path: &str, line: u32) -> HashSet<String> {
        let cites = |result: &&&TaskResult| {
            let mut citations = result.findings.iter().flat_map(|finding| &finding.citations);
            citations.any(|citation| citation.path == path && citation.line.abs_diff(line) < 15)
                || result.body.contains(&format!("{path}:{line}"))
                || result.conclusion.contains(&format!("{path}:{line}"))
        };
        let said = self.results.iter().filter(cites).flat_map(|result| {
            let findings = result.findings.iter().map(|finding| finding.text.as_str());
            findings.chain([result.conclusion.as_str(), result.body.as_str()])
        });
        let said = said.flat_map(digits).chain(self.given.iter().cloned());
        said.chain(self.numbers_asked()).collect()
    }

    /// The numbers of the goal and the task: answers repeat them.
    fn numbers_asked(&self) -> HashSet<String> {
        let task = match &self.offer.work {
            Work::Execute { task, .. } => [task.goal.as_str(), task.name.as_str()],
            _ => [""; 2],
        };
        task.into_iter().chain([self.offer.goal.as_str()]).flat_map(digits).collect()
    }
}

fn given_by_tools(history: &History) -> HashSet<String> {
    let is_of_files = |name: &str| ["corpus", "workspace"].iter().any(|kind| name.starts_with(kind));
    let acts = history.steps().iter().flat_map(Step::acts);
    let given = acts.filter(|(action, _)| !is_of_files(&action.name)).filter_map(|(_, seen)| seen);
    let given = given.filter(|seen| seen.status == ObservationStatus::Success);
    given.flat_map(|seen| digits(&seen.content)).collect()
}

/// The digits of each number of a text.
pub(super) fn digits(text: &str) -> HashSet<String> {
    numerals(text).into_iter().map(|number| number.digits).collect()
}

/// Letters and digits alone: markup and white space do not count.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
