//! How much is done for a goal: one agent where that is enough, more where it is not.

use muster_support::fleet::EFFORT;
use muster_support::model_server::ModelServer;
use serde_json::json;

use super::scenarios::{Ended, ask, asker, done, learnt, model, plan, submit, written};

const GOAL: &str = "Compare the two harbours of the town and recommend one.";

fn askers(server: &ModelServer) -> Vec<String> {
    server.log().iter().map(|entry| asker(&entry.request).to_owned()).collect()
}

fn limit<'a>(ended: &'a Ended, name: &str) -> &'a str {
    ended.state["limits"][name].as_str().unwrap_or("not there")
}

#[test]
fn a_goal_is_one_agents_work_and_its_result_is_the_report() {
    for effort in ["quick", "standard"] {
        let (server, folder) = model(move |who, request| match who {
            "1" => {
                assert_eq!(
                    request.body.to_string().contains("plan: the work is to be split"),
                    effort == "standard"
                );
                submit(&json!({
                    "thought": "Known.", "ending": "done", "conclusion": "Take the new harbour.",
                    "findings": [{ "text": "The new harbour is deeper, the other one of the town is silted up." }],
                }))
            }
            who => panic!("{who} asks"),
        });
        let ended = ask(&folder, GOAL, &["--effort", effort]);
        let report = ended.report(&folder);
        assert!(report.starts_with("Take the new harbour.\n\n- The new harbour is deeper"), "{report}");
        assert_eq!(askers(&server), ["1"], "{effort}: one call");
        assert_eq!(limit(&ended, "writer"), "unless-single");
        let verification = if effort == "quick" { "off" } else { "cited" };
        assert_eq!(limit(&ended, "verification"), verification);
    }
}

#[test]
fn an_agent_that_sees_that_the_work_is_to_be_split_has_it_planned() {
    let (server, folder) = model(|who, request| match who {
        "1" => submit(&json!({
            "thought": "Two harbours.", "ending": "plan", "reason": "each harbour is a search of its own",
            "conclusion": "The town has an old and a new harbour.",
        })),
        "planner" => {
            for words in ["says that it has to be split", "an old and a new harbour", "numbered from 2"] {
                assert!(request.holds(words), "{words}: {}", request.last_text());
            }
            plan(&json!([
                { "name": "old", "goal": "Describe the old harbour.", "role": "worker" },
                { "name": "new", "goal": "Describe the new harbour.", "role": "worker" },
            ]))
        }
        "2" => done("It is shallow."),
        "3" => done("It is deep."),
        "writer" => {
            assert!(request.holds("It is shallow.") && request.holds("It is deep."));
            written("# Harbours\n\nOf the two harbours of the town, take the new one: compare their depths.")
        }
        who => panic!("{who} asks"),
    });
    // The way that a fleet is brought up with another effort, by its settings.
    let folder = folder.with(EFFORT, "standard");
    let ended = ask(&folder, GOAL, &[]);
    assert!(ended.report(&folder).starts_with("# Harbours"));
    let mut asked = askers(&server);
    asked.sort();
    assert_eq!(asked, ["1", "2", "3", "planner", "writer"]);
    assert_eq!(ended.status("1"), "completed");
}

#[test]
fn the_full_sequence_is_one_word_away() {
    let (server, folder) = model(|who, _| match who {
        "planner" => plan(&json!([{ "name": "all", "goal": GOAL, "role": "worker", "critical": true }])),
        "1" => done("Take the new harbour."),
        "reflector" => learnt("It went well."),
        "writer" => written("Of the two harbours of the town, compare and take the new one."),
        _ => muster_support::model_server::Reply::json(&json!({ "faults": [] })),
    });
    let folder = folder.with(EFFORT, "standard");
    let ended = ask(&folder, GOAL, &["--effort", "thorough"]);
    assert_eq!(ended.code, 0, "{}", ended.said);
    let asked = askers(&server);
    for who in ["planner", "1", "aside", "reflector", "writer"] {
        assert!(asked.iter().any(|asked| asked == who), "{who}: {asked:?}");
    }
}
