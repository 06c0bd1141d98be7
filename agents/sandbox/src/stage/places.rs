//! What of the system programs see, and how a namespace of their own comes to it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{chdir, pivot_root};

use crate::wire::Failure;

/// Where the folder of a program is, in a namespace of its own.
pub(super) const FOLDER: &str = "/work";

/// Where files outside are, until the program is started.
const OLD: &str = "/.old";

/// Folders that programs take for granted, and what of their own folder stands there.
pub(super) const SCRATCH: &[(&str, &str)] = &[("/tmp", ".tmp"), ("/dev/shm", ".shm")];

/// Names in the folder of a program that are ours.
pub(super) const OURS: &[&str] = &[".home", ".tmp", ".shm"];

/// Where programs and their libraries lie.
const PROGRAMS: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// What of the system's settings programs need to run. Nothing of it says who is on the machine.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Settings that are not the machine's.
const MADE: &[(&str, &str)] = &[
    ("/etc/passwd", "root:x:0:0::/:/bin/false\nuser:x:1000:1000::/work/.home:/bin/sh\n"),
    ("/etc/group", "root:x:0:\nuser:x:1000:\n"),
    ("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
];

/// A place of the system.
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

/// What every program sees of the system.
pub(super) fn of_the_system() -> impl Iterator<Item = Place> {
    let place = |writable| move |path: &&str| Place { path: PathBuf::from(path), writable };
    let made = MADE.iter().map(|(path, _)| path);
    PROGRAMS.iter().chain(SETTINGS).chain(made).map(place(false)).chain(DEVICES.iter().map(place(true)))
}

/// Lets one user outside be one user inside.
///
/// # Errors
/// When the kernel does not let us.
pub(super) fn map_user(inside: u32, user: u32, group: u32) -> Result<(), Failure> {
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{inside} {user} 1")),
        ("/proc/self/gid_map", format!("{inside} {group} 1")),
    ];
    for (file, text) in maps {
        fs::write(file, text).map_err(|error| Failure::NoNamespaces(format!("{file}: {error}")))?;
    }
    Ok(())
}

/// Makes a root of its own out of what programs may see. Files outside stay at [`OLD`] until [`close`].
///
/// # Errors
/// When the kernel does not let us.
pub(super) fn enter() -> Result<(), Failure> {
    bind_flags("/", MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    let base =
        ["/tmp", "/mnt", "/var", "/usr"].into_iter().find(|path| Path::new(path).is_dir()).unwrap_or("/");
    fresh(base, "size=4m,nr_inodes=4096,mode=755", MsFlags::MS_NOSUID)?;
    let old = Path::new(base).join(".old");
    fs::create_dir(&old).map_err(Failure::at("a place for the old root"))?;
    pivot_root(base, &old).map_err(no_namespace("changing the root"))?;
    chdir("/").map_err(no_namespace("changing the root"))?;
    for folder in ["/proc", "/dev", "/dev/shm", "/tmp", "/etc", FOLDER] {
        fs::create_dir(folder).map_err(Failure::at("the folders of a new root"))?;
    }
    let proc = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), proc, None::<&str>).map_err(no_namespace("mounting /proc"))?;
    for (path, text) in MADE {
        fs::write(path, text).map_err(Failure::at("settings of a new root"))?;
    }
    for path in PROGRAMS.iter().chain(SETTINGS) {
        show(Path::new(path))?;
    }
    for path in DEVICES {
        show_device(path)?;
    }
    let links = [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")];
    for (name, of) in links {
        symlink(format!("/proc/self/fd{of}"), format!("/dev/{name}"))
            .map_err(Failure::at("links of a new root"))?;
    }
    Ok(())
}

