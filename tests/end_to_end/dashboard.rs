//! The dashboard by HTTP, as the page uses it: what it shows is what the commands print, changes come at once, each role may do
//! what it may and no more, and bad requests get a clear answer.
#![allow(clippy::print_stdout, reason = "figures are told beside what is asserted")]

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muster_support::dashboard::Dashboard;
use muster_support::fleet::{both, wait_until};
use muster_support::model_server::{ModelServer, Script};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::help::{act, done, submit, up};
use super::support::folder;

const LIMIT: Duration = Duration::from_secs(30);

/// What nobody may take for markup, or for an order to a terminal.
const HOSTILE: &str = "<script>alert(1)</script> \u{1b}[31m<img src=x onerror=alert(2)> & \u{202e}back";

/// Somebody who is logged in.
struct Visitor {
    client: Client,
    base: String,
    cookie: String,
    csrf: String,
    me: Value,
}

impl Visitor {
    async fn log_in(base: &str, token: &str) -> Result<Self, (u16, Value)> {
        // What the program itself does first thing; whoever was first counts.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::new();
        let body = json!({ "token": token }).to_string();
        let request = client.post(format!("{base}/api/login")).header("content-type", "application/json");
        let response = request.body(body).send().await.unwrap();
        let status = response.status().as_u16();
        let cookie = response.headers().get("set-cookie").map(|one| one.to_str().unwrap().to_owned());
        let Some(cookie) = cookie.filter(|_| status == 200) else {
            return Err((status, response.json().await.unwrap()));
        };
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let mut visitor =
            Self { client, base: base.to_owned(), cookie, csrf: String::new(), me: Value::Null };
        visitor.me = visitor.get("/api/me").await;
        visitor.csrf = visitor.me["csrf"].as_str().unwrap().to_owned();
        Ok(visitor)
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).header("cookie", &self.cookie)
    }

    async fn ask(&self, path: &str) -> (u16, Value) {
        read(self.request(Method::GET, path).send().await.unwrap()).await
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.request(Method::POST, path).header("x-muster-csrf", &self.csrf);
        let request = request.header("content-type", "application/json").body(body.to_string());
        read(request.send().await.unwrap()).await
    }

    async fn done(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn events(&self, query: &str) -> Events {
        let response = self.request(Method::GET, &format!("/api/events{query}")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, text: String::new() }
    }
}

async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    assert!(status < 500 || status == 503, "{status} of {}", response.url());
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status} {error}: {text}"));
    if status >= 400 {
        assert!(body["error"].is_string() && body["status"] == status, "{body}");
    }
    (status, body)
}

/// Server-sent events as they come.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).map(|text| text.trim().to_owned())
                };
                let found = field("event:").map(|name| (name, field("data:").unwrap_or_default()));
                self.text = rest.to_owned();
                if let Some((name, data)) = found {
                    return (name, serde_json::from_str(&data).unwrap());
                }
                continue;
            }
            let more = tokio::time::timeout(LIMIT, self.response.chunk()).await.expect("nothing came");
            let more = more.unwrap().expect("it ended");
            self.text.push_str(std::str::from_utf8(&more).unwrap());
        }
    }

    async fn until(&mut self, wanted: impl Fn(&str, &Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let (name, data) = self.next().await;
            if wanted(&name, &data) {
                return data;
            }
            assert!(began.elapsed() < LIMIT, "it did not come; last {name}: {data}");
        }
    }
}

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn without(mut value: Value, names: &[&str]) -> Value {
    match &mut value {
        Value::Array(all) => all.iter_mut().for_each(|one| *one = without(one.take(), names)),
        Value::Object(fields) => names.iter().for_each(|name| drop(fields.remove(*name))),
        _ => {}
    }
    value
}

fn model() -> ModelServer {
    let tasks = json!([
        {"name": "count <b>hops</b>", "goal": HOSTILE, "role": "worker"},
        {"name": "check", "goal": "Check it.", "role": "worker", "depends_on": ["count <b>hops</b>"]},
    ]);
    let body = format!("# {HOSTILE}\n\nFive.");
    let script = Script::answering(move |request| {
        let system = request.system();
        if system.contains("You are the planner") {
            submit(&json!({"thought": "So.", "goal": HOSTILE, "tasks": tasks}))
        } else if system.contains("You are the reflector") {
            submit(&json!({"thought": "Seen.", "summary": "Seen."}))
        } else if system.contains("You are the refiner") {
            submit(&json!({"thought": "Fine.", "operations": []}))
        } else if system.contains("You are the writer") {
            submit(&json!({"thought": "So.", "title": HOSTILE, "body": body, "unanswered": []}))
        } else if request.turns() == 0 {
            act("calculator", json!({"expression": "4 + 1"}))
        } else {
            done(&format!("Five. {HOSTILE}"))
        }
    });
    ModelServer::start(script).unwrap()
}

