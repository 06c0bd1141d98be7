//! Who gets a task that agents bid for. Pure: the same bids give the same award, in whatever order they came.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use muster_shared::flow::{AuctionRules, Bid};
use muster_shared::ids::AgentId;
use muster_shared::track_record::Tally;

/// How far a task may exceed the time of its bid before the bid is broken, in percent of the bid. Estimates of time
/// are rough.
const MAX_BID_OVERRUN_PERCENT: u16 = 50;

/// Most doublings of a bid by what its author promised before and did not hold.
const MOST_DOUBLINGS: u64 = 8;

/// Time by which every bid may be overrun, in milliseconds: what is short anyway is not held to the letter.
const LEEWAY_MS: u64 = 250;

/// Who gets the task, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuctionResult {
    /// Whose bid won; nobody's when there was none that could be taken.
    pub to: Option<AgentId>,
    /// Why, the winner first, one line for each bid.
    pub reasons: Vec<String>,
}

/// A bid with what it is taken for.
struct Weighed<'a> {
    bid: &'a Bid,
    record: Tally,
    /// Promises that its author broke beyond those that it held.
    broken: u64,
    millis: f64,
    cost: f64,
}

/// Awards a task. A bid is taken for what it promises divided by how sure its author is. Whoever broke more promises than
/// it held is taken for no better than the best of the others, doubled for each promise that it broke beyond those that
/// it held: else who promises little enough would win for ever. What does not fit into the time that is left is passed
/// over, and so is who should rather not have the task (`avoid`). The least weighted sum of time and cost, each by the
/// least of all bids, wins; of equal ones whoever broke less, then the one whose author's name comes first.
#[must_use]
pub fn award(
    bids: &[Bid],
    records: &BTreeMap<AgentId, Tally>,
    avoid: &[AgentId],
    time_left_ms: u64,
    rules: &AuctionRules,
) -> AuctionResult {
    let bids = one_of_each(bids);
    let record = |bid: &Bid| records.get(&bid.agent).copied().unwrap_or_default();
    let (taken, refused): (Vec<&Bid>, Vec<&Bid>) = bids
        .into_iter()
        .partition(|bid| bid.millis <= time_left_ms && !avoid.contains(&bid.agent) && bid.confidence > 0);
    let mut weighed: Vec<Weighed<'_>> = taken.into_iter().map(|bid| weigh(bid, record(bid))).collect();
    doubt(&mut weighed);
    let least =
        |part: fn(&Weighed<'_>) -> f64| weighed.iter().map(part).fold(f64::INFINITY, f64::min).max(1.0);
    let (least_millis, least_cost) = (least(|one| one.millis), least(|one| one.cost));
    let by_time = f64::from(rules.time_weight.min(100)) / 100.0;
    let score = |one: &Weighed<'_>| {
        by_time * (one.millis / least_millis) + (1.0 - by_time) * (one.cost.max(1.0) / least_cost)
    };
    let mut ranked: Vec<(f64, &Weighed<'_>)> = weighed.iter().map(|one| (score(one), one)).collect();
    ranked.sort_by(|(a, one), (b, other)| match a.total_cmp(b) {
        Ordering::Equal => (one.broken, &one.bid.agent).cmp(&(other.broken, &other.bid.agent)),
        unequal => unequal,
    });
    let mut reasons: Vec<String> =
        ranked.iter().enumerate().map(|(place, (score, one))| in_words(place, *score, one)).collect();
    reasons.extend(refused.into_iter().map(|bid| why_refused(bid, avoid, time_left_ms)));
    AuctionResult { to: ranked.first().map(|(_, one)| one.bid.agent.clone()), reasons }
}

/// Whether what was done holds a bid.
#[must_use]
pub const fn holds(bid: &Bid, took_ms: u64) -> bool {
    let allowed = bid.millis.saturating_add(bid.millis.saturating_mul(MAX_BID_OVERRUN_PERCENT as u64) / 100);
    took_ms <= allowed.saturating_add(LEEWAY_MS)
}

/// The bids by agent; of several of one agent the dearest counts, so that nothing is won by bidding twice.
fn one_of_each(bids: &[Bid]) -> Vec<&Bid> {
    let mut sorted: Vec<&Bid> = bids.iter().collect();
    let dearest_first = |bid: &&Bid| {
        (
            bid.agent.clone(),
            std::cmp::Reverse((bid.millis, bid.cost_micros)),
            bid.confidence,
            bid.note.clone(),
        )
    };
    sorted.sort_by_key(dearest_first);
    sorted.dedup_by(|later, first| later.agent == first.agent);
    sorted
}

/// A bid by what its author says.
#[expect(clippy::cast_precision_loss, reason = "times and costs are compared, not counted")]
fn weigh(bid: &Bid, record: Tally) -> Weighed<'_> {
    let unsure = 100.0 / f64::from(bid.confidence.clamp(1, 100));
    let broken = record.bids_broken.saturating_sub(record.bids_kept).min(MOST_DOUBLINGS);
    Weighed { bid, record, broken, millis: bid.millis as f64 * unsure, cost: bid.cost_micros as f64 * unsure }
}