/// Makes the folder of the program, of this size in bytes and with so many files, and what stands for others in it.
///
/// # Errors
/// When the kernel does not let us.
pub(super) fn make_folder(disk: u64, most_files: u32) -> Result<(), Failure> {
    // Folders, and what a program makes on its way, count too.
    let inodes = u64::from(most_files).saturating_mul(4).saturating_add(256);
    let options = format!("size={disk},nr_inodes={inodes},mode=700");
    fresh(FOLDER, &options, MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
    for (path, name) in SCRATCH {
        let own = Path::new(FOLDER).join(name);
        fs::create_dir(&own).map_err(Failure::at("the folder of the program"))?;
        mount(Some(&own), *path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(no_namespace("a place for temporary files"))?;
    }
    Ok(())
}

/// Shows a file or folder of outside at its own path, to be read.
///
/// # Errors
/// When the kernel does not let us. What is not there is passed over.
pub(super) fn show(path: &Path) -> Result<(), Failure> {
    let outside = outside(path);
    let Ok(meta) = fs::symlink_metadata(&outside) else { return Ok(()) };
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Failure::at("a place for what may be read"))?;
    }
    if meta.is_symlink() && PROGRAMS.iter().any(|own| path == Path::new(own)) {
        // `/bin` leads to `usr/bin` on most machines.
        let target = fs::read_link(&outside).map_err(Failure::at("following a link"))?;
        return symlink(target, path).map_err(Failure::at("a link of the new root"));
    }
    // Where we are not let look, the program would not be either. A link leads on within what is outside.
    let Some(real) = resolve(path) else { return Ok(()) };
    let Ok(meta) = fs::metadata(&real) else { return Ok(()) };
    if meta.is_dir() {
        fs::create_dir_all(path).map_err(Failure::at("a place for what may be read"))?;
    } else {
        fs::write(path, "").map_err(Failure::at("a place for what may be read"))?;
    }
    mount(Some(&real), path, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .map_err(|error| Failure::NoNamespaces(format!("showing {}: {error}", path.display())))?;
    for one in mounts_below(path)? {
        read_only(&one)?;
    }
    Ok(())
}

/// Takes away what is outside, and lets nothing of the root be changed.
///
/// # Errors
/// When the kernel does not let us.
pub(super) fn close() -> Result<(), Failure> {
    umount2(OLD, MntFlags::MNT_DETACH).map_err(no_namespace("closing the old root"))?;
    fs::remove_dir(OLD).map_err(Failure::at("closing the old root"))?;
    read_only(Path::new("/"))
}

fn outside(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

/// Where a path of outside leads to, with its links followed as they would be there.
fn resolve(path: &Path) -> Option<PathBuf> {
    /// As many as the kernel follows.
    const MOST_LINKS: usize = 40;
    let mut left: Vec<OsString> = path.iter().skip(1).map(OsStr::to_owned).collect();
    left.reverse();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        match part.as_bytes() {
            b"." | b"/" => continue,
            b".." => {
                at.pop();
                continue;
            }
            _ => at.push(&part),
        }
        if !fs::symlink_metadata(outside(&at)).ok()?.is_symlink() {
            continue;
        }
        links += 1;
        let target = fs::read_link(outside(&at)).ok().filter(|_| links <= MOST_LINKS)?;
        at.pop();
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        left.extend(target.iter().map(OsStr::to_owned).collect::<Vec<_>>().into_iter().rev());
    }
    Some(outside(&at))
}

fn show_device(path: &str) -> Result<(), Failure> {
    fs::write(path, "").map_err(Failure::at("a place for a device"))?;
    mount(Some(&outside(Path::new(path))), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(no_namespace("showing a device"))
}

fn fresh(at: &str, options: &str, flags: MsFlags) -> Result<(), Failure> {
    mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some(options)).map_err(no_namespace("a folder in memory"))
}

fn bind_flags(at: &str, flags: MsFlags) -> Result<(), Failure> {
    mount(None::<&str>, at, None::<&str>, flags, None::<&str>).map_err(no_namespace("mounts of its own"))
}

/// What was set outside stays set: the kernel lets nobody take it away here.
fn read_only(at: &Path) -> Result<(), Failure> {
    let now = match statvfs(at) {
        Ok(stat) => stat.flags(),
        // Something lies over it, or we may not look: nobody here can reach it either.
        Err(Errno::EACCES | Errno::ENOENT) => return Ok(()),
        Err(error) => return Err(Failure::NoNamespaces(format!("{}: {error}", at.display()))),
    };
    let kept = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    let kept = kept.into_iter().filter(|(now_set, _)| now.contains(*now_set)).map(|(_, flag)| flag);
    let flags = kept.fold(
        MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID,
        |all, one| all | one,
    );
    mount(None::<&str>, at, None::<&str>, flags, None::<&str>)
        .map_err(|error| Failure::NoNamespaces(format!("making {} unchangeable: {error}", at.display())))
}

/// The mounts at a path and below it, as the kernel lists them.
fn mounts_below(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let list = fs::read_to_string("/proc/self/mountinfo").map_err(Failure::at("listing mounts"))?;
    let points = list.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
    Ok(points.filter(|point| point.starts_with(path)).collect())
}

/// Blanks and the like stand as three octal digits there.
fn unescape(point: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = point.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped =
            digits.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = more.get(if escaped.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

fn no_namespace(what: &'static str) -> impl Fn(Errno) -> Failure {
    move |error| Failure::NoNamespaces(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_blanks_in_them() {
        for (written, meant) in
            [("/usr", "/usr"), ("/a\\040b", "/a b"), ("/a\\134", "/a\\"), ("/x\\", "/x\\")]
        {
            assert_eq!(unescape(written), PathBuf::from(meant));
        }
    }
}
