use muster_shared::flow::response::DECLINED;
use muster_shared::flow::{Ending, Product};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::*;
use crate::react::limits::AtLimit;
use crate::react::testing::{answer, in_case};
use crate::roles::rules_for;
use crate::testing::{leaf, step, toolset};

fn failed(failure: ParseFailure, said: &str) -> ModelAnswer {
    ModelAnswer { said: said.into(), reasoning: None, parsed: Err(failure) }
}

fn history(steps: Vec<(Step_, ObservationStatus)>) -> History {
    let mut history = History::default();
    for (number, ((tool, arguments, lasting), status)) in (1..).zip(steps) {
        history.push(step(number, tool, arguments, status), lasting);
    }
    history
}

type Step_ = (&'static str, Value, bool);

fn decided(history: &History, answer: &ModelAnswer, asked: u32, limits: StepLimits) -> NextStep {
    let offer = leaf(Role::Worker);
    in_case(&offer, true, limits, |case| decide(history, answer, asked, case))
}

const LIMITS: StepLimits = StepLimits { max_steps: 4, ..StepLimits::USUAL };

/// A result in prose.
const LONG: &str = concat!(
    "Loops are told by their depth. A loop is a chain in which the same agent stands twice. Whoever hands work over ",
    "writes itself into the chain, and whoever takes it on looks whether it stands there already. Where it does, the ",
    "work is refused, with the chain in words. Depth alone would not be enough, since a long chain may be in order, ",
    "and a short one need not be; but a limit to it ends what nobody thought of. Both are looked at where work is ",
    "handed over, and neither costs a call of a model. What was refused is told to whoever asked, so that another ",
    "can be found. So much for the loops; all else is told elsewhere."
);

/// A decision in one word, for tables.
fn word(next: &NextStep) -> &'static str {
    match next {
        NextStep::CallTool { pure: true, .. } => "call pure",
        NextStep::CallTool { pure: false, .. } => "call lasting",
        NextStep::Refuse { .. } => "refuse",
        NextStep::Consult { .. } => "consult",
        NextStep::LookUp { .. } => "look up",
        NextStep::Observe { .. } => "observe",
        NextStep::AskAgain { .. } => "ask again",
        NextStep::Submit { .. } => "submit",
        NextStep::Conclude { submission, .. } => match submission.ending {
            Ending::DonePartial => "conclude partial",
            Ending::GaveUp => "conclude gave up",
            Ending::ModelFailed => "conclude model failed",
            Ending::Escalate => "conclude escalate",
            _ => "conclude otherwise",
        },
    }
}

#[test]
fn a_result_that_did_not_hold_is_mended_by_its_fields() {
    let before = json!({"ending": "done", "conclusion": "depth", "findings": [{"text": "at most 20"}]});
    let steps = vec![(("submit", before, false), ObservationStatus::Refused)];
    let amended = json!({"amends": true, "findings": [{"text": "at most 21"}]});
    let next = decided(&history(steps.clone()), &answer(None, "submit", amended), 1, LIMITS);
    let NextStep::Submit { chosen, submission } = next else { panic!("{next:?}") };
    let Some(Product::Result(result)) = submission.product else { panic!() };
    assert_eq!((result.conclusion.as_str(), result.findings[0].text.as_str()), ("depth", "at most 21"));
    assert_eq!(chosen.action.arguments.get("amends"), None, "{chosen:?}");
    // Without the word, what is given is the whole.
    let whole = json!({"ending": "done", "conclusion": "width"});
    let NextStep::Submit { submission, .. } =
        decided(&history(steps), &answer(None, "submit", whole), 1, LIMITS)
    else {
        panic!()
    };
    let Some(Product::Result(result)) = submission.product else { panic!() };
    assert!(result.findings.is_empty());
}

