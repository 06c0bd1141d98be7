use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;

fn course(steps: &str, args: Value) -> Course {
    let text = format!("description = \"d\"\n{steps}\n[parameters]\ntype = \"object\"\n");
    Course::new(Arc::new(Composite::parse(&text, "c").unwrap()), args)
}

fn good(data: Value) -> Ended {
    Ended { failed: None, content: "said".to_owned(), data: Some(data) }
}

fn bad() -> Ended {
    Ended { failed: Some("it broke".to_owned()), content: String::new(), data: None }
}

/// Ends each call as this says, one after the other, and gives what was called with what.
fn run(course: &mut Course, mut end: impl FnMut(&Call) -> Ended) -> Vec<(String, Value)> {
    let (mut open, mut called) = (Vec::new(), Vec::new());
    loop {
        open.extend(course.next());
        if open.is_empty() {
            assert!(course.is_over());
            return called;
        }
        let call = open.remove(0);
        called.push((call.tool.clone(), call.arguments.clone()));
        let ended = end(&call);
        course.ended(call.id, ended);
    }
}

fn outcomes(course: &Course) -> Vec<(&'static str, usize)> {
    let told = course.steps_told();
    told.iter()
        .map(|step| {
            let outcome = serde_json::to_value(step.outcome).unwrap();
            let outcome =
                ["done", "failed", "skipped", "compensated"].into_iter().find(|word| outcome == *word);
            (outcome.unwrap(), step.calls)
        })
        .collect()
}

#[test]
fn results_are_mapped_loops_go_over_lists_and_conditions_decide() {
    let mut course = course(
        r#"
result = { all = "{{steps.each.data}}", last = "{{steps.each.content}}" }
[[steps]]
name = "each"
tool = "b"
for_each = "{{steps.find.data.hits}}"
at_once = 2
arguments = { x = "{{item.p}}", i = "{{index}}", of = "{{args.q}}" }
[[steps]]
name = "find"
tool = "a"
[[steps]]
name = "more"
tool = "c"
when = { value = "{{steps.find.data.n}}", above = 5 }
[[steps]]
name = "after_more"
tool = "d"
needs = ["more"]
[[steps]]
name = "instead"
tool = "e"
when = { value = "{{steps.more.data}}", exists = false }
arguments = { more = "{{steps.more.data?}}" }
"#,
        json!({ "q": [1] }),
    );
    let called = run(&mut course, |call| match call.tool.as_str() {
        "a" => good(json!({ "hits": [{ "p": "x" }, { "p": "y" }], "n": 2 })),
        _ => good(call.arguments.clone()),
    });
    let names: Vec<&str> = called.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(names, ["a", "b", "b", "e"]);
    assert_eq!(called[2].1, json!({ "x": "y", "i": 1, "of": [1] }));
    assert_eq!(outcomes(&course), [("done", 2), ("done", 1), ("skipped", 0), ("skipped", 0), ("done", 1)]);
    let told = course.told().unwrap();
    let data = told.data.unwrap();
    assert_eq!(data["result"]["all"][1]["x"], "y");
    assert_eq!(data["result"]["last"], "said\nsaid");
    assert_eq!(data["steps"][2]["outcome"], "skipped");
    assert!(told.content.contains("- after_more (d): skipped: it needs `more`"), "{}", told.content);
}

#[test]
fn a_step_is_repeated_until_it_is_so_and_fails_where_it_never_is() {
    let steps = r#"
[[steps]]
name = "poll"
tool = "a"
arguments = { i = "{{index}}" }
repeat = { until = { value = "{{result.data.i}}", equals = 2 }, most = MOST, wait = "1s" }
"#;
    let mut polled = course(&steps.replace("MOST", "5"), json!({}));
    let first = polled.next();
    assert_eq!((first.len(), first[0].wait), (1, Duration::ZERO));
    polled.ended(first[0].id, good(json!({ "i": 0 })));
    assert_eq!(polled.next()[0].wait, Duration::from_secs(1));
    let mut polled = course(&steps.replace("MOST", "5"), json!({}));
    assert_eq!(run(&mut polled, |call| good(call.arguments.clone())).len(), 3);
    assert_eq!(outcomes(&polled), [("done", 3)]);
    let mut polled = course(&steps.replace("MOST", "2"), json!({}));
    assert_eq!(run(&mut polled, |call| good(call.arguments.clone())).len(), 2);
    assert!(polled.told().unwrap_err().contains("did not hold after 2 calls"));
}

