//! The examples that are shipped, and tools of files as they are carried out: real programs, and an endpoint on this machine.

use std::fs;
use std::sync::Mutex;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::any;
use muster_shared::flow::TaskRights;
use muster_tools::settings::WebSettings;
use muster_tools::{ToolContext, ToolEngine, ToolOutput, ToolRegistry, ToolStatus};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::guarded::GuardedCaller;
use crate::plain::PlainRunner;

fn hands() -> Hands {
    let http = GuardedCaller::new(WebSettings::default());
    Hands { sandbox: Arc::new(PlainRunner), plain: Arc::new(PlainRunner), http: Arc::new(http) }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples/tools")
}

fn example(name: &str) -> Arc<dyn Tool> {
    let text = fs::read_to_string(examples().join(format!("{name}{ENDING}"))).unwrap();
    tool_of(ToolFile::parse(&text, name).unwrap(), &examples(), &hands()).unwrap()
}

async fn call(tool: &Arc<dyn Tool>, args: Value) -> Result<ToolOutput, ToolFailure> {
    tool.call(&ToolContext::new("r", "1").under_key("r/1/1/1"), args).await
}

#[tokio::test]
async fn the_examples_do_what_they_say() {
    let counted = call(&example("word_count"), json!({ "text": "one two\nthree\n" })).await.unwrap();
    assert_eq!(counted.content, "2 lines, 3 words, 14 characters.");
    assert_eq!(counted.data.unwrap()["words"], 3);
    let sum = call(&example("checksum"), json!({ "text": "a" })).await.unwrap();
    assert_eq!(sum.content.len(), 64, "{sum:?}");
    assert_eq!(call(&example("checksum"), json!({ "text": "a" })).await.unwrap(), sum);
    let spec = example("issue").spec();
    assert!(spec.pure && spec.description.contains("issue"));
}

fn shell(folder: &Path, script: &str, more: &str) -> Arc<dyn Tool> {
    fs::write(folder.join("it.sh"), script).unwrap();
    let text = format!("description = \"d\"\ncommand = [\"sh\", \"./it.sh\"]\n{more}");
    tool_of(ToolFile::parse(&text, "it").unwrap(), folder, &hands()).unwrap()
}

#[tokio::test]
async fn a_program_that_fails_prints_too_much_or_takes_too_long_is_told_of_and_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("key"), "s3cret-value-1234\n").unwrap();
    let secret = "[secrets]\nKEY = \"key\"\n";
    let failing = shell(folder, "echo \"bad $KEY\" >&2; exit 3", secret);
    let said = call(&failing, json!({})).await.unwrap_err().to_string();
    assert!(said.contains("exit status 3") && said.contains("bad") && !said.contains("s3cret"), "{said}");
    let told = call(&shell(folder, "echo \"$KEY\"; env", secret), json!({})).await.unwrap().content;
    assert!(!told.contains("s3cret") && told.contains("MUSTER_CALL_KEY=r/1/1/1"), "{told}");
    assert!(!told.contains("CARGO"), "nothing of ours is passed on: {told}");
    let much = shell(folder, "head -c 100000 /dev/zero | tr '\\0' x", "[limits]\noutput_kib = 1\n");
    let told = call(&much, json!({})).await.unwrap().content;
    assert!(told.len() < 2_000 && told.contains("[cut"), "{}", told.len());
    let slow = shell(folder, "sleep 600 & sleep 600", "[limits]\ntime = \"300ms\"\n");
    let said = call(&slow, json!({})).await.unwrap_err().to_string();
    assert!(said.contains("time was up"), "{said}");
    fs::remove_file(folder.join("key")).unwrap();
    let gone = call(&shell(folder, "echo hello", secret), json!({})).await.unwrap_err().to_string();
    assert!(gone.contains("KEY") && !gone.contains("/key"), "{gone}");
}

