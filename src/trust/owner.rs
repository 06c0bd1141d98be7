//! Whose a file is: it and the folders that hold it belong to the user or to root, and nobody else can write them.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid};

use super::record::{absolute, real};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Me {
    /// The user.
    uid: u32,
    /// The user's group.
    gid: u32,
    /// Whether nobody else is in that group, where it is known already.
    alone: Option<bool>,
}

impl Me {
    /// The user of this process.
    pub(crate) fn of_process() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw(), alone: None }
    }

    /// Whether nobody else is in this group. The system is asked when it matters, and once: what answers it is loaded for
    /// that.
    fn is_alone_in(self, gid: u32) -> bool {
        static ALONE: OnceLock<bool> = OnceLock::new();
        gid == self.gid && self.alone.unwrap_or_else(|| *ALONE.get_or_init(|| is_private(getegid())))
    }
}

/// Returns true if no other user is in a group, by the system's databases.
fn is_private(gid: Gid) -> bool {
    let user = User::from_uid(geteuid()).ok().flatten();
    let group = Group::from_gid(gid).ok().flatten();
    let Some((user, group)) = user.zip(group) else { return false };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    group.name == user.name
        && group.mem.iter().all(|member| *member == user.name)
        && !is_primary_of_others(gid.as_raw(), &user.name, &users)
}

/// Returns true if users other than this one have the group as their primary group, by the text of `/etc/passwd`.
fn is_primary_of_others(gid: u32, user: &str, users: &str) -> bool {
    users.lines().map(|line| line.split(':')).any(|mut parts| {
        parts.next() != Some(user) && parts.nth(2).and_then(|group| group.parse().ok()) == Some(gid)
    })
}

/// The attribute of a file with its access control list.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// What the system says of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    uid: u32,
    gid: u32,
    mode: u32,
    is_folder: bool,
}

impl Facts {
    fn of(path: &Path) -> io::Result<Self> {
        let known = std::fs::metadata(path)?;
        // A list names further users, and the bits of the group are their mask: the group is not the user's own.
        let has_list = rustix::fs::getxattr_query(path, ACCESS_LIST).is_ok();
        let gid = if has_list { u32::MAX } else { known.gid() };
        Ok(Self { uid: known.uid(), gid, mode: known.mode(), is_folder: known.is_dir() })
    }
}

/// Why something does not count as the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It belongs to somebody else.
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// Others can write it.
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is a link that leads elsewhere.
    Link {
        /// The link.
        path: PathBuf,
    },
}

impl Fault {
    /// The same of a file that is named already.
    pub(crate) fn about(&self, file: &Path) -> String {
        let (Self::Foreign { path, .. } | Self::Writable { path, .. } | Self::Link { path }) = self;
        let said = self.to_string();
        let rest = said.strip_prefix(&path.display().to_string()).filter(|_| real(path) == real(file));
        rest.map_or_else(|| said.clone(), |rest| format!("it{rest}"))
    }

