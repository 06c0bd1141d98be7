use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::flow::{Citation, Claim, ClaimValue, ConflictStep, Finite};
use crate::ids::TaskIndex;
use crate::text::date;

fn number(value: f64, unit: &str) -> ClaimValue {
    ClaimValue::Number { value: Finite::new(value).unwrap(), unit: unit.to_owned() }
}

fn claim(subject: &str, value: ClaimValue) -> Claim {
    Claim { subject: subject.to_owned(), value, confidence: 0, evidence: Vec::new(), method: String::new() }
}

fn side(task: u16, value: ClaimValue) -> Side {
    Side::new(TaskIndex::top(task), claim("chance of rain", value))
}

fn sure(task: u16, value: ClaimValue, confidence: u8) -> Side {
    let mut side = side(task, value);
    side.claim.confidence = confidence;
    side
}

fn from(task: u16, value: ClaimValue, path: &str) -> Side {
    let mut side = side(task, value);
    side.claim.evidence.push(Citation { path: path.to_owned(), line: 1, quote: String::new() });
    side
}

fn tops(tasks: &[u16]) -> Vec<TaskIndex> {
    tasks.iter().map(|task| TaskIndex::top(*task)).collect()
}

fn compared(one: &str, other: &str) -> Comparison {
    let read = |text| read_value(text, "").unwrap();
    compare(&read(one), &read(other), Tolerance::default())
}

#[test]
fn values_are_read_by_rule() {
    for (text, unit, value) in [
        ("30 %", "", number(30.0, "%")),
        ("30", "%", number(30.0, "%")),
        ("about 30 percent", "", number(30.0, "percent")),
        ("~30%", "", number(30.0, "%")),
        ("1.2 million km", "", number(1_200_000.0, "km")),
        ("$1.2 million", "", number(1_200_000.0, "$")),
        ("3", "million EUR", number(3_000_000.0, "EUR")),
        ("1,200,000", "", number(1_200_000.0, "")),
        ("1 200 000 people", "", number(1_200_000.0, "people")),
        ("1,5 m", "", number(1.5, "m")),
        ("1.234,5", "", number(1234.5, "")),
        ("-3.5 °C", "", number(-3.5, "°C")),
        ("6.02e23", "", number(6.02e23, "")),
        ("2026-11-22", "", ClaimValue::Date("2026-11-22".into())),
        ("2026-11-22T10:00:00Z", "", ClaimValue::Date("2026-11-22".into())),
        ("22 November 2026", "", ClaimValue::Date("2026-11-22".into())),
        ("Sat, Nov 21st, 2026", "", ClaimValue::Date("2026-11-21".into())),
        ("22.11.2026", "", ClaimValue::Date("2026-11-22".into())),
        ("11/22/2026", "", ClaimValue::Date("2026-11-22".into())),
        ("November 2026", "", ClaimValue::Date("2026-11".into())),
        ("Yes.", "", ClaimValue::Verdict(true)),
        ("does not hold", "", ClaimValue::Text("does not hold".into())),
        ("version 1.2.3", "", ClaimValue::Text("version 1.2.3".into())),
        ("10-15 %", "", ClaimValue::Text("10-15 %".into())),
    ] {
        assert_eq!(read_value(text, unit), Some(value), "{text} {unit}");
    }
    assert_eq!(read_value("  ", "%"), None);
}

#[test]
fn what_is_no_day_for_certain_is_none() {
    for text in ["2026-13-01", "2026-02-30", "3/4/2026", "May", "22", "1.2.3"] {
        assert_eq!(date::read(text), None, "{text}");
    }
}

