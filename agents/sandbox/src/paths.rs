//! Paths of the machine: where programs are found, and what none may be given to read.

use std::path::{Component, Path, PathBuf};

/// Where a command is found: programs in the sandbox have this path.
pub(crate) const PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The program of a command by its absolute path; none where it is not there.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Path::new(name).is_file().then(|| PathBuf::from(name));
    }
    let is_name = !name.is_empty() && !name.contains('/');
    PATH.iter().map(|folder| Path::new(folder).join(name)).find(|path| is_name && path.is_file())
}

/// Folders that no program is given anything of: devices, processes, sockets of services.
const CLOSED: [&str; 5] = ["/dev", "/proc", "/run", "/sys", "/var/run"];

/// Names of files and folders that hold keys, and of our own.
const SECRET: [&str; 6] = [".muster", ".ssh", ".gnupg", ".aws", ".netrc", ".docker"];

/// Whether programs may be given this to read: never all of the machine, nor the home of whoever runs us as a whole, nor
/// where keys are. Links in it are followed first.
pub(crate) fn may_be_read(path: &Path) -> Result<(), String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    [path, &real]
        .into_iter()
        .find_map(|path| fault(path, home.as_deref()))
        .map_or(Ok(()), |why| Err(format!("programs may not be given {} to read: {why}", path.display())))
}

fn fault(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let names = |name: &&str| path.components().any(|part| part.as_os_str() == *name);
    if !path.is_absolute() || !is_plain {
        Some("an absolute path without .. is meant")
    } else if path == Path::new("/")
        || home.is_some_and(|home| home != Path::new("/") && home.starts_with(path))
    {
        Some("the home of whoever runs it is in it")
    } else if CLOSED.iter().any(|closed| path.starts_with(closed)) {
        Some("devices, processes and services are there")
    } else if SECRET.iter().any(names) {
        Some("keys are kept there")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_keys_or_all_of_the_machine_is_never_given() {
        let home = Some(Path::new("/home/ann"));
        let given = ["/opt/python", "/home/ann/tools", "/usr/share/dict/words", "/home/bob", "/var/lib/x"];
        let others = [
            "/",
            "/home",
            "/home/ann",
            "/proc/1/environ",
            "/dev",
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/sys",
            "/home/ann/.ssh",
            "/home/ann/.ssh/id",
            "/work/.muster/keys",
            "tools",
            "/opt/../etc",
            "",
        ];
        for (list, expected) in [(given.as_slice(), true), (others.as_slice(), false)] {
            for path in list {
                assert_eq!(fault(Path::new(path), home).is_none(), expected, "{path}");
            }
        }
    }

    #[test]
    fn programs_are_found_by_name_on_a_path_of_ours_alone() {
        assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
        for name in ["", "no-such-program", "./sh", "../bin/sh", "bin/sh", "/bin", "/no/such"] {
            assert_eq!(find_program(name), None, "{name}");
        }
    }
}
