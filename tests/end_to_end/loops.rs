//! What the loop does about a model that goes in circles, never finishes, declines, or submits what does not hold. Every
//! such run is replayed: each decision must come out the same from its record.

use muster_support::fleet::{Folder, both};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::help::plan_and_report;
use super::support::{of_kind, with_model};

/// A run of one task, whose worker answers by `worker`; everybody else does what is expected.
struct Ran {
    folder: Folder,
    server: ModelServer,
    trace: Vec<Value>,
    summary: Value,
}

fn submit(arguments: &Value) -> Reply {
    Reply::call("submit", arguments)
}

fn done(ending: &str, conclusion: &str) -> Reply {
    submit(
        &json!({"thought": "That is it.", "ending": ending, "reason": "so it is", "conclusion": conclusion}),
    )
}

fn compute(expression: &str) -> Reply {
    Reply::call("calculator", &json!({"thought": format!("I need {expression}."), "expression": expression}))
}

fn ran(
    settings: &[&str],
    critical: bool,
    worker: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
) -> Ran {
    let ran = ended(settings, critical, worker);
    assert_eq!(ran.summary["status"], "completed", "{}\n{}", ran.summary, ran.folder.logs());
    ran
}

/// The same when nothing comes of the only task: the run fails, and says why.
fn in_vain(settings: &[&str], worker: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static) -> Ran {
    let ran = ended(settings, false, worker);
    assert_eq!(ran.summary["status"], "failed", "{}\n{}", ran.summary, ran.folder.logs());
    ran
}

fn ended(
    settings: &[&str],
    critical: bool,
    worker: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
) -> Ran {
    let server = ModelServer::start(Script::answering(move |request| {
        let task = json!({
            "name": "add up", "goal": "Add it up.", "role": "worker", "critical": critical,
        });
        plan_and_report(request, &[task], "# Sum\n\nHere.").unwrap_or_else(|| worker(request))
    }))
    .unwrap();
    let folder = with_model(&server);
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let run = ["run", "Add it up.", "--model", "openai/scripted", "--json", "--deadline", "60s"];
    let output = folder.run(&[&settings[..], &run[..]].concat()).unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    assert!(server.violations().is_empty(), "{:?}", server.violations());
    let replayed = folder.run(&["replay", "last"]).unwrap();
    assert!(replayed.status.success(), "{}", both(&replayed));
    Ran { folder, server, trace, summary }
}

impl Ran {
    fn steps(&self) -> Vec<&Value> {
        of_kind(&self.trace, "step")
            .filter(|entry| entry["task"] == "1")
            .map(|entry| &entry["event"])
            .collect()
    }

    fn outcome(&self) -> &Value {
        &of_kind(&self.trace, "outcome").find(|entry| entry["task"] == "1").unwrap()["event"]
    }

    /// What a person is told by a command.
    fn said(&self, command: &[&str]) -> String {
        both(&self.folder.run(command).unwrap())
    }

    /// How often the worker's model was asked, questions apart included.
    fn asked(&self) -> usize {
        let others = ["You are the planner", "You are the reflector", "You are the writer"];
        let of_worker = |text: &str| !others.iter().any(|other| text.contains(other));
        self.server.log().iter().filter(|entry| of_worker(entry.request.system())).count()
    }
}

fn spin(level: &str, times: u32) -> Value {
    json!({"spin": {"level": level, "times": times}})
}

#[test]
fn a_model_that_repeats_itself_is_told_so_and_changes_its_course() {
    let ran = ran(&[], false, |request| {
        if request.holds("You did exactly this in step 1") {
            done("done", "The sum is 2.")
        } else {
            compute("1 + 1")
        }
    });
    let steps = ran.steps();
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert_eq!(steps[1]["notes"], json!([spin("same_action", 1)]), "{}", steps[1]);
    assert_eq!(ran.outcome()["ending"], "done");
    assert_eq!(ran.outcome()["usage"]["tool_calls"], 1, "it was not run again");
    let traced = ran.said(&["trace", "last"]);
    assert!(traced.contains("spin: same action, noticed once"), "{traced}");
}

#[test]
fn result_without_a_readable_verdict_is_shown_as_not_verified() {
    let ran = ran(&[], true, |request| match request.system() {
        system if system.contains("You verify the result") => Reply::text("Well, it depends."),
        _ => done("done", "The sum is 2."),
    });
    assert_eq!(ran.outcome()["ending"], "done", "{}", ran.outcome());
    let shown = ran.said(&["show", "last"]);
    assert!(shown.contains("Not verified, because the model that was asked gave no verdict"), "{shown}");
    assert_eq!(ran.asked(), 3, "the verifier is asked once more");
}

