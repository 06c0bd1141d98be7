//! The suites that come with Muster, and their documents.

use std::io;
use std::path::Path;

/// The suites: name and text.
pub(crate) const SUITES: [(&str, &str); 3] = [
    ("basics", include_str!("suites/basics.toml")),
    ("documents", include_str!("suites/documents.toml")),
    ("offline", include_str!("suites/offline.toml")),
];

/// Their documents, by the path that suites name them by.
const DOCUMENTS: [(&str, &str); 4] = [
    ("docs/kestrel-design.md", include_str!("suites/docs/kestrel-design.md")),
    ("docs/lantern-workflow.md", include_str!("suites/docs/lantern-workflow.md")),
    ("docs/loom-pattern.md", include_str!("suites/docs/loom-pattern.md")),
    ("docs/twin-engine.md", include_str!("suites/docs/twin-engine.md")),
];

/// The text of a suite that comes with Muster.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    SUITES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Writes the documents below a folder.
pub(crate) fn write_documents(folder: &Path) -> io::Result<()> {
    for (path, text) in DOCUMENTS {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(folder))?;
        std::fs::write(file, text)?;
    }
    Ok(())
}
