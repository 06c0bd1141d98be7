//! What fires and what is told: by tables, and by property for series that come, go and flap while clocks jump and whoever
//! looks is started again.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::super::rule::{Condition, Severity};
use super::super::state::Silence;
use super::*;

const MINUTE: u64 = 60_000;

/// A rule that fires at once above 10, and is over at once.
pub(crate) fn rule(name: &str) -> Rule {
    Rule {
        name: name.to_owned(),
        when: Condition::Restarts,
        above: 10.0,
        window: Duration::from_secs(600),
        least: 0,
        lasts: Duration::ZERO,
        clear: Duration::ZERO,
        repeat: Duration::ZERO,
        severity: Severity::Warning,
        to: vec!["log".to_owned()],
    }
}

/// A notice about nothing.
pub(crate) fn test_notice(id: &str, rule: &str, change: Change) -> Notice {
    let at = Millis(1000);
    Notice { rule: rule.to_owned(), change, ..Notice::test(id.to_owned(), at) }
}

fn reading(series: &str, value: f64) -> Reading {
    Reading { series: series.to_owned(), value, run: None, detail: String::new() }
}

fn minutes(count: u64) -> Duration {
    Duration::from_millis(count * MINUTE)
}

/// Looks each at its time, and gives what was told as `fired a,b` with its time.
struct Course {
    rules: Vec<Rule>,
    silences: Silences,
    state: State,
    told: Vec<String>,
}

impl Course {
    fn of(rule: Rule) -> Self {
        Self { rules: vec![rule], silences: Silences::new(), state: State::default(), told: Vec::new() }
    }

    fn look(&mut self, at: u64, values: &[(&str, f64)]) {
        let readings = values.iter().map(|(series, value)| reading(series, *value)).collect();
        self.measured(at, &Readings::from([(self.rules[0].name.clone(), readings)]));
    }

