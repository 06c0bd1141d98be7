//! Teams as files: who a fleet is made of, and the settings that hold for it.

use std::time::Duration;

use muster_support::fleet::{both, wait_until};

use super::support::{folder, of_kind, write_documents};

const LIMIT: Duration = Duration::from_secs(30);

const WATCHER: &str = "\
---
role: loop_watcher
description: Finds out what limits loops.
capabilities: [delegation loops]
tools: [\"corpus.*\"]
---
Be exact.
";

const TEAM: &str = "\
name = \"loop desk\"
description = \"Looks into loops.\"

[members.researcher]
count = 2

[members.loop_watcher]
file = \"loop-watcher.agent.md\"

[members.lookout]
command = [\"./lookout.sh\", \"two words\"]

[limits]
max_width = 4
";

const LOOKOUT: &str = "\
#!/bin/sh
echo \"$MUSTER_AGENT_ROLE at $NATS_URL with $1, system ${MUSTER_BUS_SYSTEM_PASSWORD:-unknown}\"
exec sleep 600
";

#[test]
fn a_team_comes_up_as_its_file_says_and_works() {
    let folder = folder();
    write_documents(&folder);
    folder.write("teams/loop-watcher.agent.md", WATCHER).unwrap();
    let script = folder.write("teams/lookout.sh", LOOKOUT).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(script, mode).unwrap();
    folder.write("teams/fleet.toml", TEAM).unwrap();

    let checked = folder.output(&["doctor", "--fleet", "teams/fleet.toml"]).unwrap();
    assert!(checked.contains("loop desk") && checked.contains("lookout"), "{checked}");
    let settings = folder.json(&["config", "--fleet", "teams/fleet.toml", "--json"]).unwrap();
    assert!(settings.to_string().contains("fleet.toml:14"), "{settings}");

    let fleet = folder.up(&["--fleet", "teams/fleet.toml"]).unwrap();
    let folder = fleet.folder();
    let count = |role: &str| {
        let listed = folder.json(&["ps", "--json"]).unwrap();
        listed.as_array().unwrap().iter().filter(|agent| agent["role"] == role).count()
    };
    wait_until("everybody has joined", LIMIT, || count("researcher") == 2 && count("loop_watcher") == 1)
        .unwrap();
    assert!(folder.output(&["ps"]).unwrap().starts_with("team loop desk"));

    let log = || std::fs::read_to_string(folder.path().join(".muster/log/lookout-1.log")).unwrap_or_default();
    wait_until("the program was started", LIMIT, || log().contains("lookout at nats://")).unwrap();
    assert!(log().contains("with two words, system unknown"), "{}", log());

    let goal = "What limits delegation loops? Where is the record kept?";
    let summary = folder.json(&["run", goal, "--docs", "docs", "--json"]).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}");
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    assert!(
        of_kind(&trace, "outcome").any(|entry| entry["role"] == "loop_watcher"),
        "the specialist had work"
    );
    let run = folder.json(&["show", "last", "--json"]).unwrap();
    assert_eq!(run["limits"]["max_width"], 4, "the team's settings hold for its runs");
}

#[test]
fn a_team_file_with_a_fault_is_refused_and_a_faulty_member_is_left_out_alone() {
    let folder = folder();
    for (text, said) in [
        ("[members.wroker]\ncount = 2\n", ["fleet.toml:1", "did you mean worker?"]),
        ("[limits]\nmax_widht = 2\n", ["line 2", "limits.max_width"]),
    ] {
        folder.write("fleet.toml", text).unwrap();
        let output = folder.run(&["up", "--fleet", "fleet.toml"]).unwrap();
        let words = both(&output);
        assert!(output.status.code() == Some(2) && said.iter().all(|part| words.contains(part)), "{words}");
    }
    folder.write("other.agent.md", WATCHER).unwrap();
    folder.write("broken.agent.md", "---\nrle: x\n---\n").unwrap();
    for (path, role) in [("odd.agent.md", "odd"), ("agents/eager.agent.md", "eager")] {
        let text = WATCHER.replace("loop_watcher", role).replace("tools:", "model: nobody/none\ntools:");
        folder.write(path, text).unwrap();
    }
    let file = |role: &str, path: &str| format!("[members.{role}]\nfile = \"{path}\"\n");
    let team = [
        file("loop_watcher", "other.agent.md"),
        file("fact_checker", "other.agent.md"),
        file("gone", "gone.agent.md"),
        file("broken", "broken.agent.md"),
        file("odd", "odd.agent.md"),
        file("eager", "agents/eager.agent.md"),
        "[members.scout]\ncommand = [\"no-such-program\"]\n".to_owned(),
    ];
    folder.write("fleet.toml", team.concat()).unwrap();
    let fleet = folder.up(&["--fleet", "fleet.toml"]).unwrap();
    let folder = fleet.folder();
    let log = std::fs::read_to_string(folder.path().join(".muster/log/supervisor.log")).unwrap();
    let listed = || both(&folder.run(&["ps"]).unwrap());
    let agents = folder.json(&["ps", "--json"]).unwrap();
    assert!(agents.as_array().unwrap().iter().any(|agent| agent["role"] == "loop_watcher"), "{agents}");
    for shown in [log, listed(), both(&folder.run(&["doctor"]).unwrap())] {
        for (line, reason) in [
            (3, "defines loop_watcher"),
            (5, "cannot read the agent file"),
            (7, "broken.agent.md:2:1"),
            (9, "odd: unknown model \"nobody/none\""),
            (11, "eager.agent.md would do what takes your word"),
            (13, "no program no-such-program"),
        ] {
            let said = |text: &str| text.contains(&format!("fleet.toml:{line}")) && text.contains(reason);
            assert!(shown.lines().any(said), "{line}: {reason}: {shown}");
        }
        assert!(shown.contains("`muster trust`") && !shown.contains("fleet.toml:1:"), "{shown}");
    }
    let doctor = folder.run(&["doctor", "--fleet", "fleet.toml"]).unwrap();
    assert_eq!(doctor.status.code(), Some(1), "{}", both(&doctor));
}
