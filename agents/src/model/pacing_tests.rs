use std::sync::atomic::{AtomicUsize, Ordering};

use muster_bus::Bus;

use super::*;

const MODEL: &str = "openai/house";

fn pacer(bus: &Bus, name: &str, requests_per_minute: Option<u32>) -> Arc<Pacer> {
    let rate = Rate { requests_per_minute, tokens_per_minute: None };
    let allowances = bus.as_agent(&name.parse().unwrap()).allowances();
    let rates = BTreeMap::from([(MODEL.to_owned(), rate)]);
    Arc::new(Pacer::new(allowances, rates, Duration::from_secs(20)))
}

fn bus() -> Bus {
    Bus::in_memory(&"tester-1".parse().unwrap())
}

#[tokio::test]
async fn many_processes_keep_one_rate() {
    let bus = bus();
    let begun = Instant::now();
    let waited = Arc::new(AtomicUsize::new(0));
    let calls = (0..6).flat_map(|process| {
        let pacer = pacer(&bus, &format!("worker-{process}"), Some(1_200));
        (0..5).map(move |_| Arc::clone(&pacer)).collect::<Vec<_>>()
    });
    let calls = calls.map(|pacer| {
        let waited = Arc::clone(&waited);
        tokio::spawn(async move {
            let tell = || {
                waited.fetch_add(1, Ordering::SeqCst);
            };
            pacer.turn(MODEL, 1, &tell).await.map(|()| Instant::now())
        })
    });
    let turns: Vec<Instant> =
        futures::future::join_all(calls).await.into_iter().map(|turn| turn.unwrap().unwrap()).collect();
    // 30 calls in two seconds' worth of 20: the first chunk goes at once, the second a second later.
    assert!(begun.elapsed() >= Duration::from_millis(1_000), "{:?}", begun.elapsed());
    let early = turns.iter().filter(|turn| turn.duration_since(begun) < Duration::from_millis(900)).count();
    assert!(early <= 20, "{early} calls in the first second of 20");
    assert!(waited.load(Ordering::SeqCst) >= 10, "those that waited said so");
}

#[tokio::test]
async fn without_a_rate_nobody_waits_until_a_provider_asks_for_it() {
    let bus = bus();
    let (one, other) = (pacer(&bus, "worker-1", None), pacer(&bus, "worker-2", None));
    let quiet = || panic!("nobody has to wait");
    one.turn(MODEL, 1, &quiet).await.unwrap();
    other.turn(MODEL, 1, &quiet).await.unwrap();
    // Who listens from the first call on hears of it; the second process is not told by its own provider.
    let begun = Instant::now();
    one.refused(MODEL, Some(Duration::from_secs(3)));
    while other.known(MODEL).unwrap().closed().is_none() {
        assert!(begun.elapsed() < Duration::from_millis(2_500), "it was not heard of");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    other.turn(MODEL, 1, &|| {}).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(2_900), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_turn_that_is_too_far_off_is_refused_at_once() {
    let bus = bus();
    let pacer = pacer(&bus, "worker-1", Some(1));
    pacer.turn(MODEL, 1, &|| {}).await.unwrap();
    let begun = Instant::now();
    let refused = pacer.turn(MODEL, 1, &|| {}).await.unwrap_err();
    assert!(refused.to_string().contains("`agent.rates`"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_stricter_of_the_rates_of_provider_and_model_applies() {
    let bus = bus();
    let rate = |most| Rate { requests_per_minute: Some(most), tokens_per_minute: None };
    for (provider, model) in [(1, 1_000), (1_000, 1)] {
        let allowances = bus.as_agent(&"worker-1".parse().unwrap()).allowances();
        let name = format!("house{provider}/a");
        let rates =
            BTreeMap::from([(format!("house{provider}"), rate(provider)), (name.clone(), rate(model))]);
        let pacer = Arc::new(Pacer::new(allowances, rates, Duration::from_secs(20)));
        pacer.turn(&name, 1, &|| {}).await.unwrap();
        assert!(pacer.turn(&name, 1, &|| {}).await.is_err(), "{provider} and {model} a minute");
        let other = pacer.turn(&format!("house{provider}/b"), 1, &|| {}).await;
        assert_eq!(other.is_err(), provider == 1, "another model of the provider");
    }
}

#[test]
fn what_was_not_used_is_not_set_aside_again() {
    let lane = ModelPace::new(Rate { requests_per_minute: None, tokens_per_minute: Some(1_000) });
    *lane.credit.lock().unwrap() = 300;
    assert_eq!((lane.owed(500), lane.owed(500)), (200, 500));
    *lane.credit.lock().unwrap() = 700;
    assert_eq!((lane.owed(500), lane.owed(500)), (0, 300));
    *lane.credit.lock().unwrap() = -100;
    assert_eq!((lane.owed(500), lane.owed(500)), (600, 500));
}
