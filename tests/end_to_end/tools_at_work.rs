//! One run that uses all kinds of tools: a page and a document of the web, a spreadsheet, SQL, a chart, code in the sandbox, a
//! tool of an MCP server whose arguments a person edits; and the same with every process killed once.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use muster_support::fleet::{Fleet, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::process::is_alive;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::{of_kind, signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);
const REPORT: &[u8] = include_bytes!("../../agents/readers/tests/files/report.pdf");
const SALES: &[u8] = include_bytes!("../../agents/readers/tests/files/sales.xlsx");
const PAGE: &str = "<html><head><title>Figures of the plant</title></head><body><main><h1>Figures</h1><p>The plant made \
                    more than the year before. The report and the table are below.</p><p><a href=\"/report.pdf\">report</a> \
                    <a href=\"/sales.xlsx\">table</a></p></main></body></html>";

/// An MCP server in a few lines: it greets, has one tool, and answers it.
const MCP: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, answer = asked["method"], {"jsonrpc": "2.0", "id": asked["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "house", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"figure": {"type": "number"}}, "required": ["figure"]}
        answer["result"] = {"tools": [{"name": "rate", "description": "Rates a figure.", "inputSchema": schema}]}
    elif method == "tools/call":
        figure = asked["params"]["arguments"]["figure"]
        answer["result"] = {"content": [{"type": "text", "text": "rated: " + ("high" if figure > 1000 else "low")}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

/// A site on the loopback; gives its address.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

fn serve(mut stream: TcpStream) -> Option<()> {
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&piece[..count]);
    }
    let line = String::from_utf8_lossy(&head);
    let (status, kind, body): (&str, &str, &[u8]) = match line.split(' ').nth(1)? {
        "/" => ("200 OK", "text/html; charset=utf-8", PAGE.as_bytes()),
        "/report.pdf" => ("200 OK", "application/pdf", REPORT),
        "/sales.xlsx" => {
            ("200 OK", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", SALES)
        }
        _ => ("404 Not Found", "text/plain", b"nothing"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()
}

/// What the worker does, step by step; each with what it is to be told.
fn steps(site: &str) -> Vec<(&'static str, Value, &'static str)> {
    let url = |path: &str| format!("http://{site}{path}");
    vec![
        ("fetch", json!({ "url": url("/"), "links": true }), "made more than the year before"),
        ("fetch", json!({ "url": url("/report.pdf") }), "Revenue grew by 12 percent"),
        ("fetch_file", json!({ "url": url("/sales.xlsx"), "save_as": "sales.xlsx" }), "sales.xlsx"),
        ("sql", json!({ "files": ["sales.xlsx"], "schema": true }), "Wages"),
        (
            "chart",
            json!({ "kind": "bar", "title": "Figures", "path": "charts/figures.svg",
                    "data": { "columns": ["item", "figure"], "rows": [["Rent", 1310.5], ["Wages", 24500]] } }),
            "charts/figures.svg",
        ),
        ("python", json!({ "code": "print(1310.5 + 24500)" }), "25810.5"),
        // As the model calls it, it would be rated low: a person mends that.
        ("house_rate", json!({ "figure": 25.8105 }), "rated: high"),
    ]
}

fn answer(request: &CapturedRequest, site: &str) -> Reply {
    let task = json!({ "name": "the figures", "goal": "Find the figures.", "role": "worker" });
    let body = "# Figures\n\n![Figures](charts/figures.svg)\n\nThe sum is 25810.5, which is rated high.";
    plan_and_report(request, &[task], body).unwrap_or_else(|| match steps(site).get(request.turns()) {
        Some((tool, arguments, _)) => act(tool, arguments.clone()),
        None => done("25810.5, rated high."),
    })
}

/// The step before the one that calls a tool of the MCP server.
const LAST_OWN_STEP: usize = 5;

/// A fleet that is allowed all of it, once the MCP server's tools are there. Before it gets to the MCP server's tool, the model
/// waits until `is_ready`.
fn up(site: &str, is_ready: &Arc<AtomicBool>) -> (Fleet, ModelServer) {
    let (own, ready) = (site.to_owned(), Arc::clone(is_ready));
    let script = Script::answering(move |request| {
        if request.turns() == LAST_OWN_STEP {
            wait_until("the fleet is whole", LIMIT, || ready.load(Ordering::SeqCst)).unwrap();
        }
        answer(request, &own)
    });
    let server = ModelServer::start(script).unwrap();
    let folder = with_model(&server);
    folder.write("house.py", MCP).unwrap();
    let command = json!({ "command": "python3", "args": [folder.path().join("house.py")] });
    folder
        .write("mcp.json", json!({ "mcpServers": { "house": command, "other": command } }).to_string())
        .unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let hosts = format!("tool.web.allow_hosts=[\"{site}\"]");
    let settings = [
        "agent.model=openai/scripted",
        "tool.allow=[\"*\"]",
        "tool.approve=[\"house.*\"]",
        "agent.tools.worker=[\"*\"]",
        "fleet.max_restarts=100",
        "fleet.restart_wait=2ms",
        &hosts,
    ];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&settings).unwrap();
    are_served(&fleet, &[]);
    (fleet, server)
}

/// Waits until the tools of both MCP servers are offered by processes other than these.
fn are_served(fleet: &Fleet, killed: &[u32]) {
    let are_served = || {
        let ps = fleet.folder().json(&["ps", "--json"]).unwrap_or_default();
        let is_alive = |one: &&Value| killed.iter().all(|pid| one["pid"] != *pid);
        let alive: Vec<String> =
            ps.as_array().into_iter().flatten().filter(is_alive).map(Value::to_string).collect();
        ["house.rate", "other.rate"].iter().all(|tool| alive.iter().any(|one| one.contains(tool)))
    };
    wait_until("the MCP server's tools are there", LIMIT, are_served).unwrap();
}

fn ready() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(true))
}

const ASK: [&str; 6] =
    ["run", "What are the figures of the plant?", "--planning", "always", "--deadline", "120s"];

fn asks(fleet: &Fleet) -> Child {
    fleet.folder().command(&ASK).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A person edits the arguments of the one call that they are asked about, and lets it be made.
fn approves(fleet: &Fleet) {
    let waiting = || fleet.folder().json(&["questions", "last", "--json"]).unwrap_or_default();
    wait_until("a call waits for approval", LIMIT, || !waiting()[0]["call"].is_null()).unwrap();
    let asked = waiting();
    assert_eq!(asked[0]["call"]["tool"], "house.rate", "{asked}");
    assert_eq!(asked[0]["call"]["arguments"], json!({ "figure": 25.8105 }), "{asked}");
    let given = ["approve", "last", "--arguments", "{\"figure\": 25810.5}"];
    fleet.folder().output(&given).unwrap();
}

/// The run ended well, the person stands in its record, and the call that they changed was made as they said.
fn ended(fleet: &Fleet, asker: Child) {
    let ended = asker.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}\n{}", String::from_utf8_lossy(&ended.stderr), fleet.folder().logs());
    let trace = fleet.folder().output(&["trace", "last"]).unwrap();
    assert!(trace.contains("approved with other arguments by"), "{trace}");
}

/// What the tools answered, in order, as the record has it.
fn observed(fleet: &Fleet) -> Vec<(String, String)> {
    let trace = fleet.folder().json_lines(&["trace", "last", "--json", "--full"]).unwrap();
    let steps = of_kind(&trace, "step").filter(|entry| entry["task"] == "1");
    let told = steps.map(|entry| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&entry["event"]["action"]["name"]), text(&entry["event"]["observation"]["content"]))
    });
    told.filter(|(_, content)| !content.is_empty()).collect()
}

