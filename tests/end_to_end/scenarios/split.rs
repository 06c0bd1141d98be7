//! A report in two parts, of which the second proves too large: it is split, what was learnt is kept, and what a refiner
//! wants of the past is refused.

use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::json;

use super::super::support::of_kind;
use super::{ask, done, learnt, model, plan, submit, written};

const GOAL: &str = "Find out what lichens live on, and write a field guide to those of the harbour wall.";
const LESSON: &str = "name the species before describing them";

fn answer(who: &str, request: &CapturedRequest) -> Reply {
    let turns = request.turns();
    match who {
        "planner" => plan(&json!([
            { "name": "the food of lichens", "goal": "Find out what lichens live on.", "milestones": ["light", "water"] },
            { "name": "the field guide", "goal": "Write the guide, after {{1.result}}", "depends_on": ["1"] },
        ])),
        "1" if turns == 0 => {
            Reply::call("calculator", &json!({ "thought": "Per year.", "expression": "0.5 * 12" }))
        }
        "1" => done("Lichens live on light, rain and air; they grow 6 mm a year."),
        "2" => submit(&json!({
            "thought": "There are too many.", "ending": "give_up", "reason": "the wall has too many species for one task",
            "conclusion": "Not begun.",
        })),
        "2-1" => done("Three species are grey."),
        "2-2" => done("Two species are orange."),
        "reflector" if request.holds("too many species") => submit(&json!({
            "thought": "It was too large.", "summary": "The guide was not written.", "on_plan": [LESSON],
            "uncovered": ["the guide"], "refine": "the guide is too large for one task",
        })),
        "reflector" => learnt("It went as planned."),
        // The past cannot be changed, whatever a model wants.
        "refiner" => submit(&json!({ "thought": "Smaller parts.", "operations": [
            { "operation": "delete", "task": "1", "reason": "it is done" },
            { "operation": "split", "task": "1", "into": [
                { "name": "light", "goal": "Light." }, { "name": "rain", "goal": "Rain." },
            ]},
            { "operation": "split", "task": "2", "into": [
                { "name": "the grey ones", "goal": "Describe the grey lichens." },
                { "name": "the orange ones", "goal": "Describe the orange lichens." },
            ]},
        ]})),
        "writer" => {
            let all = ["6 mm a year", "Three species are grey", "Two species are orange"];
            let found = all.into_iter().filter(|part| request.holds(part)).collect::<Vec<_>>();
            written(&format!("# Lichens\n\n{}.", found.join(". ")))
        }
        who => panic!("{who} asks: {:?}", request.messages),
    }
}

#[test]
fn a_part_that_is_too_large_is_split_and_the_report_has_what_its_parts_gave() {
    let (server, folder) = model(answer);
    let ended = ask(&folder, GOAL, &[]);
    let report = ended.report(&folder);
    assert!(
        report.starts_with("# Lichens\n\n6 mm a year. Three species are grey. Two species are orange.\n\n> ")
    );
    let marks = ["1", "2", "2-1", "2-2"].map(|task| ended.status(task));
    assert_eq!(marks, ["completed", "split", "completed", "completed"]);

    // What was learnt is kept and told to those who come after.
    let reflections = folder.json(&["show", "last", "--reflection", "--json"]).unwrap();
    assert_eq!(reflections["2"]["on_plan"], json!([LESSON]), "{reflections}");
    assert_eq!(reflections["1"]["summary"], "It went as planned.");
    let log = server.log();
    let told = log.iter().filter(|entry| super::asker(&entry.request).starts_with("2-"));
    assert!(told.clone().count() >= 2 && told.clone().all(|entry| entry.request.holds(LESSON)));
    assert_eq!(
        of_kind(&ended.trace, "started").filter(|entry| entry["task"] == "2").count(),
        2,
        "tried twice"
    );

    let refinements = folder.json(&["show", "last", "--refinements", "--json"]).unwrap();
    assert_eq!(refinements.as_array().map(Vec::len), Some(1), "{refinements}");
    let changes = refinements[0]["changes"].to_string();
    assert!(changes.contains("split 2 the field guide into 2-1, 2-2"), "{refinements}");
    let refused = refinements[0]["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 2, "{refinements}");
    for refusal in refused {
        assert!(refusal["reason"].as_str().unwrap().contains("Completed"), "{refusal}");
    }
    let shown = folder.output(&["show", "last"]).unwrap();
    for part in
        ["[x] 1 the food of lichens", "[x] 2 the field guide", "[x] 2-1", LESSON, "split 2", "refused"]
    {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
}
