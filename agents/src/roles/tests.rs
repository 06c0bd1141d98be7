use muster_shared::flow::{Plan, RefineOperation};
use muster_shared::ids::{TaskId, TaskIndex};
use serde_json::json;

use super::*;
use crate::testing::{execute, leaf, offer, plan_task, planning, work, writing};

fn offer_of(kind: &str) -> TaskOffered {
    let index = TaskIndex::top(1);
    let (task, work) = match kind {
        "plan" => (TaskId::Plan, planning()),
        "reflect" => {
            let task = plan_task(Role::Worker);
            let reflect = json!({ "index": index, "task": task, "ending": "done", "reason": "", "steps": [], "progress": "" });
            (TaskId::Reflect(index), work(json!({ "reflect": reflect })))
        }
        "refine" => {
            let refine = json!({ "plan": Plan::default(), "progress": "", "reasons": [], "reflections": [], "results": [],
                "operations_left": 4, "held_to": {} });
            (TaskId::Refine(1), work(json!({ "refine": refine })))
        }
        "write" => (TaskId::Write, writing(&[])),
        _ => (TaskId::Leaf(index), execute(Role::Worker)),
    };
    offer(task, Role::Worker, work)
}

fn submitted(kind: &str, document: &Value) -> Result<Submission, Vec<String>> {
    let offer = offer_of(kind);
    rules_for(&offer.work).submission(&offer, document)
}

#[test]
fn documents_become_products_or_complaints() {
    let deep = json!({"name": "a", "goal": "g", "subtasks": [{"name": "b", "goal": "g", "subtasks": [
        {"name": "c", "goal": "g", "subtasks": [{"name": "d", "goal": "g"}]}]}]});
    let table = [
        ("plan", json!({"goal": "g", "tasks": [{"name": "a", "goal": "b"}]}), None),
        // What is empty or too deep in a plan is mended where plans are judged.
        ("plan", json!({"goal": "g", "tasks": []}), None),
        ("plan", json!({"tasks": [{"name": "a"}, {}, null, 7]}), None),
        ("plan", json!({"tasks": ["search"]}), None),
        ("plan", json!({"tasks": [deep]}), None),
        ("plan", json!([1]), Some("one JSON object")),
        ("leaf", json!({"ending": "done", "conclusion": "c"}), None),
        ("leaf", json!({"ending": "Done-Partial", "conclusion": "c"}), None),
        ("leaf", json!({"conclusion": "c"}), None),
        ("leaf", json!({"ending": "done", "conclusion": " "}), Some("`conclusion` is empty")),
        ("leaf", json!({"conclusion": "c ".repeat(40_000)}), Some("`conclusion` has 79999 bytes, 65536 is")),
        ("leaf", json!({"ending": "give_up"}), Some("`reason` is empty")),
        ("leaf", json!({"ending": "give_up", "reason": "not there"}), None),
        (
            "leaf",
            json!({"conclusion": "c", "findings": [{"text": "t", "citations": [{"path": "a.md", "line": 0}]}]}),
            Some("a citation needs"),
        ),
        ("leaf", json!({"conclusion": "c", "findings": [{"citations": []}]}), Some("`text` is missing")),
        ("reflect", json!({"summary": "s"}), None),
        ("reflect", json!({}), Some("`summary`")),
        ("refine", json!({"operations": [{"operation": "exit"}]}), None),
        (
            "refine",
            json!({"operations": [{"operation": "split", "task": "1-2", "into": [{"name": "a", "goal": "b"}]}]}),
            None,
        ),
        ("refine", json!({"operations": []}), Some("use exit")),
        ("refine", json!({"operations": [{"operation": "move"}]}), Some("split, add, delete or exit")),
        (
            "refine",
            json!({"operations": [{"operation": "delete", "task": "first"}]}),
            Some("index of a task"),
        ),
        ("refine", json!({"operations": [{"operation": "add", "after": "1"}]}), Some("`tasks` is missing")),
        ("write", json!({"title": "t", "body": "b", "unanswered": []}), None),
        ("write", json!({"body": "b"}), None),
        ("write", json!({"title": "t"}), Some("`body`")),
    ];
    for (kind, document, complaint) in table {
        match (submitted(kind, &document), complaint) {
            (Ok(_), None) => {}
            (Err(faults), Some(complaint)) => {
                assert!(faults.join("\n").contains(complaint), "{kind} {document}: {faults:?}");
            }
            (got, _) => panic!("{kind} {document}: {got:?}"),
        }
    }
}

