//! Which kind a document is: told by what stands in it, else by its name or its media type.

use muster_corpus::PictureKind;

/// A kind that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pdf,
    Docx,
    Odt,
    Pptx,
    Odp,
    Sheets,
    Epub,
    Html,
    Notebook,
    Mail,
    Mailbox,
    Csv,
    Zip,
    Tar,
    Gzip,
    Picture,
    /// Text as it is.
    Text,
}

/// How the file formats of Microsoft Office before 2007 begin, and encrypted ones of after.
pub(crate) const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// The ending of a name, in lower case.
pub(crate) fn ending(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.rsplit_once('.').map_or_else(String::new, |(_, ending)| ending.to_ascii_lowercase())
}

impl Kind {
    /// By the whole of a document.
    pub(crate) fn of(name: &str, media_type: Option<&str>, bytes: &[u8]) -> Option<Self> {
        Self::by_beginning(name, media_type, bytes).or_else(|| {
            // A text without a name for its kind.
            (!bytes.contains(&0)).then_some(Self::Text)
        })
    }

    /// By how it begins; none for what is read as text anyway, and for what nothing here reads.
    pub(crate) fn by_beginning(name: &str, media_type: Option<&str>, beginning: &[u8]) -> Option<Self> {
        let named = Self::by_name(&ending(name)).or_else(|| media_type.and_then(Self::by_media_type));
        if PictureKind::of(beginning).is_some() {
            return Some(Self::Picture);
        }
        if beginning.starts_with(b"%PDF-") {
            return Some(Self::Pdf);
        }
        if beginning.starts_with(COMPOUND) {
            return Some(named.filter(|named| named.may_be_compound()).unwrap_or(Self::Sheets));
        }
        if beginning.starts_with(b"PK\x03\x04") || beginning.starts_with(b"PK\x05\x06") {
            return Some(named.filter(|named| named.is_packed()).unwrap_or(Self::Zip));
        }
        if beginning.starts_with(b"\x1f\x8b") {
            return Some(Self::Gzip);
        }
        if beginning.get(257..262) == Some(b"ustar") {
            return Some(Self::Tar);
        }
        // What should begin in a way of its own, and does not, is broken or is another thing.
        match named {
            Some(named) if named.is_packed() || named.is_binary() => {
                (!is_text(beginning) || beginning.is_empty()).then_some(named)
            }
            other => other,
        }
    }

    fn by_name(ending: &str) -> Option<Self> {
        Some(match ending {
            "pdf" => Self::Pdf,
            "docx" | "docm" | "dotx" => Self::Docx,
            "odt" | "ott" => Self::Odt,
            "pptx" | "pptm" | "ppsx" => Self::Pptx,
            "odp" => Self::Odp,
            "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" => Self::Sheets,
            "epub" => Self::Epub,
            "html" | "htm" | "xhtml" => Self::Html,
            "ipynb" => Self::Notebook,
            "eml" => Self::Mail,
            "mbox" => Self::Mailbox,
            "csv" | "tsv" | "tab" => Self::Csv,
            "zip" => Self::Zip,
            "tar" => Self::Tar,
            "tgz" | "gz" => Self::Gzip,
            _ => return None,
        })
    }

    fn by_media_type(media_type: &str) -> Option<Self> {
        let plain = media_type.split(';').next().unwrap_or(media_type).trim().to_ascii_lowercase();
        Some(match plain.as_str() {
            "application/pdf" => Self::Pdf,
            "application/epub+zip" => Self::Epub,
            "text/html" | "application/xhtml+xml" => Self::Html,
            "application/x-ipynb+json" => Self::Notebook,
            "message/rfc822" => Self::Mail,
            "application/mbox" => Self::Mailbox,
            "text/csv" | "text/tab-separated-values" => Self::Csv,
            "application/zip" => Self::Zip,
            "application/x-tar" => Self::Tar,
            "application/gzip" => Self::Gzip,
            "application/vnd.ms-excel" | "application/vnd.oasis.opendocument.spreadsheet" => Self::Sheets,
            "application/vnd.oasis.opendocument.text" => Self::Odt,
            "application/vnd.oasis.opendocument.presentation" => Self::Odp,
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => Self::Docx,
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => Self::Sheets,
            "application/vnd.openxmlformats-officedocument.presentationml.presentation" => Self::Pptx,
            _ => return None,
        })
    }

    const fn is_packed(self) -> bool {
        matches!(
            self,
            Self::Docx | Self::Odt | Self::Pptx | Self::Odp | Self::Sheets | Self::Epub | Self::Zip
        )
    }

    const fn is_binary(self) -> bool {
        matches!(self, Self::Pdf | Self::Tar | Self::Gzip)
    }

    /// Whether such a document is in the old format when it is encrypted.
    const fn may_be_compound(self) -> bool {
        matches!(self, Self::Docx | Self::Pptx | Self::Sheets)
    }

    /// Whether a corpus has it read here: the others are texts whose lines are cited.
    pub(crate) const fn is_for_corpus(self) -> bool {
        !matches!(self, Self::Html | Self::Csv | Self::Text)
    }
}

fn is_text(beginning: &[u8]) -> bool {
    !beginning.contains(&0) && std::str::from_utf8(beginning).is_ok_and(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_told_by_what_stands_in_it_before_its_name() {
        for (name, media_type, beginning, kind) in [
            ("a.txt", None, &b"%PDF-1.4"[..], Some(Kind::Pdf)),
            ("a.docx", None, b"PK\x03\x04", Some(Kind::Docx)),
            ("a.docx", None, COMPOUND, Some(Kind::Docx)),
            ("a.xls", None, COMPOUND, Some(Kind::Sheets)),
            ("a.jar", None, b"PK\x03\x04", Some(Kind::Zip)),
            ("download", Some("application/epub+zip"), b"PK\x03\x04", Some(Kind::Epub)),
            ("page", Some("text/html; charset=utf-8"), b"<p>", Some(Kind::Html)),
            ("a.pdf", None, b"\0\x01", Some(Kind::Pdf)),
            ("a.pdf", None, b"no PDF at all", None),
            ("a.tar.gz", None, b"\x1f\x8b\x08", Some(Kind::Gzip)),
            ("a.md", None, b"# A", None),
            ("a.txt", None, b"\x89PNG\r\n\x1a\n", Some(Kind::Picture)),
            ("a.png", None, b"no picture at all", None),
            ("a.eml", None, b"From: a", Some(Kind::Mail)),
        ] {
            assert_eq!(Kind::by_beginning(name, media_type, beginning), kind, "{name}");
        }
        assert_eq!(Kind::of("a.md", None, b"# A"), Some(Kind::Text));
        assert_eq!(Kind::of("a.bin", None, b"\0"), None);
    }
}
