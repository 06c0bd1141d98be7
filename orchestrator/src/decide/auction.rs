//! Tasks that agents bid for: the call, the award, and whether what was promised was held.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::flow::{Auction, Award, Bid, CallForProposals, Pattern};
use muster_shared::ids::{AgentId, Generation, Role, TaskId, TaskIndex};
use muster_shared::run::event::{AuctionOpened, BidHeld, TaskAwarded};
use muster_shared::run::{AgentKey, RunState};
use muster_shared::time::{Millis, millis};
use muster_shared::track_record::Tally;

use super::builder::DecisionBuilder;
use super::deadline;
use super::effect::Effect;
use super::groups;
use crate::auction;

/// Time in which bids are accepted, in milliseconds. Agents answer within a few, and the task waits for all of it.
const BID_WINDOW_MS: u64 = 250;

/// Most bids that an auction compares; later ones are ignored. More than one role has agents on a machine or two.
const MAX_BIDS: u16 = 64;

/// How long after an auction its bids may come in. Then whoever was to bring them has died, and the task is given out as
/// any other.
const GRACE: Duration = Duration::from_secs(1);

/// Whether a task waits for bids. Opens its auction when it is due and has none yet. What goes on from its own steps is
/// not auctioned again: whoever has it at hand is cheaper than any bid.
pub(super) fn holds_back(decision: &mut DecisionBuilder<'_>, task: &TaskId, role: &Role) -> bool {
    let now = decision.now();
    let Some((run, index)) = decision.open().and_then(|run| Some((run, auctioned(run, task)?.clone())))
    else {
        return false;
    };
    let number = next_number(run, task);
    match run.auction(&index).filter(|auction| auction.number == number) {
        Some(Auction { award: Some(_), .. }) => false,
        Some(Auction { closes, .. }) if closes.after(GRACE) <= now => {
            if decision.only_looks() {
                return false;
            }
            let reasons = vec!["no bids were brought in time: it is given out as any other".to_owned()];
            decision.emit(TaskAwarded { task: index, number, bids: Vec::new(), to: None, reasons });
            false
        }
        Some(_) => true,
        None => {
            let Some(call) = call(run, task, &index, role, number) else { return false };
            if decision.only_looks() {
                return true;
            }
            let (window, most) = (Duration::from_millis(call.window_ms), MAX_BIDS);
            not_taken(decision, &index);
            decision.emit(AuctionOpened { task: index, number, closes: now.after(window) });
            decision.effect(Effect::CallForProposals { call: Box::new(call), most });
            true
        }
    }
}

/// What an auction brought in.
#[derive(Debug, Clone, Copy)]
pub(super) struct BidsIn<'a> {
    /// The bids.
    pub(super) bids: &'a [Bid],
    /// What is known of those who bid from earlier runs.
    pub(super) track_records: &'a BTreeMap<AgentId, Tally>,
}

/// Ends an auction with the bids that came.
pub(super) fn close(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskIndex,
    number: u32,
    BidsIn { bids, track_records }: BidsIn<'_>,
) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let open = run.auction(task).filter(|open| open.number == number && open.award.is_none());
    if open.is_none() {
        return;
    }
    let rules = &run.limits.auction;
    let bids: Vec<Bid> = bids
        .iter()
        .filter(|bid| bid.number == number && bid.task.leaf() == Some(task))
        .take(usize::from(MAX_BIDS))
        .cloned()
        .collect();
    let avoid: Vec<AgentId> = run
        .planned(task)
        .map(|state| state.avoid.iter().map(|avoided| avoided.agent.clone()).collect())
        .unwrap_or_default();
    let time_left = deadline::of_offer(run, now).since(now);
    let time_left = millis(time_left);
    let auction::AuctionResult { to, mut reasons } =
        auction::award(&bids, &records(&run.tallies, track_records), &avoid, time_left, rules);
    if to.is_none() {
        let why = if bids.is_empty() { "nobody bid" } else { "no bid can be taken" };
        reasons.push(format!("{why}: it is given out as any other"));
    }
    decision.emit(TaskAwarded { task: task.clone(), number, bids, to, reasons });
}

/// What is known of agents from this run and from earlier ones.
fn records(here: &BTreeMap<AgentId, Tally>, before: &BTreeMap<AgentId, Tally>) -> BTreeMap<AgentId, Tally> {
    let mut all = before.clone();
    for (agent, tally) in here {
        let sum = all.get(agent).copied().unwrap_or_default().plus(*tally);
        all.insert(agent.clone(), sum);
    }
    all
}