#[test]
fn a_first_answer_leads_to_one_next_step() {
    let query = || json!({"query": "loops"});
    let good = json!({"ending": "done", "conclusion": "depth"});
    let table = [
        (answer(Some("why"), "corpus.search", query()), 1, "call pure"),
        (answer(Some("why"), "corpus_search", query()), 1, "call pure"),
        (answer(None, "corpus_search", json!({"query": "loops", "thought": "why"})), 1, "call pure"),
        (answer(Some("why"), "workspace_write", query()), 1, "call lasting"),
        (answer(None, "corpus.search", query()), 1, "call pure"),
        (answer(Some("  "), "corpus.search", query()), 1, "call pure"),
        (answer(Some("why"), "corpus.find", query()), 1, "refuse"),
        (answer(Some("why"), "submit", good.clone()), 1, "submit"),
        (answer(None, "submit", good), 1, "submit"),
        (answer(Some("why"), "submit", json!({"ending": "done"})), 1, "ask again"),
        (answer(Some("why"), "submit", json!({"ending": "fine", "conclusion": "x"})), 2, "ask again"),
        (answer(Some("why"), "submit", json!("x")), 3, "conclude model failed"),
        (failed(ParseFailure::Empty, ""), 1, "ask again"),
        (failed(ParseFailure::Empty, ""), 3, "conclude model failed"),
        (failed(ParseFailure::NoAction, "It is depth."), 2, "ask again"),
        // Few words may be a refusal: no rule tells.
        (failed(ParseFailure::NoAction, "It is depth."), 3, "consult"),
        (failed(ParseFailure::NoAction, LONG), 1, "submit"),
        (failed(ParseFailure::CutOff, "{"), 1, "ask again"),
        (failed(ParseFailure::CutOff, "{"), 3, "conclude model failed"),
        (failed(ParseFailure::Refusal { said: "no".into() }, "no"), 1, "ask again"),
        (failed(ParseFailure::Refusal { said: "no".into() }, "no"), 3, "conclude escalate"),
    ];
    for (given, asked, expected) in table {
        let next = decided(&History::default(), &given, asked, LIMITS);
        assert_eq!(word(&next), expected, "{given:?} asked {asked}: {next:?}");
    }
}

#[test]
fn a_few_words_are_taken_unless_they_decline() {
    use crate::react::consult::consulted;
    let decided_upon = |said: Result<Value, String>| {
        let offer = leaf(Role::Worker);
        let history = History::default();
        let prose = failed(ParseFailure::NoAction, "Ni thusa ni dheanfaidh me e sin.");
        in_case(&offer, true, LIMITS, |case| {
            let NextStep::Consult { chosen, question } = decide(&history, &prose, 3, case) else {
                panic!("it is not asked");
            };
            // The same when the process died while it was asked.
            let resumed = resumed(&history, chosen.clone(), case);
            assert_eq!(resumed, NextStep::Consult { chosen: chosen.clone(), question });
            consulted(&history, chosen, question, said, case)
        })
    };
    let declined = decided_upon(Ok(json!({"declined": true, "why": "it says so"})));
    assert_eq!(word(&declined), "conclude escalate");
    let NextStep::Conclude { submission, notes } = declined else { panic!("it goes on") };
    assert!(submission.reason.starts_with(DECLINED), "{}", submission.reason);
    assert_eq!(notes, [Note::Declined { times: LIMITS.max_asks }]);
    assert_eq!(word(&decided_upon(Ok(json!({"declined": false})))), "conclude partial");
    assert_eq!(word(&decided_upon(Err("no answer".into()))), "conclude partial");
}

#[test]
fn a_repeated_action_is_run_again_only_where_that_can_help() {
    let same = ("corpus.search", json!({"query": "x", "most": 3}), false);
    let again = answer(Some("why"), "corpus_search", json!({"most": 3, "query": "x"}));
    let write = ("workspace.write", json!({"query": "y"}), true);
    use ObservationStatus::{Error, Refused, Success, Timeout};
    let table = [
        (vec![(same.clone(), Success)], "refuse"),
        (vec![(same.clone(), Error)], "refuse"),
        (vec![(same.clone(), Success), (("calculator", json!({}), false), Success)], "refuse"),
        (vec![(same.clone(), Timeout)], "call pure"),
        (vec![(same.clone(), Timeout), (same.clone(), Timeout)], "refuse"),
        (vec![(same.clone(), Success), (write, Success)], "call pure"),
        (vec![(("corpus.search", json!({"query": "z"}), false), Refused)], "call pure"),
    ];
    let limits = StepLimits { max_steps: 20, ..LIMITS };
    for (steps, expected) in table {
        let next = decided(&history(steps.clone()), &again, 1, limits);
        assert_eq!(word(&next), expected, "{steps:?}");
    }
}

#[test]
fn an_observation_of_what_was_not_done_says_how_to_go_on() {
    let given = answer(Some("why"), "corpus.serach", json!({}));
    let NextStep::Refuse { observation, chosen } = decided(&History::default(), &given, 1, LIMITS) else {
        panic!("not refused");
    };
    assert_eq!(observation.status, ObservationStatus::Refused);
    assert!(observation.content.contains("Did you mean `corpus.search`?"), "{}", observation.content);
    for name in ["calculator", "workspace.write", "submit"] {
        assert!(observation.content.contains(name), "{}", observation.content);
    }
    assert_eq!(chosen.thought.text, "why");
}