#[test]
fn values_are_compared_by_what_they_are() {
    use Comparison::{Agree, Differ, Unclear};
    for (one, other, wanted) in [
        ("30 %", "15 %", Differ),
        ("30 %", "26 %", Agree),
        ("1 km", "1000 m", Agree),
        ("1 mile", "1.6 km", Agree),
        ("10 km", "12 km", Differ),
        ("10 km", "12 kg", Unclear),
        ("2 hours", "120 min", Agree),
        ("1 kg", "2 lb", Differ),
        ("100 EUR", "€100", Agree),
        ("100 EUR", "100 USD", Unclear),
        ("100 EUR", "200 euros", Differ),
        ("20 °C", "68 °F", Agree),
        ("20 °C", "80 °F", Differ),
        ("100", "104", Agree),
        ("100", "120", Differ),
        ("100", "100 files", Agree),
        ("30", "15 %", Differ),
        ("0.3", "30 %", Agree),
        ("0.27", "30 %", Agree),
        ("0.15", "30 %", Differ),
        ("1", "97 %", Agree),
        ("0.15", "15 percent", Agree),
        ("30", "15 km", Differ),
        ("30", "30 km", Agree),
        ("1990", "1991", Agree),
        ("2026-11-22", "22 November 2026", Agree),
        ("2026-11-22", "November 2026", Agree),
        ("2026-11-22", "2026-11-23", Differ),
        ("2026-11-22", "2025", Differ),
        ("yes", "no", Differ),
        ("Dark  Blue", "dark blue", Agree),
        ("recommended", "not recommended", Unclear),
        ("blue", "30 %", Unclear),
    ] {
        assert_eq!((compared(one, other), compared(other, one)), (wanted, wanted), "{one} / {other}");
    }
}

#[test]
fn two_documents_of_one_task_contradict_each_other() {
    let sides = [from(1, number(30.0, "%"), "a.md"), from(1, number(15.0, "%"), "b.md")];
    let found = detect(&sides, Tolerance::default());
    assert_eq!((found.len(), found[0].sides.len()), (1, 2));
    let same = [from(1, number(30.0, "%"), "a.md"), from(1, number(15.0, "%"), "a.md")];
    assert_eq!(detect(&same, Tolerance::default()), [], "one document speaks of two things by one name");
    let none = BTreeMap::new();
    let policy = [ConflictStep::Methods, ConflictStep::Arbiter];
    let known =
        ConflictFacts { policy: &policy, tolerance: Tolerance::default(), authority: &[], answers: &none };
    assert_eq!(next(&sides, &known), Next::Ask(ConflictStep::Arbiter), "it is not asked how it came to both");
}

#[test]
fn the_tolerance_is_a_setting() {
    let at = |percent| compare(&number(30.0, "%"), &number(15.0, "%"), Tolerance { percent });
    assert_eq!(at(14), Comparison::Differ);
    assert_eq!(at(15), Comparison::Agree);
    let zero = compare(&number(0.1 + 0.2, ""), &number(0.3, ""), Tolerance { percent: 0 });
    assert_eq!(zero, Comparison::Agree, "what rounding makes of a number is no other one");
}

#[test]
fn a_conflict_is_what_different_tasks_claim_of_one_subject() {
    let tolerance = Tolerance::default();
    let found = detect(&[side(1, number(30.0, "%")), side(2, number(15.0, "%"))], tolerance);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].sides.len(), 2);

    let agreed = detect(&[side(1, number(30.0, "%")), side(2, number(31.0, "%"))], tolerance);
    assert_eq!(agreed, []);
    let itself = detect(&[side(1, number(30.0, "%")), side(1, number(15.0, "%"))], tolerance);
    assert_eq!(itself, [], "one task speaks of two things by one name");
    for (subject, found) in [("Chance  of rain", 1), ("rain chance", 0), ("chance of rain on Sunday", 0)] {
        let mut other = side(2, number(15.0, "%"));
        other.claim.subject = subject.to_owned();
        assert_eq!(detect(&[side(1, number(30.0, "%")), other], tolerance).len(), found, "{subject}");
    }
    let kinds = ["rain", "sun"].map(|kind| ClaimValue::Category(kind.to_owned()));
    let sides = [side(1, kinds[0].clone()), side(2, kinds[1].clone())];
    assert_eq!(detect(&sides, tolerance).len(), 1, "categories are typed");
    let texts = ["it rained", "it did not rain"].map(|text| ClaimValue::Text(text.to_owned()));
    assert_eq!(
        detect(&[side(1, texts[0].clone()), side(2, texts[1].clone())], tolerance),
        [],
        "prose is not"
    );
}

