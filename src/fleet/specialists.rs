//! The folder of specialists that a fleet watches: what is in it, and what follows when that changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use muster_agents::definition::{Definition, EXTENSION};

use crate::agent_file;
use crate::app::App;
use crate::settings::MemberSource;

/// Most files that are looked at.
const MOST_FILES: usize = 64;

/// The files of a folder, by path.
pub(crate) type Files = BTreeMap<PathBuf, File>;

/// A file that should define a specialist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// When it was written, and its length: one that has the same is not read again.
    stamp: (Option<SystemTime>, u64),
    /// What stands in it.
    pub(crate) content: Content,
}

/// What stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A specialist.
    Specialist {
        /// Its role.
        role: String,
        /// Tells one version from another.
        hash: String,
    },
    /// Nothing that can be used.
    Faulty {
        /// What is wrong, and where.
        reason: String,
    },
}

/// What is to be done about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// End the process of a file.
    Stop(PathBuf),
    /// Start a process for a file.
    Start {
        /// The file.
        path: PathBuf,
        /// The role that it defines.
        role: String,
    },
    /// Say that a file cannot be used.
    Refuse {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
}

/// Looks at the folder. One that is not there has no files.
pub(crate) fn look(folder: &Path, before: &Files) -> Files {
    let Ok(found) = std::fs::read_dir(folder) else { return Files::new() };
    let names = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().ends_with(EXTENSION);
    let mut paths: Vec<PathBuf> = found.flatten().filter(names).map(|entry| entry.path()).collect();
    paths.sort();
    let mut files = Files::new();
    for path in paths.into_iter().take(MOST_FILES) {
        let Ok(state) = std::fs::metadata(&path) else { continue };
        let stamp = (state.modified().ok(), state.len());
        let known = before.get(&path).filter(|known| known.stamp == stamp);
        let content = known.map_or_else(|| read(&path), |known| known.content.clone());
        files.insert(path, File { stamp, content });
    }
    files
}

fn read(path: &Path) -> Content {
    match agent_file::read(path) {
        Ok(definition) => Content::Specialist { role: definition.role.to_string(), hash: definition.hash },
        Err(error) => Content::Faulty { reason: error.to_string() },
    }
}

/// What of the files can be used: of several with the same role, the first by name.
pub(crate) fn settle(files: &Files) -> BTreeMap<PathBuf, Content> {
    let mut taken: BTreeMap<&str, &Path> = BTreeMap::new();
    let mut settled = BTreeMap::new();
    for (path, file) in files {
        let content = match &file.content {
            Content::Specialist { role, .. } => match taken.get(role.as_str()) {
                Some(first) => Content::Faulty {
                    reason: format!(
                        "{}: the role {role} is defined by {} already",
                        path.display(),
                        first.display()
                    ),
                },
                None => {
                    taken.insert(role, path);
                    file.content.clone()
                }
            },
            Content::Faulty { .. } => file.content.clone(),
        };
        settled.insert(path.clone(), content);
    }
    settled
}

/// What is to be done when the files change. What stops comes first.
pub(crate) fn orders(before: &BTreeMap<PathBuf, Content>, now: &BTreeMap<PathBuf, Content>) -> Vec<Order> {
    let changed = |path: &PathBuf| before.get(path) != now.get(path);
    let runs = |content: Option<&Content>| matches!(content, Some(Content::Specialist { .. }));
    let stops = before.keys().filter(|path| changed(path) && runs(before.get(*path)));
    let mut orders: Vec<Order> = stops.map(|path| Order::Stop(path.clone())).collect();
    for (path, content) in now.iter().filter(|(path, _)| changed(path)) {
        orders.push(match content {
            Content::Specialist { role, .. } => Order::Start { path: path.clone(), role: role.clone() },
            Content::Faulty { reason } => Order::Refuse { path: path.clone(), reason: reason.clone() },
        });
    }
    orders
}

/// The definitions that a fleet of this folder and team would start, those of the team first.
pub(crate) fn definitions(app: &App) -> Vec<Arc<Definition>> {
    let folder = look(&app.beside_fleet(&app.settings().fleet.agents_dir), &Files::new());
    let team = app.loaded.team.iter().flat_map(|team| &team.specialists);
    let of_team = team.filter_map(|member| match &member.source {
        MemberSource::File(path) => Some(path),
        MemberSource::Command(_) => None,
    });
    of_team.chain(folder.keys()).filter_map(|path| agent_file::read(path).ok()).map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn write(folder: &Path, name: &str, role: &str, words: &str) {
        let text = format!("---\nrole: {role}\ndescription: does it\n---\n{words}\n");
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Files that come, change, break and go, and what follows from each.
    #[test]
    fn a_folder_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut files = Files::new();
        let mut settled = BTreeMap::new();
        let mut step = || {
            files = look(folder.path(), &files);
            let now = settle(&files);
            let orders = orders(&settled, &now);
            settled = now;
            orders
        };
        assert_eq!(step(), []);
        write(folder.path(), "a.agent.md", "auditor", "one");
        write(folder.path(), "notes.md", "other", "no agent file");
        let start = Order::Start { path: path("a.agent.md"), role: "auditor".into() };
        assert_eq!(step(), std::slice::from_ref(&start));
        assert_eq!(step(), []);

        write(folder.path(), "a.agent.md", "auditor", "longer words");
        assert_eq!(step(), [Order::Stop(path("a.agent.md")), start]);

        write(folder.path(), "b.agent.md", "auditor", "the same role");
        let Some(Order::Refuse { reason, .. }) = step().pop() else { unreachable!() };
        assert!(reason.contains("defined by"), "{reason}");

        std::fs::write(path("a.agent.md"), "---\nrle: auditor\n---\n").unwrap();
        let broken = step();
        assert_eq!(broken[0], Order::Stop(path("a.agent.md")));
        assert!(matches!(&broken[1], Order::Refuse { reason, .. } if reason.contains(":2:1")), "{broken:?}");
        assert!(matches!(&broken[2], Order::Start { path: other, .. } if *other == path("b.agent.md")));

        std::fs::remove_file(path("b.agent.md")).unwrap();
        assert_eq!(step(), [Order::Stop(path("b.agent.md"))]);
        assert!(look(&path("nowhere"), &files).is_empty());
    }
}
