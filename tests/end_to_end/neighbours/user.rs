//! Another user of the machine, in the fleet's folder and at its address.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use muster_support::fleet::{Folder, both};
use muster_support::skip::skipped;
use nix::unistd::Uid;

use super::goes_on;
use crate::support::folder;

/// The user that is nobody.
const NOBODY: &str = "65534";

/// Runs a program as another user, with a home of its own.
fn as_another(
    home: &Path,
    at: &Path,
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Output {
    Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", program])
        .args(arguments)
        .current_dir(at)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("NO_COLOR", "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// A folder that belongs to the other user.
fn home() -> tempfile::TempDir {
    let home = tempfile::TempDir::new().unwrap();
    let nobody = NOBODY.parse::<u32>().unwrap();
    std::os::unix::fs::chown(home.path(), Some(nobody), Some(nobody)).unwrap();
    home
}

/// What is there at any depth, byte for byte; but of what a fleet at work writes by itself only that it is all its own.
fn there(folder: &Folder) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(at: &Path, root: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
            let path = entry.path();
            let known = path.strip_prefix(root).unwrap().to_owned();
            let is_fleets = known.starts_with(".muster");
            let kept = match std::fs::symlink_metadata(&path) {
                Ok(kept) => kept,
                // It was replaced meanwhile.
                Err(_) if is_fleets => continue,
                Err(error) => panic!("{}: {error}", path.display()),
            };
            assert_eq!(kept.uid(), Uid::effective().as_raw(), "{} is somebody else's", path.display());
            if kept.is_dir() {
                walk(&path, root, found);
            }
            if !is_fleets {
                let bytes = if kept.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
                found.insert(known, [format!("{:o} ", kept.mode()).into_bytes(), bytes].concat());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder.path(), folder.path(), &mut found);
    found
}

#[test]
fn another_user_of_the_machine_reads_and_changes_nothing() {
    if !Uid::effective().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        return skipped("another user of the machine", "it takes root and `setpriv`");
    }
    let folder = folder().with("OPENAI_API_KEY", format!("sk-{}", "proj-Nb81kLmQ0aaR7uVnB3yT5wZx"));
    folder.write("docs/tides.md", "# Tides\n\nThe tide turns at noon.\n").unwrap();
    // As folders of projects are: everybody may look.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    assert!(
        folder.run(&["run", "What is 3 + 4?", "--quiet", "--model", "offline"]).unwrap().status.success()
    );
    let before = there(folder);
    let home = home();
    let other =
        |program: &str, arguments: &[&str]| as_another(home.path(), folder.path(), program, arguments, &[]);

    // The other user gets as far as the folder.
    let seen = other("cat", &["docs/tides.md"]);
    assert!(both(&seen).contains("turns at noon"), "{}", both(&seen));
    for what in ["-readable", "-writable"] {
        let found = other("find", &[".muster", "-type", "f", what]);
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{what} to others in .muster");
    }
    let found = other("find", &[".", "-writable"]);
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "writable to others");
    for plant in [
        ".muster/x",
        ".muster/fleet.json",
        ".muster/nats/keys/x.creds",
        "muster.toml",
        "agents/x.agent.md",
        "docs/x.md",
    ] {
        let planted = other("sh", &["-c", &format!("mkdir -p $(dirname {plant}); echo x > {plant}")]);
        assert!(!planted.status.success(), "{plant} was planted");
    }
    // Processes give nothing away to whoever lists them.
    for (name, pid) in fleet.pids() {
        let environ = other("cat", &[&format!("/proc/{pid}/environ")]);
        assert!(!environ.status.success(), "the environment of {name} is read");
        let line =
            String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap()).into_owned();
        assert!(!line.contains("sk-") && !line.contains("SUA") && !line.contains("eyJ"), "{name}: {line}");
        let killed = other("sh", &["-c", &format!("kill {pid}")]);
        assert!(!killed.status.success(), "{name} was ended");
    }

    let muster = env!("CARGO_BIN_EXE_muster");
    if !as_another(home.path(), home.path(), muster, &["--version"], &[]).status.success() {
        return skipped("muster as another user", "the binary lies where others cannot run it");
    }
    let url = fleet.url();
    let commands: [&[&str]; 14] = [
        &["runs"],
        &["show", "last"],
        &["trace", "last"],
        &["ps"],
        &["cancel", "last"],
        &["approve", "last"],
        &["answer", "last", "1", "yes"],
        &["edit", "last", "--goal", "Do as I say."],
        &["context", "last"],
        &["artifacts", "last"],
        &["dead", "list"],
        &["keys", "list"],
        &["keys", "issue", "operator", "--out", "/dev/stdout"],
        &["down"],
    ];
    // Whoever may is let do such things: it is the user that makes the difference.
    for command in
        [&["runs"][..], &["show", "last"], &["trace", "last"], &["ps"], &["dead", "list"], &["keys", "list"]]
    {
        let own = folder.run(command).unwrap();
        assert!(own.status.success(), "{command:?}: {}", both(&own));
    }
    for command in commands {
        for variables in [&[][..], &[("MUSTER_BUS_URL", url.as_str())]] {
            let tried = as_another(home.path(), folder.path(), muster, command, variables);
            assert!(!tried.status.success(), "{command:?} {variables:?}: {}", both(&tried));
            let said = both(&tried);
            assert!(!said.contains("3 + 4") && !said.contains("SUA"), "{command:?}: {said}");
        }
    }
    let asked = as_another(
        home.path(),
        folder.path(),
        muster,
        &["run", "What is 5 + 6?", "--quiet", "--model", "offline"],
        &[("MUSTER_BUS_URL", url.as_str())],
    );
    assert!(!asked.status.success(), "{}", both(&asked));

    assert_eq!(there(folder), before, "nothing of the folder was changed");
    goes_on(&fleet);
    let runs = folder.json(&["runs", "--json"]).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
}
