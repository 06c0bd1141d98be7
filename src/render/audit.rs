//! What an audit of a run came to, in words.

use muster_shared::run::chain::Verified;

use super::figures;
use crate::audit::{Apart, Audit, Found};

/// The lines to be printed.
pub(crate) fn lines(audit: &Audit) -> Vec<String> {
    let short = audit.run.short();
    let mut lines = match &audit.found {
        Found::Fits(found) => fits(&short, found),
        Found::NoChain { entries } => vec![
            format!("run {short} has no chain: nothing can be said of its {}", entries_of(*entries)),
            "  it was begun by a build that wrote none, or all links were taken out".to_owned(),
        ],
        Found::Misfit { misfit, entry } => {
            let mut lines = vec![format!("run {short} was changed: entry {} does not fit", misfit.seq)];
            lines.push(format!("  {}", misfit.fault));
            if let Some(entry) = entry {
                lines.push(format!("  there: {}, stored {}", entry.what, figures::date(entry.at)));
                lines.push(format!("  subject: {}", entry.subject));
            }
            if let Some(told_by) = misfit.told_by.filter(|told_by| *told_by != misfit.seq) {
                lines.push(format!("  by the link of the decision at entry {told_by}"));
            }
            lines
        }
    };
    if let (Some(first), Some(last)) = (audit.first_at, audit.last_at) {
        lines.push(format!("  first entry {}, last {} (UTC)", figures::date(first), figures::date(last)));
    }
    lines.extend(apart(&audit.apart));
    lines
}

fn fits(short: &str, found: &Verified) -> Vec<String> {
    let entries = entries_of;
    let mut lines = vec![format!(
        "run {short} is as it was written: {} of {} covered by {}",
        found.covered,
        entries(found.entries),
        figures::plural(found.links, "link"),
    )];
    if let Some(begins) = found.begins.filter(|_| found.before > 0) {
        lines.push(format!("  no chain before entry {begins}: {} not verified", entries(found.before)));
    }
    if found.unlinked > 0 {
        lines.push(format!(
            "  {} of orchestrators without a link, as older builds write them: not verified",
            entries(found.unlinked)
        ));
    }
    match found.uncovered_since {
        Some(since) => lines.push(format!(
            "  {} of agents, from {since} on, wait for the next decision: not verified",
            entries(found.uncovered)
        )),
        None => lines.push("  nothing stands after the last link".to_owned()),
    }
    let signed = match found.sealed {
        0 => "not signed".to_owned(),
        sealed => format!("{} signed, which this build cannot check", figures::plural(sealed, "link")),
    };
    if let (Some(head), Some(last)) = (found.head, found.head_at) {
        lines.push(format!("  head of the chain, at entry {last}: {head} ({signed})"));
    }
    lines
}

fn entries_of(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn apart(apart: &Apart) -> Vec<String> {
    let mut lines = Vec::new();
    if apart.fit > 0 {
        lines.push(format!(
            "  bodies in the object store: {} with the hash that their entry names",
            apart.fit
        ));
    }
    if apart.not_checked > 0 {
        lines.push(format!(
            "  bodies in the object store: {}, not in the file and not checked; the chain covers their hashes",
            apart.not_checked
        ));
    }
    lines.extend(apart.wrong.iter().map(|wrong| format!("  the body of entry {}: {}", wrong.seq, wrong.why)));
    lines
}