#[test]
fn a_model_that_repeats_itself_for_ever_is_taken_off_its_task() {
    let ran = in_vain(&[], |_| compute("1 + 1"));
    let levels: Vec<&Value> = ran.steps().iter().filter_map(|step| step["notes"].get(0)).collect();
    assert_eq!(levels, [&spin("same_action", 1), &spin("same_action", 2)]);
    let outcome = ran.outcome();
    assert_eq!(outcome["ending"], "escalate", "{outcome}");
    assert_eq!(outcome["last_step"]["notes"], json!([spin("same_action", 3)]), "{outcome}");
    assert_eq!(ran.asked(), 4, "it is not asked for ever");
    let shown = ran.said(&["show", "last"]);
    assert!(shown.contains("a person has to decide: the model went in circles"), "{shown}");
}

#[test]
fn the_same_kind_of_action_without_anything_new_is_a_spin_as_well() {
    let ran = ran(&[], false, |request| match request.turns() {
        _ if request.holds("gave nothing new") => done("done_partial", "It cannot be computed."),
        turn => compute(&format!("{turn} / 0")),
    });
    let last = ran.steps().pop().unwrap().clone();
    assert_eq!(last["notes"], json!([spin("same_kind", 1)]), "{last}");
    assert_eq!(ran.outcome()["ending"], "done_partial");
}

#[test]
fn a_model_that_never_finishes_ends_at_its_limit_with_its_best_partial_answer() {
    let ran = ran(&["limits.max_steps=4"], false, |request| compute(&format!("{} + 1", request.turns())));
    let outcome = ran.outcome();
    assert_eq!(outcome["ending"], "done_partial", "{outcome}");
    assert_eq!(ran.steps().len(), 3, "no tool runs in the last step");
    let conclusion = outcome["product"]["result"]["conclusion"].as_str().unwrap();
    assert!(conclusion.starts_with("Unfinished: the limit of 4 steps was reached"), "{conclusion}");
    assert!(ran.server.log().iter().any(|entry| entry.request.holds("Few steps are left")), "it was told");
    let shown = ran.said(&["show", "last"]);
    assert!(shown.contains("done in part: the limit of 4 steps"), "{shown}");
    let body = ran.summary["report"]["body"].as_str().unwrap();
    assert!(body.contains("Unfinished") && body.contains("add up"), "the report says so: {body}");
}

#[test]
fn at_its_limit_a_task_is_escalated_where_settings_say_so() {
    let settings = ["limits.max_steps=3", "agent.limits.at_limit=escalate"];
    let ran = in_vain(&settings, |request| compute(&format!("{} + 1", request.turns())));
    assert_eq!(ran.outcome()["ending"], "escalate", "{}", ran.outcome());
}

#[test]
fn a_result_that_does_not_hold_is_mended_before_it_counts() {
    let ran = ran(&[], false, |request| {
        if request.holds("is not accepted yet") {
            let advice = json!({"refine": false, "reason": "", "suggestions": ["look at the year"]});
            return submit(&json!({
                "thought": "Say what is open.", "ending": "done_partial", "reason": "the year is not known",
                "conclusion": "The sum is 2.", "unanswered": ["the year"], "advice": advice,
            }));
        }
        submit(
            &json!({"thought": "Done.", "ending": "done", "conclusion": "2", "unanswered": ["Add it up."]}),
        )
    });
    let steps = ran.steps();
    assert_eq!((steps.len(), &steps[0]["action"]["name"]), (1, &json!("submit")));
    let fault = &steps[0]["notes"][0]["verified"]["faults"][0];
    assert_eq!(fault["check"], "completeness", "{}", steps[0]);
    assert_eq!(ran.outcome()["last_step"]["notes"], json!([{"verified": {"by": "rules", "faults": []}}]));
    let shown = ran.said(&["show", "last"]);
    assert!(shown.contains("for later tasks: look at the year"), "{shown}");
}

