//! The places that a product cites, and for what. Pure.

use muster_corpus::CitedPlace;
use muster_shared::flow::{Citation, Product};

use super::scan::{self, TextPlace};

/// Where a product cites a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// The citation of a finding, by their places.
    Finding(usize, usize),
    /// The evidence of a claim.
    Claim(usize, usize),
    /// Its texts.
    Text(Text),
}

/// A text in which places are cited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Conclusion,
    Body,
    Finding(usize),
    Report,
}

/// A place that a product cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cite {
    pub(super) spot: Spot,
    /// What is cited, and for what.
    pub(super) place: CitedPlace,
    /// Where it stands in a text.
    pub(super) text: Option<TextPlace>,
}

/// What a product cites, in an order that is always the same.
pub(super) fn cites(product: &Product) -> Vec<Cite> {
    let mut all = Vec::new();
    match product {
        Product::Result(result) => {
            for (at, finding) in result.findings.iter().enumerate() {
                add_text(&mut all, Text::Finding(at), &finding.text);
                let group = next_group(&all);
                for (of, citation) in finding.citations.iter().enumerate() {
                    let place = place(citation, without_places(&finding.text), group);
                    all.push(Cite { spot: Spot::Finding(at, of), place, text: None });
                }
            }
            add_text(&mut all, Text::Conclusion, &result.conclusion);
            add_text(&mut all, Text::Body, &result.body);
            for (at, claim) in result.claims.iter().enumerate() {
                let group = next_group(&all);
                for (of, citation) in claim.evidence.iter().enumerate() {
                    let place = place(citation, String::new(), group);
                    all.push(Cite { spot: Spot::Claim(at, of), place, text: None });
                }
            }
        }
        Product::Report(report) => add_text(&mut all, Text::Report, &report.body),
        _ => {}
    }
    all
}

fn place(Citation { path, line, quote }: &Citation, statement: String, group: u32) -> CitedPlace {
    CitedPlace { path: path.clone(), line: *line, last: 0, quote: quote.clone(), statement, group }
}

fn next_group(all: &[Cite]) -> u32 {
    all.iter().map(|cite| cite.place.group).max().unwrap_or(0) + 1
}

fn add_text(all: &mut Vec<Cite>, of: Text, text: &str) {
    let before = next_group(all) - 1;
    for mut found in scan::places(text) {
        found.place.group += before;
        all.push(Cite { spot: Spot::Text(of), place: found.place.clone(), text: Some(found) });
    }
}

/// A statement without the places that stand in it: their numbers are not said of anything.
fn without_places(text: &str) -> String {
    let mut said = text.to_owned();
    for place in scan::places(text).iter().rev() {
        said.replace_range(place.at.clone(), "");
    }
    said
}