/// Whose bid for the next offer of a task won. Who has no room for it in time has promised too much.
pub(super) fn awarded(run: &RunState, task: &TaskIndex, now: Millis) -> Option<AgentId> {
    let leaf = task.to_task_id();
    let auction = run.auction(task)?;
    let is_for_next = auction.number == next_number(run, &leaf) && auctioned(run, &leaf).is_some();
    let award = auction.award.as_ref().filter(|_| is_for_next)?;
    award.to.clone().filter(|_| until(run, award).is_none_or(|until| now < until))
}

/// Until when whoever was awarded a task is waited for.
fn until(run: &RunState, award: &Award) -> Option<Millis> {
    award.to.is_some().then(|| award.at.after(Duration::from_millis(run.limits.start_within_ms)))
}

/// Holds what an agent did against its bid.
pub(super) fn held(decision: &mut DecisionBuilder<'_>, key: &AgentKey, counts: bool) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let Some(index) = key.task.as_leaf() else { return };
    let Some((bid, since)) = promise(run, index).filter(|(bid, _)| bid.agent == key.agent) else { return };
    if bid.number != key.generation.0 {
        return;
    }
    let took_ms = millis(now.since(since));
    let kept = counts && auction::holds(bid, took_ms);
    let (agent, promised_ms) = (bid.agent.clone(), bid.millis);
    decision.emit(BidHeld { task: index.clone(), agent, promised_ms, took_ms, kept });
}

/// When the run has to be looked at again for bids that did not come, and for winners that have no room.
pub(super) fn next_end(run: &RunState) -> Option<Millis> {
    let auctions = run.leaves().filter_map(|(task, state)| Some((task, state.auction.as_ref()?)));
    let ends = auctions.filter_map(|(task, auction)| match &auction.award {
        None => Some(auction.closes.after(GRACE)),
        Some(award) => {
            let waits = auction.number == next_number(run, &task.to_task_id());
            until(run, award).filter(|until| waits && *until > run.decided_at)
        }
    });
    ends.min()
}

/// Whoever has a task by its bid did nothing with it: it did not hold its word, and does not bid for this task again.
pub(super) fn broken(decision: &mut DecisionBuilder<'_>, task: &TaskId) {
    let Some(run) = decision.open() else { return };
    let Some(index) = task.as_leaf().cloned() else { return };
    let generation = run.tasks.get(task).map(|state| state.generation.0);
    if promise(run, &index).is_some_and(|(bid, _)| Some(bid.number) == generation) {
        not_taken(decision, &index);
    }
}

/// Whoever was awarded the task before and has neither done it nor failed at it did not hold its bid.
fn not_taken(decision: &mut DecisionBuilder<'_>, index: &TaskIndex) {
    let now = decision.now();
    let Some((bid, since)) = decision.open().and_then(|run| promise(run, index)) else { return };
    let took_ms = millis(now.since(since));
    let (agent, promised_ms) = (bid.agent.clone(), bid.millis);
    decision.emit(BidHeld { task: index.clone(), agent, promised_ms, took_ms, kept: false });
}

/// The bid that won the newest auction of a task and was not held against anything yet, and since when it counts.
fn promise<'a>(run: &'a RunState, task: &TaskIndex) -> Option<(&'a Bid, Millis)> {
    let auction = run.auction(task)?;
    let award = auction.award.as_ref().filter(|award| award.kept.is_none())?;
    let agent = award.to.as_ref()?;
    let bid = auction.bids.iter().find(|bid| bid.agent == *agent)?;
    Some((bid, award.at))
}

/// The place of a task that is given out by auction: what is thought about it afterwards is not.
fn auctioned<'a>(run: &RunState, task: &'a TaskId) -> Option<&'a TaskIndex> {
    let index = task.as_leaf()?;
    let goes_on = run.tasks.get(task).is_some_and(|state| state.continues.is_some());
    let wanted = matches!(groups::pattern(run, index), Pattern::Auction);
    (wanted && !goes_on).then_some(index)
}

/// An auction has the number of the generation that it is for.
fn next_number(run: &RunState, task: &TaskId) -> u32 {
    run.tasks.get(task).map_or(Generation(0), |state| state.generation).next().0
}

fn call(
    run: &RunState,
    task: &TaskId,
    index: &TaskIndex,
    role: &Role,
    number: u32,
) -> Option<CallForProposals> {
    let planned = run.plan_task(index)?;
    Some(CallForProposals {
        run: run.id,
        task: task.clone(),
        number,
        role: role.clone(),
        name: planned.name.clone(),
        goal: planned.goal.chars().take(CallForProposals::MAX_GOAL).collect(),
        needs: planned.needs.clone(),
        window_ms: BID_WINDOW_MS,
    })
}
