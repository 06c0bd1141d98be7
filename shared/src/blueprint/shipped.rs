//! The blueprints that come with Muster.

/// Name and text of each.
const SHIPPED: [(&str, &str); 3] = [
    ("document_review", include_str!("../../assets/blueprints/document_review.toml")),
    ("research_report", include_str!("../../assets/blueprints/research_report.toml")),
    ("ticket_triage", include_str!("../../assets/blueprints/ticket_triage.toml")),
];

/// The text of a blueprint that comes with Muster.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of the blueprints that come with Muster, in order.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}
