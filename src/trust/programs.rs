//! Files of a project that a command runs. Their content is trusted with the command.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::record::real;

/// Most files of one command.
const MAX_FILES: usize = 256;
/// Most directories in which the arguments of a command are searched.
const MAX_FOLDERS: usize = 16;
/// Programs that run the first file among their arguments, with any name.
const INTERPRETERS: &str = "bash bun dash deno java lua node npx perl php python ruby sh tsx uv zsh";
/// Extensions of programs.
const ENDINGS: &str = "bash cjs jar js lua mjs php pl pth py pyc rb sh so ts wasm zsh";
/// Files that make a directory executable as a program.
const ENTRIES: [&str; 4] = ["package.json", "__main__.py", "index.js", "pyproject.toml"];

/// Files in `base` that a command runs in `folder`: the command, scripts among its arguments, and packages. Data files are not
/// included.
pub(crate) fn in_project(command: &[String], folder: &Path, base: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    let is_within = |path: &Path| path.starts_with(base) || real(path).starts_with(real(base));
    let name = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let mut runs_next = INTERPRETERS.split(' ').any(|interpreter| name.starts_with(interpreter));
    for (number, word) in command.iter().enumerate() {
        for part in paths_in(word) {
            let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.join(part)).collect();
            // The system searches a command without a slash in PATH.
            for path in paths.into_iter().filter(|path| is_within(path) && (number > 0 || word.contains('/')))
            {
                if path.is_file() && (number == 0 || runs_next || is_program(&path)) {
                    runs_next &= number == 0;
                    found.insert(path);
                } else if path.is_dir() {
                    if ENTRIES.iter().any(|entry| path.join(entry).is_file()) {
                        package(&path, &mut found);
                    }
                    if folders.len() < MAX_FOLDERS && !folders.contains(&path) {
                        folders.push(path);
                    }
                }
            }
        }
    }
    found.into_iter().take(MAX_FILES).collect()
}

/// Parts of an argument that may be paths: the argument, and its parts between blanks, quotes and operators of a shell.
fn paths_in(word: &str) -> impl Iterator<Item = &str> {
    let parts = word.split(|sign: char| sign.is_whitespace() || "\"'`;|&()<>=,:".contains(sign));
    std::iter::once(word).chain(parts).filter(|part| !part.is_empty())
}

fn is_program(path: &Path) -> bool {
    has_ending_of_program(path) || is_executable(path)
}

/// Returns true if programs load files of this name.
pub(crate) fn has_ending_of_program(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.split(' ').any(|known| known == ending)
}

/// Returns true if a file has an executable bit.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|known| known.permissions().mode() & 0o111 != 0)
}

/// Adds the programs of a package, and the files that select one of them.
fn package(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for path in super::files_of(folder, "") {
        if found.len() >= MAX_FILES {
            return;
        }
        if path.is_dir() {
            package(&path, found);
        } else if ENTRIES.iter().any(|entry| path.ends_with(entry)) || is_program(&path) {
            found.insert(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_project_are_found_in_a_command_and_data_is_not() {
        let base = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = base.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (name, text) in [
            ("srv", "#!/bin/sh\n"),
            ("un.py", "print(1)"),
            ("plain", "echo"),
            ("data.db", "rows"),
            ("docs/a.md", "text"),
            ("pkg/package.json", "{}"),
            ("pkg/lib/x.js", "1"),
            ("sub/main.py", "1"),
        ] {
            write(name, text);
        }
        let cases: [(&[&str], &[&str]); 15] = [
            (&["./srv", "data.db"], &["srv"]),
            (&["python3", "./un.py", "data.db"], &["un.py"]),
            (&["python3", "-u", "un.py"], &["un.py"]),
            (&["sh", "plain", "data.db"], &["plain"]),
            (&["sh", "-c", "cd . && exec './srv' --db=data.db"], &["srv"]),
            (&["sh", "-c", "python3 un.py>log;./plain"], &["un.py"]),
            (&["sh", "-c", "cd sub && python3 main.py"], &["sub/main.py"]),
            (&["npx", "./pkg"], &["pkg/lib/x.js", "pkg/package.json"]),
            (&["uv", "run", "--directory", "./sub", "main.py"], &["sub/main.py"]),
            (&["env", "--script=un.py"], &["un.py"]),
            (&["mcp-server-sqlite", "--db", "data.db"], &[]),
            (&["npx", "-y", "server-filesystem", "./docs"], &[]),
            (&["srv"], &[]),
            (&["/usr/bin/env", "true"], &[]),
            (&[], &[]),
        ];
        for (command, wanted) in cases {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let found = in_project(&command, base.path(), base.path());
            let found: Vec<_> = found.iter().map(|path| real(path)).collect();
            let wanted: Vec<_> = wanted.iter().map(|name| real(&base.path().join(name))).collect();
            assert_eq!(found, wanted, "{command:?}");
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let command = vec![base.path().join("srv").display().to_string()];
        assert!(in_project(&command, elsewhere.path(), elsewhere.path()).is_empty());
        assert_eq!(in_project(&command, elsewhere.path(), base.path()).len(), 1);
    }
}
