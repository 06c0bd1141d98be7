//! Kinds of documents: they differ in how they are cut into passages.

/// What a document is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentKind {
    /// Paragraphs under headings.
    Markdown,
    /// Tags around text; searched without the tags.
    Html,
    /// Paragraphs.
    Prose,
    /// Lines that belong together by nearness: source code, settings, data, logs.
    Lines,
}

impl DocumentKind {
    pub(super) fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("md" | "markdown" | "mdx" | "mdown" | "qmd" | "rmd") => Self::Markdown,
            Some("html" | "htm" | "xhtml") => Self::Html,
            Some("txt" | "text" | "rst" | "adoc" | "asciidoc" | "tex" | "org") => Self::Prose,
            None => Self::Prose,
            Some(_) => Self::Lines,
        }
    }
}
