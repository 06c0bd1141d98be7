//! A tool that an agent lends to one of another role: used, denied, revoked in the middle of a call, its owner and its borrower
//! killed in the middle of one. How often the tool took effect is seen at the far end: a site counts who asks it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use muster_support::fleet::{Fleet, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::{of_kind, signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);
/// How the worker calls what researchers lend.
const LENT: &str = "lent-researcher_fetch_file";

/// A site on the loopback: how often its data was asked for, and whether it keeps whoever asks waiting.
#[derive(Default)]
struct Site {
    asked: AtomicUsize,
    is_slow: AtomicBool,
}

impl Site {
    /// Begins to serve; gives its address.
    fn begin(self: &Arc<Self>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let site = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = Arc::clone(&site);
                thread::spawn(move || site.serve(stream));
            }
        });
        address
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let (mut head, mut piece) = (Vec::new(), [0; 1024]);
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
            head.extend_from_slice(&piece[..count]);
        }
        let (status, body) = match String::from_utf8_lossy(&head).split(' ').nth(1)? {
            "/data" => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                while self.is_slow.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(10));
                }
                ("200 OK", "item,figure\nrent,1310\n")
            }
            _ => ("404 Not Found", "nothing"),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/csv\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn answer(request: &CapturedRequest, address: &str) -> Reply {
    let task = json!({ "name": "get the data", "goal": "Get the data.", "role": "worker" });
    plan_and_report(request, &[task], "# Data\n\nIt is there.").unwrap_or_else(|| match request.turns() {
        0 => act(LENT, json!({ "url": format!("http://{address}/data"), "save_as": "data.csv" })),
        _ => done("It is there."),
    })
}

struct Ground {
    fleet: Fleet,
    site: Arc<Site>,
    _server: ModelServer,
}

/// A fleet in which researchers lend a tool to workers.
fn up() -> Ground {
    let site = Arc::new(Site::default());
    let address = site.begin();
    let hosts = format!("tool.web.allow_hosts=[\"{address}\"]");
    let server = ModelServer::start(Script::answering(move |request| answer(request, &address))).unwrap();
    let folder = with_model(&server);
    let settings = [
        "agent.model=openai/scripted",
        "fleet.max_restarts=100",
        "fleet.restart_wait=2ms",
        "agent.tools.researcher=[\"corpus.*\", \"fetch_file\"]",
        "agent.tools.worker=[\"lent-*\"]",
        "tool.allow=[\"fetch_file\"]",
        "tool.lend.researcher=[\"fetch_file\", \"shell\"]",
        "tool.lend_to=[\"worker\"]",
        "tool.borrow=[\"lent-researcher.*\"]",
        &hosts,
    ];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&settings).unwrap();
    let both = || {
        fleet.folder().output(&["ps"]).is_ok_and(|all| all.contains("researcher") && all.contains("worker"))
    };
    wait_until("both are there", LIMIT, both).unwrap();
    Ground { fleet, site, _server: server }
}

impl Ground {
    fn ask(&self, further: &[&str]) -> Child {
        let run = ["run", "Get the data.", "--planning", "always", "--json", "--deadline", "90s"];
        let run: Vec<&str> = run.iter().chain(further).copied().collect();
        self.fleet.folder().command(&run).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// What the worker observed of its call.
    fn observed(&self, asker: Child) -> (Value, String) {
        let output = asker.wait_with_output().unwrap();
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let folder = self.fleet.folder();
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
        let step = of_kind(&trace, "step").find(|entry| entry["task"] == "1");
        let seen =
            step.unwrap_or_else(|| panic!("{summary}\n{}", folder.logs()))["event"]["observation"].clone();
        (seen["status"].clone(), seen["content"].as_str().unwrap_or_default().to_owned())
    }

    fn leases(&self) -> Vec<Value> {
        let listed = self.fleet.folder().json(&["tools", "leases", "--json"]).unwrap();
        listed["leases"].as_array().cloned().unwrap_or_default()
    }

    /// Begins a run whose call does not end.
    fn begin_slow(&self) -> Child {
        self.site.is_slow.store(true, Ordering::SeqCst);
        let before = self.site.asked();
        let asker = self.ask(&[]);
        wait_until("the tool is called", LIMIT, || self.site.asked() > before).unwrap();
        asker
    }

    fn kill(&self, process: &str) {
        let before = self.fleet.pid(process).unwrap();
        signal(before, Signal::SIGKILL);
        let is_back = || self.fleet.pid(process).is_some_and(|pid| pid != before);
        wait_until("the process is started again", LIMIT, is_back).unwrap();
        self.site.is_slow.store(false, Ordering::SeqCst);
    }
}

#[test]
fn a_worker_borrows_a_tool_of_a_researcher_as_far_as_its_task_may_and_until_it_is_revoked() {
    let f = up();
    let folder = f.fleet.folder();
    let (status, content) = f.observed(f.ask(&[]));
    assert_eq!(status, "success", "{content}\n{}", folder.logs());
    assert!(
        content.starts_with("[called at researcher") && content.contains("Saved as data.csv"),
        "{content}"
    );
    let files = folder.json(&["artifacts", "last", "--json"]).unwrap().to_string();
    assert!(files.contains("data.csv") && f.site.asked() == 1, "{files}");
    assert!(folder.logs().contains("a lent tool is called"), "the lender tells who had what done");
    assert!(folder.json(&["replay", "last", "--json"]).is_ok());
    wait_until("the lease is given back with its task", LIMIT, || f.leases().is_empty()).unwrap();

    // A task that may not call the tool under its own name does not have it lent either.
    let (_, content) = f.observed(f.ask(&["--deny-tools", "fetch_file"]));
    assert!(!content.contains("Saved as") && f.site.asked() == 1, "{content}");

    let asker = f.begin_slow();
    let leases = f.leases();
    let lease = leases[0]["lease"].as_str().unwrap();
    assert!(
        leases.len() == 1 && leases[0]["running"] == 1 && leases[0]["tool"] == "fetch_file",
        "{leases:?}"
    );
    let table = folder.output(&["tools", "leases"]).unwrap();
    assert!(table.contains(lease) && table.contains("in use"), "{table}");
    let revoked = folder.output(&["tools", "revoke", lease]).unwrap();
    assert!(revoked.contains(lease), "{revoked}");
    let (status, content) = f.observed(asker);
    f.site.is_slow.store(false, Ordering::SeqCst);
    assert!(status == "refused" && content.contains("revoked"), "{status} {content}");
    assert!(f.leases().is_empty() && f.site.asked() == 2);
    let again = folder.run(&["tools", "revoke", lease]).unwrap();
    assert_eq!(again.status.code(), Some(2), "there is no such lease any more");
}

#[test]
fn when_the_lender_dies_in_a_call_that_may_be_repeated_it_is_made_again() {
    let f = up();
    let asker = f.begin_slow();
    f.kill("researcher-1");
    let (status, content) = f.observed(asker);
    assert!(status == "success" && content.contains("Saved as"), "{content}\n{}", f.fleet.folder().logs());
    assert_eq!(f.site.asked(), 2);
}

#[test]
fn when_the_borrower_dies_in_a_call_the_lender_remembers_it() {
    let f = up();
    let asker = f.begin_slow();
    f.kill("worker-1");
    let (status, content) = f.observed(asker);
    assert!(status == "success" && content.contains("Saved as"), "{content}\n{}", f.fleet.folder().logs());
    assert_eq!(f.site.asked(), 1, "it was asked for twice, and done once");
}