#[test]
fn what_hangs_on_a_critical_task_is_looked_at_by_the_model_too() {
    let ran = ran(&[], true, |request| {
        if request.system().contains("You verify the result") {
            let faults = match request
                .last_text()
                .rsplit("Its result:")
                .next()
                .is_some_and(|result| result.contains("The sum is 3."))
            {
                true => json!([{"check": "correctness", "why": "1 + 1 is 2"}]),
                false => json!([]),
            };
            return Reply::json(&json!({ "faults": faults }));
        }
        let mended = request.holds("1 + 1 is 2");
        match request.turns() {
            0 => compute("1 + 1"),
            _ if mended => done("done", "The sum is 2."),
            _ => done("done", "The sum is 3."),
        }
    });
    assert_eq!(ran.outcome()["product"]["result"]["conclusion"], "The sum is 2.");
    let refused = ran.steps()[1].clone();
    assert_eq!(refused["notes"][1]["verified"]["by"], "model", "{refused}");
    let aside =
        |step: &Value| step["calls"].as_array().unwrap().iter().filter(|call| call["aside"] == true).count();
    assert_eq!(
        (aside(&refused), aside(&ran.outcome()["last_step"])),
        (1, 1),
        "the questions stand in the record"
    );
    assert_eq!(ran.asked(), 5, "three steps, two questions apart");
    assert_eq!(ran.outcome()["usage"]["model_calls"], 5, "and they count");
}

#[test]
fn an_action_in_thought_is_a_question_of_its_own() {
    let ran = ran(&[], false, |request| {
        if request.system().contains("You analyze material") {
            assert!(request.holds("thin ice") && request.tools.is_empty());
            return Reply::json(
                &json!({"summary": "It will break.", "parts": ["ice"], "risks": ["cold water"]}),
            );
        }
        match request.turns() {
            0 => Reply::call("analyze", &json!({"thought": "Look closely.", "material": "thin ice"})),
            _ => done("done", "It will break."),
        }
    });
    let observed = ran.steps()[0]["observation"]["content"].as_str().unwrap();
    assert_eq!(observed, "It will break.\nParts:\n- ice\nRisks:\n- cold water");
    assert_eq!(ran.asked(), 3);
}

#[test]
fn a_model_that_declines_is_asked_in_other_words_and_for_less_then_a_person_has_to_look() {
    let ran = in_vain(&[], |_| Reply::refusing("I will not do that."));
    assert_eq!(ran.outcome()["ending"], "escalate", "{}", ran.outcome());
    assert_eq!(ran.outcome()["last_step"]["notes"], json!([{"declined": {"times": 3}}]));
    assert_eq!(ran.asked(), 3, "never for ever");
    let log = ran.server.log();
    let holds = |text: &str| log.iter().any(|entry| entry.request.holds(text));
    assert!(holds("Put otherwise") && holds("Do only the part of the task that you can do"));
}

#[test]
fn a_question_to_a_person_has_its_default_when_nobody_answers() {
    let settings = ["limits.people.answer_within=300ms"];
    let ran = ran(&settings, false, |request| match request.turns() {
        0 => Reply::call(
            "escalate",
            &json!({
                "thought": "That is not mine to say.", "trigger": "ambiguity", "question": "Which sum?", "default": "1 + 1",
            }),
        ),
        _ => done("done", "The sum is 2."),
    });
    let step = ran.steps()[0].clone();
    assert_eq!(step["action"]["name"], "escalate");
    let observed = step["observation"]["content"].as_str().unwrap();
    assert!(observed.contains("1 + 1"), "{observed}");
    assert_eq!(ran.asked(), 2, "no answer is asked for twice");
}

#[test]
fn a_part_that_is_handed_over_is_a_task_of_its_own() {
    let ran = ran(&[], false, |request| {
        let asked = request.messages.get(1).map_or("", |message| message.text.as_str());
        match request.turns() {
            _ if asked.contains("Work out 1 + 1 for the other.") => done("done", "It is two."),
            0 => Reply::call(
                "delegate",
                &json!({"thought": "Not mine.", "name": "a part", "goal": "Work out 1 + 1 for the other."}),
            ),
            _ => done("done", "The other says two."),
        }
    });
    let observed = ran.steps()[0]["observation"]["content"].as_str().unwrap();
    assert!(observed.contains("It is two."), "{observed}");
    assert_eq!(ran.outcome()["ending"], "done");
    let ended = of_kind(&ran.trace, "outcome").filter(|entry| entry["task"] == "2").count();
    assert_eq!(ended, 1, "the plan has a task more");
}

#[test]
fn what_a_gate_closes_is_refused_and_said() {
    let ran = ran(&["agent.permissions.worker=plan,people,blueprints,delegate,peers"], false, |request| {
        match request.turns() {
            0 => {
                assert!(!request.tools.contains(&"calculator".to_owned()), "it is not offered");
                compute("1 + 1")
            }
            _ => done("done", "It cannot be computed here."),
        }
    });
    let step = ran.steps()[0].clone();
    assert_eq!(step["notes"], json!([{"closed": {"permission": "tools"}}]), "{step}");
    assert_eq!(step["observation"]["status"], "refused");
}