    fn measured(&mut self, at: u64, readings: &Readings) {
        let look = Looks { now: Millis(at), longest: minutes(2) };
        let (state, notices) = evaluate(&self.state, &self.rules, readings, &self.silences, look);
        self.state = state;
        for notice in notices {
            let series: Vec<&str> = notice.series.iter().map(|one| one.series.as_str()).collect();
            self.told.push(format!("{} {}", notice.change.as_str(), series.join(",")));
        }
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

#[test]
fn it_is_told_once_that_a_series_fires_and_once_that_it_is_over() {
    let mut course = Course::of(rule("r"));
    let at = |n: u64| 100 * MINUTE + n * 1000;
    course.look(at(0), &[("a", 10.0)]);
    assert!(course.told().is_empty(), "at the threshold is not above it");
    course.look(at(1), &[("a", 11.0), ("b", 3.0)]);
    assert_eq!(course.told(), ["fired a"]);
    course.look(at(2), &[("a", 30.0), ("b", 20.0), ("c", 40.0)]);
    assert_eq!(course.told(), ["fired c,b"], "those that fire together are told together, the worst first");
    course.look(at(3), &[("a", 30.0), ("b", 20.0), ("c", 40.0)]);
    assert!(course.told().is_empty());
    course.look(at(4), &[("b", 20.0)]);
    assert_eq!(course.told(), ["resolved c,a"], "what is not there any more is over");
    course.measured(at(5), &Readings::new());
    assert!(course.told().is_empty(), "what could not be measured stays as it is");
    assert_eq!(course.state.firing().map(|(_, series, _)| series).collect::<Vec<_>>(), ["b"]);
    course.rules.clear();
    course.measured(at(6), &Readings::new());
    assert!(course.state.rules.is_empty(), "a rule that is gone has no series");
}

#[test]
fn it_must_hold_for_as_long_as_the_rule_says_and_be_over_for_as_long() {
    let mut course = Course::of(Rule { lasts: minutes(3), clear: minutes(2), ..rule("r") });
    let mut at = 100 * MINUTE;
    let mut look = |course: &mut Course, value: f64| {
        at += MINUTE;
        course.look(at, &[("a", value)]);
        course.told()
    };
    let quiet: Vec<String> = Vec::new();
    for value in [20.0, 20.0, 5.0, 20.0, 20.0, 20.0] {
        assert_eq!(look(&mut course, value), quiet, "it was below in between: time begins anew");
    }
    assert_eq!(look(&mut course, 20.0), ["fired a"]);
    for value in [5.0, 20.0, 5.0, 5.0, 20.0, 5.0, 5.0] {
        assert_eq!(look(&mut course, value), quiet, "it flaps: it has not been over for long enough");
    }
    assert_eq!(look(&mut course, 5.0), ["resolved a"]);
    assert_eq!(look(&mut course, 5.0), quiet);
}

#[test]
fn a_clock_that_jumps_makes_nothing_fire_and_nothing_end() {
    let mut course = Course::of(Rule { lasts: minutes(3), clear: minutes(3), ..rule("r") });
    let base = 1_000 * MINUTE;
    course.look(base, &[("a", 20.0)]);
    course.look(base + 600 * MINUTE, &[("a", 20.0)]);
    assert!(course.told().is_empty(), "ten hours ahead count for two minutes at most");
    course.look(base - 600 * MINUTE, &[("a", 20.0)]);
    assert!(course.told().is_empty(), "back again counts for nothing");
    course.look(base - 599 * MINUTE, &[("a", 20.0)]);
    assert_eq!(course.told(), ["fired a"], "and time goes on from there");
    course.look(base, &[]);
    course.look(base + 600 * MINUTE, &[]);
    assert!(course.told().is_empty());
    course.look(base + 601 * MINUTE, &[]);
    assert_eq!(course.told(), ["resolved a"]);
}

#[test]
fn what_goes_on_is_told_again_at_most_as_often_as_the_rule_says() {
    let mut course = Course::of(Rule { repeat: minutes(60), ..rule("r") });
    let base = 1_000 * MINUTE;
    for n in 0..=130 {
        course.look(base + n * MINUTE, &[("a", 20.0)]);
    }
    assert_eq!(course.told(), ["fired a", "repeated a", "repeated a"]);
    // The clock is set back, and jumps: what counts is the time in which it was looked at, ten minutes so far, and of a jump
    // two.
    course.look(base - 1_000, &[("a", 20.0)]);
    for n in 1..=48 {
        course.look(base + (1_000 + n) * MINUTE, &[("a", 20.0)]);
    }
    assert!(course.told().is_empty());
    course.look(base + 1_049 * MINUTE, &[("a", 20.0)]);
    assert_eq!(course.told(), ["repeated a"]);
}

#[test]
fn nothing_is_told_while_a_rule_is_silenced_but_that_what_was_told_is_over() {
    let mut course = Course::of(Rule { repeat: minutes(10), ..rule("r") });
    let base = 1_000 * MINUTE;
    let until = |minutes: u64| Silence {
        until: Millis(base + minutes * MINUTE),
        by: String::new(),
        because: String::new(),
    };
    course.look(base, &[("a", 20.0)]);
    assert_eq!(course.told(), ["fired a"]);
    course.silences.insert("r".into(), until(60));
    course.look(base + 20 * MINUTE, &[("a", 20.0), ("b", 20.0), ("c", 20.0)]);
    assert!(course.told().is_empty());
    course.look(base + 30 * MINUTE, &[("b", 20.0)]);
    assert_eq!(course.told(), ["resolved a"], "c was never told");
    course.look(base + 60 * MINUTE, &[("b", 20.0)]);
    assert_eq!(course.told(), ["fired b"], "what still holds is told when the silence is over");
}

#[test]
fn of_many_series_the_worst_are_followed_and_few_are_named() {
    let mut course = Course::of(rule("r"));
    let names: Vec<String> = (0..3 * MOST_SERIES).map(|n| format!("s{n}")).collect();
    let values: Vec<(&str, f64)> =
        names.iter().enumerate().map(|(n, name)| (name.as_str(), 11.0 + n as f64)).collect();
    let readings = values.iter().map(|(series, value)| reading(series, *value)).collect();
    let look = Looks { now: Millis(1000), longest: minutes(2) };
    let (state, notices) = evaluate(
        &State::default(),
        &course.rules,
        &Readings::from([("r".into(), readings)]),
        &Silences::new(),
        look,
    );
    let [notice] = &notices[..] else { unreachable!("{notices:?}") };
    assert_eq!((notice.series.len(), notice.more), (MOST_NAMED, MOST_SERIES - MOST_NAMED));
    assert_eq!(notice.series[0].series, names[3 * MOST_SERIES - 1]);
    assert_eq!(state.rules["r"].len(), MOST_SERIES);
    course.look(2000, &[]);
}

/// The bus takes messages of a mebibyte.
#[test]
fn what_is_known_fits_into_one_message_however_much_there_is() {
    let rules: Vec<Rule> =
        (0..64).map(|n| Rule { to: vec!["ops".into()], ..rule(&format!("r{n}")) }).collect();
    let one = |n: usize| Reading {
        series: format!("{n}{}", "\"".repeat(500)),
        value: 20.0,
        run: Some("00000000-0000-7000-8000-000000000001".parse().unwrap()),
        detail: "\"".repeat(500),
    };
    let readings = rules.iter().map(|rule| (rule.name.clone(), (0..300).map(one).collect())).collect();
    let mut state = State::default();
    let restarts = super::super::state::Restarts {
        agent: "a".repeat(80),
        started_at: u64::MAX,
        times: vec![Millis(u64::MAX); super::super::sight::MOST_TIMES],
        seen: Millis(u64::MAX),
    };
    state.restarts =
        (0..super::super::sight::MOST_PROCESSES).map(|n| (format!("{n:0>100}"), restarts.clone())).collect();
    for at in 1..=60 {
        let look = Looks { now: Millis(at * 1_700_000_000_000), longest: minutes(2) };
        let none = Readings::from_iter(rules.iter().map(|rule| (rule.name.clone(), Vec::new())));
        let readings = if at % 2 == 1 { &readings } else { &none };
        let (next, notices) = evaluate(&state, &rules, readings, &Silences::new(), look);
        state = next;
        state.outbox.put(notices, &rules);
    }
    assert_eq!(state.rules.values().map(BTreeMap::len).sum::<usize>(), 0);
    let look = Looks { now: Millis(1), longest: minutes(2) };
    let (state, _) = evaluate(&state, &rules, &readings, &Silences::new(), look);
    assert_eq!(state.rules.values().map(BTreeMap::len).sum::<usize>(), MOST_IN_ALL);
    let bytes = serde_json::to_vec(&state).unwrap().len();
    assert!((300_000..1_000_000).contains(&bytes), "{bytes}");
}

/// What happens from one look to the next.
#[derive(Debug, Clone)]
enum Turn {
    /// So much time passes by the clock, backwards too, and these series are above.
    Look { millis: i64, above: Vec<bool> },
    /// Whoever looks dies, and another goes on from what is kept.
    Restart,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let millis = prop_oneof![8 => 0_i64..40_000, 1 => -9_000_000_i64..0, 1 => 0_i64..90_000_000];
    let look = (millis, prop::collection::vec(any::<bool>(), 4));
    let turn = prop_oneof![
        9 => look.prop_map(|(millis, above)| Turn::Look { millis, above }),
        1 => Just(Turn::Restart),
    ];
    prop::collection::vec(turn, 1..120)
}

proptest! {
    /// Of each series it is told in turns that it fires and that it is over; never before it has held for as long as the rule
    /// says, by time that was looked at; it is told again at most as often as the rule says; ids are unique.
    #[test]
    fn each_series_is_told_in_turns(turns in turns(), lasts in 0_u64..60, clear in 0_u64..60, repeat in 0_u64..600) {
        let span = Duration::from_secs;
        let rules = vec![Rule { lasts: span(lasts), clear: span(clear), repeat: span(repeat), ..rule("r") }];
        let longest = Duration::from_secs(45);
        let (mut state, mut now) = (State::default(), 1_000_000_000_i64);
        let mut ids = BTreeSet::new();
        // By series: whether it was told to fire, and how long it has been above and below.
        let mut seen = [(false, Duration::ZERO, Duration::ZERO); 4];
        let mut since_told = [Duration::ZERO; 4];
        for turn in turns {
            let (millis, above) = match turn {
                Turn::Restart => {
                    state = serde_json::from_slice(&serde_json::to_vec(&state).unwrap()).unwrap();
                    continue;
                }
                Turn::Look { millis, above } => (millis, above),
            };
            now = (now + millis).max(1);
            let at = Millis(u64::try_from(now).unwrap());
            let passed = Duration::from_millis(u64::try_from(millis.max(0)).unwrap()).min(longest);
            for (n, above) in above.iter().enumerate() {
                since_told[n] += passed;
                let (_, up, down) = &mut seen[n];
                (*up, *down) = if *above { (*up + passed, Duration::ZERO) } else { (Duration::ZERO, *down + passed) };
            }
            let readings = above.iter().enumerate().filter(|(_, above)| **above);
            let readings = readings.map(|(n, _)| reading(&n.to_string(), 20.0)).collect();
            let look = Looks { now: at, longest };
            let readings = Readings::from([("r".to_owned(), readings)]);
            let (next, notices) = evaluate(&state, &rules, &readings, &Silences::new(), look);
            state = next;
            for notice in notices {
                prop_assert!(ids.insert(notice.id.clone()), "{} twice", notice.id);
                prop_assert_eq!(notice.more, 0);
                for one in &notice.series {
                    let n: usize = one.series.parse().unwrap();
                    let (told, up, down) = &mut seen[n];
                    match notice.change {
                        Change::Fired => {
                            prop_assert!(!*told && above[n] && *up >= rules[0].lasts, "{one:?}");
                            *told = true;
                        }
                        Change::Repeated => {
                            prop_assert!(*told && above[n] && repeat > 0 && since_told[n] >= rules[0].repeat);
                        }
                        Change::Resolved => {
                            prop_assert!(*told && !above[n] && *down >= rules[0].clear, "{one:?}");
                            *told = false;
                        }
                        Change::Test => prop_assert!(false),
                    }
                    since_told[n] = Duration::ZERO;
                }
            }
            // What has held for longer than the rule says was told.
            for (n, (told, up, _)) in seen.iter().enumerate() {
                prop_assert!(*told || !above[n] || *up < rules[0].lasts + longest, "{n}: {up:?}");
            }
        }
    }
}
