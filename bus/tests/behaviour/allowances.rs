use std::time::Duration;

use muster_bus::allowance::pool::LoanRequest;
use muster_bus::allowance::rate::{Demand, Rate};
use muster_shared::flow::{Budget, Usage};

use crate::fixture::{Fixture, SOON, agent, next};

crate::on_both!(
    many_processes_form_one_row,
    a_closed_rate_is_seen_by_others,
    a_clock_goes_by_the_brokers_stamps,
    a_budget_is_lent_to_many_and_never_twice,
);

async fn many_processes_form_one_row(f: Fixture) {
    let rate = Rate { requests_per_minute: Some(6_000), tokens_per_minute: None };
    let clock = f.bus.allowances().clock().await.unwrap();
    let (now, latest) = (clock.now(), clock.now().after(SOON));
    let asked = (0..8).map(|n| {
        let allowances = f.bus.as_agent(&agent(&format!("worker-{n}"))).allowances();
        tokio::spawn(async move {
            let mut turns = Vec::new();
            for _ in 0..10 {
                let turn = allowances
                    .change_rate("openai/gpt-4.1", |state| {
                        state.reserve(&rate, Demand { requests: 1, tokens: 0 }, now, latest)
                    })
                    .await;
                turns.push(turn.unwrap().unwrap());
            }
            turns
        })
    });
    let mut turns: Vec<_> =
        futures::future::join_all(asked).await.into_iter().flat_map(Result::unwrap).collect();
    turns.sort_unstable();
    turns.dedup();
    assert_eq!(turns.len(), 80, "everybody has a turn of its own");
    let span = turns[79].since(turns[0]);
    assert!(span >= Duration::from_millis(79 * 10), "80 turns in {span:?}");
}

async fn a_closed_rate_is_seen_by_others(f: Fixture) {
    let (ours, theirs) = (f.bus.allowances(), f.bus.as_agent(&agent("other")).allowances());
    let mut seen = theirs.watch_rate("openai/x").await.unwrap();
    // A subscription counts from when the server has it.
    theirs.clock().await.unwrap();
    let until = ours.clock().await.unwrap().now().after(Duration::from_secs(9));
    ours.change_rate("openai/x", |state| state.close(until)).await.unwrap();
    assert_eq!(next(&mut seen).await.closed_until, until);
    assert_eq!(theirs.rate("openai/x").await.unwrap().closed_until, until);
    assert_eq!(ours.change_rate("openai/x", |state| state.close(until)).await.unwrap(), None);
}

async fn a_clock_goes_by_the_brokers_stamps(f: Fixture) {
    let one = f.bus.allowances().clock().await.unwrap();
    let other = f.bus.as_agent(&agent("other")).allowances().clock().await.unwrap();
    let (one, other) = (one.now(), other.now());
    let apart = one.since(other).max(other.since(one));
    assert!(apart < Duration::from_secs(1), "{one:?} and {other:?}");
}

async fn a_budget_is_lent_to_many_and_never_twice(f: Fixture) {
    let limit = Budget { model_calls: Some(40), ..Budget::UNLIMITED };
    let needs = Budget { model_calls: Some(1), ..Budget::UNLIMITED };
    let now = f.bus.allowances().clock().await.unwrap().now();
    let borrowed = (0..40).map(|n| {
        let who = agent(&format!("worker-{n}"));
        let allowances = f.bus.as_agent(&who).allowances();
        tokio::spawn(async move {
            let until = now.after(Duration::from_secs(60));
            let request = LoanRequest { who: who.as_str(), used: Usage::default(), needs, now, until };
            let lent = allowances.change_pool("total", |pool| pool.borrow(&limit, &request));
            lent.await.unwrap().and_then(|budget| budget.model_calls)
        })
    });
    let lent = futures::future::join_all(borrowed).await.into_iter().filter_map(Result::unwrap);
    assert_eq!(lent.sum::<u64>(), 40);
    assert_eq!(f.bus.allowances().pool("total").await.unwrap().free(&limit).model_calls, Some(0));
}
