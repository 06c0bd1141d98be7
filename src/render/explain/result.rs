//! Why this result, what it rests on, and what is open.

use muster_shared::explain::{ConflictTold, Evidence, EvidenceKind, Standing};

use super::{Line, Section, Teller, figures, one_line, words};

/// Most places that are shown of one statement.
const MOST_PLACES: usize = 4;

pub(super) fn sections(teller: &Teller<'_>) -> Vec<Section> {
    let result = &teller.explained.result;
    vec![
        why(teller),
        teller.section("What it rests on", &teller.explained.evidence, |one| evidence(teller, one)),
        teller.section("Contradictions", &result.conflicts, |one| conflict(teller, one)),
        teller.section("What is open", &result.unanswered, |told| teller.told(told, 0)),
        teller.section("What was assumed", &result.assumed, |told| teller.told(told, 0)),
    ]
}

fn why(teller: &Teller<'_>) -> Section {
    let result = &teller.explained.result;
    let mut lines = vec![words(one_line(&result.how))];
    lines.extend(result.tasks.map(|tasks| words(tasks.in_words())));
    if let (Some(title), Some(by)) = (&result.report, &result.report_by) {
        let title = if title.is_empty() { "without a title".to_owned() } else { one_line(title) };
        lines.push(words(format!("the report: {title}; made by {by}")));
    }
    if teller.is_deep() {
        lines.extend(result.because.iter().flat_map(|told| teller.told(told, 0)));
    }
    Section { title: "Why this result", lines }
}

fn evidence(teller: &Teller<'_>, one: &Evidence) -> Vec<Line> {
    let mut places: Vec<String> = one
        .citations
        .iter()
        .take(MOST_PLACES)
        .map(|place| format!("{}:{}", place.path, place.line))
        .collect();
    if one.citations.len() > MOST_PLACES {
        places.push(format!("{} more", one.citations.len() - MOST_PLACES));
    }
    let mut about = vec![match (&one.kind, places.is_empty()) {
        (EvidenceKind::Conclusion, true) => "a conclusion without citations".to_owned(),
        (EvidenceKind::Finding | EvidenceKind::Claim, true) => "without citations".to_owned(),
        (EvidenceKind::Conclusion | EvidenceKind::Finding | EvidenceKind::Claim, false) => {
            figures::one_line(&places.join(", "), 200)
        }
    }];
    if one.confidence > 0 {
        about.push(format!("{} % sure", one.confidence));
    }
    if one.looked_up {
        about.push("looked up by rule".to_owned());
    }
    if one.verified {
        about.push("checked by another".to_owned());
    }
    about.extend(contested(one.standing));
    if one.stale {
        about.push("rests on what has changed".to_owned());
    }
    if teller.is_deep() {
        let step = one.found_in.map(|found| format!(", step {}", found.step)).unwrap_or_default();
        let by = one.agent.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
        about.push(format!("task {}{step}{by}", one.task));
    }
    let entries: Vec<_> = one.found_in.map(|found| found.entry).into_iter().chain(one.entry).collect();
    let mut entries = entries;
    entries.dedup();
    let entries = teller.entries(&entries);
    vec![words(one_line(&one.text)), Line::Words(1, format!("{}{entries}", about.join("; ")))]
}

fn contested(standing: Standing) -> Option<String> {
    match standing {
        Standing::Uncontested => None,
        Standing::Upheld(number) => Some(format!("contested and upheld (contradiction {number})")),
        Standing::Overruled(number) => Some(format!("overruled (contradiction {number})")),
        Standing::Contested(number) => Some(format!("contested, not settled (contradiction {number})")),
        Standing::BothHold(number) => Some(format!("contested, both hold (contradiction {number})")),
    }
}

fn conflict(teller: &Teller<'_>, one: &ConflictTold) -> Vec<Line> {
    let head = format!("{}. {}{}", one.number, one_line(&one.subject), teller.entries(&one.entries));
    let sides = one.sides.iter().take(teller.most()).map(|side| Line::Words(1, one_line(side)));
    let end = Line::Words(1, format!("→ {}", one_line(&one.end)));
    std::iter::once(words(head)).chain(sides).chain([end]).collect()
}