#[test]
fn each_way_to_tell_has_its_rule() {
    let tolerance = Tolerance::default();
    let (wet, dry) = (|| number(30.0, "%"), || number(15.0, "%"));
    let three = [side(1, wet()), side(2, dry()), side(3, number(31.0, "%"))];
    let verdict = by_majority(&three, tolerance).unwrap();
    assert_eq!((verdict.winners, verdict.losers), (tops(&[1, 3]), tops(&[2])));
    assert_eq!(by_majority(&three[..2], tolerance), None);

    assert_eq!(by_confidence(&[sure(1, wet(), 60), sure(2, dry(), 50)], tolerance), None);
    let verdict = by_confidence(&[sure(1, wet(), 90), sure(2, dry(), 60)], tolerance).unwrap();
    assert_eq!((verdict.value, verdict.losers), (wet(), tops(&[2])));
    assert_eq!(
        by_confidence(&[side(1, wet()), side(2, dry())], tolerance),
        None,
        "neither says how sure it is"
    );

    let places = [from(1, wet(), "blog/notes.md"), from(2, dry(), "official/2026/report.md")];
    let ranks = ["official/*".to_owned(), "*.md".to_owned()];
    let verdict = by_authority(&places, &ranks, tolerance).unwrap();
    assert_eq!((verdict.winners, verdict.evidence.len()), (tops(&[2]), 1));
    assert_eq!(by_authority(&places, &ranks[1..], tolerance), None, "both stand on it");
    assert_eq!(by_authority(&places, &[], tolerance), None);
    let mut validator = side(2, dry());
    validator.role = Some("validator".parse().unwrap());
    let verdict =
        by_authority(&[side(1, wet()), validator], &["role:validator".to_owned()], tolerance).unwrap();
    assert_eq!(verdict.winners, tops(&[2]));
}

#[test]
fn who_corrects_itself_when_it_shows_its_method_has_lost() {
    let sides = [side(1, number(30.0, "%")), side(2, number(15.0, "%"))];
    let word = |value: f64, method: &str| Word { value: Some(number(value, "%")), method: method.to_owned() };
    let words = |second: f64| {
        BTreeMap::from([
            (TaskIndex::top(1), word(30.0, "rows of 21 to 22 November")),
            (TaskIndex::top(2), word(second, "had taken the rows of October")),
        ])
    };
    let verdict = by_methods(&sides, &words(30.0), Tolerance::default()).unwrap();
    assert_eq!((&verdict.winners, &verdict.losers), (&tops(&[1]), &tops(&[2])));
    assert!(verdict.why.contains("rows of October"), "{}", verdict.why);
    assert_eq!(by_methods(&sides, &words(15.0), Tolerance::default()), None, "both stand by their value");
    let both_wrong =
        BTreeMap::from([(TaskIndex::top(1), word(50.0, "")), (TaskIndex::top(2), word(50.0, ""))]);
    let verdict = by_methods(&sides, &both_wrong, Tolerance::default()).unwrap();
    assert_eq!((verdict.winners, verdict.losers), (tops(&[]), tops(&[1, 2])));
}

