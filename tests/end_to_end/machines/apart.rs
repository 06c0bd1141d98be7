//! Two machines that are told apart by the network: each in a namespace of its own, with a cable between them.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muster_support::fleet::{Folder, both, wait_until};
use muster_support::skip::skipped;
use serde_json::Value;

use super::super::support::{folder, of_kind};

const LIMIT: Duration = Duration::from_secs(60);
/// How long the cable is out.
const CUT: Duration = Duration::from_secs(40);

/// Two namespaces with a cable between them. Dropped, they are gone.
struct Machines {
    name: String,
    net: u8,
}

impl Drop for Machines {
    fn drop(&mut self) {
        for of in ["a", "b"] {
            let _ = ip(&format!("netns del {}", self.space(of)));
        }
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output().map_err(|error| error.to_string())?;
    output.status.success().then_some(()).ok_or_else(|| format!("ip {words}: {}", both(&output)))
}

impl Machines {
    /// Nothing, and a word on it, where that is not permitted.
    fn new(of: u8) -> Option<Self> {
        let pid = std::process::id();
        let machines = Self { name: format!("muster{of}x{pid}"), net: of };
        match machines.lay() {
            Ok(()) => Some(machines),
            Err(why) => {
                skipped("two network namespaces", &why);
                None
            }
        }
    }

    fn lay(&self) -> Result<(), String> {
        let (a, b, net) = (self.space("a"), self.space("b"), self.net);
        // The names of interfaces have fifteen letters at most.
        let (va, vb) = (format!("va{net}"), format!("vb{net}"));
        for words in [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add {va} type veth peer name {vb} netns {b}"),
            format!("-n {a} addr add 10.213.{net}.1/24 dev {va}"),
            format!("-n {b} addr add 10.213.{net}.2/24 dev {vb}"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
            format!("-n {a} link set {va} up"),
            format!("-n {b} link set {vb} up"),
        ] {
            ip(&words)?;
        }
        Ok(())
    }

    fn space(&self, of: &str) -> String {
        format!("{}{of}", self.name)
    }

    /// Pulls the cable out, or puts it in again.
    fn cable(&self, state: &str) {
        ip(&format!("-n {} link set vb{} {state}", self.space("b"), self.net)).unwrap();
    }

    /// `muster` on one of them.
    fn command(&self, of: &str, folder: &Folder, arguments: &[&str]) -> Command {
        let plain = folder.command(arguments);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(of)]).arg(plain.get_program()).args(plain.get_args());
        command.current_dir(folder.path()).stdin(Stdio::null());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    fn run(&self, of: &str, folder: &Folder, arguments: &[&str]) -> Output {
        self.command(of, folder, arguments).output().unwrap()
    }