const UNDONE: &str = r#"
[[steps]]
name = "one"
tool = "make"
compensate = { tool = "unmake", arguments = { id = "{{result.data.id}}" } }
arguments = { id = 1 }
[[steps]]
name = "many"
tool = "make"
for_each = [2, 3]
arguments = { id = "{{item}}" }
compensate = { tool = "unmake", arguments = { id = "{{item}}" } }
needs = ["one"]
[[steps]]
name = "last"
tool = "break"
needs = ["many"]
on_failure = "HOW"
[[steps]]
name = "never"
tool = "make"
needs = ["last"]
"#;

#[test]
fn what_was_done_is_undone_in_reverse_or_left_or_passed_over() {
    let end = |call: &Call| match call.tool.as_str() {
        "break" => bad(),
        _ => good(call.arguments.clone()),
    };
    let mut whole = course(&UNDONE.replace("HOW", "compensate"), json!({}));
    let called = run(&mut whole, end);
    let undone: Vec<&Value> =
        called.iter().filter(|(tool, _)| tool == "unmake").map(|(_, args)| &args["id"]).collect();
    assert_eq!(undone, [&json!(3), &json!(2), &json!(1)]);
    assert_eq!(outcomes(&whole), [("compensated", 1), ("compensated", 2), ("failed", 1), ("skipped", 0)]);
    let told = whole.told().unwrap_err();
    assert!(told.contains("`last` failed: it broke") && !told.contains("stays done"), "{told}");

    let mut left = course(&UNDONE.replace("HOW", "fail"), json!({}));
    assert_eq!(run(&mut left, end).len(), 4);
    assert_eq!(outcomes(&left), [("done", 1), ("done", 2), ("failed", 1), ("skipped", 0)]);
    assert!(left.told().unwrap_err().contains("stays done"));

    let mut passed = course(&UNDONE.replace("HOW", "skip"), json!({}));
    assert_eq!(run(&mut passed, end).len(), 4);
    assert_eq!(outcomes(&passed), [("done", 1), ("done", 2), ("failed", 1), ("skipped", 0)]);
    assert!(passed.told().unwrap().content.contains("- last (break): failed: it broke"));

    // What cannot be undone is told, and the rest is undone all the same.
    let mut stuck = course(&UNDONE.replace("HOW", "compensate"), json!({}));
    run(&mut stuck, |call| match call.arguments["id"] == 3 && call.id.undo {
        true => bad(),
        false => end(call),
    });
    assert_eq!(outcomes(&stuck)[..2], [("compensated", 1), ("done", 2)]);
    let told = stuck.told().unwrap_err();
    assert!(told.contains("it could not be undone: it broke") && told.contains("1 undone"), "{told}");
}

#[test]
fn when_time_is_up_nothing_more_is_begun_and_what_was_done_is_undone() {
    let mut course = course(&UNDONE.replace("HOW", "compensate"), json!({}));
    let first = course.next();
    course.ended(first[0].id, good(json!({ "id": 1 })));
    assert_eq!(course.next().len(), 1, "the loop has begun");
    course.stop("its time was up");
    let undo = course.next();
    assert!(undo.len() == 1 && undo[0].id.undo && undo[0].arguments["id"] == 1, "{undo:?}");
    assert!(course.is_undoing());
    course.stop("its time was up");
    assert!(course.next().is_empty() && course.is_over());
    assert_eq!(outcomes(&course), [("done", 1), ("failed", 1), ("skipped", 0), ("skipped", 0)]);
    let told = course.told().unwrap_err();
    assert!(told.contains("not known") && told.contains("could not be undone"), "{told}");
}

#[test]
fn what_cannot_be_mapped_is_no_list_or_is_too_long_fails_the_step() {
    let each = "[[steps]]\nname = \"a\"\ntool = \"t\"\nfor_each = \"{{args.all}}\"\narguments = { x = \"{{item.y}}\" }\n";
    for (args, words) in [
        (json!({}), "nothing at args.all"),
        (json!({ "all": 3 }), "no list"),
        (json!({ "all": vec![1; 101] }), "100 are the most"),
        (json!({ "all": [1] }), "nothing at item.y"),
    ] {
        let mut course = course(each, args);
        assert_eq!(run(&mut course, |_| bad()), []);
        let told = course.told().unwrap_err();
        assert!(told.contains(words), "{told}");
    }
    let mut none = course(each, json!({ "all": [] }));
    assert_eq!(run(&mut none, |_| bad()), []);
    assert_eq!(outcomes(&none), [("done", 0)]);
    let mut heavy = course(&each.replace("item.y", "item"), json!({ "all": vec![1; 100] }));
    let called = run(&mut heavy, |_| good(json!("x".repeat(60_000))));
    assert!(called.len() < 100 && heavy.told().unwrap_err().contains("4 MiB"), "{}", called.len());
}