#[test]
fn the_policy_is_followed_step_by_step() {
    use ConflictStep::{Arbiter, Confidence, Majority, Methods, Person, Verify};
    let sides = [side(1, number(30.0, "%")), side(2, number(15.0, "%"))];
    let mut answers = BTreeMap::new();
    let policy = [Methods, Majority, Confidence, ConflictStep::Authority, Arbiter, Verify, Person];
    let at = |answers: &BTreeMap<ConflictStep, Answer>| {
        let known =
            ConflictFacts { policy: &policy, tolerance: Tolerance::default(), authority: &[], answers };
        next(&sides, &known)
    };
    assert_eq!(at(&answers), Next::Ask(Methods));
    answers.insert(Methods, Answer::Words(BTreeMap::new()));
    assert_eq!(at(&answers), Next::Ask(Arbiter), "neither majority nor confidence nor source tells");
    let third = Some((number(70.0, "%"), "so it is".to_owned()));
    answers.insert(Arbiter, Answer::Value(third.clone()));
    assert_eq!(at(&answers), Next::Ask(Verify), "a judge chooses among what is claimed");
    answers.insert(Verify, Answer::Value(None));
    assert_eq!(at(&answers), Next::Ask(Person));
    answers.insert(Person, Answer::Value(None));
    assert_eq!(at(&answers), Next::Unsettled);
    answers.insert(Person, Answer::Value(third));
    let Next::Settled(verdict) = at(&answers) else { panic!("not settled") };
    assert_eq!((verdict.by, verdict.losers), (Person, tops(&[1, 2])));

    let mut told = sides.clone();
    told.iter_mut().for_each(|side| side.claim.method = "counted".to_owned());
    let none = BTreeMap::new();
    let known =
        ConflictFacts { policy: &policy, tolerance: Tolerance::default(), authority: &[], answers: &none };
    assert_eq!(next(&told, &known), Next::Ask(Arbiter), "the methods are told already");
    assert_eq!(next(&sides, &ConflictFacts { policy: &[], ..known }), Next::Unsettled);
}

fn any_value() -> impl Strategy<Value = ClaimValue> {
    prop_oneof![
        (0.0..60.0f64, prop_oneof![Just("%"), Just(""), Just("km"), Just("m"), Just("EUR")])
            .prop_map(|(value, unit)| number(value.round(), unit)),
        (1..28u8).prop_map(|day| ClaimValue::Date(format!("2026-11-{day:02}"))),
        any::<bool>().prop_map(ClaimValue::Verdict),
        "(blue|red|dark blue)".prop_map(ClaimValue::Category),
        "[a-z]{1,6}( [a-z]{1,6}){3,5}".prop_map(ClaimValue::Text),
    ]
}

fn any_sides() -> impl Strategy<Value = Vec<Side>> {
    let one = (1..6u16, any_value(), 0..100u8);
    prop::collection::vec(one, 2..7).prop_map(|all| {
        all.into_iter().map(|(task, value, confidence)| sure(task, value, confidence)).collect()
    })
}

proptest! {
    #[test]
    fn comparing_is_symmetric(one in any_value(), other in any_value(), percent in 0..50u8) {
        let tolerance = Tolerance { percent };
        prop_assert_eq!(compare(&one, &other, tolerance), compare(&other, &one, tolerance));
        prop_assert_eq!(compare(&one, &one, tolerance), Comparison::Agree);
    }

    #[test]
    fn the_order_of_arrival_changes_nothing(sides in any_sides(), turned in 0..7usize) {
        let tolerance = Tolerance::default();
        let mut other = sides.clone();
        other.reverse();
        let by = turned.min(other.len());
        other.rotate_left(by);
        prop_assert_eq!(detect(&sides, tolerance), detect(&other, tolerance));
        prop_assert_eq!(by_majority(&sides, tolerance), by_majority(&other, tolerance));
        prop_assert_eq!(by_confidence(&sides, tolerance), by_confidence(&other, tolerance));
        let answers = BTreeMap::new();
        let known = ConflictFacts { policy: &ConflictStep::USUAL[1..], tolerance, authority: &[], answers: &answers };
        prop_assert_eq!(next(&sides, &known), next(&other, &known));
    }

    #[test]
    fn every_side_is_in_one_position(sides in any_sides()) {
        let found = positions(&sides, Tolerance::default());
        let count: usize = found.iter().map(|position| position.sides.len()).sum();
        prop_assert_eq!(count, sides.len());
    }

    #[test]
    fn reading_never_fails(text in ".{0,60}", unit in ".{0,10}") {
        let _ = read_value(&text, &unit);
        let _ = Subject::of(&text);
    }
}