#[test]
fn at_the_limit_no_tool_runs_and_the_best_there_is_counts() {
    let search = |query: &str| answer(Some("why"), "corpus.search", json!({"query": query}));
    let steps = |status| {
        let step = |n: u32| (("corpus.search", json!({"query": n}), false), status);
        history((1..4).map(step).collect())
    };
    let learnt = steps(ObservationStatus::Success);
    assert_eq!(word(&decided(&learnt, &search("a"), 1, LIMITS)), "ask again");
    assert_eq!(word(&decided(&learnt, &search("a"), 3, LIMITS)), "conclude partial");
    let nothing = steps(ObservationStatus::Error);
    assert_eq!(word(&decided(&nothing, &search("a"), 3, LIMITS)), "conclude gave up");
    let submit = answer(None, "submit", json!({"ending": "done_partial", "conclusion": "half"}));
    assert_eq!(word(&decided(&learnt, &submit, 3, LIMITS)), "submit");
    let escalating = StepLimits { at_limit: AtLimit::Escalate, ..LIMITS };
    let next = decided(&learnt, &search("a"), 3, escalating);
    let NextStep::Conclude { submission, .. } = next else { panic!("{next:?}") };
    assert!(submission.ending == Ending::Escalate && submission.product.is_some(), "{submission:?}");
}

#[test]
fn a_task_whose_steps_are_used_up_asks_no_model() {
    let offer = leaf(Role::Worker);
    let limits = StepLimits { max_steps: 1, ..LIMITS };
    in_case(&offer, true, limits, |case| {
        assert_eq!(exhausted(&History::default(), case), None);
        let full = history(vec![(("calculator", json!({}), false), ObservationStatus::Success)]);
        assert_eq!(exhausted(&full, case).unwrap().ending, Ending::DonePartial);
    });
}

#[test]
fn what_is_asked_again_names_the_fault_and_what_the_request_holds_already_is_not_repeated() {
    let given = answer(Some("why"), "submit", json!({"ending": "fine", "conclusion": "x"}));
    let NextStep::AskAgain { reason, .. } = decided(&History::default(), &given, 1, LIMITS) else {
        panic!("taken");
    };
    assert!(reason.contains("\"fine\"") && reason.contains("done_partial"), "{reason}");
    assert!(!reason.contains("\"conclusion\""), "{reason}");
}

#[test]
fn the_lowest_of_all_limits_holds() {
    let mut offer = leaf(Role::Worker);
    offer.limits.max_steps = 7;
    let limits = StepLimits { max_steps: 5, ..LIMITS };
    assert_eq!(limits.of_task(&offer, rules_for(&offer.work), true).max_steps, 5);
    offer.limits.max_steps = 0;
    assert_eq!(limits.of_task(&offer, rules_for(&offer.work), true).max_steps, 1);
}

#[test]
fn a_model_that_declines_is_asked_otherwise_then_for_less_then_a_person_has_to_look() {
    let refusal = failed(ParseFailure::Refusal { said: "I can't help".into() }, "I can't help");
    let mut asked_for = Vec::new();
    for asked in 1..=2 {
        let NextStep::AskAgain { reason, notes } = decided(&History::default(), &refusal, asked, LIMITS)
        else {
            panic!("not asked again");
        };
        assert_eq!(notes, [Note::Declined { times: asked }]);
        asked_for.push(reason);
    }
    assert!(
        asked_for[0].contains("Put otherwise") && asked_for[1].contains("Do only the part"),
        "{asked_for:?}"
    );
    let end = decided(&History::default(), &refusal, 3, LIMITS);
    let NextStep::Conclude { submission, notes } = end else { panic!("{end:?}") };
    assert_eq!((submission.ending, notes), (Ending::Escalate, vec![Note::Declined { times: 3 }]));
}

#[test]
fn what_a_gate_closes_is_not_offered_and_not_done() {
    let offer = leaf(Role::Worker);
    let permissions = RolePermissions { tools: false, ..RolePermissions::OPEN };
    let toolset = toolset(&offer).behind(permissions);
    assert_eq!(toolset.names(), ["submit"]);
    let case = StepContext {
        offer: &offer,
        rules: rules_for(&offer.work),
        toolset: &toolset,
        permissions,
        has_model: true,
        limits: LIMITS,
    };
    let wanted = answer(Some("why"), "corpus.search", json!({"query": "x"}));
    let next = decide(&History::default(), &wanted, 1, &case);
    let NextStep::Refuse { chosen, observation } = next else { panic!("{next:?}") };
    assert_eq!(chosen.notes, [Note::Closed { permission: RolePermission::Tools }]);
    assert!(observation.content.contains("a worker may not call tools"), "{}", observation.content);
}
