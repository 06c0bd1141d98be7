//! A task as a program is told it, in one answer. Pure.

use muster_agents::definition::Contract;
use muster_agents::react::history::History;
use muster_agents::roles::{Rules, promising, rules_for};
use muster_shared::flow::{Artifact, RolePermissions, TaskOffered, Use, Work};
use serde_json::{Map, Value, json};

/// Of an answer that is too large, so many characters of each observation are left.
const SHORT: usize = 400;
/// Where the file of a result begins that was too long for the answer.
pub(crate) const INPUTS: &str = "inputs/";

/// What a program is told of.
pub(crate) struct Told<'a> {
    pub(crate) offer: &'a TaskOffered,
    pub(crate) token: &'a str,
    pub(crate) history: &'a History,
    pub(crate) files: &'a [Artifact],
    pub(crate) contract: &'a Contract,
    pub(crate) permissions: RolePermissions,
}

/// The rules by which a task ends.
pub(crate) fn rules(offer: &TaskOffered, contract: &Contract) -> Rules {
    match (&offer.work, &contract.output) {
        (Work::Execute { .. }, Some(output)) => Rules::Own(promising(output.clone()).into()),
        _ => Rules::BuiltIn(rules_for(&offer.work)),
    }
}

/// The task, in no more bytes than an answer may have.
pub(crate) fn told(told: &Told<'_>, most: usize) -> Value {
    let mut task = whole(told);
    let room = most.saturating_sub(most / 8);
    if task.to_string().len() > room {
        shorten_steps(&mut task);
    }
    if task.to_string().len() > room {
        shorten_inputs(&mut task);
    }
    task
}

fn whole(told: &Told<'_>) -> Value {
    let Told { offer, token, history, files, contract, permissions } = told;
    let (kind, work) = kind_and_work(&offer.work);
    let goal = match &offer.work {
        Work::Execute { task, .. } => &task.goal,
        _ => &offer.goal,
    };
    let steps: Vec<Value> = history.steps().iter().map(step).collect();
    let documents = offer.corpus.as_ref().map(|corpus| json!({ "id": corpus.id, "count": corpus.files }));
    let may = |wanted: Use<'_>| offer.rights.allow(&wanted);
    let mut task = json!({
        "token": token,
        "run": offer.run,
        "task": offer.task,
        "generation": offer.generation,
        "kind": kind,
        "goal": goal,
        "run_goal": offer.goal,
        "work": work,
        "documents": documents,
        "files": files,
        "steps": steps,
        "next_step": history.next_step(),
        "may": {
            "ask_person": permissions.people && may(Use::Person),
            "hand_over": permissions.delegate && may(Use::HandOver),
            "begin_run": permissions.plan && may(Use::Run),
            "ask_peers": permissions.peers && offer.may_ask_peers,
            "write_files": permissions.tools && may(Use::WriteFile),
            "steps": offer.limits.max_steps,
            "budget": offer.budget,
            "deadline": offer.deadline,
        },
        "result_schema": rules(offer, contract).submit_schema(offer),
    });
    let mut add = |name: &str, value: Value| {
        if let Some(fields) = task.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
    };
    if !offer.role_name.is_empty() {
        add("role_name", json!(offer.role_name));
    }
    if !offer.conversation.is_empty() {
        add("conversation", json!(offer.conversation));
    }
    if !offer.rights.is_open() {
        add("rights", json!(offer.rights.effective()));
    }
    if let Some(background) = &offer.background {
        add("background", json!(background));
    }
    if !offer.chain.is_empty() {
        add("chain", json!(offer.chain));
    }
    if !offer.withheld.is_empty() {
        add("withheld", json!(offer.withheld));
    }
    if !offer.heard.is_empty() {
        add("heard", json!(offer.heard));
    }
    if let Some(answered) = &offer.answered {
        add("answered", json!(answered));
    }
    if let Some(begun) = history.begun().filter(|begun| !begun.idempotency_key.is_empty()) {
        add("begun", json!({ "step": step(&begun.step), "idempotency_key": begun.idempotency_key }));
    }
    task
}

/// The kind of work, and what belongs to it.
fn kind_and_work(work: &Work) -> (String, Value) {
    match serde_json::to_value(work) {
        Ok(Value::Object(fields)) => fields.into_iter().next().unwrap_or_default(),
        Ok(other) => (String::new(), other),
        Err(_) => (String::new(), Value::Null),
    }
}