/// One step as it is made up.
#[derive(Debug, Clone)]
struct Made {
    needs: u8,
    after: u8,
    each: Option<(usize, usize)>,
    how: &'static str,
    undo: bool,
}

fn made() -> impl Strategy<Value = Made> {
    let how = prop_oneof![Just("fail"), Just("skip"), Just("compensate")];
    let each = proptest::option::of((0..5_usize, 1..4_usize));
    (any::<u8>(), any::<u8>(), each, how, any::<bool>()).prop_map(|(needs, after, each, how, undo)| Made {
        needs: needs & after,
        after: after & 0x55,
        each,
        how,
        undo,
    })
}

fn written(steps: &[Made]) -> String {
    let mut text = String::new();
    for (at, step) in steps.iter().enumerate() {
        let before = |bits: u8| (0..at).filter(move |other| bits & (1 << other) != 0);
        let needs: Vec<String> = before(step.needs).map(|other| format!("\"s{other}\"")).collect();
        text.push_str(&format!(
            "[[steps]]\nname = \"s{at}\"\ntool = \"t\"\nneeds = [{}]\non_failure = \"{}\"\n",
            needs.join(", "),
            step.how
        ));
        if let Some(other) = before(step.after).next() {
            text.push_str(&format!(
                "when = {{ value = \"{{{{steps.s{other}.status}}}}\", equals = \"done\" }}\n"
            ));
        }
        if let Some((len, at_once)) = step.each {
            text.push_str(&format!("for_each = {:?}\nat_once = {at_once}\n", vec![0; len]));
        }
        if step.undo {
            text.push_str("compensate = { tool = \"u\" }\n");
        }
    }
    text
}

fn holds(steps: &[Made], choices: &[u8]) -> Result<(), TestCaseError> {
    let mut course = course(&written(steps), json!({}));
    let (mut open, mut begun, mut done, mut undone) =
        (Vec::<Call>::new(), BTreeMap::new(), Vec::new(), Vec::new());
    let mut choices = choices.iter().copied().cycle();
    loop {
        for call in course.next() {
            *begun.entry(call.id).or_insert(0) += 1;
            let step = course.composite.steps[call.id.step].clone();
            for other in &step.needs {
                prop_assert_eq!(&course.steps[*other].state, &StepState::Done, "before what it needs");
            }
            for other in &step.after {
                prop_assert!(course.steps[*other].has_ended(), "before what its condition is about");
            }
            open.push(call);
        }
        prop_assert!(open.len() <= MOST_AT_ONCE);
        for (at, step) in steps.iter().enumerate() {
            let running = open.iter().filter(|call| call.id.step == at && !call.id.undo).count();
            prop_assert!(running <= step.each.map_or(1, |(_, at_once)| at_once));
        }
        let Some(choice) = choices.next().filter(|_| !open.is_empty()) else { break };
        let call = open.swap_remove(usize::from(choice) % open.len());
        let fails = choice % 5 == 0;
        if call.id.undo {
            prop_assert!(open.is_empty(), "one after the other");
            undone.push((call.id.step, call.id.index));
        } else if !fails {
            done.push((call.id.step, call.id.index));
        }
        course.ended(call.id, if fails { bad() } else { good(json!(1)) });
    }
    prop_assert!(course.is_over());
    prop_assert!(begun.values().all(|times| *times == 1), "each call is made once");
    prop_assert!(course.steps.iter().all(StepCourse::has_ended), "every step ends");
    let failed = |how: &str| {
        course
            .steps
            .iter()
            .zip(steps)
            .any(|(step, made)| matches!(step.state, StepState::Failed(_)) && made.how == how)
    };
    if course.why.is_none() {
        prop_assert!(undone.is_empty() && !failed("fail") && !failed("compensate"));
    }
    let undoable: Vec<_> = done.iter().rev().filter(|(step, _)| steps[*step].undo).copied().collect();
    if !undone.is_empty() {
        prop_assert_eq!(&undone, &undoable, "in reverse");
        prop_assert!(failed("compensate"));
    } else if failed("compensate") && !failed("fail") && course.why.is_some() {
        prop_assert!(undoable.is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_step_ends_once_none_begins_before_what_it_needs_and_undoing_goes_backwards(
        steps in proptest::collection::vec(made(), 1..9),
        choices in proptest::collection::vec(any::<u8>(), 1..60),
    ) {
        holds(&steps, &choices)?;
    }
}
