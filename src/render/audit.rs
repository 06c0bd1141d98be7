//! What an audit of a run came to, in words.

use muster_shared::run::chain::Verified;

use super::figures;
use crate::audit::signed::{KeysOrigin, Signatures};
use crate::audit::{Apart, Audit, Found};

/// The lines to be printed.
pub(crate) fn lines(audit: &Audit) -> Vec<String> {
    let short = audit.run.short();
    let mut lines = match &audit.found {
        Found::Fits(found) => fits(audit, found),
        Found::NoChain { entries } => vec![
            format!("run {short} has no chain: nothing can be said of its {}", entries_of(*entries)),
            "  messages are missing: the decision that began the run is not there, nor any other".to_owned(),
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
    lines.extend(audit.missing.iter().map(|missing| format!("  messages are missing: {missing}")));
    lines.extend(end(audit));
    if let (Some(first), Some(last)) = (audit.first_at, audit.last_at) {
        lines.push(format!(
            "  first entry {}, last {} (UTC; by the broker's clock, which nothing covers)",
            figures::date(first),
            figures::date(last)
        ));
    }
    lines.extend(audit.signed.iter().flat_map(signed));
    lines.extend(apart(&audit.apart));
    lines
}

/// Whether the run has ended: of one that has not, nobody can tell from here whether later entries were taken off.
fn end(audit: &Audit) -> Option<String> {
    let last = audit.last?;
    match audit.ended {
        Some(true) => None,
        Some(false) => Some(format!(
            "  the run has not ended at entry {last}: it goes on, or what came after was taken off"
        )),
        None => Some(format!(
            "  whether the run has ended at entry {last} stands in a body that lies apart: it cannot be told from here"
        )),
    }
}

/// Most orders that are told one by one.
const MOST_ORDERS: usize = 20;

fn signed(signed: &Signatures) -> Vec<String> {
    let sealers = signed.sealed_by.iter();
    let sealers: Vec<String> = sealers
        .map(|(by, links)| format!("{} ({})", figures::one_line(by, 60), figures::plural(*links, "link")))
        .collect();
    let mut lines = Vec::new();
    if !sealers.is_empty() {
        lines.push(format!("  sealed by {}", sealers.join(", ")));
    }
    for order in signed.orders.iter().take(MOST_ORDERS) {
        let kept = if order.kept { "" } else { "; not verified: it held a secret and is not kept" };
        let (what, by) = (order.what, figures::one_line(&order.by, 60));
        lines.push(format!("  {what} at entry {} signed by {by} ({}){kept}", order.seq, order.kind));
    }
    if let Some(more) = signed.orders.len().checked_sub(MOST_ORDERS).filter(|more| *more > 0) {
        lines.push(format!("  and {} more; --json has them", figures::plural(more as u64, "order")));
    }
    let fingerprint = &signed.fingerprint;
    lines.push(match signed.keys {
        KeysOrigin::Given | KeysOrigin::Own => format!("  by the fleet's keys, fingerprint {fingerprint}"),
        KeysOrigin::Claimed => format!(
            "  by the keys that the file itself brings, fingerprint {fingerprint}: compare it with the one that the fleet's \
             owner gives (`muster keys public`), or use --keys"
        ),
    });
    lines
}

fn fits(audit: &Audit, found: &Verified) -> Vec<String> {
    let (entries, is_judged) = (entries_of, audit.signed.is_some());
    let mut lines = vec![format!(
        "run {} is as it was written: {} of {} covered by {}",
        audit.run.short(),
        found.covered,
        entries(found.entries),
        figures::plural(found.links, "link"),
    )];
    if let Some(begins) = found.begins.filter(|_| found.before > 0) {
        lines.push(format!("  no chain before entry {begins}: {} not verified", entries(found.before)));
    }
    match found.uncovered_since {
        Some(since) => lines.push(format!(
            "  {} of agents, from {since} on, wait for the next decision: not verified",
            entries(found.uncovered)
        )),
        None => lines.push("  nothing stands after the last link".to_owned()),
    }
    let sealed = match (found.sealed, found.sealed_since, is_judged) {
        (0, _, _) => "not sealed: nobody vouches for it".to_owned(),
        (_, _, false) => {
            "sealed; the fleet's keys are not known here, so nobody can tell by whom: --keys names them"
                .to_owned()
        }
        (sealed, _, true) if sealed == found.links => "sealed".to_owned(),
        (_, Some(since), true) => format!("sealed since entry {since}; the links before it are not"),
        (_, None, true) => "sealed".to_owned(),
    };
    if let (Some(head), Some(last)) = (found.head, found.head_at) {
        lines.push(format!("  head of the chain, at entry {last}: {head} ({sealed})"));
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
