//! What a report is made of: the questions that were asked, with what was found for each.

use std::collections::BTreeSet;

use muster_shared::flow::{Citation, Finding, LeafRef};
use muster_shared::ids::TaskIndex;
use muster_shared::plan::reference;

use crate::planner::{is_check, to_compute};
use crate::rank::share_in_common;
use crate::researcher::NOTHING_ON;
use crate::subquestions::asked_by;
use crate::text::stem_set;
use crate::worker::{COMPUTED, DROPPED};

/// Most statements in the section of one question.
const MAX_PER_SECTION: usize = 5;
/// Share of words from which on two statements say the same.
const SAME: f64 = 0.75;

/// All that goes into a report.
#[derive(Debug, Default)]
pub(super) struct Material {
    pub(super) sections: Vec<Section>,
    /// Conclusions and documents of tasks that gave no single statements, such as those of specialists.
    pub(super) concluded: Vec<String>,
    pub(super) computed: Vec<String>,
    pub(super) not_computed: Vec<String>,
    pub(super) checks: usize,
    pub(super) dropped: usize,
    pub(super) tasks: usize,
}

/// A question and what was found for it.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// The question as it was put, with what references in it stood for.
    pub(super) subquestion: String,
    /// The question as people read it, with references in words.
    pub(super) heading: String,
    pub(super) findings: Vec<Finding>,
    /// Places that answer it too, but whose statements stand under another question.
    pub(super) also: Vec<String>,
    /// What stayed open, by the last search for it; the whole question when it equals the subquestion.
    pub(super) open: Vec<String>,
}

impl Section {
    pub(super) fn is_answered(&self) -> bool {
        let has_something = !self.findings.is_empty() || !self.also.is_empty();
        has_something && !self.open.contains(&self.subquestion)
    }

    /// The question as it is shown.
    pub(super) fn title(&self) -> &str {
        self.heading.split(" (about: ").next().unwrap_or(&self.heading)
    }

    /// An open point as it is told, with its question.
    pub(super) fn point(&self, open: &str) -> String {
        match open.strip_prefix(&self.subquestion) {
            Some(rest) => format!("{}{rest}", self.heading),
            None => open.to_owned(),
        }
    }
}

impl Material {
    pub(super) fn gather(
        results: &[LeafRef],
        failed: &[(TaskIndex, String, String)],
        uncovered: &[String],
    ) -> Self {
        let names = TaskNames { results, failed };
        let mut material = Self { tasks: results.len(), ..Self::default() };
        let (checks, others): (Vec<&LeafRef>, Vec<&LeafRef>) =
            results.iter().partition(|leaf| is_check(leaf.query.as_ref()));
        material.checks = checks.len();
        let verdicts = Verdicts::of(&checks);
        for leaf in others {
            material.take_in(leaf, &names, &verdicts);
        }
        material.dropped = verdicts.dropped.len();
        for section in &mut material.sections {
            section.findings.truncate(MAX_PER_SECTION);
        }
        for text in uncovered {
            material.add_uncovered(text);
        }
        material
    }

    fn take_in(&mut self, leaf: &LeafRef, names: &TaskNames<'_>, verdicts: &Verdicts) {
        let planned = asked_by(&leaf.goal, leaf.query.as_ref()).question;
        let heading = names.in_words(&planned);
        let subquestion = if heading == planned { planned } else { self.as_put(leaf).unwrap_or(planned) };
        let computed = |finding: &&Finding| finding.subquestion == COMPUTED;
        self.computed
            .extend(leaf.result.findings.iter().filter(computed).map(|finding| finding.text.clone()));
        if to_compute(&leaf.goal, leaf.query.as_ref()).is_some() {
            self.not_computed.extend(leaf.result.unanswered.iter().cloned());
            return;
        }
        let fresh: Vec<Finding> = leaf
            .result
            .findings
            .iter()
            .filter(|finding| finding.subquestion != COMPUTED)
            .filter(|finding| !verdicts.is_dropped(finding) && !self.is_said(finding, &subquestion))
            .map(|finding| Finding { verified: verdicts.is_verified(finding), ..finding.clone() })
            .collect();
        let said = leaf
            .result
            .findings
            .iter()
            .filter(|finding| self.is_said(finding, &subquestion) && !verdicts.is_dropped(finding));
        let also: Vec<String> =
            said.take(2).map(|finding| finding.places().trim_matches([' ', '(', ')']).to_owned()).collect();
        let mut open = leaf.result.unanswered.clone();
        let all_dropped = fresh.is_empty() && also.is_empty() && !leaf.result.findings.is_empty();
        if all_dropped && open.is_empty() {
            open.push(subquestion.clone());
        }
        match self.sections.iter_mut().find(|section| section.subquestion == subquestion) {
            Some(section) => {
                section.findings.extend(fresh);
                section.open.retain(|text| open.contains(text));
            }
            None if fresh.is_empty() && open.is_empty() && also.is_empty() => {
                let given = [&leaf.result.conclusion, &leaf.result.body].map(|text| text.trim());
                self.concluded.extend(given.into_iter().filter(|text| !text.is_empty()).map(str::to_owned));
            }
            None => self.sections.push(Section { subquestion, heading, findings: fresh, also, open }),
        }
    }