    fn output(&self, of: &str, folder: &Folder, arguments: &[&str]) -> String {
        let output = self.run(of, folder, arguments);
        assert!(output.status.success(), "{arguments:?}: {}\n{}", both(&output), folder.logs());
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A fleet on one machine that listens to others, and has no worker of its own; and a folder on the other one.
struct Apart {
    fleet: Folder,
    mill: Folder,
    machines: Machines,
}

impl Drop for Apart {
    fn drop(&mut self) {
        for folder in [&self.mill, &self.fleet] {
            let _ = folder.run(&["down"]);
        }
    }
}

impl Apart {
    fn new(of: u8) -> Option<Self> {
        let machines = Machines::new(of)?;
        let apart = Self { fleet: folder(), mill: folder(), machines };
        let listen = format!("10.213.{of}.1");
        let up = ["up", "--detach", "--scale", "worker=0", "--listen", &listen];
        apart.machines.output("a", &apart.fleet, &up);
        Some(apart)
    }

    fn here(&self, arguments: &[&str]) -> String {
        self.machines.output("a", &self.fleet, arguments)
    }

    fn ask(&self, goal: &str) -> Child {
        let plan = format!("[[tasks]]\nname = \"sum\"\ngoal = \"{goal}\"\nrole = \"worker\"\n");
        self.fleet.write("plan.toml", &plan).unwrap();
        let run =
            ["run", goal, "--json", "--deadline", "300s", "--wait-for-role", "2m", "--plan", "plan.toml"];
        let mut asker = self.machines.command("a", &self.fleet, &run);
        asker.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn ended(asker: Child) -> Value {
        serde_json::from_slice(&asker.wait_with_output().unwrap().stdout).unwrap_or(Value::Null)
    }

    fn join(&self, arguments: &[&str]) -> Child {
        let line = self.here(&["invite"]);
        let mut joining = self.machines.command("b", &self.mill, &[&["join", "-"], arguments].concat());
        let mut joining = joining.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        joining.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        joining
    }

    fn trace(&self) -> Vec<Value> {
        let text = self.machines.run("a", &self.fleet, &["trace", "last", "--json"]).stdout;
        let text = String::from_utf8(text).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn machine(&self) -> Option<Value> {
        let listed: Value = serde_json::from_str(&self.here(&["ps", "--json"])).unwrap();
        listed.as_array().unwrap().iter().find(|one| one.get("joined_host").is_some()).cloned()
    }

    fn agents(&self) -> usize {
        self.machine().map_or(0, |machine| machine["agents"].as_array().unwrap().len())
    }

    fn logs(&self) -> String {
        format!("{}\n{}", self.fleet.logs(), self.mill.logs())
    }
}

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

#[test]
fn a_second_machine_does_its_first_task_within_seconds_of_its_invitation_and_is_thrown_out() {
    let Some(apart) = Apart::new(1) else { return };
    let asker = apart.ask("What is 2 + 3?");
    wait_until("the plan is made and waits for a worker", LIMIT, || {
        apart.trace().iter().any(|entry| entry.to_string().contains("plan_adopted"))
    })
    .unwrap_or_else(|late| panic!("{late}\n{}\n{:#?}", apart.logs(), apart.trace()));
    let began = now();
    let joining = apart.join(&["--scale", "worker=2"]);
    let summary = Apart::ended(asker);
    assert_eq!(summary["status"], "completed", "{summary}\n{}", apart.logs());
    let trace = apart.trace();
    let first = of_kind(&trace, "started").find(|entry| entry["role"] == "worker").unwrap();
    let took = first["at"].as_u64().unwrap().saturating_sub(began);
    println!("from `invite` to the first task of the second machine: {took} ms");
    assert!(took < 5_000, "{took} ms");
    let machine = apart.machine().unwrap();
    assert_eq!(first["event"]["host"], machine["joined_host"], "{first}");

    let name = machine["joined_host"].as_str().unwrap();
    let began = Instant::now();
    apart.here(&["keys", "revoke", name]);
    let ended = joining.wait_with_output().unwrap();
    println!("thrown out, and all ended after {:?}", began.elapsed());
    assert_eq!(ended.status.code(), Some(3), "{}", both(&ended));
    assert!(both(&ended).contains("thrown out"), "{}", both(&ended));
    assert!(apart.machine().is_none());
}

/// `make neighbours` runs it, or `cargo nextest run --run-ignored all -E 'test(cut_off_for_forty_seconds)' --no-capture`.
#[test]
#[ignore = "takes minutes: `make neighbours`"]
fn a_machine_that_is_cut_off_for_forty_seconds_comes_back_by_itself() {
    let Some(apart) = Apart::new(2) else { return };
    let mut joining = apart.join(&["--scale", "worker=2"]);
    wait_until("its agents are there", LIMIT, || apart.agents() == 2)
        .unwrap_or_else(|late| panic!("{late}\n{}", apart.logs()));
    let asker = apart.ask("What is 2 + 3?");
    assert_eq!(Apart::ended(asker)["status"], "completed", "{}", apart.logs());

    apart.machines.cable("down");
    let began = Instant::now();
    let asker = apart.ask("Subtract 2 from 9, then divide 8 by 4.");
    wait_until("its agents are missed", CUT, || apart.agents() == 0).unwrap();
    std::thread::sleep(CUT.saturating_sub(began.elapsed()));
    apart.machines.cable("up");
    wait_until("its agents are back", LIMIT, || apart.agents() == 2)
        .unwrap_or_else(|late| panic!("{late}\n{}", apart.logs()));
    assert_eq!(Apart::ended(asker)["status"], "completed", "{}", apart.logs());
    assert!(joining.try_wait().unwrap().is_none(), "it was not ended by that");
    apart.mill.output(&["down"]).unwrap();
    joining.wait().unwrap();
}
