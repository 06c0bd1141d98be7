//! Servers that others wrote, from the registries of npm and PyPI: used, killed in the middle of a call, and used again.
//!
//! The first test that needs them installs them under `target/`. Where there is no Node or no Python, or where
//! `MUSTER_SKIP_NODE` or `MUSTER_SKIP_PYTHON` is set, the tests that need it are passed over.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{InMemory, child, context, names, said, said_asking, skipped, target, tool, until};
use async_trait::async_trait;
use muster_mcp::{Callbacks, HttpEndpoint, McpServer, Reached, ServerConfig, ServerState};
use muster_shared::wire::tool_question::{CallAnswer, PersonQuestion};
use muster_tools::settings::McpSettings;
use muster_tools::{Asker, ToolFailure};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const NODE: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];
const PYTHON: [&str; 3] = ["mcp==2.3.0", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"];
/// It was written for the package before 2.0, and so stands for the servers of that time.
const OLDER_PYTHON: [&str; 2] = ["mcp==1.30.0", "mcp-server-sqlite==2025.4.25"];

fn run(folder: &Path, program: &Path, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).current_dir(folder).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {arguments:?}: {errors}", program.display());
}

/// The folder of what is installed, made by the first test that asks.
fn installed(name: &str, is_there: impl Fn(&Path) -> bool, install: impl Fn(&Path)) -> PathBuf {
    let folder = target().join("mcp-servers").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    // Tests run side by side: one installs, the others wait.
    let lock = File::create(folder.join("lock")).unwrap();
    let _held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, error)| error).unwrap();
    if !is_there(&folder) {
        install(&folder);
        assert!(is_there(&folder), "what was installed is not there");
    }
    folder.canonicalize().unwrap()
}

fn is_skipped(variable: &str, program: &str) -> bool {
    if std::env::var_os(variable).is_some() {
        skipped("servers of others", &format!("{variable} is set"));
        return true;
    }
    let is_absent = Command::new(program).arg("--version").output().is_err();
    if is_absent {
        skipped("servers of others", &format!("there is no {program}"));
    }
    is_absent
}

fn node(server: &str) -> Option<String> {
    if is_skipped("MUSTER_SKIP_NODE", "node") || is_skipped("MUSTER_SKIP_NODE", "npm") {
        return None;
    }
    let folder = installed(
        "node",
        |folder| folder.join("installed-2026.8.31").exists(),
        |folder| {
            let install = ["install", "--no-audit", "--no-fund", "--silent", "--prefix", "."];
            run(folder, Path::new("npm"), &[install.as_slice(), &NODE].concat());
            File::create(folder.join("installed-2026.8.31")).unwrap();
        },
    );
    Some(folder.join("node_modules/.bin").join(server).display().to_string())
}

fn python(name: &str, packages: &[&str], program: &str) -> Option<String> {
    if is_skipped("MUSTER_SKIP_PYTHON", "python3") {
        return None;
    }
    let stamp = packages.join("+");
    let folder = installed(
        name,
        |folder| std::fs::read_to_string(folder.join("installed")).is_ok_and(|text| text == stamp),
        |folder| {
            run(folder, Path::new("python3"), &["-m", "venv", "."]);
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
            run(
                folder,
                &folder.join("bin/python").canonicalize_parent(),
                &[pip.as_slice(), packages].concat(),
            );
            std::fs::write(folder.join("installed"), &stamp).unwrap();
        },
    );
    Some(folder.join("bin").join(program).display().to_string())
}

/// Makes a path absolute without following its last link: a virtual environment is known by it.
trait CanonicalizeParent {
    fn canonicalize_parent(&self) -> PathBuf;
}

impl CanonicalizeParent for PathBuf {
    fn canonicalize_parent(&self) -> PathBuf {
        let folder = self.parent().unwrap().canonicalize().unwrap();
        folder.join(self.file_name().unwrap())
    }
}

fn settings() -> McpSettings {
    McpSettings {
        restart_pause: Duration::from_millis(20),
        end_limit: Duration::from_millis(500),
        ..McpSettings::default()
    }
}

async fn start(config: &ServerConfig) -> McpServer {
    McpServer::start(config.clone(), &settings(), &Callbacks::default()).await.expect("the server starts")
}