/// A step as a program that goes on has to know it.
fn step(step: &muster_shared::flow::Step) -> Value {
    let mut told = Map::new();
    told.insert("number".to_owned(), json!(step.number));
    told.insert("thought".to_owned(), json!(step.thought));
    told.insert("action".to_owned(), json!(step.action));
    if let Some(observation) = &step.observation {
        told.insert("observation".to_owned(), json!(observation));
    }
    if !step.more.is_empty() {
        told.insert("more".to_owned(), json!(step.more));
    }
    Value::Object(told)
}

fn shorten_steps(task: &mut Value) {
    for step in task["steps"].as_array_mut().into_iter().flatten() {
        if let Some(Value::String(content)) = step.pointer_mut("/observation/content")
            && content.chars().nth(SHORT).is_some()
        {
            *content = content.chars().take(SHORT).collect();
            step["observation"]["truncated"] = json!(true);
        }
    }
}

/// What is long of results stands in files.
fn shorten_inputs(task: &mut Value) {
    for list in ["inputs", "results"] {
        for leaf in task["work"][list].as_array_mut().into_iter().flatten() {
            let place = format!("{INPUTS}{}/body", leaf["index"].as_str().unwrap_or_default());
            let Some(result) = leaf.get_mut("result").and_then(Value::as_object_mut) else { continue };
            if let Some(Value::String(body)) = result.remove("body") {
                result.insert("body_file".to_owned(), json!(place));
                result.insert("body_bytes".to_owned(), json!(body.len()));
            }
        }
    }
}

/// The body of a result that a program is told by the name of its file.
pub(crate) fn input_body<'a>(offer: &'a TaskOffered, path: &str) -> Option<&'a str> {
    let index = path.strip_prefix(INPUTS)?.strip_suffix("/body")?;
    let leaves = match &offer.work {
        Work::Execute { inputs, .. } => inputs,
        Work::Write { results, .. } | Work::Refine { results, .. } | Work::DraftReview { results, .. } => {
            results
        }
        Work::Plan { .. } | Work::Reflect { .. } => return None,
    };
    leaves.iter().find(|leaf| leaf.index.to_string() == index).map(|leaf| leaf.result.body.as_str())
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{LeafRef, PlanTask, RunLimits, TaskResult};
    use muster_shared::ids::TaskIndex;

    use super::*;

    fn offer(body: &str) -> TaskOffered {
        let task = PlanTask::new("count".to_owned(), "Count.".to_owned(), "counter".parse().unwrap());
        let result = TaskResult { conclusion: "c".into(), body: body.to_owned(), ..TaskResult::default() };
        let (index, name, goal) = (TaskIndex::top(1), "read".to_owned(), "Read.".to_owned());
        let inputs = vec![LeafRef { index, name, goal, query: None, result }];
        let work = json!({ "execute": { "task": task, "inputs": inputs, "parents": [], "progress": "" } });
        serde_json::from_value(json!({
            "run": "0190a1b2c3d4700080000000000000aa", "task": "2", "generation": 1, "queue": "counter", "work": work,
            "goal": "How many?", "limits": RunLimits::default(), "deadline": 0, "nonce": "hidden",
        }))
        .unwrap()
    }

    fn told_of(offer: &TaskOffered, most: usize) -> Value {
        let (history, contract) = (History::default(), Contract::default());
        let permissions = RolePermissions::OPEN;
        told(
            &Told { offer, token: "t", history: &history, files: &[], contract: &contract, permissions },
            most,
        )
    }

    #[test]
    fn a_task_is_told_with_all_that_belongs_to_it() {
        let task = told_of(&offer("b"), 1_000_000);
        assert_eq!(
            (&task["goal"], &task["run_goal"], &task["kind"]),
            (&json!("Count."), &json!("How many?"), &json!("execute"))
        );
        assert_eq!(task["work"]["inputs"][0]["result"]["body"], "b");
        assert_eq!((&task["next_step"], &task["may"]["ask_peers"]), (&json!(1), &json!(false)));
        assert!(task["result_schema"]["properties"]["conclusion"].is_object());
        assert!(!task.to_string().contains("hidden"), "what guards prompts is not told");
    }

    #[test]
    fn what_is_too_long_for_an_answer_stands_in_a_file() {
        let body = "word ".repeat(50_000);
        let offer = offer(&body);
        let task = told_of(&offer, 100_000);
        assert!(task.to_string().len() < 100_000);
        let result = &task["work"]["inputs"][0]["result"];
        assert_eq!((&result["body"], &result["body_bytes"]), (&Value::Null, &json!(body.len())));
        assert_eq!(input_body(&offer, result["body_file"].as_str().unwrap()), Some(body.as_str()));
        assert_eq!(input_body(&offer, "inputs/7/body"), None);
    }
}