fn all_is_there(fleet: &Fleet, site: &str) {
    let observed = observed(fleet);
    for (tool, _, told) in steps(site) {
        let name = |called: &str| called.replace('.', "_") == tool;
        let found = observed.iter().any(|(called, content)| name(called) && content.contains(told));
        assert!(found, "{tool} should have said {told:?}: {observed:#?}");
    }
    let files = fleet.folder().json(&["artifacts", "last", "--json"]).unwrap().to_string();
    assert!(files.contains("charts/figures.svg") && files.contains("sales.xlsx"), "{files}");
    let report = fleet.folder().output(&["show", "last"]).unwrap();
    assert!(report.contains("charts/figures.svg"), "{report}");
}

#[test]
fn what_was_seen_of_the_tools_of_one_mcp_server_stays_when_another_one_is_looked_at() {
    let (fleet, _server) = up(&site(), &ready());
    for server in ["house", "other"] {
        let pins = fleet.folder().path().join(format!(".muster/mcp-pins-{server}.json"));
        let has_it = || std::fs::read_to_string(&pins).is_ok_and(|text| text.contains("Rates a figure."));
        wait_until(&format!("{server} is pinned"), LIMIT, has_it).unwrap();
    }
    let refused = fleet.folder().run(&["tools", "accept", "house", "rate"]).unwrap();
    assert!(!refused.status.success(), "nothing of it waits");
}

#[test]
fn a_run_reads_the_web_and_a_table_draws_computes_and_uses_an_mcp_server() {
    let site = site();
    let (fleet, _server) = up(&site, &ready());
    let asker = asks(&fleet);
    approves(&fleet);
    ended(&fleet, asker);
    all_is_there(&fleet, &site);
    let stats = fleet.folder().json(&["tools", "stats", "--run", "last", "--json"]).unwrap().to_string();
    for tool in ["fetch", "sql", "chart", "python", "house"] {
        assert!(stats.contains(tool), "{tool}: {stats}");
    }
}

#[test]
fn the_same_comes_about_when_every_process_is_killed_once() {
    let site = site();
    let is_ready = Arc::new(AtomicBool::new(false));
    let (fleet, _server) = up(&site, &is_ready);
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let steps = stranger.subscribe(&["evt.*.worker.*.*.*.step"]).unwrap();
    let asker = asks(&fleet);
    let victims: Vec<(String, u32)> =
        fleet.pids().into_iter().filter(|(name, _)| name != "nats-server" && name != "supervisor").collect();
    assert!(victims.len() >= 7, "{victims:?}");
    steps.next(LIMIT).unwrap();
    let kill = |victims: Vec<(String, u32)>| -> Vec<u32> {
        let killed = victims.iter().map(|(_, pid)| *pid).collect();
        for (name, pid) in victims {
            signal(pid, Signal::SIGKILL);
            wait_until(&format!("{name} is there again"), LIMIT, || {
                fleet.pid(&name).is_some_and(|now| now != pid && is_alive(now)) || fleet.pid(&name).is_none()
            })
            .unwrap();
        }
        killed
    };
    // A task keeps the tools that are served when an agent begins it.
    let (tools, others): (Vec<_>, Vec<_>) =
        victims.into_iter().partition(|(name, _)| name.starts_with("tools-"));
    are_served(&fleet, &kill(tools));
    kill(others);
    is_ready.store(true, Ordering::SeqCst);
    approves(&fleet);
    ended(&fleet, asker);
    all_is_there(&fleet, &site);
}
