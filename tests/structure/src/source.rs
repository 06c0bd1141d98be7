//! The Rust files of a workspace, split into production code and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, io};

use regex::Regex;

/// Directories without production code.
const SKIPPED: [&str; 10] = [
    "target",
    ".git",
    "node_modules",
    "tests",
    "benches",
    "examples",
    "fuzz",
    "test_data",
    "golden",
    ".muster",
];
/// Directories without any source of the project.
const NOT_OURS: [&str; 4] = ["target", ".git", "node_modules", ".muster"];

#[expect(
    clippy::unwrap_used,
    reason = "the patterns are constants, and every test of this crate compiles them"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

static TEST_FILE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(^|_)(tests?|testing)\.rs$"));
static TEST_ITEM: LazyLock<Regex> = LazyLock::new(|| pattern(r"#\[cfg\((?:all\()?test"));
static LITERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r#""(\\.|[^"\\])*"|'(\\.|[^'\\])'"#));
static LINE_COMMENT: LazyLock<Regex> = LazyLock::new(|| pattern("//.*"));
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r##""(?:\\.|[^"\\])*"|r#*".*?"#*|'(?:\\.|[^'\\])'|[A-Za-z_]\w*|\d[\w.]*|::|->|=>|==|!=|<=|>=|&&|\|\||\.\.=?|\S"##,
    )
});
static TYPE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) (\w+)"));

/// Production code of one crate.
#[derive(Debug, Default)]
pub struct Crate {
    /// Text of each module without its tests, by path from the crate's root.
    pub modules: BTreeMap<Vec<String>, String>,
    /// Identifiers, literals and punctuation, without comments.
    pub tokens: u64,
}

/// All Rust code of a workspace.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Crates by directory; the root crate is `.`.
    pub crates: BTreeMap<String, Crate>,
    /// Lines of test code, blank lines and comments included.
    pub test_lines: u64,
    /// Files that declare a type, by the type's name.
    types: BTreeMap<String, BTreeSet<PathBuf>>,
}

impl Workspace {
    /// Reads all Rust files below `root`.
    ///
    /// # Errors
    /// A directory or file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut workspace = Self::default();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(root.join(&directory))? {
                let entry = entry?;
                let path = directory.join(entry.file_name());
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type()?.is_dir() {
                    if !NOT_OURS.contains(&name.as_str()) {
                        directories.push(path);
                    }
                } else if path.extension().is_some_and(|extension| extension == "rs") && name != "build.rs" {
                    workspace.add(&path, &name, &fs::read_to_string(root.join(&path))?);
                }
            }
        }
        Ok(workspace)
    }

    /// Production tokens of all crates.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.crates.values().map(|one| one.tokens).sum()
    }

    /// Type names that more than one file declares.
    #[must_use]
    pub fn ambiguous_type_names(&self) -> u64 {
        self.types.values().filter(|files| files.len() > 1).count() as u64
    }

    fn add(&mut self, path: &Path, name: &str, text: &str) {
        let all = text.lines().count();
        let is_test = TEST_FILE.is_match(name)
            || path.components().any(|part| SKIPPED.contains(&part.as_os_str().to_string_lossy().as_ref()));
        if is_test {
            self.test_lines += all as u64;
            return;
        }
        let lines = without_tests(text);
        self.test_lines += (all - lines.len()) as u64;
        let tokens: usize = lines.iter().filter(|line| is_code(line)).map(|line| tokens(line)).sum();
        let text = lines.join("\n");
        for found in TYPE.captures_iter(&text) {
            self.types.entry(found[1].to_owned()).or_default().insert(path.to_owned());
        }
        let (name, module) = module_of(path);
        let of_crate = self.crates.entry(name).or_default();
        of_crate.tokens += tokens as u64;
        of_crate.modules.insert(module, text);
    }
}

/// The directory of a file's crate, and its module path. The crate's root is the empty path.
fn module_of(path: &Path) -> (String, Vec<String>) {
    let path = path.to_string_lossy();
    let (name, inside) = match path.split_once("/src/") {
        Some((name, inside)) => (name, inside),
        None => (".", path.strip_prefix("src/").unwrap_or(&path)),
    };
    let module = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let module: Vec<String> = module.split('/').map(str::to_owned).collect();
    let is_root = module == ["lib"] || module == ["main"];
    (name.to_owned(), if is_root { Vec::new() } else { module })
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

fn tokens(line: &str) -> usize {
    let bare = if line.contains('"') { line.into() } else { LINE_COMMENT.replace(line, "") };
    TOKEN.find_iter(&bare).count()
}

/// The lines of a file without the items under `#[cfg(test)]`.
fn without_tests(text: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !TEST_ITEM.is_match(line) {
            kept.push(line);
            continue;
        }
        while lines.next_if(|line| line.trim().starts_with("#[")).is_some() {}
        skip_item(&mut lines);
    }
    kept
}

/// Skips one item: up to the closing brace, or to the semicolon of an item without braces.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>) {
    let (mut depth, mut is_open) = (0_i64, false);
    for line in lines {
        let bare = LITERAL.replace_all(line, "");
        let count = |brace| i64::try_from(bare.matches(brace).count()).unwrap_or(i64::MAX);
        depth += count('{') - count('}');
        is_open |= bare.contains('{');
        if (is_open && depth <= 0) || (!is_open && bare.trim().ends_with(';')) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_under_cfg_test_are_no_production_code() {
        let text = "use a;\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn f() {}\n}\nfn g() {}\n#[cfg(test)]\nmod other;\nfn h() {}";
        assert_eq!(without_tests(text), ["use a;", "fn g() {}", "fn h() {}"]);
    }

    #[test]
    fn a_token_is_a_word_a_literal_or_punctuation() {
        let cases = [
            ("let x = a::b(\"two words\");", 10),
            ("    x >= 1.5 // why", 3),
            ("'{' => r#\"raw\"#,", 4),
            ("// only a comment", 0),
        ];
        for (line, expected) in cases {
            assert_eq!(tokens(line), expected, "{line}");
        }
    }

    #[test]
    fn files_belong_to_the_crate_of_their_src_directory() {
        let module = |path: &str| {
            let (name, module) = module_of(Path::new(path));
            format!("{name}:{}", module.join("::"))
        };
        assert_eq!(module("src/main.rs"), ".:");
        assert_eq!(module("src/ui/mod.rs"), ".:ui");
        assert_eq!(module("agents/web/src/fetch/page.rs"), "agents/web:fetch::page");
        assert_eq!(module("shared/src/lib.rs"), "shared:");
    }
}