fn up(server: &McpServer) -> (String, Pid) {
    match server.state() {
        ServerState::Up { protocol, process } => {
            (protocol, Pid::from_raw(i32::try_from(process.expect("a process")).unwrap()))
        }
        other => panic!("{other:?}"),
    }
}

/// Kills a server while it has a call in hand, and sees it come back.
async fn killed_in_the_middle(server: &McpServer, name: &str, args: &Value) {
    let (_, process) = up(server);
    // Held still, it has the call and cannot answer.
    kill(process, Signal::SIGSTOP).unwrap();
    let held = tool(server, name);
    let given = args.clone();
    let call = tokio::spawn(async move { held.call(&context(), given).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!call.is_finished(), "the call is under way");
    kill(process, Signal::SIGKILL).unwrap();
    let failure = call.await.unwrap().unwrap_err();
    assert!(
        matches!(&failure, ToolFailure::Failed(why) if why.contains("died in the middle") && why.contains("not known")),
        "{failure:?}"
    );
    said(server, name, args.clone()).await;
    assert_ne!(up(server).1, process, "it is another process");
}

#[tokio::test]
async fn everything() {
    let Some(program) = node("mcp-server-everything") else { return };
    let server = start(&child("everything", &program, vec!["stdio".to_owned()])).await;
    assert_eq!(up(&server).0, "2025-11-25");
    assert_eq!(said(&server, "echo", json!({"message": "hello"})).await, "Echo: hello");
    let sum = said(&server, "get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.contains('5'), "{sum}");
    let workspace = Arc::new(InMemory::default());
    let ctx = context().with_workspace(workspace.clone());
    let picture = tool(&server, "get-tiny-image").call(&ctx, json!({})).await.unwrap().content;
    assert!(picture.contains("[file mcp/everything/") && picture.contains("image/png"), "{picture}");
    assert!(workspace.0.lock().unwrap().values().next().unwrap().starts_with(b"\x89PNG"));
    let listed = said(&server, "list_resources", json!({})).await;
    let first = listed.split(": ").next().unwrap().to_owned();
    assert!(!said(&server, "read_resource", json!({"uri": first})).await.is_empty());
    let prompts = said(&server, "list_prompts", json!({})).await;
    assert!(prompts.contains("simple-prompt"), "{prompts}");
    assert!(said(&server, "get_prompt", json!({"name": "simple-prompt"})).await.starts_with("user:\n"));
    killed_in_the_middle(&server, "echo", &json!({"message": "again"})).await;
}

#[tokio::test]
async fn filesystem() {
    let Some(program) = node("mcp-server-filesystem") else { return };
    let folder = tempfile::tempdir().unwrap();
    let allowed = folder.path().canonicalize().unwrap();
    let server = start(&child("filesystem", &program, vec![allowed.display().to_string()])).await;
    let path = allowed.join("note.txt").display().to_string();
    said(&server, "write_file", json!({"path": path, "content": "hello"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello");
    assert_eq!(said(&server, "read_text_file", json!({"path": path})).await, "hello");
    let outside = tool(&server, "read_text_file").call(&context(), json!({"path": "/etc/passwd"})).await;
    assert!(matches!(outside, Err(ToolFailure::Failed(_))), "{outside:?}");
    killed_in_the_middle(&server, "read_text_file", &json!({"path": path})).await;
}

#[tokio::test]
async fn memory() {
    let Some(program) = node("mcp-server-memory") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut config = child("memory", &program, Vec::new());
    let Reached::Child(command) = &mut config.reached else { panic!("a child") };
    let file = folder.path().join("memory.jsonl").display().to_string();
    command.env.insert("MEMORY_FILE_PATH".to_owned(), file.into());
    let server = start(&config).await;
    let entity = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]});
    said(&server, "create_entities", entity).await;
    killed_in_the_middle(&server, "read_graph", &json!({})).await;
    assert!(said(&server, "read_graph", json!({})).await.contains("Ada"));
}

#[tokio::test]
async fn git() {
    let Some(program) = python("python", &PYTHON, "mcp-server-git") else { return };
    let folder = tempfile::tempdir().unwrap();
    if Command::new("git").arg("init").arg("-q").arg(folder.path()).status().is_err() {
        return skipped("the git server", "there is no git");
    }
    std::fs::write(folder.path().join("new.txt"), "new").unwrap();
    let path = folder.path().display().to_string();
    let server = start(&child("git", &program, vec!["--repository".to_owned(), path.clone()])).await;
    assert_eq!(up(&server).0, "2026-07-28");
    let status = said(&server, "git_status", json!({"repo_path": path})).await;
    assert!(status.contains("new.txt"), "{status}");
    killed_in_the_middle(&server, "git_status", &json!({"repo_path": path})).await;
}

#[tokio::test]
async fn time() {
    let Some(program) = python("python", &PYTHON, "mcp-server-time") else { return };
    let server = start(&child("time", &program, vec!["--local-timezone".to_owned(), "UTC".to_owned()])).await;
    assert_eq!(up(&server).0, "2026-07-28");
    let args = json!({"source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00"});
    let converted = said(&server, "convert_time", args.clone()).await;
    assert!(converted.contains("T21:00:00+09:00"), "{converted}");
    killed_in_the_middle(&server, "convert_time", &args).await;
}

#[tokio::test]
async fn sqlite() {
    let Some(program) = python("older-python", &OLDER_PYTHON, "mcp-server-sqlite") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db").display().to_string();
    let server = start(&child("sqlite", &program, vec!["--db-path".to_owned(), file])).await;
    assert_eq!(up(&server).0, "2025-11-25");
    said(&server, "create_table", json!({"query": "CREATE TABLE t (n INTEGER)"})).await;
    said(&server, "write_query", json!({"query": "INSERT INTO t VALUES (41), (42)"})).await;
    let query = json!({"query": "SELECT max(n) AS most FROM t"});
    assert!(said(&server, "read_query", query.clone()).await.contains("42"));
    killed_in_the_middle(&server, "read_query", &query).await;
}

struct Blue;

#[async_trait]
impl Asker for Blue {
    async fn ask(&self, question: PersonQuestion) -> CallAnswer {
        assert_eq!(question.text, "Which colour?");
        CallAnswer::Given { values: json!({"colour": "blue"}) }
    }
}

/// The server on the `mcp` package, by one transport: a question to a person, and a call that reports progress.
async fn packaged(config: ServerConfig) -> McpServer {
    let callbacks = Callbacks { elicits: true, ..Callbacks::default() };
    let server = McpServer::start(config, &settings(), &callbacks).await.expect("the server starts");
    assert_eq!(names(&server).len(), 2, "{:?}", names(&server));
    let blue = Arc::new(Blue) as Arc<dyn Asker>;
    assert_eq!(said_asking(&server, "paint", json!({"thing": "door"}), &blue).await, "door: blue");
    assert_eq!(said(&server, "climb", json!({"steps": 3})).await, "3 steps");
    server
}

fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/packaged.py").display().to_string()
}

#[tokio::test]
async fn one_of_ours_on_the_python_package() {
    let Some(python) = python("python", &PYTHON, "python") else { return };
    let server = packaged(child("packaged", &python, vec![script()])).await;
    assert_eq!(up(&server).0, "2026-07-28");
    killed_in_the_middle(&server, "climb", &json!({"steps": 1})).await;
}

#[tokio::test]
async fn the_same_by_streamable_http() {
    let Some(python) = python("python", &PYTHON, "python") else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let serve = || {
        let mut command = tokio::process::Command::new(&python);
        command.arg(script()).arg(port.to_string()).stderr(std::process::Stdio::null()).kill_on_drop(true);
        command.spawn().unwrap()
    };
    let is_up = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    let mut process = serve();
    until("the server by HTTP", is_up).await;
    let url = format!("http://127.0.0.1:{port}/mcp").parse().unwrap();
    let reached = Reached::Http(HttpEndpoint { url, headers: std::collections::BTreeMap::new() });
    let config = ServerConfig { name: "packaged".to_owned(), namespace: "packaged".to_owned(), reached };
    let server = packaged(config).await;
    assert!(
        matches!(server.state(), ServerState::Up { protocol, process: None } if protocol == "2026-07-28")
    );
    process.kill().await.unwrap();
    let gone = tool(&server, "climb").call(&context(), json!({"steps": 1})).await.unwrap_err();
    assert!(matches!(gone, ToolFailure::Unavailable(_) | ToolFailure::Failed(_)), "{gone:?}");
    let _again = serve();
    until("the server by HTTP once more", is_up).await;
    assert_eq!(said(&server, "climb", json!({"steps": 2})).await, "2 steps");
}