#[test]
fn the_dashboard_shows_what_commands_print_and_does_what_each_role_may() {
    let server = model();
    let fleet = up(&server, folder(), &[]);
    let folder = fleet.folder();
    let token = |name: &str, role: &str| {
        folder.output(&["keys", "token", name, "--role", role]).unwrap().trim().to_owned()
    };
    let mut dashboard = Dashboard::start(folder, &[]).unwrap();
    let base = dashboard.base().to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        // Logging in: once by an address, and by tokens.
        let owner = Visitor::log_in(&base, dashboard.token()).await.unwrap_or_else(|told| panic!("{told:?}"));
        assert_eq!((&owner.me["role"], &owner.me["name"]), (&json!("admin"), &json!("operator")));
        assert_eq!(Visitor::log_in(&base, dashboard.token()).await.err().unwrap().0, 401, "used up");
        let again = dashboard.another().unwrap();
        assert!(Visitor::log_in(&base, &again).await.is_ok());
        let ann = Visitor::log_in(&base, &token("ann", "operator")).await.unwrap_or_else(|t| panic!("{t:?}"));
        let eve = Visitor::log_in(&base, &token("eve", "viewer")).await.unwrap_or_else(|t| panic!("{t:?}"));
        let bob = Visitor::log_in(&base, &token("bob", "auditor")).await.unwrap_or_else(|t| panic!("{t:?}"));
        assert_eq!(eve.me["can"], json!(["look"]));

        // A run begun by ann, watched by two.
        let mut lists = eve.events("").await;
        lists.until(|name, _| name == "back").await;
        let begun = ann.done("/api/runs", &json!({"goal": HOSTILE, "review": "ask"})).await;
        let run = begun["run"].as_str().unwrap().to_owned();
        let of = format!("/api/runs/{run}");
        lists.until(|name, data| name == "run-brief" && data["run"] == *run).await;
        let mut watching = ann.events(&format!("?run={run}&tap=1&kind=step")).await;
        let asked = lists.until(|name, data| name == "questions" && data[0]["run"] == *run).await;
        assert_eq!(eve.get("/api/questions").await, folder.json(&["questions", "--json"]).unwrap());
        assert_eq!(asked, eve.get("/api/questions").await);

        // The plan is edited by the same rules, and approved in her name.
        let mut plan = ann.get(&format!("{of}/plan")).await;
        assert_eq!(plan["tasks"][0]["goal"], HOSTILE);
        let check = format!("{of}/plan/check");
        let fine = eve.done(&check, &json!({ "plan": plan })).await;
        assert_eq!(fine["problems"], json!([]), "{plan}");
        plan["tasks"][1]["depends_on"] = json!(["nothing"]);
        let wrong = eve.done(&check, &json!({ "plan": plan })).await;
        assert!(wrong["problems"][0].as_str().unwrap().contains("nothing"), "{wrong}");
        plan["tasks"][1]["depends_on"] = json!(["count <b>hops</b>"]);
        plan["tasks"][1]["goal"] = json!("Check it twice.");
        let approved = ann.done(&format!("{of}/approve"), &json!({ "plan": plan, "reason": "it is better" })).await;
        assert_eq!(approved["run"], *run, "{approved}");

        // Changes come at once.
        let mut latencies = Vec::new();
        let mut tapped = 0;
        let mut first = true;
        let mut learnt = serde_json::Map::new();
        loop {
            let (name, data) = watching.next().await;
            match name.as_str() {
                "run" => {
                    assert_eq!(first, data["full"] == true, "everything first: {data}");
                    first = false;
                    let at = |entry: &Value| entry["at"].as_u64().unwrap();
                    let entries = data["entries"].as_array().unwrap();
                    latencies.extend(entries.iter().map(|entry| now().saturating_sub(at(entry))));
                    for (task, one) in data["reflections"].as_object().into_iter().flatten() {
                        let known = learnt.insert(task.clone(), one.clone());
                        assert_ne!(known.as_ref(), Some(one), "told twice: {data}");
                    }
                    if data["head"]["status"] == "completed" {
                        break;
                    }
                }
                "tap" => {
                    let lines = data["lines"].as_array().unwrap();
                    assert!(lines.iter().all(|line| line["message"]["body"]["type"] == "step"), "{data}");
                    tapped += lines.len();
                }
                _ => {}
            }
        }
        latencies.sort_unstable();
        let (median, most) = (latencies[latencies.len() / 2], latencies[latencies.len() - 1]);
        println!("a change is at the page after {median} ms (median of {}), at most {most} ms", latencies.len());
        assert!(most < 3_000, "{latencies:?}");
        assert!(tapped > 0, "steps passed");

        // Every number is that of the commands.
        let shown = folder.json(&["show", &run, "--json", "--full"]).unwrap();
        let whole = eve.get(&of).await;
        assert!(!learnt.is_empty(), "{whole}");
        assert_eq!(Value::Object(learnt), whole["reflections"], "what was learnt is told as it is");
        let count = whole["entries"].as_u64().unwrap();
        assert_eq!(without(whole.clone(), &["seq", "entries"]), shown);
        let trace = Value::Array(folder.json_lines(&["trace", &run, "--json"]).unwrap());
        assert_eq!(eve.get(&format!("{of}/entries")).await, trace);
        assert_eq!(trace.as_array().unwrap().len() as u64, count);
        let third = &trace[2]["seq"];
        let some = eve.get(&format!("{of}/entries?from={third}&limit=2")).await;
        assert_eq!(some, json!([trace[2], trace[3]]));
        for (path, words) in [
            (format!("{of}/explain"), vec!["explain", &run, "--json"]),
            (format!("{of}/files"), vec!["artifacts", &run, "--json"]),
            ("/api/tools".to_owned(), vec!["tools", "stats", "--json"]),
            ("/api/dead".to_owned(), vec!["dead", "list", "--json"]),
        ] {
            assert_eq!(eve.get(&path).await, folder.json(&words).unwrap(), "{path}");
        }
        let runs = eve.get("/api/runs").await;
        assert_eq!(without(runs.clone(), &["models"]), folder.json(&["runs", "--json"]).unwrap());
        assert_eq!(runs, eve.get("/api/runs?q=ALERT(1)&status=completed").await);
        assert_eq!(eve.get("/api/runs?q=nothing+like+it").await, json!([]));
        assert_eq!(eve.get(&format!("/api/runs?before={run}")).await, json!([]));
        let names = |all: &Value| {
            let mut names: Vec<String> =
                all.as_array().unwrap().iter().map(|one| one["agent"].to_string()).collect();
            names.sort();
            names
        };
        let fleet_shown = eve.get("/api/fleet").await;
        assert_eq!(names(&fleet_shown["processes"]), names(&folder.json(&["ps", "--json"]).unwrap()));

        // The slider: as it stood at an entry.
        let middle = &trace[trace.as_array().unwrap().len() / 2]["seq"];
        let then = eve.get(&format!("{of}?at={middle}")).await;
        assert_eq!((&then["seq"], then["status"] == "completed"), (middle, false));
        assert_eq!(eve.ask(&format!("{of}?at=0")).await.0, 400, "before its first entry");

        // Steps, with their prompts; timeline; report as text.
        let step = eve.get(&format!("{of}/steps/1/1/1")).await;
        assert_eq!(step["step"]["action"]["name"], "calculator", "{step}");
        assert_eq!(step["prompt"], folder.json(&["prompt", &run, "1", "1", "--json"]).unwrap());
        let spans = eve.get(&format!("{of}/timeline")).await["spans"].take();
        let tools = spans.as_array().unwrap().iter().filter(|span| span["kind"] == "tool");
        assert!(tools.clone().any(|span| span["name"] == "calculator"), "{spans}");
        let report = eve.get(&format!("{of}/report")).await;
        assert!(report["markdown"].as_str().unwrap().contains("\\<script>alert(1)\\</script>"), "{report}");
        let graph = eve.get(&format!("{of}/graph")).await;
        assert_eq!(graph["nodes"][0]["title"], "count <b>hops</b>");
        let raw = eve.request(Method::GET, &of).send().await.unwrap();
        assert_eq!(raw.headers()["content-type"], "application/json");
        assert_eq!(raw.headers()["x-content-type-options"], "nosniff");
        assert!(raw.headers()["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));

        // Recorded in her name.
        let by_ann = trace.to_string();
        assert!(by_ann.contains("\"ann\""), "her name is not in the record: {by_ann}");

        // Replayed by bob, forked by ann.
        let replayed = bob.done(&format!("{of}/replay"), &json!({})).await;
        assert_eq!(replayed, folder.json(&["replay", &run, "--json"]).unwrap());
        let forked = ann.done(&format!("{of}/fork"), &json!({ "at": middle })).await;
        let fork = forked["run"].as_str().unwrap().to_owned();
        lists.until(|name, data| name == "run-brief" && data["run"] == *fork && data["status"] == "completed").await;
        let compared = eve.get(&format!("{of}/compare/{fork}")).await;
        assert_eq!((&compared["a"]["run"], &compared["b"]["run"]), (&json!(run), &json!(fork)));

        // The playground asks outside of the run.
        let again = json!({"run": run, "task": "1", "gen": 1, "step": 1, "prompt": "Say it in one word.", "temperature": 0.5});
        let asked = ann.done("/api/playground", &again).await;
        assert!(asked["before"]["answer"].is_string() && asked["after"]["millis"].is_u64(), "{asked}");
        let last = server.log();
        let last = last.last().unwrap();
        assert!(last.request.system().contains("Say it in one word."), "{:?}", last.request);
        assert_eq!(eve.get(&format!("{of}/entries")).await, trace, "nothing of it touches the run");

        // Processes come and go.
        let scaled = ann.done("/api/fleet/start", &json!({"role": "worker"})).await;
        assert_eq!((&scaled["was"], &scaled["count"]), (&json!(1), &json!(2)));
        let workers = |data: &Value| {
            let all = data["processes"].as_array().unwrap();
            all.iter().filter(|one| one["role"] == "worker").count()
        };
        lists.until(|name, data| name == "fleet" && workers(data) == 2).await;
        assert_eq!(ann.post("/api/fleet/start", &json!({"role": "plumber"})).await.0, 400);
        assert_eq!(ann.post("/api/fleet/start", &json!({"role": "worker", "count": 500})).await.0, 409);
        assert_eq!(ann.post("/api/fleet/stop", &json!({"role": "orchestrator", "count": 1})).await.0, 400);
        let told = folder.json(&["scale", "worker=1", "--json"]).unwrap();
        assert_eq!(told, json!([{"role": "worker", "was": 2, "count": 1}]));
        lists.until(|name, data| name == "fleet" && workers(data) == 1).await;

        each_role_may_what_it_may(&[(&eve, &["look"]), (&bob, &["look", "replay"])], &run).await;
        bad_requests_get_a_clear_answer(&owner, &run, dashboard.port()).await;

        // A token that is revoked counts no more.
        folder.output(&["keys", "revoke", "ann"]).unwrap();
        assert_eq!(ann.ask("/api/me").await.0, 401);
        let out = owner.done("/api/logout", &json!({})).await;
        assert_eq!((out, owner.ask("/api/me").await.0), (json!({}), 401));

        // The fleet goes away, and comes back.
        folder.output(&["down"]).unwrap();
        lists.until(|name, _| name == "away").await;
        let (status, told) = eve.ask("/api/runs").await;
        assert!(status == 503 && told["help"].as_str().unwrap().contains("muster up"), "{told}");
        folder.output(&["up", "--detach"]).unwrap();
        lists.until(|name, _| name == "back").await;
        wait_until("runs are shown again", LIMIT, || folder.run(&["ps"]).unwrap().status.success()).unwrap();
        let shown = without(eve.get("/api/runs").await, &["models"]);
        assert_eq!(shown, folder.json(&["runs", "--json"]).unwrap());
    });
    // Ctrl-C ends it well.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(dashboard.pid()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let status = dashboard.wait().unwrap();
    assert!(status.success(), "{status}");
}

