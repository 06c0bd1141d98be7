//! Settings where a fleet is up: what can belong to a run goes with it, the rest is refused or told; nothing of them
//! stands in the arguments of processes.

use muster_support::fleet::{Fleet, both};

use super::support::{folder, write_documents};

const ASK: [&str; 4] = ["run", "How deep may delegation go?", "--docs", "docs"];

fn up(arguments: &[&str]) -> Fleet {
    let fleet = folder().up(arguments).unwrap();
    write_documents(fleet.folder());
    fleet
}

#[test]
fn what_can_belong_to_a_run_travels_and_the_rest_is_refused_by_name() {
    let fleet = up(&["--set", "limits.max_tasks=7", "--set", "agent.temperature=0.5"]);
    let folder = fleet.folder();
    let asked = |more: &[&str], variables: &[(&str, &str)]| {
        let mut command = folder.command(&[&ASK[..], more].concat());
        let output = command.envs(variables.iter().copied()).output().unwrap();
        (output.status.code(), both(&output))
    };

    let (code, said) = asked(&["--set", "agent.max_answer_tokens=100", "--set", "fleet.scale.worker=3"], &[]);
    assert_eq!(code, Some(2), "{said}");
    let in_one_line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["agent.max_answer_tokens = 100", "fleet.scale.worker = 3", "`muster up`"] {
        assert!(in_one_line.contains(part), "{part}: {said}");
    }

    // What the fleet has already is no fault, and limits are those of the fleet but for those that were set.
    let variables = [("MUSTER_LIMITS_MAX_STEPS", "6"), ("MUSTER_AGENT_DRAIN", "3s")];
    let same = ["--set", "agent.temperature=0.5", "--set", "limits.people.answer_within=7m"];
    let (code, said) = asked(&same, &variables);
    assert_eq!(code, Some(0), "{said}");
    let note = said.lines().filter(|line| line.starts_with("note: ")).collect::<Vec<_>>();
    assert_eq!(note.len(), 1, "{said}");
    assert!(note[0].contains("agent.drain") && !note[0].contains("limits."), "{note:?}");
    let limits = &folder.json(&["show", "last", "--json"]).unwrap()["limits"];
    assert_eq!(
        (&limits["max_tasks"], &limits["max_steps"], &limits["people"]["answer_within_ms"]),
        (&7.into(), &6.into(), &420_000.into()),
        "{limits}"
    );

    // A key that the fleet was not started with.
    let (_, said) = asked(&["--quiet"], &[("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")]);
    assert!(said.contains("ANTHROPIC_API_KEY") && !said.contains("0123456789"), "{said}");

    let fork = folder.run(&["fork", "last", "--at", "2", "--set", "limits.max_steps=3"]).unwrap();
    assert_eq!(fork.status.code(), Some(2));
    assert!(both(&fork).contains("limits.max_steps cannot be set for a fork"), "{}", both(&fork));
    let fork = folder.run(&["fork", "last", "--at", "99999"]).unwrap();
    assert!(both(&fork).contains("has no entry 99999"), "{}", both(&fork));
}

#[test]
fn settings_do_not_stand_in_the_arguments_of_processes() {
    let fleet = up(&["--set", "limits.max_tasks=7", "--set", "agent.slots.worker=3"]);
    for (name, pid) in fleet.pids() {
        let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!arguments.contains("max_tasks") && !arguments.contains("--set"), "{name}: {arguments}");
    }
    // They hold all the same.
    let processes = fleet.folder().json(&["ps", "--json"]).unwrap();
    let worker = processes.as_array().unwrap().iter().find(|one| one["role"] == "worker").unwrap();
    assert_eq!(worker["slots"], 3, "{worker}");
    assert_eq!(worker["presence"]["capabilities"][0], "reasoning", "{worker}");
    fleet.folder().output(&ASK).unwrap();
    let shown = fleet.folder().json(&["show", "last", "--json"]).unwrap();
    assert_eq!(shown["limits"]["max_tasks"], 7);
}

#[test]
fn a_run_is_shown_in_brief_unless_all_of_it_is_wanted() {
    let fleet = up(&[]);
    fleet.folder().output(&ASK).unwrap();
    let brief = fleet.folder().json(&["show", "last", "--json"]).unwrap();
    let full = fleet.folder().json(&["show", "last", "--json", "--full"]).unwrap();
    let steps = |shown: &serde_json::Value| {
        let tasks = shown["tasks"].as_object().unwrap().values();
        tasks.filter(|task| task["outcome"]["last_step"].is_object()).count()
    };
    assert_eq!(steps(&brief), 0);
    assert!(steps(&full) > 2);
    for kept in ["id", "status", "goal", "limits", "plan", "reflections", "usage", "report", "summaries"] {
        assert_eq!(brief[kept].is_null(), full[kept].is_null(), "{kept}");
    }
    assert!(brief.to_string().len() < full.to_string().len());
}
