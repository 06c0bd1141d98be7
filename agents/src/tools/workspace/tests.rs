#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::tools::{ToolEngine, ToolRegistry, ToolStatus};

fn small() -> WorkspaceLimits {
    WorkspaceLimits { max_file: 100, max_total: 250, max_files: 4 }
}

/// A workspace inside a folder that holds a secret beside it.
fn place(limits: WorkspaceLimits) -> (tempfile::TempDir, LocalWorkspace) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("secret.txt"), "secret").unwrap();
    let workspace = LocalWorkspace::new(dir.path().join("work"), limits);
    (dir, workspace)
}

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

fn tools(workspace: &LocalWorkspace) -> (ToolEngine, ToolContext) {
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
    let (_dir, workspace) = place(WorkspaceLimits::default());
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
    assert_eq!(list.content, "b.txt (2 bytes)\nnotes/a.md (8 bytes)");
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
async fn links_are_never_followed() {
    let (dir, workspace) = place(WorkspaceLimits::default());
    symlink(dir.path().join("secret.txt"), workspace.root().unwrap().join("link.txt")).unwrap();
    symlink(dir.path(), workspace.root().unwrap().join("up")).unwrap();
    for linked in ["link.txt", "up/secret.txt"] {
        let read = workspace.read(&path(linked)).await;
        assert!(matches!(read, Err(WorkspaceError::NotAFile(_))), "{linked}: {read:?}");
        let added = workspace.append(&path(linked), "more").await;
        assert!(added.is_err(), "{linked}: {added:?}");
    }
    assert!(workspace.write(&path("up/new.txt"), "x").await.is_err());
    // Writing over a link replaces the link, not what it points to.
    workspace.write(&path("link.txt"), "mine").await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("secret.txt")).unwrap(), "secret");
    assert!(!dir.path().join("new.txt").exists());
    assert_eq!(workspace.list().await.unwrap(), [WorkspaceFile { path: "link.txt".to_owned(), bytes: 4 }]);
}

#[tokio::test]
async fn limits_hold_and_a_refused_write_changes_nothing() {
    let (_dir, workspace) = place(small());
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
async fn what_is_no_text_file_is_told_apart() {
    let (_dir, workspace) = place(WorkspaceLimits::default());
    std::fs::write(workspace.root().unwrap().join("binary"), [0xff, 0xfe, 0x00]).unwrap();
    std::fs::create_dir(workspace.root().unwrap().join("folder")).unwrap();
    nix::unistd::mkfifo(&workspace.root().unwrap().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(workspace.read(&path("binary")).await, Err(WorkspaceError::NotText(_))));
    assert!(matches!(workspace.read(&path("folder")).await, Err(WorkspaceError::NotAFile(_))));
    assert!(matches!(workspace.read(&path("pipe")).await, Err(WorkspaceError::NotAFile(_))));
    assert!(matches!(workspace.read(&path("absent")).await, Err(WorkspaceError::NotFound(_))));
    assert!(matches!(workspace.write(&path("folder"), "x").await, Err(WorkspaceError::NotAFile(_))));
    assert!(matches!(workspace.write(&path("binary/x"), "x").await, Err(WorkspaceError::NotAFile(_))));
}

#[tokio::test]
async fn additions_at_the_same_time_are_all_kept() {
    let (_dir, workspace) = place(WorkspaceLimits::default());
    let all = (0..40).map(|_| {
        let workspace = workspace.clone();
        tokio::spawn(async move { workspace.append(&path("log"), "line\n").await.unwrap() })
    });
    futures::future::join_all(all).await;
    assert_eq!(workspace.read(&path("log")).await.unwrap(), "line\n".repeat(40));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_path_writes_outside(parts in prop::collection::vec(
        prop_oneof![Just("..".to_owned()), Just(".".to_owned()), Just("up".to_owned()), Just(String::new()), "[a-z./\\\\~]{1,6}"],
        1..6,
    )) {
        let (dir, workspace) = place(WorkspaceLimits::default());
        symlink(dir.path(), workspace.root().unwrap().join("up")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        if let Ok(path) = WorkspacePath::parse(&parts.join("/")) {
            let _ = runtime.block_on(workspace.write(&path, "x"));
        }
        let mut beside: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        beside.sort();
        prop_assert_eq!(beside, ["secret.txt", "work"]);
        prop_assert_eq!(std::fs::read_to_string(dir.path().join("secret.txt")).unwrap(), "secret");
    }
}
