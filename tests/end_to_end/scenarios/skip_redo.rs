//! From another terminal: a task is left out while an agent works on it, and done again after all. Both stand in the
//! timeline, with who wanted it and why.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_support::fleet::both;
use muster_support::model_server::{CapturedRequest, Fault, ModelServer, Reply};
use serde_json::json;

use super::{asker, done, ended, learnt, model, plan, written};

const LIMIT: Duration = Duration::from_secs(30);
const OUT_OF_ORDER: &str = "the tide gauge is out of order";
const MENDED: &str = "the gauge was mended";

fn answer(who: &str, request: &CapturedRequest) -> Reply {
    match who {
        "planner" => {
            let leaf = |name: &str| json!({ "name": name, "goal": format!("Measure {name}.") });
            let three = json!([leaf("the wind"), leaf("the tide"), leaf("the swell")]);
            plan(&json!([
                { "name": "the measurements", "goal": "Measure all of it.", "subtasks": three },
                { "name": "the advice", "goal": "Advise the skipper.", "depends_on": ["1"] },
            ]))
        }
        "reflector" => learnt("It went as planned."),
        "writer" if request.holds("springs tonight") => {
            written("# Advice\n\nWait for the tide, whatever wind and swell.")
        }
        "writer" => written("# Advice\n\nSail."),
        "1-2" => done("It springs tonight."),
        who => done(&format!("{who} is known.")),
    }
}

fn until_asked(server: &ModelServer, who: &str, times: usize) {
    let asked = |server: &ModelServer| {
        server.log().iter().filter(|entry| asker(&entry.request) == who).count() >= times
    };
    server.wait_until(LIMIT, asked).unwrap();
}

#[test]
fn a_task_is_left_out_while_it_runs_and_done_again_with_both_in_the_timeline() {
    let held = Arc::new(Mutex::new(BTreeSet::from(["1-2", "writer"])));
    let keeps = Arc::clone(&held);
    let (server, folder) = model(move |who, request| {
        if keeps.lock().unwrap().contains(who) {
            return Reply::fault(Fault::Hang);
        }
        answer(who, request)
    });
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let run = ["run", "Measure wind, tide and swell, and advise the skipper.", "--json"];
    let run = [&run[..], &["--model", "openai/scripted"]].concat();
    let asking = folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    until_asked(&server, "1-2", 1);
    folder.output(&["skip", "last", "1-2", "--reason", OUT_OF_ORDER]).unwrap();
    until_asked(&server, "writer", 1);
    let shown = folder.json(&["show", "last", "1-2", "--json"]).unwrap();
    assert_eq!(shown["state"]["status"], "skipped", "{shown}");
    let told = |who: &str, words: &str| {
        server.log().iter().any(|entry| asker(&entry.request) == who && entry.request.holds(words))
    };
    assert!(told("2", OUT_OF_ORDER), "what builds on it goes on without it, and knows why");
    assert!(folder.output(&["show", "last"]).unwrap().contains("[~] 1-2 the tide"));

    held.lock().unwrap().clear();
    let said = folder.output(&["redo", "last", "1-2", "--reason", MENDED]).unwrap();
    assert!(said.contains("1-2 is done again") && said.contains("2 is done again"), "{said}");
    let output = asking.wait_with_output().unwrap();
    let ended = ended(folder, output.status.code(), &output.stdout, both(&output));
    assert_eq!(ended.report(folder), "# Advice\n\nWait for the tide, whatever wind and swell.");
    let marks = ["1-1", "1-2", "1-3", "2"].map(|task| ended.status(task));
    assert_eq!(marks, ["completed"; 4]);
    assert!(told("1-2", MENDED), "whoever does it again knows why");

    let timeline = folder.output(&["trace", "last"]).unwrap();
    let place =
        |words: &str| timeline.find(words).unwrap_or_else(|| panic!("{words} is missing:\n{timeline}"));
    let skipped = place(&format!("1-2 skipped: {OUT_OF_ORDER} (asked by "));
    let again = place(MENDED);
    assert!(skipped < again && again < timeline.rfind("1-2").unwrap(), "{timeline}");
    let of_task = folder.output(&["trace", "last", "1-2"]).unwrap();
    assert!(of_task.contains(OUT_OF_ORDER) && of_task.contains(MENDED), "{of_task}");
}
