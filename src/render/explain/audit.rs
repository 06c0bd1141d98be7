//! Who decided what, and what watched over it.

use muster_shared::explain::Voice;

use super::{Line, Section, Teller, one_line, words};
use crate::args::Reader;
use crate::render::figures;

pub(super) fn sections(teller: &Teller<'_>) -> Vec<Section> {
    match teller.reader {
        Reader::User | Reader::Developer => return Vec::new(),
        Reader::Auditor => {}
    }
    let audit = &teller.explained.audit;
    vec![
        teller.section("Goals and orders", &audit.orders, |voice| vec![order(teller, voice)]),
        teller.section("What people were asked and said", &audit.people, |told| teller.timed(told)),
        teller.section("What guards said", &audit.guards, |told| teller.timed(told)),
        teller.section("Rights", &audit.rights, |told| teller.told(told, 0)),
        Section { title: "The record", lines: record(teller) },
    ]
}

fn order(teller: &Teller<'_>, voice: &Voice) -> Line {
    let by = if voice.by.is_empty() { "somebody".to_owned() } else { one_line(&voice.by) };
    let signed = match &voice.signed_by {
        Some(signer) => format!("signed by {}", one_line(signer)),
        None => "not signed".to_owned(),
    };
    let at = voice.told.at.map(|at| format!("{} UTC ", figures::date(at))).unwrap_or_default();
    let (text, entries) = (one_line(&voice.told.text), teller.entries(&voice.told.entries));
    words(format!("{at}{by}: {text}; {signed}{entries}"))
}

fn record(teller: &Teller<'_>) -> Vec<Line> {
    let (audit, run) = (&teller.explained.audit, teller.explained.run.short());
    let entries = match teller.explained.entries {
        1 => "1 entry".to_owned(),
        many => format!("{many} entries"),
    };
    let span = audit.span.map(|[first, last]| format!(", {first} to {last}")).unwrap_or_default();
    let mut lines = vec![words(format!("{entries}{span}"))];
    let decided = audit.decided_by.iter().take(teller.most());
    lines.extend(decided.map(|(by, count)| words(format!("{by}: {}", figures::plural(*count, "decision")))));
    let verifies = "verifies its hash chain and signatures".to_owned();
    lines.push(Line::Command(format!("muster audit {run}"), verifies));
    lines
}