    /// What a person can do about it, besides trusting it.
    pub(crate) fn mend(&self) -> String {
        match self {
            Self::Foreign { path, .. } => {
                format!("work in a folder of your own, or make {} yours with `chown`", path.display())
            }
            Self::Writable { path, .. } => format!("`chmod go-w {}` keeps others out", path.display()),
            Self::Link { path } => format!("replace {} by a file or directory", path.display()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { path, uid } => {
                let name = User::from_uid(Uid::from_raw(*uid)).ok().flatten();
                let name = name.map_or_else(|| "a user".to_owned(), |user| user.name);
                write!(f, "{} belongs to {name} (uid {uid})", path.display())
            }
            Self::Writable { path, mode } => {
                write!(f, "{} can be written by others (mode {:o})", path.display(), mode & 0o7777)
            }
            Self::Link { path } => write!(f, "{} is a link that leads elsewhere", path.display()),
        }
    }
}

const STICKY: u32 = 0o1000;
const BY_GROUP: u32 = 0o020;
const BY_ALL: u32 = 0o002;

/// What is wrong with one file or folder. Pure.
fn fault(me: Me, path: &Path, facts: Facts) -> Option<Fault> {
    if facts.uid != me.uid && facts.uid != 0 {
        return Some(Fault::Foreign { path: path.to_owned(), uid: facts.uid });
    }
    // In such a folder, as in /tmp, nobody replaces what belongs to others; files in it are looked at by themselves.
    let keeps_apart = facts.is_folder && facts.mode & STICKY != 0;
    let by_group = facts.mode & BY_GROUP != 0 && !me.is_alone_in(facts.gid);
    let open = facts.mode & BY_ALL != 0 || by_group;
    (open && !keeps_apart).then(|| Fault::Writable { path: path.to_owned(), mode: facts.mode })
}

fn look(me: Me, path: &Path) -> io::Result<Option<Fault>> {
    let own = of_link(me, path);
    Ok(own.or(fault(me, path, Facts::of(path)?)))
}

/// Whose a link is, where it is somebody else's: in a folder as /tmp, whatever he chose would count as the user's own.
fn of_link(me: Me, path: &Path) -> Option<Fault> {
    let known = std::fs::symlink_metadata(path).ok()?;
    let is_foreign = known.is_symlink() && known.uid() != me.uid && known.uid() != 0;
    is_foreign.then(|| Fault::Foreign { path: path.to_owned(), uid: known.uid() })
}

/// What is wrong with a file that was found, or with a folder that holds it, up to `base` where it lies below that. What
/// is not there is nobody else's.
pub(crate) fn of_found(me: Me, path: &Path, base: &Path) -> Option<Fault> {
    let (path, base) = (absolute(path), absolute(base));
    let mut places = vec![path.clone()];
    let within = path.starts_with(&base);
    let above = path.ancestors().skip(1).take_while(|folder| !within || folder.starts_with(&base));
    places.extend(above.take(if within { usize::MAX } else { 1 }).map(Path::to_owned));
    // Behind a link lies another folder.
    let target = real(&path);
    let leads_out = within && path.exists() && !target.starts_with(real(&base));
    places.extend(target.parent().map(Path::to_owned));
    let fault = places.iter().find_map(|place| match look(me, place) {
        Ok(fault) => fault,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // What cannot even be looked at is somebody else's.
        Err(_) => Some(Fault::Foreign { path: place.clone(), uid: u32::MAX }),
    });
    fault.or_else(|| leads_out.then_some(Fault::Link { path }))
}

/// What is wrong with a file that was named. Where it lies was chosen with it, so the folders are not looked at; what is
/// no ordinary file is not looked at either.
pub(crate) fn of_named(me: Me, path: &Path) -> Option<Fault> {
    let facts = Facts::of(path).ok().filter(|_| path.is_file())?;
    fault(me, path, facts)
}

/// What is wrong with a folder or file in which only the user's own word is believed: root's does not count.
pub(crate) fn of_own(me: Me, path: &Path) -> Option<Fault> {
    if let Some(fault) = of_link(me, path) {
        return Some(fault);
    }
    let facts = Facts::of(path).ok()?;
    if facts.uid != me.uid {
        return Some(Fault::Foreign { path: path.to_owned(), uid: facts.uid });
    }
    fault(me, path, Facts { mode: facts.mode & !STICKY, ..facts })
}

/// The first link in the directory of a fleet, down to the folders of its folders: what is written there would be written
/// elsewhere. Programs in `bin` may be links.
pub(crate) fn link_in(folder: &Path, depth: u8) -> Option<Fault> {
    let known = std::fs::symlink_metadata(folder).ok()?;
    if known.is_symlink() {
        return Some(Fault::Link { path: folder.to_owned() });
    }
    if !known.is_dir() || depth == 0 || folder.ends_with(".muster/bin") {
        return None;
    }
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| link_in(&entry.path(), depth - 1))
}

