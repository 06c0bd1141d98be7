//! The files of a run's workspace as a model is told of them (W9). They change from step to step, so they come last in
//! a request and are forgotten with the step: what stands before them stays the same.

use std::fmt::Write as _;
use std::time::Duration;

use muster_shared::flow::{Artifact, TaskOffered, Work};

use crate::prompts::fence;
use crate::tools::workspace::Workspace;

/// The longest that a step waits for the list of files (W11).
const PATIENCE: Duration = Duration::from_millis(200);

/// Most files that are named.
const MOST_FILES: usize = 60;

/// What a model is told of the files; nothing when there are none, or when they cannot be listed in time.
pub(super) async fn told(workspace: &dyn Workspace, nonce: &str) -> Option<String> {
    let files = match tokio::time::timeout(PATIENCE, workspace.glance()).await {
        Ok(Ok(files)) => files,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the workspace cannot be listed; the step goes on without it");
            return None;
        }
        Err(_) => {
            tracing::warn!("the workspace cannot be listed in time; the step goes on without it");
            return None;
        }
    };
    if files.is_empty() {
        return None;
    }
    Some(format!("Files in the run's workspace:\n{}", fence(nonce, "workspace", &tree(files))))
}

/// The same with how the run stands, where that has changed since the task was offered.
pub(super) fn with_news(
    files: Option<String>,
    progress: Option<&str>,
    offer: &TaskOffered,
) -> Option<String> {
    let known = match &offer.work {
        Work::Execute { progress, .. } => progress.trim(),
        _ => "",
    };
    let news = progress.filter(|progress| progress.trim() != known);
    let news =
        news.map(|progress| format!("Progress by now:\n{}", fence(&offer.nonce, "progress", progress)));
    let parts: Vec<String> = files.into_iter().chain(news).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Files by folder, folders before what lies in them.
fn tree(mut files: Vec<Artifact>) -> String {
    files.sort();
    let mut text = String::new();
    let mut open: Vec<&str> = Vec::new();
    for Artifact { path, bytes, .. } in files.iter().take(MOST_FILES) {
        let mut folders: Vec<&str> = path.split('/').collect();
        let name = folders.pop().unwrap_or_default();
        let same = folders.iter().zip(&open).take_while(|(one, other)| one == other).count();
        for (depth, folder) in folders.iter().enumerate().skip(same) {
            // Writing into a text cannot fail.
            let _ = writeln!(text, "{}{folder}/", "  ".repeat(depth));
        }
        let _ = writeln!(text, "{}{name} ({bytes} bytes)", "  ".repeat(folders.len()));
        open = folders;
    }
    let more = files.len().saturating_sub(MOST_FILES);
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_anew_where_it_has_changed() {
        let offer = crate::testing::leaf(muster_shared::ids::Role::Worker);
        let Work::Execute { progress, .. } = &offer.work else { return };
        assert_eq!(with_news(None, None, &offer), None);
        assert_eq!(with_news(None, Some(&format!("{progress}\n")), &offer), None, "it is known");
        let told = with_news(Some("Files".into()), Some("[x] 1 Find the limit"), &offer).unwrap_or_default();
        assert!(told.starts_with("Files\n\nProgress by now:\n<<<") && told.contains("[x] 1 Find"), "{told}");
    }

    #[test]
    fn files_are_shown_by_folder_and_not_without_end() {
        let file = |path: &str, bytes| Artifact { path: path.to_owned(), bytes, ..Artifact::default() };
        let files =
            vec![file("notes/b.md", 2), file("a.txt", 1), file("notes/deep/c.md", 3), file("notes/a.md", 4)];
        let wanted =
            "a.txt (1 bytes)\nnotes/\n  a.md (4 bytes)\n  b.md (2 bytes)\n  deep/\n    c.md (3 bytes)\n";
        assert_eq!(tree(files), wanted);
        let many: Vec<_> = (0..100).map(|n| file(&format!("f{n:03}"), 1)).collect();
        let told = tree(many);
        assert_eq!(told.lines().count(), MOST_FILES + 1);
        assert!(told.ends_with("and 40 more\n"), "{told}");
    }
}