/// Everything that changes something, with what it takes and what one has to be allowed.
fn deeds(run: &str) -> Vec<(String, Value, &'static str)> {
    let of = |rest: &str| format!("/api/runs/{run}/{rest}");
    vec![
        ("/api/runs".to_owned(), json!({"goal": "g"}), "run"),
        (of("fork"), json!({"at": 1}), "run"),
        (of("replay"), json!({}), "replay"),
        (of("pause"), json!({}), "steer"),
        (of("resume"), json!({}), "steer"),
        (of("cancel"), json!({}), "steer"),
        (of("plan"), json!({"goal": "g"}), "steer"),
        (of("tasks/1/skip"), json!({}), "steer"),
        (of("tasks/1/redo"), json!({}), "steer"),
        (of("approve"), json!({}), "answer"),
        (of("reject"), json!({"feedback": "f"}), "answer"),
        (of("questions/1/answer"), json!({"text": "t"}), "answer"),
        ("/api/questions/1/answer".to_owned(), json!({"run": run, "text": "t"}), "answer"),
        ("/api/playground".to_owned(), json!({"run": run, "task": "1", "gen": 1, "step": 1}), "playground"),
        ("/api/fleet/start".to_owned(), json!({"role": "worker"}), "fleet"),
        ("/api/fleet/stop".to_owned(), json!({"role": "worker"}), "fleet"),
        ("/api/dead/1/retry".to_owned(), json!({}), "dead"),
        ("/api/dead/1/drop".to_owned(), json!({}), "dead"),
        (format!("/api/lessons/{run}/forget"), json!({}), "forget"),
    ]
}

