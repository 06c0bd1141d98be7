//! Writing by rule: the best statement for each question first, then all of them, each with its place.

use std::collections::BTreeSet;

use muster_shared::blueprint::REPORT_PARTS;
use muster_shared::flow::{Finding, LeafRef, Product, Report, Revision, TaskOffered};
use muster_shared::ids::TaskIndex;

use super::planner::{is_check, to_compute};
use super::rank::share_in_common;
use super::subquestions::asked_by;
use super::text::{counted, normalise_space, shorten, stem_set};
use super::worker::{COMPUTED, DROPPED};
use super::{OfflineMove, thought};

/// Most statements in the section of one question.
const MAX_PER_SECTION: usize = 5;
/// Share of words from which on two statements say the same.
const SAME: f64 = 0.75;

/// What results leave open.
pub(super) struct StillOpen<'a> {
    /// Questions that reflections found without an answer.
    pub(super) uncovered: &'a [String],
    /// What a reviewer missed in the draft before.
    pub(super) revision: Option<&'a Revision>,
}

pub(super) fn next(
    offer: &TaskOffered,
    results: &[LeafRef],
    failed: &[(TaskIndex, String, String)],
    open: &StillOpen<'_>,
) -> OfflineMove {
    let StillOpen { uncovered, revision } = *open;
    let asked = revision.iter().flat_map(|revision| &revision.review.unanswered);
    let uncovered: Vec<String> = uncovered.iter().chain(asked).cloned().collect();
    let material = Material::gather(results, &uncovered);
    let goal = offer.goal.split(REPORT_PARTS).next().unwrap_or(&offer.goal);
    let title = shorten(&normalise_space(goal), 180);
    let body = body(offer, &title, &material, failed);
    let body = revision.map_or(body.clone(), |revision| without(&body, &revision.review.unsupported));
    let report =
        Report { title, body, unanswered: material.unanswered(), offline: true, ..Report::default() };
    OfflineMove::submit(
        thought(
            format!(
                "{} and {} to order.",
                counted(material.sections.len(), "question", "questions"),
                counted(material.cited(), "cited statement", "cited statements")
            ),
            "The best statement for each question comes first; nothing is said twice.",
            "Submit the report.",
        ),
        &Product::Report(report),
    )
}

/// The report without the lines that hold what nothing bears out.
fn without(body: &str, unsupported: &[String]) -> String {
    let holds = |line: &&str| {
        let line = normalise_space(line);
        !unsupported.iter().any(|claim| line.contains(claim.as_str()))
    };
    let lines: Vec<&str> = body.lines().filter(holds).collect();
    format!("{}\n", lines.join("\n"))
}

/// All that goes into a report.
#[derive(Debug, Default)]
struct Material {
    sections: Vec<Section>,
    computed: Vec<String>,
    not_computed: Vec<String>,
    checks: usize,
    dropped: usize,
    tasks: usize,
}

/// A question and what was found for it.
#[derive(Debug, Default)]
struct Section {
    subquestion: String,
    findings: Vec<Finding>,
    /// Places that answer it too, but whose statements stand under another question.
    also: Vec<String>,
    /// What stayed open, by the last search for it; the whole question when it equals the subquestion.
    open: Vec<String>,
}

impl Section {
    fn is_answered(&self) -> bool {
        let has_something = !self.findings.is_empty() || !self.also.is_empty();
        has_something && !self.open.contains(&self.subquestion)
    }
}

impl Section {
    /// The question as it is shown.
    fn title(&self) -> &str {
        self.subquestion.split(" (about: ").next().unwrap_or(&self.subquestion)
    }
}

