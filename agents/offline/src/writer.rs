//! Writing by rule: the best statement for each question first, then all of them, each with its place.

mod material;

use muster_shared::blueprint::REPORT_PARTS;
use muster_shared::flow::{Finding, LeafRef, Product, Report, Revision, TaskOffered};
use muster_shared::ids::TaskIndex;

use super::text::{capitalise, counted, normalise_space, shorten, words};
use super::{OfflineMove, thought};
use material::{Material, Section};

/// Confidence below which the best finding is shown as one that may not answer, in percent.
const SURE: u8 = 60;
/// What is said of it.
pub(super) const UNSURE: &str = "Not sure that this answers it: it has few of the words of the question.";

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
    let mut material = Material::gather(results, failed, &uncovered);
    let goal = offer.goal.split(REPORT_PARTS).next().unwrap_or(&offer.goal);
    let title = shorten(&normalise_space(goal), 180);
    if !material.computed.is_empty() {
        // Documents do not have to state what was computed.
        material.sections.retain(|section| section.is_answered() || !is_title(section, &title));
    }
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

fn body(
    offer: &TaskOffered,
    title: &str,
    material: &Material,
    failed: &[(TaskIndex, String, String)],
) -> String {
    let mut parts = vec![format!("# {title}")];
    parts.extend(material.concluded.iter().cloned());
    parts.extend(in_short(material));
    let answered = material.sections.iter().filter(|section| section.is_answered());
    parts.extend(answered.map(|one| if is_title(one, title) { statements(one) } else { section(one) }));
    parts.extend(not_answered(material, title));
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
            best.map(|finding| format!("- **{}** {}{}", section.title(), brief(finding), finding.places())),
        );
    }
    (!lines.is_empty()).then(|| format!("## In short\n\n{}", lines.join("\n")))
}

/// Whether a section would have the report's title for its heading.
fn is_title(section: &Section, title: &str) -> bool {
    let plain = |text: &str| words(text).map(|word| word.text.to_lowercase()).collect::<Vec<_>>();
    plain(section.title()) == plain(title)
}

/// All statements for a question, under it.
fn section(section: &Section) -> String {
    format!("## {}\n\n{}", section.title(), statements(section))
}

fn statements(section: &Section) -> String {
    let mut lines: Vec<String> = section.findings.iter().map(item).collect();
    if section.findings.is_empty() {
        lines.push(format!("- {}", elsewhere(section)));
    }
    lines.extend(section.open.iter().map(|open| format!("- *{}*", open_point(section, open))));
    let best = section.findings.iter().map(|finding| finding.confidence).max();
    if section.open.is_empty() && best.is_some_and(|best| best < SURE) {
        lines.push(format!("- *{UNSURE}*"));
    }
    lines.join("\n").trim_end().to_owned()
}

/// A finding as an item of a list: a statement, or lines of a document below what they stand under.
fn item(finding: &Finding) -> String {
    let mark = if finding.verified { " ✓" } else { "" };
    match finding.text.split_once('\n') {
        None => format!("- {}{}{mark}", ended(&finding.text), finding.places()),
        Some((title, lines)) => {
            let below: Vec<String> = lines
                .lines()
                .map(|line| if line.is_empty() { String::new() } else { format!("  {line}") })
                .collect();
            format!("- **{title}**{}{mark}\n\n{}\n", finding.places(), below.join("\n"))
        }
    }
}

/// A finding on one line: of what has lines of its own, what it stands under.
fn brief(finding: &Finding) -> String {
    match finding.text.split_once('\n') {
        None => ended(&finding.text),
        Some((title, _)) => format!("See “{title}” below."),
    }
}

/// What stayed open of a question, without the question.
fn open_point(section: &Section, open: &str) -> String {
    let rest = open.strip_prefix(&section.subquestion).unwrap_or(open);
    capitalise(&ended(rest.trim_start_matches([' ', '—'])))
}

fn not_answered(material: &Material, title: &str) -> Option<String> {
    let mut lines = Vec::new();
    for section in material.sections.iter().filter(|section| !section.is_answered()) {
        let is_title = is_title(section, title);
        lines.push(format!("- {}", if is_title { "the whole question" } else { section.title() }));
        let nearest = section.findings.iter().take(2);
        lines.extend(nearest.map(|finding| format!("  - nearest: {}{}", brief(finding), finding.places())));
    }
    for section in material.sections.iter().filter(|section| section.is_answered()) {
        lines.extend(section.open.iter().map(|open| format!("- {}", section.point(open))));
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
