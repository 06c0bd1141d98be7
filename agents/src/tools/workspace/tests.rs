use muster_bus::{Bus, BusSettings};
use muster_shared::ids::{AgentId, RunId};
use muster_shared::secret::Redactor;
use uuid::Uuid;

use super::*;
use crate::tools::{ToolEngine, ToolRegistry, ToolStatus};

fn small() -> WorkspaceLimits {
    WorkspaceLimits { max_file: 100, max_total: 250, max_files: 4 }
}

fn bus() -> Bus {
    Bus::in_memory(&AgentId::new("worker", 1))
}

fn run(n: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(n))
}

fn of(bus: &Bus, n: u128, limits: WorkspaceLimits) -> SharedWorkspace {
    SharedWorkspace::new(bus.files(), run(n), "1-2", limits)
}

fn place(limits: WorkspaceLimits) -> SharedWorkspace {
    of(&bus(), 1, limits)
}

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

fn tools(workspace: &SharedWorkspace) -> (ToolEngine, ToolContext) {
    let registry = ToolRegistry::new();
    for tool in workspace_tools() {
        registry.register(tool).unwrap();
    }
    (
        ToolEngine::new(Arc::new(registry)),
        ToolContext::new("run", "1").with_workspace(Arc::new(workspace.clone())),
    )
}

#[tokio::test]
async fn what_is_written_can_be_read_listed_and_added_to() {
    let workspace = place(WorkspaceLimits::default());
    let (engine, ctx) = tools(&workspace);
    let write = engine.call("workspace.write", json!({"path": "notes/a.md", "text": "one\n"}), &ctx).await;
    assert_eq!(write.status, ToolStatus::Success, "{write:?}");
    engine.call("workspace.append", json!({"path": "./notes/a.md", "text": "two\n"}), &ctx).await;
    engine.call("workspace.append", json!({"path": "b.txt", "text": "ü"}), &ctx).await;
    assert_eq!(
        engine.call("workspace.read", json!({"path": "notes/a.md"}), &ctx).await.content,
        "one\ntwo\n"
    );
    let list = engine.call("workspace.list", json!({}), &ctx).await;
    assert_eq!(list.content.lines().count(), 2);
    assert!(list.content.starts_with("b.txt (2 bytes, by task 1-2, version "), "{}", list.content);
    assert!(list.content.contains("\nnotes/a.md (8 bytes, by task 1-2, version "), "{}", list.content);
}

#[tokio::test]
async fn what_another_task_wrote_is_replaced_only_knowingly() {
    let bus = bus();
    let task = |name: &str| SharedWorkspace::new(bus.files(), run(1), name, WorkspaceLimits::default());
    let (first, second) = (task("1-1"), task("1-2"));
    first.write(&path("report.md"), "the first report").await.unwrap();
    first.write(&path("report.md"), "the first report, mended").await.unwrap();

    let (engine, ctx) = tools(&second);
    let write = |args: Value| engine.call("workspace.write", args, &ctx);
    let refused = write(json!({"path": "report.md", "text": "the second"})).await;
    assert_eq!(refused.status, ToolStatus::Refused, "{refused:?}");
    for part in ["written by task 1-1", "24 bytes", "another name", "`replaces`"] {
        assert!(refused.content.contains(part), "{part}: {}", refused.content);
    }
    assert_eq!(first.read(&path("report.md")).await.unwrap(), "the first report, mended");

    let old = version_of(&first.list().await.unwrap()[0]).to_owned();
    first.write(&path("report.md"), "the third edition").await.unwrap();
    let stale = write(json!({"path": "report.md", "text": "the second", "replaces": old})).await;
    assert_eq!(stale.status, ToolStatus::Refused, "it changed since: {stale:?}");
    let now = version_of(&first.list().await.unwrap()[0]).to_owned();
    for _ in 0..2 {
        let known = write(json!({"path": "report.md", "text": "the second", "replaces": now})).await;
        assert_eq!(known.status, ToolStatus::Success, "also when it is repeated: {known:?}");
    }
    assert_eq!(first.read(&path("report.md")).await.unwrap(), "the second");
    assert!(matches!(first.write(&path("report.md"), "x").await, Err(WorkspaceError::Taken { .. })));
    second.append(&path("log"), "one\n").await.unwrap();
    first.append(&path("log"), "two\n").await.unwrap();
    assert_eq!(second.read(&path("log")).await.unwrap(), "one\ntwo\n", "additions lose nothing");
}

#[test]
fn paths_that_lead_elsewhere_are_refused_by_their_form() {
    let long = "x".repeat(201);
    for bad in [
        "",
        ".",
        "..",
        "../secret.txt",
        "a/../../secret.txt",
        "/etc/passwd",
        "a//b",
        "a/",
        "./",
        "a/./b",
        "a\\b",
        "C:x",
        "a\0b",
        "a\nb",
        ".hidden",
        "a/.git/config",
        "1/2/3/4/5/6/7/8/9",
        &long,
    ] {
        assert!(matches!(WorkspacePath::parse(bad), Err(WorkspaceError::BadPath { .. })), "{bad:?}");
    }
}