/// Takes the bids of those who broke their word for what they are worth.
#[expect(clippy::cast_precision_loss, reason = "times are compared, not counted")]
fn doubt(weighed: &mut [Weighed<'_>]) {
    let held = |part: fn(&Weighed<'_>) -> f64| {
        weighed.iter().filter(|one| one.broken == 0).map(part).reduce(f64::min).unwrap_or(0.0)
    };
    let (millis, cost) = (held(|one| one.millis).max(LEEWAY_MS as f64), held(|one| one.cost));
    for one in weighed.iter_mut().filter(|one| one.broken > 0) {
        let doubled = (1u64 << one.broken) as f64;
        one.millis = one.millis.max(millis) * doubled;
        one.cost = one.cost.max(cost) * doubled;
    }
}

fn in_words(place: usize, score: f64, one: &Weighed<'_>) -> String {
    let Weighed { bid, record, .. } = one;
    let Bid { agent, millis, cost_micros, confidence, .. } = bid;
    let kept = match (record.bids_kept, record.bids_broken) {
        (0, 0) => String::new(),
        (kept, broken) => format!(", held {kept} of {} bids before", kept.saturating_add(broken)),
    };
    let won = if place == 0 { " and won" } else { "" };
    let dollars = format!("${}.{:06}", cost_micros / 1_000_000, cost_micros % 1_000_000);
    format!("{agent} bid {millis} ms and {dollars}, {confidence} % sure{kept}: weighs {score:.2}{won}")
}

fn why_refused(bid: &Bid, avoid: &[AgentId], time_left_ms: u64) -> String {
    let agent = &bid.agent;
    if avoid.contains(agent) {
        format!("{agent} had the task before and is passed over")
    } else if bid.millis > time_left_ms {
        format!("{agent} bid {} ms, and {time_left_ms} ms are left", bid.millis)
    } else {
        format!("{agent} is not sure at all")
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::ids::{RunId, TaskId, TaskIndex};
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn agent(number: u32) -> AgentId {
        AgentId::new("worker", number)
    }

    fn bid(number: u32, millis: u64, cost_micros: u64, confidence: u8) -> Bid {
        Bid {
            agent: agent(number),
            run: RunId::from_uuid(Uuid::from_u128(1)),
            task: TaskId::Leaf(TaskIndex::top(1)),
            number: 1,
            millis,
            cost_micros,
            confidence,
            note: String::new(),
        }
    }

    fn of(records: &[(u32, u64, u64)]) -> BTreeMap<AgentId, Tally> {
        let tally = |kept, broken| Tally { bids_kept: kept, bids_broken: broken, ..Tally::default() };
        records.iter().map(|(number, kept, broken)| (agent(*number), tally(*kept, *broken))).collect()
    }

    fn wins(bids: &[Bid], records: &BTreeMap<AgentId, Tally>) -> Option<AgentId> {
        award(bids, records, &[], 60_000, &AuctionRules::default()).to
    }

    #[test]
    fn the_best_of_time_cost_and_confidence_wins() {
        for (bids, winner) in [
            (vec![bid(1, 1_000, 10, 90), bid(2, 2_000, 10, 90)], 1),
            (vec![bid(1, 1_000, 30, 90), bid(2, 1_000, 10, 90)], 2),
            (vec![bid(1, 1_000, 10, 40), bid(2, 1_500, 12, 95)], 2),
            (vec![bid(2, 1_000, 10, 90), bid(1, 1_000, 10, 90)], 1),
            // Free of cost all of them: time decides.
            (vec![bid(1, 1_000, 0, 90), bid(2, 900, 0, 90)], 2),
        ] {
            assert_eq!(wins(&bids, &of(&[])), Some(agent(winner)), "{bids:?}");
        }
    }

    #[test]
    fn whoever_did_not_hold_its_bids_has_to_be_much_better() {
        let bids = [bid(1, 500, 10, 99), bid(2, 1_000, 10, 90)];
        assert_eq!(wins(&bids, &of(&[])), Some(agent(1)));
        assert_eq!(wins(&bids, &of(&[(1, 0, 1)])), Some(agent(2)));
        assert_eq!(wins(&bids, &of(&[(1, 3, 1)])), Some(agent(1)), "it held more than it broke");
    }

    #[test]
    fn whoever_broke_its_word_does_not_win_by_promising_ever_more() {
        let honest = bid(2, 20_000, 5_000, 50);
        for liar in [bid(1, 0, 0, 100), bid(1, 1, 0, 100), bid(1, 10, 1, 99)] {
            let bids = [liar, honest.clone()];
            assert_eq!(wins(&bids, &of(&[])), Some(agent(1)));
            let verdict = award(&bids, &of(&[(1, 0, 1)]), &[], 60_000, &AuctionRules::default());
            assert_eq!(verdict.to, Some(agent(2)), "{verdict:?}");
            assert!(verdict.reasons[1].contains("held 0 of 1 bids before"), "{verdict:?}");
            assert_eq!(wins(&bids, &of(&[(1, 1, 1)])), Some(agent(1)), "it held one since");
            assert_eq!(wins(&bids, &of(&[(1, 0, 1), (2, 0, 2)])), Some(agent(1)), "the other is worse");
            assert_eq!(wins(&bids[..1], &of(&[(1, 0, 9)])), Some(agent(1)), "there is nobody else");
        }
    }

    #[test]
    fn what_cannot_be_taken_is_passed_over_with_the_reason() {
        let bids = [bid(1, 70_000, 1, 90), bid(2, 10, 1, 90), bid(3, 10, 1, 0), bid(4, 900, 900, 50)];
        let verdict = award(&bids, &of(&[]), &[agent(2)], 60_000, &AuctionRules::default());
        assert_eq!(verdict.to, Some(agent(4)));
        let said = verdict.reasons.join("\n");
        for part in ["60000 ms are left", "had the task before", "not sure at all", "and won"] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        assert_eq!(award(&[], &of(&[]), &[], 60_000, &AuctionRules::default()), AuctionResult::default());
        assert_eq!(award(&bids[..1], &of(&[]), &[], 60_000, &AuctionRules::default()).to, None);
    }

    #[test]
    fn a_bid_may_be_overrun_within_limits() {
        let promised = bid(1, 1_000, 0, 90);
        assert!(holds(&promised, 1_750));
        assert!(!holds(&promised, 1_751));
        assert!(holds(&bid(1, 0, 0, 90), 250));
        assert!(holds(&bid(1, u64::MAX, 0, 90), u64::MAX));
    }

    fn any_bid() -> impl Strategy<Value = Bid> {
        (0..6u32, 0..100_000u64, 0..5_000u64, 0..=100u8)
            .prop_map(|(number, millis, cost, confidence)| bid(number, millis, cost, confidence))
    }

    proptest! {
        #[test]
        fn the_order_in_which_bids_come_does_not_matter(
            bids in prop::collection::vec(any_bid(), 0..12),
            seed in any::<u64>(),
        ) {
            let mut shuffled = bids.clone();
            let length = shuffled.len();
            for at in 0..length {
                shuffled.swap(at, usize::try_from(seed.rotate_left(u32::try_from(at).unwrap()) % 97).unwrap() % length);
            }
            let records = of(&[(1, 0, 2), (2, 2, 0)]);
            let rules = AuctionRules::default();
            prop_assert_eq!(
                award(&bids, &records, &[agent(3)], 50_000, &rules),
                award(&shuffled, &records, &[agent(3)], 50_000, &rules)
            );
        }

        /// Among those who broke their word, the one who did not wins, whatever they promise.
        #[test]
        fn whoever_holds_its_word_wins_among_those_who_do_not(
            liars in prop::collection::vec(any_bid(), 0..12),
            millis in 0..100_000u64,
            cost in 0..5_000u64,
            sure in 1..=100u8,
            time_weight in 0..=100u8,
        ) {
            let honest = bid(9, millis, cost, sure);
            let bids = [liars, vec![honest]].concat();
            let records = of(&[(0, 0, 1), (1, 3, 4), (2, 0, 2), (3, 0, 9), (4, 1, 3), (5, 0, 1)]);
            let rules = AuctionRules { time_weight };
            prop_assert_eq!(award(&bids, &records, &[], 100_000, &rules).to, Some(agent(9)));
        }

        /// A bid that is no better than the winner's in anything changes nothing.
        #[test]
        fn a_worse_bid_changes_nothing(bids in prop::collection::vec(any_bid(), 1..8)) {
            let rules = AuctionRules::default();
            let before = award(&bids, &of(&[]), &[], 100_000, &rules).to;
            if let Some(winner) = before.as_ref().and_then(|to| bids.iter().find(|bid| bid.agent == *to)) {
                let worse = Bid {
                    agent: agent(99),
                    millis: winner.millis + 100_000,
                    ..winner.clone()
                };
                let with = [bids.clone(), vec![worse]].concat();
                prop_assert_eq!(award(&with, &of(&[]), &[], 100_000, &rules).to, before);
            }
        }
    }
}