#[tokio::test]
async fn a_program_ends_with_all_that_it_started_when_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let script = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", begun.display());
    let tool = shell(folder.path(), &script, "");
    let mut context = ToolContext::new("r", "1");
    context.cancel = CancellationToken::new();
    let stop = context.cancel.clone();
    let calling = tool.call(&context, json!({}));
    let stopping = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(calling, stopping);
    assert!(matches!(ended, Err(ToolFailure::Refused(_))), "{ended:?}");
    let stat = format!("/proc/{}/stat", fs::read_to_string(&begun).unwrap().trim());
    let has_ended = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while !has_ended() {
        assert!(std::time::Instant::now() < deadline, "the background process still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An endpoint that tells what it was asked, and refuses or leads elsewhere by its path.
async fn endpoint() -> (u16, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let answer = move |request: Request| {
        let log = Arc::clone(&log);
        async move {
            let key = request
                .headers()
                .get("x-key")
                .and_then(|key| key.to_str().ok())
                .unwrap_or_default()
                .to_owned();
            let asked = format!("{} {}", request.method(), request.uri());
            log.lock().unwrap().push(asked.clone());
            match request.uri().path() {
                "/busy" => (StatusCode::SERVICE_UNAVAILABLE, [("location", "")], "busy".to_owned()),
                "/away" => (StatusCode::FOUND, [("location", "/items/1")], String::new()),
                _ => (StatusCode::OK, [("location", "")], format!("{asked} with {key}")),
            }
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(answer))).await });
    (port, seen)
}

#[tokio::test]
async fn an_endpoint_is_called_with_its_secret_within_the_rights_of_the_task_and_followed_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("key"), "s3cret-value-1234").unwrap();
    let (port, seen) = endpoint().await;
    let tool = |path: &str| {
        let text = format!(
            "description = \"d\"\npure = true\n[http]\nurl = \"http://127.0.0.1:{port}{path}\"\n\
             headers = {{ x-key = \"{{{{KEY}}}}\" }}\n[secrets]\nKEY = \"key\"\n\
             [parameters]\ntype = \"object\"\n[touches]\nhosts = [\"127.0.0.1\"]\n"
        );
        tool_of(ToolFile::parse(&text, "it").unwrap(), folder.path(), &hands()).unwrap()
    };
    let told = call(&tool("/items/{id}"), json!({ "id": "a b", "deep": true })).await.unwrap().content;
    assert!(told.starts_with("GET /items/a%20b?deep=true with ") && !told.contains("s3cret"), "{told}");
    assert!(matches!(call(&tool("/busy"), json!({})).await, Err(ToolFailure::Unavailable(_))));
    let away = call(&tool("/away"), json!({})).await.unwrap_err().to_string();
    assert!(away.contains("302"), "{away}");
    let before = seen.lock().unwrap().len();
    let rights: TaskRights =
        serde_json::from_value(json!([{ "by": "goal", "to": { "hosts": ["example.org"] } }])).unwrap();
    let narrow = ToolContext::new("r", "1").within(Arc::new(rights));
    let refused = tool("/items/{id}").call(&narrow, json!({ "id": "1" })).await;
    assert!(matches!(refused, Err(ToolFailure::NoRight(_))), "{refused:?}");
    assert_eq!(seen.lock().unwrap().len(), before, "nothing was sent");
}

#[tokio::test]
async fn an_endpoint_at_a_private_address_is_called_only_where_the_file_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let (port, seen) = endpoint().await;
    let tool = |touches: &str| {
        let text = format!("description = \"d\"\n[http]\nurl = \"http://127.0.0.1:{port}/\"\n{touches}");
        ToolFile::parse(&text, "it").map(|file| tool_of(file, folder.path(), &hands()).unwrap())
    };
    let refused = call(&tool("").unwrap(), json!({})).await.unwrap_err();
    assert!(matches!(refused, ToolFailure::Refused(_)), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains("no public address") && said.contains("`hosts` of [touches]"), "{said}");
    assert_eq!(seen.lock().unwrap().len(), 0);
    let touches = format!("[touches]\nhosts = [\"127.0.0.1:{port}\"]\n");
    assert!(call(&tool(&touches).unwrap(), json!({})).await.is_ok());
    let fault = tool("[touches]\nhosts = [\"no host at all\"]\n").err().unwrap();
    assert!(fault.what.contains("no host at all"), "{fault}");
}

#[tokio::test]
async fn an_endpoint_that_drips_is_given_up_when_the_time_of_its_file_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0, "it is asked first");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await.unwrap();
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let text = format!(
        "description = \"d\"\n[http]\nurl = \"http://127.0.0.1:{port}/\"\n[touches]\nhosts = [\"127.0.0.1\"]\n\
         [limits]\ntime = \"300ms\"\n"
    );
    let registry = ToolRegistry::new();
    let tool = tool_of(ToolFile::parse(&text, "it").unwrap(), folder.path(), &hands()).unwrap();
    registry.register(tool).unwrap();
    let begun = std::time::Instant::now();
    let result = ToolEngine::new(Arc::new(registry)).call("it", json!({}), &ToolContext::new("r", "1")).await;
    assert_eq!(result.status, ToolStatus::Timeout, "{}", result.content);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