#[test]
fn what_was_submitted_is_kept_whole() {
    let document = json!({
        "ending": "done", "conclusion": "depth", "milestones": "searched",
        "findings": [{"text": "t", "citations": [{"path": "a.md", "line": "12", "quote": "q"}], "confidence": 0.9}],
        "advice": {"refine": true, "reason": "more", "suggestions": ["look"]}
    });
    let Some(Product::Result(result)) = submitted("leaf", &document).unwrap().product else {
        panic!("no result")
    };
    assert_eq!(result.findings[0].citations[0].line, 12);
    assert_eq!(result.findings[0].confidence, 90);
    assert_eq!(result.milestones, ["searched"]);
    assert!(result.advice.unwrap().refine);

    let document = json!({"operations": [{"operation": "delete", "task": "2", "reason": "done already"}]});
    let Some(Product::Refinement(operations)) = submitted("refine", &document).unwrap().product else {
        panic!()
    };
    let expected = RefineOperation::Delete { task: TaskIndex::top(2), reason: "done already".into() };
    assert_eq!(operations, [expected]);

    let document = json!({"summary": "s", "refine": "No."});
    let Some(Product::Reflection(reflection)) = submitted("reflect", &document).unwrap().product else {
        panic!()
    };
    assert_eq!(reflection.refine, None);
}

#[test]
fn every_schema_compiles_and_takes_its_own_example() {
    let examples = [
        (
            "plan",
            json!({"goal": "g", "tasks": [{"name": "a", "goal": "b", "role": "worker", "subtasks": [{"name": "c", "goal": "d"}]}]}),
        ),
        (
            "leaf",
            json!({"ending": "done", "conclusion": "c", "findings": [{"text": "t", "citations": [{"path": "a", "line": 1}]}]}),
        ),
        ("reflect", json!({"summary": "s", "on_tools": [{"tool": "t", "note": "n"}]})),
        (
            "refine",
            json!({"operations": [{"operation": "add", "after": "1", "tasks": [{"name": "a", "goal": "b"}]}]}),
        ),
        ("write", json!({"title": "t", "body": "b", "unanswered": []})),
    ];
    for (kind, example) in examples {
        let offer = offer_of(kind);
        let schema = (rules_for(&offer.work).schema)(&offer);
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&example), "{kind}: {schema}");
        assert!(submitted(kind, &example).is_ok(), "{kind}");
    }
}

#[test]
fn an_offer_with_an_absurd_depth_is_bounded() {
    let mut offer = offer_of("plan");
    offer.limits.max_depth = u16::MAX;
    let schema = (rules_for(&offer.work).schema)(&offer).to_string();
    assert_eq!(schema.matches("\"subtasks\"").count(), TaskIndex::MAX_DEPTH - 1);
}

#[test]
fn tools_follow_role_and_settings() {
    let worker = rules_for(&leaf(Role::Worker).work);
    let researcher = rules_for(&leaf(Role::Researcher).work);
    assert!(worker.may_use("workspace.write", None));
    assert!(researcher.may_use("corpus.read", None) && !researcher.may_use("workspace.write", None));
    let allowed = ["calculator".to_owned()];
    assert!(worker.may_use("calculator", Some(&allowed)) && !worker.may_use("corpus.read", Some(&allowed)));
}

#[test]
fn who_began_with_the_whole_goal_may_ask_for_a_plan() {
    let wish = json!({"ending": "plan", "reason": "two parts", "findings": [{"text": "A costs 3."}]});
    let told = submitted("leaf", &wish).unwrap_err().join("; ");
    assert!(told.contains("\"plan\"; it must be one of done, done_partial"), "{told}");
    let mut offer = offer_of("leaf");
    if let Work::Execute { may_plan, .. } = &mut offer.work {
        *may_plan = true;
    }
    let rules = rules_for(&offer.work);
    let endings = rules.submit_schema(&offer)["properties"]["ending"]["enum"].clone();
    assert!(endings.as_array().unwrap().contains(&json!("plan")), "{endings}");
    let Submission { ending, product, .. } = rules.submission(&offer, &wish).unwrap();
    let Some(Product::Result(result)) = product else { panic!("{product:?}") };
    assert_eq!((ending, result.advice.unwrap().plan.as_deref()), (Ending::DonePartial, Some("two parts")));
    assert!(result.conclusion.starts_with("Nothing is known yet") && result.findings.len() == 1);
    assert!(rules.submission(&offer, &json!({"ending": "plan"})).is_err());
}