/// Whether the process with this number belongs to the user; `None` where the system does not say.
pub(crate) fn is_own_process(pid: u32) -> Option<bool> {
    // Not by whose its folder in /proc is: that of a process that keeps its memory to itself is root's.
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let uid: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(uid == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ME: Me = Me { uid: 1000, gid: 1000, alone: Some(true) };

    fn judged(uid: u32, gid: u32, mode: u32, is_folder: bool) -> Option<Fault> {
        fault(ME, Path::new("x"), Facts { uid, gid, mode, is_folder })
    }

    #[test]
    fn what_is_mine_or_roots_and_closed_to_others_counts() {
        for (uid, gid, mode, is_folder) in [
            (1000, 1000, 0o644, false),
            (1000, 1000, 0o664, false),
            (0, 0, 0o644, false),
            (1000, 1000, 0o775, true),
            (0, 0, 0o1777, true),
        ] {
            assert_eq!(judged(uid, gid, mode, is_folder), None, "{uid} {gid} {mode:o}");
        }
        assert!(matches!(judged(1001, 1000, 0o600, false), Some(Fault::Foreign { uid: 1001, .. })));
        for (uid, gid, mode, is_folder) in [
            (1000, 1000, 0o666, false),
            (1000, 1000, 0o1666, false),
            (1000, 100, 0o664, false),
            (0, 0, 0o664, false),
            (1000, 1000, 0o777, true),
        ] {
            let fault = judged(uid, gid, mode, is_folder);
            assert!(matches!(fault, Some(Fault::Writable { .. })), "{uid} {gid} {mode:o}: {fault:?}");
        }
    }

    #[test]
    fn without_a_group_of_ones_own_no_group_may_write() {
        let among_others = Me { alone: Some(false), ..ME };
        let facts = Facts { uid: 1000, gid: 1000, mode: 0o664, is_folder: false };
        assert!(fault(among_others, Path::new("x"), facts).is_some());
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:1002::/:/bin/sh";
        assert!(!is_primary_of_others(1000, "ann", users) && !is_primary_of_others(1002, "bob", users));
        assert!(is_primary_of_others(1002, "ann", users) && is_primary_of_others(1000, "bob", users));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn access_control_list_with_write_access_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (me, file) = (Me { alone: Some(true), ..Me::of_process() }, folder.path().join("muster.toml"));
        std::fs::write(&file, "").unwrap();
        for (rights, is_open) in [(6, true), (4, false)] {
            // The version, and entries of a tag, rights and an id: owner, a user, group, mask and others.
            let entry = |tag: u32, rights: u32, id: u32| [tag | rights << 16, id];
            let (user, mask) = (entry(2, rights, 65534), entry(16, rights, u32::MAX));
            let entries = [entry(1, 6, u32::MAX), user, entry(4, 4, u32::MAX), mask, entry(32, 0, u32::MAX)];
            let list = [&[2][..], entries.as_flattened()].concat();
            let list: Vec<u8> = list.into_iter().flat_map(u32::to_le_bytes).collect();
            let set = rustix::fs::setxattr(&file, ACCESS_LIST, &list, rustix::fs::XattrFlags::empty());
            // A file system without such lists.
            if set != Err(rustix::io::Errno::OPNOTSUPP) {
                set.unwrap();
                let faults = [of_found(me, &file, folder.path()), of_named(me, &file), of_own(me, &file)];
                assert_eq!(faults.map(|fault| fault.is_some()), [is_open; 3], "{rights}");
            }
        }
    }

    #[test]
    fn folders_are_looked_at_up_to_the_base_and_no_further() {
        let me = Me::of_process();
        let outer = tempfile::tempdir().unwrap();
        let base = outer.path().join("project");
        let inner = base.join("agents");
        std::fs::create_dir_all(&inner).unwrap();
        let file = inner.join("x.agent.md");
        std::fs::write(&file, "").unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for path in [&file, &inner, &base] {
            open(path, 0o700);
        }
        open(outer.path(), 0o777);
        assert_eq!(of_found(me, &file, &base), None);
        for path in [&file, &inner, &base] {
            open(path, 0o777);
            let found = of_found(me, &file, &base);
            assert!(matches!(&found, Some(Fault::Writable { path: open, .. }) if open == path), "{found:?}");
            open(path, 0o700);
        }
        assert_eq!(of_found(me, &inner.join("missing"), &base), None);
    }

    #[test]
    fn behind_a_link_the_folder_counts_that_it_leads_to() {
        let me = Me::of_process();
        let (mine, open) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(open.path().join("muster.toml"), "").unwrap();
        std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let link = mine.path().join("muster.toml");
        std::os::unix::fs::symlink(open.path().join("muster.toml"), &link).unwrap();
        assert!(matches!(of_found(me, &link, mine.path()), Some(Fault::Writable { .. })));
        std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(of_found(me, &link, mine.path()), Some(Fault::Link { path: link }));
    }

    #[test]
    fn a_link_of_somebody_elses_does_not_count_whatever_it_leads_to() {
        if !geteuid().is_root() {
            return;
        }
        let (me, folder) = (Me { uid: 0, gid: 0, alone: Some(true) }, tempfile::tempdir().unwrap());
        let (file, link) = (folder.path().join("mine"), folder.path().join("muster.toml"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!((of_found(me, &link, folder.path()), of_own(me, &link)), (None, None));
        std::os::unix::fs::lchown(&link, Some(1001), None).unwrap();
        for found in [of_found(me, &link, folder.path()), of_own(me, &link)] {
            assert!(matches!(found, Some(Fault::Foreign { uid: 1001, .. })), "{found:?}");
        }
    }

    #[test]
    fn this_process_is_mine() {
        if cfg!(target_os = "linux") {
            assert_eq!(is_own_process(std::process::id()), Some(true));
        }
    }
}
