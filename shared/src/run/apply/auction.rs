//! Auctions of tasks.

use super::super::state::RunState;
use crate::flow::{Auction, Award, Bid};
use crate::ids::{AgentId, TaskIndex};
use crate::time::Millis;

/// Bids for a task are taken from now on.
pub(super) fn opened(run: &mut RunState, task: &TaskIndex, number: u32, closes: Millis, now: Millis) {
    let auction = Auction { number, opened_at: now, closes, bids: Vec::new(), award: None };
    run.auctions.insert(task.clone(), auction);
}

/// The auction of a task is over.
pub(super) fn awarded(
    run: &mut RunState,
    task: &TaskIndex,
    (number, bids, to, reasons): (u32, &[Bid], Option<&AgentId>, &[String]),
    now: Millis,
) {
    if let Some(auction) = run.auctions.get_mut(task).filter(|auction| auction.number == number) {
        auction.bids = bids.to_vec();
        let (to, reasons) = (to.cloned(), reasons.to_vec());
        auction.award = Some(Award { to, at: now, reasons, kept: None });
    }
}

/// It shows whether an agent held its bid.
pub(super) fn held(run: &mut RunState, task: &TaskIndex, agent: &AgentId, kept: bool) {
    if let Some(tally) = run.tally(agent) {
        let count = if kept { &mut tally.bids_kept } else { &mut tally.bids_broken };
        *count = count.saturating_add(1);
    }
    let award = run.auctions.get_mut(task).and_then(|auction| auction.award.as_mut());
    if let Some(award) = award.filter(|award| award.to.as_ref() == Some(agent)) {
        award.kept = Some(kept);
    }
}