    /// The question of a task as it was put to it, by what it says of it. What it was given of other tasks has their
    /// questions.
    fn as_put(&self, leaf: &LeafRef) -> Option<String> {
        let of_findings = leaf.result.findings.iter().map(|finding| finding.subquestion.as_str());
        let open = leaf.result.unanswered.iter().filter_map(|open| open.split(NOTHING_ON).next());
        let is_own = |asked: &&str| {
            *asked != COMPUTED && !self.sections.iter().any(|section| section.subquestion == **asked)
        };
        of_findings.chain(open).find(is_own).map(str::to_owned)
    }

    /// Whether a statement, or one with nearly the same words from the same place, is in the report already.
    fn is_said(&self, finding: &Finding, subquestion: &str) -> bool {
        let stems = stem_set(&finding.text);
        let answered = self
            .sections
            .iter()
            .filter(|section| section.is_answered() || section.subquestion == subquestion);
        answered.flat_map(|section| &section.findings).any(|other| {
            let same_place = other.citations.first().map(|place| (&place.path, place.line))
                == finding.citations.first().map(|place| (&place.path, place.line));
            let alike = share_in_common(&stems, &stem_set(&other.text));
            other.text == finding.text || alike >= 0.95 || (same_place && alike >= SAME)
        })
    }

    fn add_uncovered(&mut self, text: &str) {
        let about = |section: &Section| text == section.subquestion || text.starts_with(&section.subquestion);
        if self.sections.iter().any(about) || self.not_computed.iter().any(|open| open == text) {
            return;
        }
        self.sections.push(Section {
            subquestion: text.to_owned(),
            heading: text.to_owned(),
            open: vec![text.to_owned()],
            ..Section::default()
        });
    }

    pub(super) fn unanswered(&self) -> Vec<String> {
        let open = self.sections.iter().flat_map(|section| {
            if section.is_answered() || section.findings.is_empty() && !section.open.is_empty() {
                section.open.iter().map(|open| section.point(open)).collect()
            } else {
                vec![section.heading.clone()]
            }
        });
        open.chain(self.not_computed.iter().cloned()).collect()
    }

    fn shown(&self) -> impl Iterator<Item = &Finding> {
        self.sections.iter().flat_map(|section| &section.findings)
    }

    pub(super) fn cited(&self) -> usize {
        self.shown().count()
    }

    pub(super) fn verified(&self) -> usize {
        self.shown().filter(|finding| finding.verified).count()
    }

    pub(super) fn documents(&self) -> usize {
        let paths: BTreeSet<&str> =
            self.shown().flat_map(|finding| &finding.citations).map(|place| place.path.as_str()).collect();
        paths.len()
    }
}

/// What tasks are called.
struct TaskNames<'a> {
    results: &'a [LeafRef],
    failed: &'a [(TaskIndex, String, String)],
}

impl TaskNames<'_> {
    /// A question with references in words: nobody who reads the report knows the indices of tasks.
    fn in_words(&self, question: &str) -> String {
        reference::in_words(question, |task| {
            let done = self.results.iter().map(|leaf| (&leaf.index, &leaf.name));
            let failed = self.failed.iter().map(|(index, name, _)| (index, name));
            let named = done.chain(failed).find(|(index, name)| *index == task && !name.is_empty());
            named.map(|(_, name)| name.clone())
        })
    }
}

/// What the checks said of citations.
struct Verdicts {
    verified: BTreeSet<(String, u32, String)>,
    dropped: BTreeSet<String>,
}

impl Verdicts {
    fn of(checks: &[&LeafRef]) -> Self {
        let findings = checks.iter().flat_map(|leaf| &leaf.result.findings);
        let verified = findings.filter(|finding| finding.verified).map(key).collect();
        let milestones = checks.iter().flat_map(|leaf| &leaf.result.milestones);
        let dropped = milestones.filter_map(|text| text.strip_prefix(DROPPED)).map(str::to_owned).collect();
        Self { verified, dropped }
    }

    fn is_verified(&self, finding: &Finding) -> bool {
        finding.verified || self.verified.contains(&key(finding))
    }

    fn is_dropped(&self, finding: &Finding) -> bool {
        let dropped = |place: &Citation| self.dropped.contains(&place.to_string());
        !self.is_verified(finding) && finding.citations.iter().any(dropped)
    }
}

fn key(finding: &Finding) -> (String, u32, String) {
    let place = finding.citations.first();
    (
        place.map(|place| place.path.clone()).unwrap_or_default(),
        place.map_or(0, |place| place.line),
        finding.text.clone(),
    )
}
