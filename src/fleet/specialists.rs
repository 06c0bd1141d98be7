//! The folder of specialists that a fleet watches: what is in it, and what follows when that changes.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use muster_agents::definition::EXTENSION;

use crate::agent_file;
use crate::app::App;
use crate::settings::AGENTS_DIR;
use crate::trust::{Trust, files_of};

/// Most files that are looked at.
const MOST_FILES: usize = 64;

/// The files of a folder, by path.
pub(crate) type Files = BTreeMap<PathBuf, File>;

/// A file that should define a specialist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// One that has the same is not read again.
    stamp: Stamp,
    /// What stands in it.
    pub(crate) content: Content,
}

/// When a file was written and otherwise changed, and its length.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    written: Option<SystemTime>,
    changed: i64,
    length: u64,
}

impl Stamp {
    fn of(known: &Metadata) -> Self {
        let changed = known.ctime().saturating_mul(1_000_000_000).saturating_add(known.ctime_nsec());
        Self { written: known.modified().ok(), changed, length: known.len() }
    }
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
        /// Whether it is somebody else's: that changes without the file when it is trusted.
        is_foreign: bool,
    },
}

impl Content {
    /// Whether it stays what it is as long as the file does.
    const fn is_settled(&self) -> bool {
        match self {
            Self::Specialist { .. } => true,
            Self::Faulty { is_foreign, .. } => !*is_foreign,
        }
    }
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

/// Looks at the folder, which lies in `base`. One that is not there has no files.
pub(crate) fn look(folder: &Path, base: &Path, trust: &Trust, before: &Files) -> Files {
    let mut files = Files::new();
    for path in files_of(folder, EXTENSION).into_iter().take(MOST_FILES) {
        let Ok(state) = std::fs::metadata(&path) else { continue };
        let stamp = Stamp::of(&state);
        let is_known = |known: &&File| known.stamp == stamp && known.content.is_settled();
        let known = before.get(&path).filter(is_known);
        let content = known.map_or_else(|| read(&path, base, trust), |known| known.content.clone());
        files.insert(path, File { stamp, content });
    }
    files
}

fn read(path: &Path, base: &Path, trust: &Trust) -> Content {
    match agent_file::read_found(path, base, trust) {
        Ok(definition) => Content::Specialist { role: definition.role.to_string(), hash: definition.hash },
        Err(error) => Content::Faulty { is_foreign: error.is_foreign(), reason: error.to_string() },
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
                    is_foreign: false,
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
            Content::Faulty { reason, .. } => Order::Refuse { path: path.clone(), reason: reason.clone() },
        });
    }
    orders
}

/// Looks at the folder of the settings.
pub(crate) fn look_for(app: &App, before: &Files) -> Files {
    let folder = app.beside_fleet(Path::new(AGENTS_DIR));
    let base = app.fleet.path().parent().filter(|base| folder.starts_with(base)).unwrap_or(&folder);
    look(&folder, base, &app.trust, before)
}

#[cfg(test)]
mod tests {
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
            files = look(folder.path(), folder.path(), &Trust::default(), &files);
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
        assert!(look(&path("nowhere"), folder.path(), &Trust::default(), &files).is_empty());
    }

    /// A file that others can write is left out, and looked at again when that changes.
    #[test]
    fn a_file_that_others_can_write_does_not_count() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.agent.md", "auditor", "one");
        let path = folder.path().join("a.agent.md");
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let look = |files: &Files| look(folder.path(), folder.path(), &Trust::default(), files);
        set(0o666);
        let files = look(&Files::new());
        let Content::Faulty { reason, .. } = &files[&path].content else { unreachable!("{files:?}") };
        assert!(reason.contains("can be written by others"), "{reason}");
        set(0o644);
        let files = look(&files);
        assert!(matches!(files[&path].content, Content::Specialist { .. }));
        set(0o666);
        assert!(matches!(look(&files)[&path].content, Content::Faulty { .. }), "it is closed no more");
    }
}