impl Material {
    fn gather(results: &[LeafRef], uncovered: &[String]) -> Self {
        let mut material = Self { tasks: results.len(), ..Self::default() };
        let (checks, others): (Vec<&LeafRef>, Vec<&LeafRef>) =
            results.iter().partition(|leaf| is_check(leaf.query.as_ref()));
        material.checks = checks.len();
        let verdicts = Verdicts::of(&checks);
        for leaf in others {
            material.take_in(leaf, &verdicts);
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

    fn take_in(&mut self, leaf: &LeafRef, verdicts: &Verdicts) {
        let subquestion = asked_by(&leaf.goal, leaf.query.as_ref()).question;
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
            said.take(2).map(|finding| places(finding).trim_matches([' ', '(', ')']).to_owned()).collect();
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
            None if fresh.is_empty() && open.is_empty() && also.is_empty() => {}
            None => self.sections.push(Section { subquestion, findings: fresh, also, open }),
        }
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
            open: vec![text.to_owned()],
            ..Section::default()
        });
    }

    fn unanswered(&self) -> Vec<String> {
        let open = self.sections.iter().flat_map(|section| {
            if section.is_answered() || section.findings.is_empty() && !section.open.is_empty() {
                section.open.clone()
            } else {
                vec![section.subquestion.clone()]
            }
        });
        open.chain(self.not_computed.iter().cloned()).collect()
    }

    fn shown(&self) -> impl Iterator<Item = &Finding> {
        self.sections.iter().flat_map(|section| &section.findings)
    }

    fn cited(&self) -> usize {
        self.shown().count()
    }

    fn verified(&self) -> usize {
        self.shown().filter(|finding| finding.verified).count()
    }

    fn documents(&self) -> usize {
        let paths: BTreeSet<&str> =
            self.shown().flat_map(|finding| &finding.citations).map(|place| place.path.as_str()).collect();
        paths.len()
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
        let dropped = |place: &muster_shared::flow::Citation| {
            self.dropped.contains(&format!("{}:{}", place.path, place.line))
        };
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

fn body(
    offer: &TaskOffered,
    title: &str,
    material: &Material,
    failed: &[(TaskIndex, String, String)],
) -> String {
    let mut parts = vec![format!("# {title}")];
    parts.extend(in_short(material));
    parts.extend(material.sections.iter().filter(|section| section.is_answered()).map(section));
    parts.extend(not_answered(material));
    parts.extend(not_done(failed));
    parts.push(how_made(offer, material));
    format!("{}\n", parts.join("\n\n"))
}

fn in_short(material: &Material) -> Option<String> {
    if material.sections.len() == 1 && material.computed.is_empty() {
        // One section below says it all.
        return None;
    }
    let mut lines: Vec<String> =
        material.computed.iter().map(|value| format!("- **Computed:** {value}")).collect();
    for section in &material.sections {
        if !section.is_answered() {
            lines.push(format!("- **{}** The documents do not say.", section.title()));
            continue;
        }
        if section.findings.is_empty() {
            lines.push(format!("- **{}** {}", section.title(), elsewhere(section)));
            continue;
        }
        let best = section.findings.iter().take(1);
        lines.extend(
            best.map(|finding| {
                format!("- **{}** {}{}", section.title(), ended(&finding.text), places(finding))
            }),
        );
    }
    (!lines.is_empty()).then(|| format!("## In short\n\n{}", lines.join("\n")))
}

/// All statements for a question.
fn section(section: &Section) -> String {
    let mut lines: Vec<String> = section
        .findings
        .iter()
        .map(|finding| {
            let mark = if finding.verified { " ✓" } else { "" };
            format!("- {}{}{mark}", ended(&finding.text), places(finding))
        })
        .collect();
    if section.findings.is_empty() {
        lines.push(format!("- {}", elsewhere(section)));
    }
    lines.extend(section.open.iter().map(|open| format!("- *{}*", open_point(section, open))));
    format!("## {}\n\n{}", section.title(), lines.join("\n"))
}

/// What stayed open of a question, without the question.
fn open_point(section: &Section, open: &str) -> String {
    let rest = open.strip_prefix(&section.subquestion).unwrap_or(open);
    super::text::capitalise(&ended(rest.trim_start_matches([' ', '—'])))
}

fn not_answered(material: &Material) -> Option<String> {
    let mut lines = Vec::new();
    for section in material.sections.iter().filter(|section| !section.is_answered()) {
        lines.push(format!("- {}", section.title()));
        let nearest = section.findings.iter().take(2);
        lines.extend(
            nearest.map(|finding| format!("  - nearest: {}{}", ended(&finding.text), places(finding))),
        );
    }
    for section in material.sections.iter().filter(|section| section.is_answered()) {
        lines.extend(section.open.iter().map(|open| format!("- {open}")));
    }
    lines.extend(material.not_computed.iter().map(|open| format!("- {open}")));
    (!lines.is_empty()).then(|| format!("## Not answered by the documents\n\n{}", lines.join("\n")))
}

fn not_done(failed: &[(TaskIndex, String, String)]) -> Option<String> {
    let lines: Vec<String> = failed
        .iter()
        .map(|(index, name, why)| {
            format!("- {index} {name}: {}", if why.is_empty() { "no reason given" } else { why })
        })
        .collect();
    (!lines.is_empty()).then(|| format!("## Not done\n\n{}", lines.join("\n")))
}

fn how_made(offer: &TaskOffered, material: &Material) -> String {
    let mut said = vec!["No language model was used.".to_owned()];
    match &offer.corpus {
        Some(corpus) => {
            said.push(format!(
                "The statements were found by search and taken by rule, in their own words, from {} of {} given; {} took part.",
                material.documents(),
                counted(usize::try_from(corpus.files).unwrap_or(usize::MAX), "document", "documents"),
                counted(material.tasks, "task", "tasks"),
            ));
            said.push(checked(material));
        }
        None => said.push(
            "No documents were given, so only what can be computed could be answered: give a folder with `--docs`, \
             or set up a model."
                .to_owned(),
        ),
    }
    format!("## How this report was made\n\n{}", said.join(" "))
}

fn checked(material: &Material) -> String {
    let cited = counted(material.cited(), "citation", "citations");
    let dropped = match material.dropped {
        0 => String::new(),
        1 => " 1 statement was left out because its words do not stand there.".to_owned(),
        count => format!(" {count} statements were left out because their words do not stand there."),
    };
    if material.cited() == 0 {
        return format!("Nothing was found that could be cited.{dropped}");
    }
    if material.checks == 0 {
        return format!("None of the {cited} was looked up by a second task.");
    }
    format!(
        "A worker looked up {} of {cited} (✓) and found the words where they are said to stand.{dropped}",
        material.verified()
    )
}

fn places(finding: &Finding) -> String {
    let places: Vec<String> =
        finding.citations.iter().map(|place| format!("`{}:{}`", place.path, place.line)).collect();
    if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) }
}

/// Where the answer to a question stands that was given under another one. What was not cited has no place.
fn elsewhere(section: &Section) -> String {
    let places: Vec<&str> =
        section.also.iter().map(String::as_str).filter(|place| !place.is_empty()).collect();
    if places.is_empty() {
        "It is answered under another question.".to_owned()
    } else {
        format!("See {}, quoted for another question.", places.join(" and "))
    }
}

/// With a full stop, where a statement has no end of its own.
fn ended(text: &str) -> String {
    let bare = text.trim_end_matches([':', ';', ',', ' ', '—', '–']);
    let bare = bare.strip_suffix(", or").or_else(|| bare.strip_suffix(", and")).unwrap_or(bare);
    let closed = bare.trim_end_matches(['"', '”', ')', '`', '\'', '*']);
    if closed.ends_with(['.', '!', '?', '…']) { bare.to_owned() } else { format!("{bare}.") }
}
