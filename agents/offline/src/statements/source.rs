//! Source files: comments are prose, the rest is code.

use std::sync::LazyLock;

use regex::Regex;

/// How comments are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// Not source at all: everything is prose.
    Prose,
    /// `//` and `/* */`.
    Slashes,
    /// `#`, and `"""` for documentation.
    Hash,
    /// `--`.
    Dashes,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// Words for people.
    Prose(String),
    /// Words for machines.
    Code(String),
}

/// How comments are written in the file at `path`, judged by its name.
pub(super) fn language(path: &str) -> Language {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    match name.rsplit_once('.').map_or(name.as_str(), |(_, extension)| extension) {
        "rs" | "c" | "h" | "cc" | "cpp" | "hpp" | "java" | "js" | "mjs" | "ts" | "tsx" | "jsx" | "go"
        | "cs" | "kt" | "swift" | "scala" | "proto" | "css" | "scss" | "php" | "zig" | "dart" => {
            Language::Slashes
        }
        "py" | "sh" | "bash" | "rb" | "pl" | "toml" | "yaml" | "yml" | "ini" | "cfg" | "conf"
        | "makefile" | "dockerfile" | "mk" | "r" | "ex" | "exs" | "nix" | "service" => Language::Hash,
        "sql" | "lua" | "hs" | "elm" | "ada" => Language::Dashes,
        _ => Language::Prose,
    }
}

/// Whether the file at `path` is a page of the web.
pub(in super::super) fn is_html(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    [".html", ".htm", ".xhtml"].iter().any(|extension| lower.ends_with(extension))
}

/// How a file tells what its lines stand under.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Nesting {
    /// It does not, or by brackets.
    #[default]
    None,
    /// By lines such as `[section]`.
    Sections,
    /// By keys with nothing behind them, and by indentation.
    Keys,
    /// By classes and functions, and by indentation.
    Definitions,
}

/// How the file at `path` tells what its lines stand under, judged by its name.
pub(super) fn nesting(path: &str) -> Nesting {
    let lower = path.to_ascii_lowercase();
    match lower.rsplit_once('.').map(|(_, extension)| extension) {
        Some("toml" | "ini" | "cfg" | "conf" | "service") => Nesting::Sections,
        Some("yaml" | "yml") => Nesting::Keys,
        Some("py") => Nesting::Definitions,
        _ => Nesting::None,
    }
}

/// What a line says of what it, or those after it, stand under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nested {
    /// How deep it stands, from 1: what is as deep or deeper has ended.
    pub(super) level: usize,
    /// What begins here.
    pub(super) name: Option<String>,
}

/// What a line of code says of what stands under what.
pub(super) fn nested(nesting: Nesting, text: &str, raw: &str) -> Option<Nested> {
    if text.is_empty() {
        return None;
    }
    let indent = (raw.len() - raw.trim_start().len()) / 2;
    let named = |name: &str| Some(name.trim_matches(['"', '\'', ' ']).to_owned());
    match nesting {
        Nesting::None => None,
        Nesting::Sections => {
            let name = text.strip_prefix('[')?.trim_start_matches('[').split(']').next()?;
            Some(Nested { level: 1, name: named(name) })
        }
        Nesting::Keys => {
            let item = text.strip_prefix("- ");
            let key = item.unwrap_or(text).strip_suffix(':').filter(|key| !key.contains([' ', '#']));
            let name = match (item, key) {
                (_, Some(key)) => named(key),
                (Some(item), None) => item.split_once(": ").and_then(|(_, value)| named(value)),
                (None, None) => None,
            };
            Some(Nested { level: indent + 1, name })
        }
        Nesting::Definitions => {
            let name = ["class ", "def ", "async def "].iter().find_map(|word| text.strip_prefix(word));
            let name =
                name.and_then(|rest| rest.split(['(', ':', ' ']).next()).map(|name| format!("`{name}`"));
            Some(Nested { level: indent + 1, name })
        }
    }
}

/// Reads a source file line by line.
#[derive(Debug)]
pub(super) struct CommentReader {
    language: Language,
    in_comment: bool,
}