async fn each_role_may_what_it_may(visitors: &[(&Visitor, &[&str])], run: &str) {
    for (path, body, wants) in deeds(run) {
        for (visitor, can) in visitors {
            let (status, told) = visitor.post(&path, &body).await;
            let role = &visitor.me["role"];
            if can.contains(&wants) {
                assert!(status != 403 && status != 401, "{path} by {role}: {told}");
            } else {
                assert_eq!(status, 403, "{path} by {role}: {told}");
                assert!(told["error"].as_str().unwrap().contains("may not"), "{told}");
            }
        }
    }
}

async fn bad_requests_get_a_clear_answer(owner: &Visitor, run: &str, port: u64) {
    // Nobody is let in without a session, and nothing is done without its second secret.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let bare = Client::new();
    for path in ["/api/me", "/api/runs", "/api/events", "/api/fleet", "/api/nothing"] {
        assert_eq!(
            read(bare.get(format!("{}{path}", owner.base)).send().await.unwrap()).await.0,
            401,
            "{path}"
        );
    }
    let pause = format!("/api/runs/{run}/pause");
    let json_post = |path: &str| owner.request(Method::POST, path).header("content-type", "application/json");
    assert_eq!(read(json_post(&pause).body("{}").send().await.unwrap()).await.0, 403, "no CSRF");
    let wrong = json_post(&pause).header("x-muster-csrf", "0".repeat(64)).body("{}");
    assert_eq!(read(wrong.send().await.unwrap()).await.0, 403);
    let form = owner.request(Method::POST, &pause).header("x-muster-csrf", &owner.csrf);
    let form = form.header("content-type", "application/x-www-form-urlencoded").body("a=b");
    assert_eq!(read(form.send().await.unwrap()).await.0, 415);
    // Other names, other pages.
    for (name, value, wanted) in [
        ("host", "attacker.example".to_owned(), 421),
        ("host", format!("attacker.example:{port}"), 421),
        ("host", "127.0.0.1:1".to_owned(), 421),
        ("origin", "http://attacker.example".to_owned(), 403),
        ("origin", format!("http://127.0.0.1:{}", port + 1), 403),
        ("origin", "null".to_owned(), 403),
        ("sec-fetch-site", "cross-site".to_owned(), 403),
    ] {
        for path in ["/api/runs", "/"] {
            let asked = owner.request(Method::GET, path).header(name, &value).send().await.unwrap();
            assert_eq!(read(asked).await.0, wanted, "{name}: {value} {path}");
        }
    }
    let own = owner.request(Method::GET, "/api/me").header("origin", format!("http://localhost:{port}"));
    assert_eq!(own.send().await.unwrap().status(), 200);
    // What is asked for wrongly.
    for (path, wanted) in [
        ("/api/runs/ffffffffffff".to_owned(), 404),
        ("/api/runs/%00".to_owned(), 404),
        ("/api/runs/..%2f..%2fetc".to_owned(), 404),
        (format!("/api/runs/{}", "9".repeat(5000)), 400),
        (format!("/api/runs/{run}?at=minus"), 400),
        (format!("/api/runs/{run}?at=99999999999999999999999"), 400),
        (format!("/api/runs/{run}/entries?limit=-1"), 400),
        (format!("/api/runs/{run}/steps/1/1/99"), 404),
        (format!("/api/runs/{run}/steps/nothing%20at%20all/1/1"), 400),
        (format!("/api/runs/{run}/steps/1/x/1"), 400),
        (format!("/api/runs/{run}/explain?task=9-9"), 400),
        (format!("/api/runs/{run}/source?document=a&line=1"), 404),
        (format!("/api/runs/{run}/source"), 400),
        (format!("/api/runs/{run}/files/..%2f..%2fetc%2fpasswd"), 400),
        (format!("/api/runs/{run}/files/nothing.md"), 404),
        (format!("/api/runs/{run}/compare/nobody"), 404),
        ("/api/runs?limit=many".to_owned(), 400),
        ("/api/runs?before=nobody".to_owned(), 404),
        ("/api/events?run=nobody".to_owned(), 404),
        ("/api/events?tap=1&correlation=x".to_owned(), 400),
        ("/api/nothing".to_owned(), 404),
        ("/nothing.html".to_owned(), 404),
        ("/..%2fCargo.toml".to_owned(), 404),
    ] {
        let (status, told) = owner.ask(&path).await;
        assert_eq!(status, wanted, "{path}: {told}");
    }
    let task = |rest: &str| format!("/api/runs/{run}/tasks/{rest}");
    for (path, body, wanted) in [
        ("/api/login".to_owned(), "{\"token\": 7}".to_owned(), 400),
        ("/api/login".to_owned(), "{\"token\": \"mustertoken_x\"}".to_owned(), 401),
        ("/api/runs".to_owned(), "{".to_owned(), 400),
        ("/api/runs".to_owned(), "[]".to_owned(), 400),
        ("/api/runs".to_owned(), "{\"goal\": \" \"}".to_owned(), 400),
        ("/api/runs".to_owned(), "{\"goal\": \"-\"}".to_owned(), 400),
        ("/api/runs".to_owned(), format!("{{\"goal\": \"{}\"}}", "x".repeat(100_000)), 400),
        ("/api/runs".to_owned(), "{\"goal\": \"g\", \"documents\": [\"/etc\"]}".to_owned(), 403),
        ("/api/runs".to_owned(), "{\"goal\": \"g\", \"documents\": [\"../../..\"]}".to_owned(), 403),
        ("/api/runs".to_owned(), "{\"goal\": \"g\", \"review\": \"never\"}".to_owned(), 400),
        ("/api/runs".to_owned(), "{\"goal\": \"g\", \"shell\": \"rm\"}".to_owned(), 400),
        ("/api/runs".to_owned(), format!("\"{}\"", "[".repeat(200_000)), 400),
        ("/api/runs".to_owned(), "[".repeat(200_000), 400),
        ("/api/runs".to_owned(), "x".repeat(2_000_000), 413),
        (pause.clone(), "{}".to_owned(), 400),
        (pause.clone(), "{\"reason\": 7}".to_owned(), 400),
        (format!("/api/runs/{run}/resume"), "{}".to_owned(), 400),
        (format!("/api/runs/{run}/cancel"), "{}".to_owned(), 400),
        (format!("/api/runs/{run}/plan"), "{\"goal\": \"g\", \"task\": \"x y\"}".to_owned(), 400),
        (task("9/skip"), "{}".to_owned(), 400),
        (task("nothing/skip"), "{}".to_owned(), 400),
        (task("9/redo"), "{}".to_owned(), 400),
        (task("1/redo"), "{\"deadline\": 1}".to_owned(), 400),
        (format!("/api/runs/{run}/fork"), "{\"at\": 999999}".to_owned(), 400),
        (format!("/api/runs/{run}/fork"), "{}".to_owned(), 400),
        (format!("/api/runs/{run}/questions/x/answer"), "{\"text\": \"t\"}".to_owned(), 400),
        (format!("/api/runs/{run}/plan/check"), "{}".to_owned(), 400),
        ("/api/playground".to_owned(), "{}".to_owned(), 400),
        ("/api/dead/999999/drop".to_owned(), "{}".to_owned(), 400),
        ("/api/dead/x/drop".to_owned(), "{}".to_owned(), 400),
        ("/api/nothing".to_owned(), "{}".to_owned(), 404),
        ("/api/runs/x/y/z".to_owned(), "{}".to_owned(), 404),
    ] {
        // What is too large is not read to its end: nothing else may be asked on that connection.
        let asked = json_post(&path).header("x-muster-csrf", &owner.csrf).header("connection", "close");
        let (status, told) = read(asked.body(body.clone()).send().await.unwrap()).await;
        assert_eq!(status, wanted, "{path} {body:.80}: {told}");
    }
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let asked = owner.request(method.clone(), "/api/runs").send().await.unwrap();
        assert_eq!(read(asked).await.0, 405, "{method}");
    }
}

