//! The command line without a fleet: usage, settings, bad input, exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

/// Longest time any of these commands may take.
const LIMIT: Duration = Duration::from_secs(30);

fn muster(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("muster").unwrap();
    command.current_dir(folder).timeout(LIMIT);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("MUSTER_") && name != "MUSTER_NATS_SERVER" {
            command.env_remove(name);
        }
    }
    command
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let folder = folder();
    let mut help = muster(folder.path()).arg("--help").assert().success();
    let commands = [
        "run",
        "up",
        "down",
        "ps",
        "runs",
        "gc",
        "show",
        "trace",
        "tap",
        "cancel",
        "dead",
        "agent",
        "orchestrator",
        "schema",
        "tools",
        "doctor",
        "config",
        "completions",
    ];
    for command in commands {
        help = help.stdout(contains(format!("\n  {command} ")));
    }
    help.stdout(contains("3  the bus cannot be reached")).stdout(contains("Examples:"));
}

#[test]
fn every_command_has_help_and_completions() {
    let folder = folder();
    for command in ["run", "up", "trace", "agent", "config"] {
        muster(folder.path()).args([command, "--help"]).assert().success().stdout(contains("Usage: muster"));
    }
    for shell in ["bash", "zsh", "fish"] {
        muster(folder.path()).args(["completions", shell]).assert().success().stdout(contains("muster"));
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    let folder = folder();
    let cases: [&[&str]; 8] = [
        &["fly"],
        &[],
        &["run"],
        &["run", "x", "--deadline", "soon"],
        &["up", "--scale", "worker"],
        &["up", "--scale", "wroker=2"],
        &["agent", "cook"],
        &["trace", "last", "1-0"],
    ];
    for arguments in cases {
        muster(folder.path()).args(arguments).assert().code(2);
    }
}

#[test]
fn settings_file_with_an_error_is_refused_with_its_place() {
    let folder = folder();
    for (text, words) in [
        (
            "[limits]\n# steps\nmax_stepz = 3\n",
            &["limits.max_stepz", "line 3", "did you mean limits.max_steps?"][..],
        ),
        ("[limits\nmax_steps = 3\n", &["not valid TOML"]),
        ("[limits]\nmax_steps = \"many\"\n", &["max_steps", "muster.toml:2"]),
    ] {
        std::fs::write(folder.path().join("muster.toml"), text).unwrap();
        let refused = muster(folder.path()).arg("config").assert().code(2);
        drop(words.iter().fold(refused, |refused, word| refused.stderr(contains(*word))));
    }
    let missing = ["--config", "missing.toml", "config"];
    muster(folder.path()).args(missing).assert().code(2).stderr(contains("missing.toml"));
}

#[test]
fn config_says_where_each_value_comes_from_and_hides_secrets() {
    let folder = folder();
    std::fs::write(folder.path().join("muster.toml"), "[limits]\nmax_steps = 4\n").unwrap();
    let deeper = folder.path().join("a/b");
    std::fs::create_dir_all(&deeper).unwrap();
    let output = muster(&deeper)
        .env("MUSTER_LIMITS_MAX_WIDTH", "3")
        .env("MUSTER_BUS_TOKEN", "hunter2-hunter2")
        .args(["config", "--set", "limits.max_depth=2", "--json"])
        .assert()
        .success()
        .stdout(contains("hunter2").not())
        .get_output()
        .stdout
        .clone();
    let value: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let find = |key: &str| {
        let all = value["settings"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
    };
    assert_eq!(find("limits.max_steps")["value"], 4);
    assert!(find("limits.max_steps")["origin"].as_str().unwrap().ends_with("muster.toml:2"));
    assert_eq!(find("limits.max_width")["origin"], "environment MUSTER_LIMITS_MAX_WIDTH");
    assert_eq!(find("limits.max_depth")["origin"], "--set");
    assert_eq!(find("limits.max_tasks")["origin"], "default");
    assert_eq!(find("bus.token")["value"], "[set]");
}

#[test]
fn config_shows_what_comes_first_and_explains_any_setting() {
    let folder = folder();
    std::fs::write(folder.path().join("muster.toml"), "[limits.budget]\ncost = 2.5\n").unwrap();
    let config = |arguments: &[&str]| {
        let mut command = muster(folder.path());
        command.arg("config").args(arguments);
        command
    };
    let brief = contains("agent.model").and(contains("limits.budget.cost")).and(contains("--explain KEY"));
    config(&[]).assert().success().stdout(brief.and(contains("limits.conflicts.policy").not()));
    config(&["--all"]).assert().success().stdout(contains("limits.conflicts.policy"));
    config(&["limits.conflicts"]).assert().success().stdout(contains("limits.conflicts.policy"));
    config(&["--explain", "limits.budget.cost"])
        .assert()
        .success()
        .stdout(contains("2.5 (from ").and(contains("muster.toml:2)")))
        .stdout(contains("US dollars").and(contains("from 0 to 1000000000")))
        .stdout(contains("MUSTER_LIMITS_BUDGET_COST").and(contains("--set limits.budget.cost=")));
    config(&["--explain", "limits.budgt"]).assert().code(2).stderr(contains("did you mean limits.budget?"));
}

#[test]
fn settings_that_cannot_work_are_refused_wherever_they_come_from() {
    let folder = folder();
    std::fs::write(folder.path().join("muster.toml"), "[orchestrator]\nmax_runs = 0\n").unwrap();
    let said = "orchestrator.max_runs = 0 (from muster.toml:2) cannot work";
    muster(folder.path()).args(["up"]).assert().code(2).stderr(contains(said));
    std::fs::write(folder.path().join("muster.toml"), "").unwrap();
    muster(folder.path())
        .env("MUSTER_AGENT_TEMPERATURE", "nan")
        .arg("config")
        .assert()
        .code(2)
        .stderr(contains("agent.temperature").and(contains("MUSTER_AGENT_TEMPERATURE")));
    for (arguments, said) in [
        (&["--set", "bus.record_bytes=1", "config"][..], "bus.record_bytes = 1 (from --set)"),
        (&["--set", "agent.rates=5", "config"], "agent.rates.NAME.requests_per_minute"),
        (&["up", "--scale", "worker=65535"], "256 of a role is the most"),
        (&["up", "--scale", "worker=99999"], "256 of a role is the most"),
    ] {
        muster(folder.path()).args(arguments).assert().code(2).stderr(contains(said));
    }
}

#[test]
fn only_ordinary_files_of_some_size_are_read() {
    let folder = folder();
    let pipe = folder.path().join("pipe.json");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let pipe = pipe.to_str().unwrap();
    let begun = Instant::now();
    for (arguments, kind) in [
        (&["--config", pipe, "config"][..], "it is a pipe"),
        (&["--config", "/dev/zero", "config"], "it is a device"),
        (&["--fleet", pipe, "config"], "it is a pipe"),
        (&["--fleet", "/dev/zero", "config"], "it is a device"),
        (&["run", "What?", "--docs", pipe], "it is a pipe"),
        (&["run", "What?", "--docs", "/dev/zero"], "it is a device"),
        (&["run", "What?", "--plan", pipe], "it is a pipe"),
        (&["run", "--blueprint", "/dev/zero"], "it is a device"),
        (&["run", "--blueprint", "document_review", "--params", pipe], "it is a pipe"),
        (&["agent", "--check", "/dev/zero"], "it is a device"),
        (
            &["--url", "nats://127.0.0.1:1", "--set", &format!("bus.credentials={pipe}"), "ps"],
            "the credentials file",
        ),
    ] {
        muster(folder.path()).args(arguments).assert().code(2).stderr(contains(kind));
    }
    assert!(begun.elapsed() < LIMIT, "none of them waits");
}

#[test]
fn passwords_are_neither_shown_nor_taken_from_the_command_line() {
    let folder = folder();
    let password = "opensesame";
    muster(folder.path())
        .env("MUSTER_BUS_URL", "nats://ann:opensesame@127.0.0.1:1,nats://opensesame@127.0.0.1:2")
        .env("MUSTER_AGENT_ENDPOINT", "https://ann:opensesame@example.org/v1")
        .args(["config", "--json"])
        .assert()
        .success()
        .stdout(contains("nats://ann:[redacted]@127.0.0.1:1").and(contains(password).not()));
    muster(folder.path())
        .args(["--set", "bus.password=opensesame", "config"])
        .assert()
        .code(2)
        .stderr(contains("MUSTER_BUS_PASSWORD").and(contains(password).not()));
    let misread = muster(folder.path()).arg("--ghp_0123456789abcdefghij").assert().code(2);
    misread.stderr(contains("[redacted]").and(contains("0123456789").not()));
    muster(folder.path())
        .args(["--url", "nats://ann:opensesame@127.0.0.1:1", "ps"])
        .assert()
        .code(3)
        .stderr(contains("everybody on this machine can read the password in --url"))
        .stderr(contains(password).not());
}

#[test]
fn bad_goals_and_documents_are_refused_before_anything_is_started() {
    let folder = folder();
    let long = "x".repeat(1024 * 1024);
    for goal in ["", "  ", " \n "] {
        muster(folder.path()).args(["run", goal]).assert().code(2).stderr(contains("empty"));
    }
    let most = "x".repeat(100_000);
    muster(folder.path()).args(["run", &most]).assert().code(2).stderr(contains("most"));
    muster(folder.path()).args(["run", "-"]).write_stdin(long).assert().code(2).stderr(contains("--docs"));
    muster(folder.path())
        .args(["run", "x", "--docs", "missing"])
        .assert()
        .code(2)
        .stderr(contains("missing").and(contains("cannot be read")));
    muster(folder.path())
        .args(["run", "x", "-o", "no/such/report.md"])
        .assert()
        .code(2)
        .stderr(contains("no folder"));
    assert!(!folder.path().join(".muster").exists(), "nothing is left behind");
}

#[test]
fn a_url_that_answers_nothing_ends_with_3_in_time() {
    // Takes connections and never says a word.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("nats://{}", listener.local_addr().unwrap());
    let folder = folder();
    for url in [silent.as_str(), "nats://127.0.0.1:1"] {
        for arguments in
            [&["ps"][..], &["runs"], &["run", "x"], &["agent", "worker"], &["orchestrator"], &["tap"]]
        {
            let began = Instant::now();
            muster(folder.path())
                .args(["--url", url])
                .args(arguments)
                .assert()
                .code(3)
                .stderr(contains("127.0.0.1"));
            assert!(began.elapsed() < Duration::from_secs(15), "{arguments:?} took {:?}", began.elapsed());
        }
    }
}

#[test]
fn without_a_fleet_commands_say_how_to_get_one() {
    let folder = folder();
    for arguments in [&["ps"][..], &["runs"], &["show"], &["tap"], &["agent", "worker"]] {
        muster(folder.path()).args(arguments).assert().code(3).stderr(contains("muster up"));
    }
    muster(folder.path()).arg("down").assert().success().stderr(contains("no fleet is running"));
}

#[test]
fn doctor_says_how_to_mend_a_missing_server() {
    let folder = folder();
    let output = muster(folder.path())
        .env("MUSTER_NATS_SERVER", folder.path().join("nothing"))
        .args(["doctor", "--json"])
        .assert()
        .code(1)
        .get_output()
        .stdout
        .clone();
    let value: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(value["ok"], false);
    let checks = value["checks"].as_array().unwrap();
    let server = checks.iter().find(|check| check["what"] == "nats-server").unwrap();
    assert_eq!(server["verdict"], "fail");
    assert!(server["mend"].as_str().unwrap().contains("install-nats.sh"));
    assert!(checks.iter().any(|check| check["what"] == "disk"));
}

#[test]
fn a_taken_port_is_said_to_be_taken() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = folder();
    muster(folder.path())
        .args(["up", "--set", &format!("server.port={port}")])
        .assert()
        .code(3)
        .stderr(contains(format!("port {port}")).and(contains("taken")));
}

#[test]
fn schemas_are_valid_json_and_name_the_envelope() {
    let folder = folder();
    for (form, part) in [("--json-schema", "$schema"), ("--asyncapi", "asyncapi")] {
        let output =
            muster(folder.path()).args(["schema", form]).assert().success().get_output().stdout.clone();
        let value: serde_json::Value = serde_json::from_slice(&output).unwrap();
        assert!(value.get(part).is_some(), "{part} in the output of {form}");
    }
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;
    let folder = folder();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("muster"))
        .args(["schema"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!words.contains("panicked"), "{words}");
}

#[test]
fn webhook_that_is_not_a_url_stops_a_fleet_before_it_starts() {
    let folder = folder();
    muster(folder.path())
        .env("MUSTER_ALERTS_WEBHOOK", "hooks.example.org/secret-path")
        .args(["up", "--detach"])
        .assert()
        .code(2)
        .stderr(contains("cannot use alerts.webhook").and(contains("secret-path").not()));
    // A project's own file cannot choose the receiver of alerts.
    std::fs::write(folder.path().join("muster.toml"), "[alerts]\nwebhook_file = \"hook\"\n").unwrap();
    muster(folder.path()).arg("ps").assert().code(2).stderr(contains("say where alerts are sent"));
}

/// Each bad file is left out alone and named with the reason; a name of Muster's own is refused at the check.
#[test]
fn bad_neighbor_is_left_out_alone_and_named() {
    let folder = folder();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let tool = "description = \"Says it.\"\ncommand = [\"echo\"]\n\n[parameters]\ntype = ";
    write("tools/good.tool.toml", &format!("{tool}\"object\"\n"));
    write("tools/schema.tool.toml", &format!("{tool}\"no-type\"\n"));
    write("tools/broken.tool.toml", "description = [");
    write("tools/broken.composite.toml", "steps = 3");
    write("agents/broken.agent.md", "---\nrole: [\n---\n");
    write("agents/planner.agent.md", "---\nrole: planner\ndescription: plans\n---\nPlan.\n");
    let servers = r#"{"mcpServers": {"corpus": {"command": "true"}, "own": {"command": "true"}, "none": 3}}"#;
    write("mcp.json", servers);
    let home = folder.path().join("home");
    let here = |arguments: &[&str]| muster(folder.path()).env("HOME", &home).args(arguments).assert();
    here(&["trust", "--yes"]).success();
    let doctor = String::from_utf8(here(&["doctor"]).get_output().stdout.clone()).unwrap();
    let named = [
        "schema.tool.toml",
        "broken.tool.toml",
        "broken.composite.toml",
        "broken.agent.md",
        "planner.agent.md",
    ];
    for name in named.into_iter().chain(["server corpus", "server own", "server none"]) {
        assert!(doctor.contains(name), "{name} is missing:\n{doctor}");
    }
    here(&["tools", "list"]).success().stdout(contains("own.good").and(contains("own.schema").not()));
    here(&["agent", "mcp", "--check"]).code(2).stderr(contains("corpus:").and(contains("rename the server")));
}
