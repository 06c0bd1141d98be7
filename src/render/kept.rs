//! What is left of a run whose record was removed.

use muster_bus::RemovalNote;

use super::{figures, safe};
use crate::keeping::summary::Summary;

/// The summary of a run, as `muster show` has it.
pub(crate) fn summary(summary: &Summary, removed: &RemovalNote) -> String {
    let took = summary.ended_at.unwrap_or(summary.created_at).since(summary.created_at);
    let mut lines = vec![
        format!("Run {} ({}, {})", summary.run, summary.state, figures::span(took)),
        format!("  asked   {} UTC", figures::date(summary.created_at)),
        format!("  goal    {}", figures::one_line(&summary.goal, 400)),
        format!("  used    {}", figures::usage(&summary.usage)),
    ];
    if let Some(reason) = &summary.reason {
        lines.push(format!("  reason  {}", figures::one_line(reason, 400)));
    }
    lines.push(format!(
        "  removed its record, on {} UTC by {}: {} entries, {}{}",
        figures::date(removed.at),
        figures::one_line(&removed.rule, 200),
        figures::count(removed.entries),
        figures::bytes(removed.bytes),
        if removed.done { "" } else { "; cut short, `muster gc` finishes it" }
    ));
    if let Some(report) = &summary.report {
        lines.push(format!("\nReport\n{}", figures::indent(&safe::report(&report.body), 2)));
    }
    lines.join("\n")
}