impl CommentReader {
    /// A reader at the beginning of a file or of a part of it.
    pub(super) const fn new(language: Language) -> Self {
        Self { language, in_comment: false }
    }

    /// What the next line is.
    pub(super) fn read(&mut self, raw: &str) -> Line {
        let text = raw.trim();
        match self.language {
            Language::Prose => Line::Prose(raw.to_owned()),
            Language::Slashes => self.slashes(text),
            Language::Hash => self.hash(text),
            Language::Dashes => comment_after(text, &["---", "--"]),
        }
    }

    fn slashes(&mut self, text: &str) -> Line {
        if self.in_comment {
            self.in_comment = !text.contains("*/");
            let inner = text.trim_end_matches("*/").trim_start_matches('*');
            return Line::Prose(inner.trim().to_owned());
        }
        if let Some(inner) = text.strip_prefix("/*") {
            self.in_comment = !text.contains("*/");
            return Line::Prose(
                inner.trim_start_matches(['*', '!']).trim_end_matches("*/").trim().to_owned(),
            );
        }
        comment_after(text, &["///", "//!", "//"])
    }

    fn hash(&mut self, text: &str) -> Line {
        let quotes = text.matches("\"\"\"").count();
        if self.in_comment || quotes > 0 {
            self.in_comment ^= quotes % 2 == 1;
            return Line::Prose(text.replace("\"\"\"", "").trim().to_owned());
        }
        if text.starts_with("#!") {
            return Line::Code(String::new());
        }
        comment_after(text, &["##", "#"])
    }
}

fn comment_after(text: &str, signs: &[&str]) -> Line {
    match signs.iter().find_map(|sign| text.strip_prefix(sign)) {
        Some(inner) => Line::Prose(inner.strip_prefix(' ').unwrap_or(inner).trim_end().to_owned()),
        None => Line::Code(text.to_owned()),
    }
}

#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static DECLARED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\b(?:fn|struct|enum|union|trait|const|static|type|mod|class|def|function|let|var|val|func|interface|macro_rules!)\s+(?:mut\s+)?([A-Za-z_]\w*)|^(?:pub(?:\([a-z]+\))?\s+)?([A-Za-z_][\w-]*)\s*(?::|=|\(|,|\{|$|\s[A-Z]{3,}\b)",
    )
    .expect("a valid pattern")
});

/// The name that a line of code declares.
pub(super) fn declared_name(line: &str) -> Option<String> {
    let found = DECLARED.captures(line.trim())?;
    found.get(1).or_else(|| found.get(2)).map(|name| name.as_str().to_owned())
}

#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"^(?:(?:pub(?:\([a-z]+\))?|export|const|static|final|let|var|val|my|local|int|double|public|private)\s+)*[A-Za-z_][\w.-]*(?:(?:\s*:\s*[\w:<>&' ]+)?\s*=\s*[^={]*[^={(]|\s*:\s*(?:["'\[/.+-]|\d|true\b|false\b|on\b|off\b)[^{]*)$"#,
    )
        .expect("a valid pattern")
});

/// Whether a line of code gives a name a value that can be read: a constant, a setting.
pub(super) fn is_value(line: &str) -> bool {
    let bare = line.trim().trim_end_matches([';', ',']);
    VALUE.is_match(bare) && !bare.contains("=>") && bare.chars().count() <= 120
}

/// A line without the signs of a comment, a quotation or a list, as quotes are written.
pub(in super::super) fn without_signs(path: &str, raw: &str) -> String {
    let inner = match language(path) {
        Language::Prose => raw.trim().trim_start_matches(['>', ' ']).to_owned(),
        Language::Slashes => {
            let text = raw.trim().trim_end_matches("*/");
            ["///", "//!", "//", "/**", "/*!", "/*", "*"]
                .iter()
                .find_map(|sign| text.strip_prefix(sign))
                .unwrap_or(text)
                .to_owned()
        }
        Language::Hash => raw.trim().trim_start_matches('#').replace("\"\"\"", ""),
        Language::Dashes => raw.trim().trim_start_matches('-').to_owned(),
    };
    inner.trim().to_owned()
}