#[test]
fn the_dashboard_stays_open_for_its_owner_and_names_proxy_users_apart() {
    let folder = folder();
    let proxy = "[ui.proxy]\naddresses = [\"127.0.0.1\"]\nroles = { eng = \"operator\" }\n";
    folder.write(".config/muster/muster.toml", proxy).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let dashboard = Dashboard::start(fleet.folder(), &[]).unwrap();
    let base = dashboard.base();
    let issued =
        || fleet.folder().json(&["keys", "list", "--json"]).unwrap().to_string().matches("ann_40").count();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for (user, status) in [("ann@example.org", 200), ("ann@example.org", 200), ("Operator", 403)] {
            let asked = Client::new().get(format!("{base}/api/me")).header("x-forwarded-user", user);
            let (found, me) = read(asked.header("x-forwarded-groups", "eng").send().await.unwrap()).await;
            assert_eq!(found, status, "{user}: {me}");
        }
        assert_eq!(issued(), 1, "sessions of a user share credentials");
        let address = base.strip_prefix("http://").unwrap();
        // More half-open connections than the dashboard serves, and more wrong tokens than it checks in a minute.
        let halves: Vec<_> = (0..150).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        for mut half in &halves {
            half.write_all(b"POST /api/login HTTP/1.1\r\nHost: ").unwrap();
        }
        for _ in 0..31 {
            assert!(Visitor::log_in(base, "nonsense").await.is_err());
        }
        let owner = Visitor::log_in(base, dashboard.token()).await.ok().unwrap();
        let mut visitors = Vec::new();
        for (name, most) in [("ann", 8), ("bob", 8), ("eve", 8), ("zoe", 0)] {
            let token = fleet.folder().output(&["keys", "token", name, "--role", "viewer"]).unwrap();
            visitors.push((Visitor::log_in(base, token.trim()).await.ok().unwrap(), most));
        }
        // A person has a quarter of the live pages; the last quarter is the owner's.
        visitors.push((owner, 8));
        let mut open = Vec::new();
        for (visitor, most) in &visitors {
            for at in 0..=*most {
                let page = visitor.request(Method::GET, "/api/events").send().await.unwrap();
                assert_eq!(page.status(), if at < *most { 200 } else { 429 }, "{at} of {}", visitor.me);
                open.push(page);
            }
        }
    });
}

#[test]
fn the_dashboard_is_refused_what_it_cannot_have() {
    let folder = folder();
    // It goes on without a fleet, and takes another port where its own is taken by somebody.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = folder.run(&["ui", "--port", &port]).unwrap();
    assert!(!refused.status.success() && both(&refused).contains("--port"), "{}", both(&refused));
    let refused = folder.run(&["ui", "--role", "boss"]).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    let refused = folder.run(&["scale", "worker=2"]).unwrap();
    assert!(!refused.status.success() && both(&refused).contains("muster up"), "{}", both(&refused));
    let dashboard = Dashboard::start(&folder, &["--role", "viewer"]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let visitor = Visitor::log_in(dashboard.base(), dashboard.token()).await;
        let visitor = visitor.unwrap_or_else(|told| panic!("{told:?}"));
        assert_eq!(visitor.me["role"], "viewer");
        let (status, told) = visitor.ask("/api/runs").await;
        assert!(status == 503 && told["help"].as_str().unwrap().contains("muster up"), "{told}");
        let page = reqwest::get(dashboard.base()).await.unwrap();
        assert_eq!(page.status(), 200);
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
    });
}
