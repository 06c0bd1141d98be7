//! Files of a project that commands run. Their content is trusted with the command.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::record::real;

/// Most files of one command.
const MAX_FILES: usize = 256;
/// Most directories in which the arguments of a command are searched.
const MAX_FOLDERS: usize = 16;
/// Programs that run the first file among their arguments, with any name.
const INTERPRETERS: &str =
    "awk bash bun dash deno gawk gmake java lua make mawk node npx perl php python ruby sh tsx uv zsh";
/// Variables that change how programs are found or loaded, in addition to families of names.
const LOADERS: &str = "CLASSPATH ENV NODE_PATH PATH PERL5LIB PYTHONPATH PYTHONSTARTUP RUBYLIB";
/// Extensions of programs.
const ENDINGS: &str = "awk bash cjs go jar js lua mjs mk php pl pth py pyc rb sh so ts wasm zsh";
/// Files that make a directory executable as a program.
const ENTRIES: [&str; 5] = ["package.json", "__main__.py", "index.js", "main.go", "pyproject.toml"];

/// Programs of a project that commands run.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// Existing files: the command, scripts among its arguments and in its environment, and packages. Data files are not
    /// included.
    pub(crate) files: BTreeSet<PathBuf>,
    /// All paths that the commands name, present or missing.
    pub(crate) named: BTreeSet<PathBuf>,
    /// Directories from which the programs load others.
    pub(crate) folders: BTreeSet<PathBuf>,
}

impl Programs {
    /// Adds the programs in `base` that a command with these variables runs in `folder`.
    pub(crate) fn add(
        &mut self,
        command: &[String],
        variables: &BTreeMap<String, String>,
        folder: &Path,
        base: &Path,
    ) {
        let (mut found, mut folders, mut before) = (BTreeSet::new(), vec![folder.to_owned()], "");
        let is_within = |path: &Path| path.starts_with(base) || real(path).starts_with(real(base));
        let name = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy();
        let mut runs_next = INTERPRETERS.split(' ').any(|interpreter| name.starts_with(interpreter));
        let variables = variables.iter().map(|(name, value)| (value, is_loader(name), false));
        // The system searches a command without a slash in PATH.
        let first = command.first().filter(|word| word.contains('/')).map(|word| (word, true, false));
        let arguments = command.iter().skip(1).map(|word| (word, false, true));
        for (word, is_run, is_argument) in variables.chain(first).chain(arguments) {
            let module = (before == "-m").then(|| format!("{}.py", word.replace('.', "/")));
            before = word;
            for part in paths_in(word).chain(module.as_deref()) {
                let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.join(part)).collect();
                for path in paths.into_iter().filter(|path| is_within(path)) {
                    if path.is_dir() {
                        let is_package = ENTRIES.iter().any(|entry| path.join(entry).is_file());
                        if is_run || is_package {
                            package(&path, &mut found);
                        }
                        // A server of files may name the whole project.
                        if is_run || is_package && path != base {
                            self.folders.insert(path.clone());
                        }
                        if folders.len() < MAX_FOLDERS && !folders.contains(&path) {
                            folders.push(path);
                        }
                        continue;
                    }
                    let is_file = path.is_file();
                    if is_file && (is_run || is_argument && runs_next || is_program(&path)) {
                        runs_next &= !is_argument;
                        found.insert(path.clone());
                    }
                    if found.contains(&path) || has_ending_of_program(&path) {
                        self.folders.extend(path.parent().map(Path::to_owned));
                    }
                    if !is_file {
                        self.folders.insert(path.clone());
                    }
                    self.named.insert(path);
                }
            }
        }
        self.files.extend(found.into_iter().take(MAX_FILES));
    }
}

/// Returns true if a variable changes how programs are found or loaded.
fn is_loader(name: &str) -> bool {
    LOADERS.split(' ').any(|known| known == name)
        || name.starts_with("LD_")
        || ["_ENV", "_OPTIONS", "OPT"].iter().any(|end| name.ends_with(end))
}

/// Parts of an argument that may be paths: the argument, and its parts between blanks, quotes and operators of a shell.
pub(crate) fn paths_in(word: &str) -> impl Iterator<Item = &str> {
    let parts = word.split(|sign: char| sign.is_whitespace() || "\"'`;|&()<>=,:".contains(sign));
    std::iter::once(word).chain(parts).filter(|part| !part.is_empty())
}

fn is_program(path: &Path) -> bool {
    has_ending_of_program(path) || is_executable(path)
}

/// Returns true if programs load files of this name.
pub(crate) fn has_ending_of_program(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.split(' ').any(|known| known == ending) || ENTRIES.iter().any(|entry| path.ends_with(entry))
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
        } else if is_program(&path) {
            found.insert(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of a command, with assignments of variables before it.
    fn programs(words: &[&str], base: &Path) -> Programs {
        let assignments = words.iter().map_while(|word| word.split_once('='));
        let variables: BTreeMap<String, String> =
            assignments.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let command: Vec<String> =
            words.iter().skip(variables.len()).map(|word| (*word).to_owned()).collect();
        let mut programs = Programs::default();
        programs.add(&command, &variables, base, base);
        programs
    }

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
            ("bin/lib.py", "1"),
        ] {
            write(name, text);
        }
        let cases: [(&[&str], &[&str]); 20] = [
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
            (&["make", "-sf", "plain"], &["plain"]),
            (&["python3", "-m", "sub.main"], &["sub/main.py"]),
            (&["PATH=./bin:/usr/bin", "mysrv"], &["bin/lib.py"]),
            (&["BASH_ENV=./plain", "sh", "-c", "true"], &["plain"]),
            (&["DB=./data.db", "mysrv"], &[]),
            (&["mcp-server-sqlite", "--db", "data.db"], &[]),
            (&["npx", "-y", "server-filesystem", "./docs"], &[]),
            (&["srv"], &[]),
            (&["/usr/bin/env", "true"], &[]),
            (&[], &[]),
        ];
        for (command, wanted) in cases {
            let found: Vec<_> = programs(command, base.path()).files.iter().map(|path| real(path)).collect();
            let wanted: Vec<_> = wanted.iter().map(|name| real(&base.path().join(name))).collect();
            assert_eq!(found, wanted, "{command:?}");
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let server = base.path().join("srv").display().to_string();
        assert!(programs(&[server.as_str()], elsewhere.path()).files.is_empty());
        // Missing programs are named, and a directory of documents is not one of programs.
        let named = programs(&["npx", "-y", "x", "./docs", "."], base.path());
        assert!(!named.folders.contains(base.path()) && !named.folders.contains(&base.path().join("docs")));
        let named = programs(&["node", "build/index.js"], base.path());
        assert!(named.files.is_empty() && named.named.contains(&base.path().join("build/index.js")));
        assert!(named.folders.contains(&base.path().join("build")));
    }
}
