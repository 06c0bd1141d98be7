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
        if is_sheet(path) {
            return Self::Lines;
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if extension(folder) == "epub" {
            return Self::Markdown;
        }
        let name = name.to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("md" | "markdown" | "mdx" | "mdown" | "qmd" | "rmd") => Self::Markdown,
            // What is made of these has the headings of Markdown.
            Some("docx" | "docm" | "odt" | "pptx" | "pptm" | "odp" | "ipynb" | "eml") => Self::Markdown,
            Some("html" | "htm" | "xhtml") => Self::Html,
            Some("pdf" | "txt" | "text" | "rst" | "adoc" | "asciidoc" | "tex" | "org") => Self::Prose,
            None => Self::Prose,
            Some(_) => Self::Lines,
        }
    }
}

/// Whether a document is a sheet: it lies in a workbook as in a folder.
pub(super) fn is_sheet(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    ["xlsx", "xlsm", "xlsb", "xls", "ods"].contains(&extension(folder).as_str())
}

/// The ending of the last name of a path, in lower case.
fn extension(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or_else(String::new, |(_, ending)| ending.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_within_files_are_of_the_kind_of_these() {
        for (path, kind, sheet) in [
            ("a/sales.XLSX/Budget", DocumentKind::Lines, true),
            ("sales.ods/notes.md", DocumentKind::Lines, true),
            ("book.epub/3", DocumentKind::Markdown, false),
            ("bundle.zip/docs/a.md", DocumentKind::Markdown, false),
            ("bundle.zip/a.html", DocumentKind::Html, false),
            ("report.pdf", DocumentKind::Prose, false),
            ("talk.pptx", DocumentKind::Markdown, false),
            ("xlsx/a.rs", DocumentKind::Lines, false),
        ] {
            assert_eq!((DocumentKind::of(path), is_sheet(path)), (kind, sheet), "{path}");
        }
    }
}
