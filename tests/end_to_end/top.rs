//! `muster top` in a terminal, as a person at it would use it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muster_support::fleet::{both, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;
use nix::sys::termios::{Termios, tcgetattr};
use serde_json::json;

use super::help::{done, plan_and_report};
use super::support::{signal, with_model};

const LIMIT: Duration = Duration::from_secs(30);

/// What others write to steer a terminal.
const HOSTILE: &str = "\u{1b}]0;mine\u{7}\u{1b}[2J";

/// A program at a terminal of its own.
struct AtTerminal {
    child: Child,
    keys: File,
    /// Our end of the terminal: as long as it is there, the terminal is.
    terminal: OwnedFd,
    before: Termios,
    screen: Arc<Mutex<vt100::Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl AtTerminal {
    fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        let before = tcgetattr(&pair.slave).unwrap();
        let end = || Stdio::from(pair.slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
        let child = command.spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut output = File::from(pair.master.try_clone().unwrap());
        let (shown, kept) = (Arc::clone(&screen), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, keys: File::from(pair.master), terminal: pair.slave, before, screen, written }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn seen(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn waits_for(&self, what: &str) {
        self.waits(what, |seen| seen.contains(what));
    }

    fn waits(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let held = wait_until(what, LIMIT, || holds(&self.seen()));
        held.unwrap_or_else(|late| panic!("{late}\n{}", self.seen()));
    }

    /// Makes the terminal larger or smaller, as a window does.
    fn resize(&self, columns: u16, rows: u16) {
        // Whatever draws for the new size before it is told of it is not read as drawn for the old one.
        let mut screen = self.screen.lock().unwrap();
        let stty = Command::new("stty")
            .args(["rows", &rows.to_string(), "cols", &columns.to_string()])
            .stdin(Stdio::from(self.terminal.try_clone().unwrap()))
            .status();
        assert!(stty.unwrap().success());
        screen.screen_mut().set_size(rows, columns);
        drop(screen);
        // It is no session's terminal, so that nobody else says so.
        signal(self.child.id(), Signal::SIGWINCH);
    }

    fn is_taken(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    /// Whether the terminal is as it was before.
    fn is_given_back(&self) -> bool {
        let screen = self.screen.lock().unwrap();
        let screen = screen.screen();
        let plain = !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste();
        plain && tcgetattr(&self.terminal).unwrap() == self.before
    }

    fn ends(&mut self) -> ExitStatus {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < LIMIT, "it does not end\n{}", self.seen());
            std::thread::sleep(Duration::from_millis(20));
        };
        wait_until("the terminal is given back", LIMIT, || self.is_given_back()).unwrap();
        status
    }

    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?')
    }

    /// CPU time that it took so far, in ticks.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A model that plans two tasks; the first asks a person, the second is slow in every answer.
fn model() -> ModelServer {
    let script = Script::answering(move |request: &CapturedRequest| {
        let task = |name: &str, goal: &str| json!({"name": name, "goal": goal, "role": "worker"});
        let tasks = [task(&format!("choose{HOSTILE}"), "Choose a source."), task("reckon", "Reckon slowly.")];
        if let Some(reply) = plan_and_report(request, &tasks, "# Done\n\nIt is done.") {
            return reply;
        }
        if request.holds("Choose a source.") {
            return match request.turns() {
                0 => Reply::call(
                    "request_info",
                    &json!({"thought": "Who knows?", "question": "Which source counts?"}),
                ),
                _ => done("The second counts."),
            };
        }
        match request.turns() {
            0 => Reply::call(
                "calculator",
                &json!({"thought": "Twelve by twelve is to be known.", "expression": "12 * 12"}),
            ),
            turn => Reply::call(
                "calculator",
                &json!({"thought": "Once more.", "expression": format!("{turn} + 1")}),
            )
            .with_delay(Duration::from_millis(500)),
        }
    });
    ModelServer::start(script).unwrap()
}

#[test]
fn a_person_looks_at_a_fleet_and_steers_it_from_a_terminal() {
    let server = model();
    let usual = ["--set", "agent.model=openai/scripted"];
    let fleet = with_model(&server).up(&usual).unwrap();
    let folder = fleet.folder();

    // Where there is no terminal it says what programs use.
    let output = folder.run(&["top"]).unwrap();
    let told = both(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("no terminal") && told.contains("muster ps --json"), "{told}");

    let mut top = AtTerminal::start(folder.command(&["top"]), 80, 24);
    top.waits_for("there are no runs yet");
    assert!(top.is_taken());
    top.press("1");
    top.waits_for("worker-");
    top.waits(" idle", |seen| seen.contains("idle") && seen.contains("orchestrator"));
    // A run that begins while it is looked at is there at once, without a key.
    top.press("2");
    let ask = ["run", "Choose and reckon.", "--planning", "always", "--deadline", "120s", "--json"];
    let mut asking = folder.command(&ask).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    top.waits_for("Choose and reckon.");
    top.waits_for("in work");

    // Its tasks, and what one of them does.
    top.press("\r");
    top.waits_for("[-] 2 reckon");
    assert!(top.seen().contains("[ ] write the report"), "{}", top.seen());
    top.press("/reckon\r");
    top.waits("only that", |seen| seen.contains("[-] 2 reckon") && !seen.contains("plan the work"));
    top.waits_for("Twelve by twelve is to be known.");
    top.waits_for("Once more.");
    top.press("\u{1b}");
    top.waits_for("plan the work");

    // What passes.
    top.press("4");
    top.waits("messages that pass", |seen| seen.contains("step") && seen.contains("worker-"));
    top.waits_for("a second");

    // The question of the other task is answered here.
    top.press("5");
    top.waits_for("Which source counts?");
    top.press("a");
    top.waits_for("answer to 1");
    top.press("The second one\r");
    top.waits_for("done");
    top.waits_for("no question waits for an answer");
    top.press(":run last\r");
    top.waits_for("[x] 1 choose");
    let title = String::from_utf8_lossy(&top.written.lock().unwrap()).contains("\u{1b}]0;");
    assert!(!title && top.seen().contains("choose ]0;mine"), "the name of a task is text: {}", top.seen());

    // It is paused, and goes on.
    top.press("py");
    top.waits_for("paused");
    top.press("p");
    top.waits_for("resume run");
    top.press("y");
    top.waits("it goes on", |seen| seen.contains(" in work,"));

    // Smaller, too small, and as before.
    top.resize(60, 16);
    top.waits("it is drawn anew", |seen| seen.lines().count() <= 16 && seen.contains("[x] 1 choose"));
    top.resize(30, 8);
    top.waits_for("too small");
    top.resize(80, 24);
    top.waits_for("[x] 1 choose");

    // Stopped for a while, the terminal is as before; then it goes on.
    signal(top.child.id(), Signal::SIGTSTP);
    wait_until("it stands still", LIMIT, || top.state() == 'T').unwrap();
    wait_until("the terminal is given back", LIMIT, || top.is_given_back()).unwrap();
    signal(top.child.id(), Signal::SIGCONT);
    wait_until("it goes on", LIMIT, || top.is_taken()).unwrap();
    top.waits_for("[x] 1 choose");

    // An agent dies: what became of it is told.
    let worker = fleet.pid("worker-1").unwrap();
    signal(worker, Signal::SIGKILL);
    top.press("1");
    top.waits("what became of it", |seen| seen.contains("was lost") || seen.contains("is started again"));

    // The run is cancelled.
    top.press("3x");
    top.waits_for("cancel run");
    top.press("y");
    top.waits_for("cancelled");
    let _ended = asking.wait().unwrap();

    // The fleet goes, and comes back elsewhere.
    folder.output(&["down"]).unwrap();
    top.waits_for("fleet is away");
    folder.output(&[&["up", "--detach"], &usual[..]].concat()).unwrap();
    top.waits("it is there again", |seen| !seen.contains("fleet is away"));
    top.press("2");
    top.waits("the runs of before", |seen| seen.contains("cancelled") && seen.contains("Choose and reckon."));

    // With nothing going on it costs nothing.
    let before = top.ticks();
    std::thread::sleep(Duration::from_secs(2));
    let used = top.ticks() - before;
    assert!(used <= 10, "{used} ticks of CPU in two seconds");

    top.press("q");
    assert!(top.ends().success());

    // Ended from outside, the terminal is given back as well; and it may begin with a run, without colours or with.
    let mut command = folder.command(&["top", "last"]);
    command.env_remove("NO_COLOR");
    let mut top = AtTerminal::start(command, 80, 24);
    top.waits_for("[x] 1 choose");
    let is_coloured = || String::from_utf8_lossy(&top.written.lock().unwrap()).contains("\u{1b}[38;5;");
    assert!(is_coloured(), "there are colours where they are wanted");
    signal(top.child.id(), Signal::SIGTERM);
    assert!(top.ends().success());
}