#[tokio::test]
async fn every_run_has_its_own_files_and_every_process_sees_them() {
    let bus = bus();
    let (mine, same, other) = (
        of(&bus, 1, WorkspaceLimits::default()),
        of(&bus, 1, WorkspaceLimits::default()),
        of(&bus, 2, WorkspaceLimits::default()),
    );
    mine.write(&path("a.md"), "one").await.unwrap();
    assert_eq!(same.read(&path("a.md")).await.unwrap(), "one");
    assert!(matches!(other.read(&path("a.md")).await, Err(WorkspaceError::NotFound(_))));
    let listed = same.list().await.unwrap();
    assert_eq!((listed.len(), listed[0].path.as_str(), listed[0].task.as_str()), (1, "a.md", "1-2"));
    assert_eq!(listed[0].hash, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
}

#[tokio::test]
async fn what_a_file_held_before_is_removed_unless_another_file_holds_it() {
    let bus = bus();
    let workspace = of(&bus, 1, WorkspaceLimits::default());
    workspace.write(&path("a"), "same").await.unwrap();
    workspace.write(&path("b"), "same").await.unwrap();
    let old = format!("file/{}/{}", run(1), workspace.list().await.unwrap()[0].hash);
    workspace.write(&path("a"), "new").await.unwrap();
    assert!(bus.store().has(&old).await.unwrap(), "the other file still holds it");
    assert_eq!(workspace.read(&path("b")).await.unwrap(), "same");
    workspace.write(&path("b"), "newer").await.unwrap();
    assert!(!bus.store().has(&old).await.unwrap());
}

#[tokio::test]
async fn secrets_are_taken_out_of_files() {
    let redactor = Arc::new(Redactor::new(["hunter2hunter2".to_owned().into()]));
    let bus = Bus::in_memory_with(&AgentId::new("worker", 1), BusSettings::default(), redactor);
    let workspace = of(&bus, 1, WorkspaceLimits::default());
    workspace.write(&path("a"), "the key is hunter2hunter2").await.unwrap();
    assert!(!workspace.read(&path("a")).await.unwrap().contains("hunter2"));
}

#[tokio::test]
async fn limits_hold_and_a_refused_write_changes_nothing() {
    let workspace = place(small());
    workspace.write(&path("a"), &"x".repeat(100)).await.unwrap();
    assert!(matches!(
        workspace.append(&path("a"), "y").await,
        Err(WorkspaceError::Full { what: "bytes in a file", limit: 100 })
    ));
    assert_eq!(workspace.read(&path("a")).await.unwrap().len(), 100);
    workspace.write(&path("b"), &"x".repeat(100)).await.unwrap();
    assert!(matches!(
        workspace.write(&path("c"), &"x".repeat(51)).await,
        Err(WorkspaceError::Full { what: "bytes", limit: 250 })
    ));
    workspace.write(&path("c"), "").await.unwrap();
    workspace.write(&path("d"), "").await.unwrap();
    assert!(matches!(
        workspace.write(&path("e"), "").await,
        Err(WorkspaceError::Full { what: "files", limit: 4 })
    ));
    workspace.write(&path("a"), "again").await.unwrap();
}

#[tokio::test]
async fn a_name_is_that_of_a_file_or_of_a_folder() {
    let workspace = place(WorkspaceLimits::default());
    workspace.write(&path("folder/a"), "x").await.unwrap();
    assert!(matches!(workspace.read(&path("absent")).await, Err(WorkspaceError::NotFound(_))));
    assert!(matches!(workspace.write(&path("folder"), "x").await, Err(WorkspaceError::NotAFile(_))));
    assert!(matches!(workspace.append(&path("folder/a/b"), "x").await, Err(WorkspaceError::NotAFolder(_))));
    workspace.write(&path("folder2"), "x").await.unwrap();
}

#[tokio::test]
async fn additions_at_the_same_time_are_all_kept() {
    let workspace = place(WorkspaceLimits::default());
    let all = (0..40).map(|_| {
        let workspace = workspace.clone();
        tokio::spawn(async move { workspace.append(&path("log"), "line\n").await.unwrap() })
    });
    futures::future::join_all(all).await;
    assert_eq!(workspace.read(&path("log")).await.unwrap(), "line\n".repeat(40));
}

#[tokio::test]
async fn what_is_no_text_is_kept_as_it_is_and_never_with_a_secret_in_it() {
    let secret = "sk-proj-0123456789abcdefghijklmnop";
    let redactor = Arc::new(Redactor::new([secret.to_owned().into()]));
    let bus = Bus::in_memory_with(&AgentId::new("worker", 1), BusSettings::default(), redactor);
    let workspace = of(&bus, 1, WorkspaceLimits::default());
    let picture = [b"\x89PNG\xff\x00".as_slice(), &[0xfe; 64]].concat();
    workspace.write_bytes(&path("a.png"), picture.clone().into()).await.unwrap();
    assert_eq!(workspace.read_bytes(&path("a.png")).await.unwrap(), picture);
    assert!(matches!(workspace.read(&path("a.png")).await, Err(WorkspaceError::NotText(_))));
    let told = [picture.as_slice(), secret.as_bytes()].concat();
    let refused = workspace.write_bytes(&path("b.png"), told.into()).await.unwrap_err();
    assert!(refused.to_string().contains("secret"), "{refused}");
    let text = format!("key: {secret}");
    workspace.write_bytes(&path("c.txt"), text.into_bytes().into()).await.unwrap();
    assert!(!workspace.read(&path("c.txt")).await.unwrap().contains(secret));
}
