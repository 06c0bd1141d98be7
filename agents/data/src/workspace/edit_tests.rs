use std::sync::Arc;

use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::ToolStatus;

use crate::testing::{Held, context, engine};
use serde_json::json;

#[tokio::test]
async fn a_part_of_a_file_is_changed_and_told() {
    let held = Held::with(&[("a.md", b"one\ntwo\nthree\n")]);
    let (engine, ctx) = (engine(super::super::workspace_tools()), context(&held));
    let done =
        engine.call("workspace.edit", json!({"path": "a.md", "old": "two", "new": "2\n2.5"}), &ctx).await;
    assert_eq!(done.status, ToolStatus::Success, "{done:?}");
    let version = held.version("a.md");
    assert_eq!(
        done.content,
        format!("Changed a.md: from line 2, 1 lines became 2; it has 16 bytes now, version {version}.")
    );
    let diff = "@@ -3,2 +3,2 @@\n 2.5\n-three\n+3\n";
    let done = engine.call("workspace.edit", json!({"path": "a.md", "diff": diff}), &ctx).await;
    assert_eq!(done.status, ToolStatus::Success, "{done:?}");
    assert_eq!(held.text("a.md").unwrap(), "one\n2\n2.5\n3\n");
}

#[tokio::test]
async fn what_does_not_fit_changes_nothing() {
    let held = Held::with(&[("a.md", b"one\n"), ("b.bin", b"\xff\x00")]);
    let (engine, ctx) = (engine(super::super::workspace_tools()), context(&held));
    for (args, said) in [
        (
            json!({"path": "a.md", "old": "x", "new": "y"}),
            "`a.md` was not changed: `old` does not stand in the file",
        ),
        (json!({"path": "a.md", "old": "one"}), "`new` is missing"),
        (json!({"path": "a.md"}), "either `old` and `new`, or `diff`"),
        (json!({"path": "a.md", "old": "one", "new": "y", "diff": "@@"}), "either `old` and `new`"),
        (json!({"path": "no.md", "old": "x", "new": "y"}), "no.md"),
        (json!({"path": "b.bin", "old": "x", "new": "y"}), "not a text file"),
        (json!({"path": "../a.md", "old": "x", "new": "y"}), "not allowed"),
        (
            json!({"path": "a.md", "old": "one", "new": "y", "replaces": "0123456789ab"}),
            "no longer 0123456789ab",
        ),
    ] {
        let result = engine.call("workspace.edit", args.clone(), &ctx).await;
        assert_eq!(result.status, ToolStatus::Refused, "{args}");
        assert!(result.content.contains(said), "{args}: {}", result.content);
    }
    assert_eq!(held.text("a.md").unwrap(), "one\n");
}

#[tokio::test]
async fn what_another_task_wrote_is_edited_only_knowingly() {
    let held = Held::with(&[]);
    held.put("a.md", b"one\n", "1-1");
    let (engine, ctx) = (engine(super::super::workspace_tools()), context(&held));
    let edit = |version: Option<String>| {
        let mut args = json!({"path": "a.md", "old": "one", "new": "1"});
        if let Some(version) = version {
            args["replaces"] = json!(version);
        }
        engine.call("workspace.edit", args, &ctx)
    };
    let refused = edit(None).await;
    assert!(refused.content.contains("written by task 1-1"), "{refused:?}");
    assert_eq!(held.text("a.md").unwrap(), "one\n");
    let done = edit(Some(held.version("a.md"))).await;
    assert_eq!(done.status, ToolStatus::Success, "{done:?}");
    assert_eq!(held.text("a.md").unwrap(), "1\n");
}

#[tokio::test]
async fn edits_at_the_same_time_lose_nothing() {
    let lines: String = (0..30).map(|n| format!("line {n}.\n")).collect();
    let held = Held::with(&[("a.md", lines.as_bytes())]);
    let (engine, ctx) = (engine(super::super::workspace_tools()), context(&held));
    let all = (0..30).map(|n| {
        let args = json!({"path": "a.md", "old": format!("line {n}."), "new": format!("done {n}.")});
        let (engine, ctx) = (engine.clone(), ctx.clone());
        tokio::spawn(async move { engine.call("workspace.edit", args, &ctx).await })
    });
    for result in futures::future::join_all(all).await {
        assert_eq!(result.unwrap().status, ToolStatus::Success);
    }
    assert_eq!(held.text("a.md").unwrap().matches("done").count(), 30);
}

#[tokio::test]
async fn a_task_that_may_write_no_files_edits_none() {
    let held = Held::with(&[("a.md", b"one\n")]);
    let rights =
        TaskRights::default().narrowed_by(Grantor::Goal, &Rights { write_files: false, ..Rights::default() });
    let (engine, ctx) = (engine(super::super::workspace_tools()), context(&held).within(Arc::new(rights)));
    let refused =
        engine.call("workspace.edit", json!({"path": "a.md", "old": "one", "new": "1"}), &ctx).await;
    assert!(refused.denied.is_some(), "{refused:?}");
    assert_eq!(held.text("a.md").unwrap(), "one\n");
}
