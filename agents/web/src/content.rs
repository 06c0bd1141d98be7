//! Text out of what was fetched, whatever kind it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use muster_tools::{DocumentReader, DocumentText, UnreadableDocument};
use url::Url;

use crate::html::{self, Shown};

/// Most links that are listed.
const MOST_LINKS: usize = 200;

/// How far into a page its own word on its encoding is looked for, as browsers do.
const SAID_WITHIN: usize = 1024;

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    Text,
    /// Something else: a document, a picture, an archive.
    Other,
}

/// What was fetched, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    pub(crate) links: Vec<NamedLink>,
    /// What is to be known of it besides.
    pub(crate) remarks: Vec<String>,
}

/// A link, absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedLink {
    pub(crate) text: String,
    pub(crate) to: String,
}

/// What is to be made of a body.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) bytes: Bytes,
    /// The `Content-Type` as it came.
    pub(crate) media_type: Option<String>,
    pub(crate) url: Url,
}

/// Why there is no text; in words for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoText(pub(crate) String);

/// The text of a body. What takes time is done on a thread of its own.
pub(crate) async fn read(
    body: Body,
    shown: Shown,
    reader: Option<&Arc<dyn DocumentReader>>,
) -> Result<Content, NoText> {
    match kind_of(body.media_type.as_deref(), &body.bytes) {
        Kind::Html | Kind::Text => {
            let read = tokio::task::spawn_blocking(move || read_text(&body, shown)).await;
            read.map_err(|error| NoText(format!("reading it broke: {error}")))
        }
        Kind::Other => read_document(&body, reader).await,
    }
}

/// The kind of a body, by what its site says, and by what stands in it where that says nothing.
pub(crate) fn kind_of(media_type: Option<&str>, bytes: &[u8]) -> Kind {
    let media_type = media_type.map(essence).unwrap_or_default();
    let begins_as_html = || {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]).to_ascii_lowercase();
        let start = start.trim_start_matches('\u{feff}').trim_start().to_owned();
        start.starts_with("<!doctype html") || start.starts_with("<html")
    };
    match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "" | "application/octet-stream" | "binary/octet-stream" if begins_as_html() => Kind::Html,
        "" | "application/octet-stream" | "binary/octet-stream" if looks_like_text(bytes) => Kind::Text,
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-ndjson"
        | "application/csv"
        | "application/sql"
        | "image/svg+xml" => Kind::Text,
        "text/rtf" => Kind::Other,
        said if said.starts_with("text/") || said.ends_with("+json") || said.ends_with("+xml") => {
            // Servers call what they do not know plain text.
            if said == "text/plain" && bytes.contains(&0) && Encoding::for_bom(bytes).is_none() {
                Kind::Other
            } else {
                Kind::Text
            }
        }
        _ => Kind::Other,
    }
}

/// A media type without its parameters.
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn looks_like_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

fn read_text(body: &Body, shown: Shown) -> Content {
    let kind = kind_of(body.media_type.as_deref(), &body.bytes);
    let (text, remark) = decode(&body.bytes, body.media_type.as_deref(), kind);
    let mut content = match kind {
        Kind::Html => read_html(&text, &body.url, shown),
        Kind::Text | Kind::Other => Content { text: text.replace("\r\n", "\n"), ..Content::default() },
    };
    content.remarks.extend(remark);
    content
}

fn read_html(html: &str, url: &Url, shown: Shown) -> Content {
    let document = html::read(html);
    let base = document.base.as_deref().and_then(|base| url.join(base).ok()).unwrap_or_else(|| url.clone());
    let mut known = BTreeSet::new();
    let mut links = Vec::new();
    let meant = document.links.iter().filter(|link| shown == Shown::Everything || !link.is_around);
    for link in meant {
        let Some(mut to) = base.join(&link.to).ok().filter(|to| matches!(to.scheme(), "http" | "https"))
        else {
            continue;
        };
        to.set_fragment(None);
        if to != *url && links.len() < MOST_LINKS && known.insert(to.to_string()) {
            links.push(NamedLink { text: link.text.clone(), to: to.into() });
        }
    }
    let cut = document.is_cut.then(|| "the page is too large; its end was not read".to_owned());
    Content {
        text: html::text(&document, shown),
        title: document.title,
        links,
        remarks: cut.into_iter().collect(),
    }
}

/// Bytes as text: by their first bytes, what the site says, what the page says, else as UTF-8, else as browsers do. With a
/// remark where something did not fit.
pub(crate) fn decode(bytes: &[u8], media_type: Option<&str>, kind: Kind) -> (String, Option<String>) {
    let said = media_type.and_then(charset).or_else(|| said_within(bytes, kind));
    let encoding =
        said.unwrap_or_else(|| if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 });
    let (text, encoding, had_errors) = encoding.decode(bytes);
    let remark = had_errors
        .then(|| format!("some of it is no {}; what is broken is shown as \u{fffd}", encoding.name()));
    (text.into_owned(), remark)
}

/// The encoding that a media type names.
fn charset(media_type: &str) -> Option<&'static Encoding> {
    let parameters = media_type.split(';').skip(1);
    let mut named = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, label) = named.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
}

/// The encoding that a page or an XML document says it has.
fn said_within(bytes: &[u8], kind: Kind) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(SAID_WITHIN)]).to_ascii_lowercase();
    let after = match kind {
        Kind::Html => start.split_once("charset")?.1,
        Kind::Text if start.starts_with("<?xml") => start.split_once("?>")?.0.split_once("encoding")?.1,
        Kind::Text | Kind::Other => return None,
    };
    let label = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label: String =
        label.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c)).collect();
    let encoding = Encoding::for_label(label.as_bytes())?;
    // What could be read so far is not of two bytes a character, whatever it says.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

async fn read_document(body: &Body, reader: Option<&Arc<dyn DocumentReader>>) -> Result<Content, NoText> {
    let media_type = body.media_type.as_deref().map(essence);
    let what = format!(
        "a file of type {} with {} bytes",
        media_type.as_deref().filter(|said| !said.is_empty()).unwrap_or("unknown"),
        body.bytes.len()
    );
    let Some(reader) = reader else {
        return Err(NoText(format!(
            "It is {what}, and nothing here makes text of it. Save it with fetch_file to use it otherwise."
        )));
    };
    let name = body.url.path_segments().and_then(Iterator::last).unwrap_or_default();
    match reader.read(body.bytes.clone(), name, media_type.as_deref()).await {
        Ok(document) => Ok(of_document(document)),
        Err(UnreadableDocument::UnknownKind(_)) if looks_like_text(&body.bytes) => {
            Ok(Content { text: String::from_utf8_lossy(&body.bytes).into_owned(), ..Content::default() })
        }
        Err(why) => Err(NoText(format!(
            "It is {what}, and no text can be made of it: {why}. Save it with fetch_file to use it otherwise."
        ))),
    }
}

fn of_document(document: DocumentText) -> Content {
    let parts = document.parts.iter().map(|part| format!("[{}]\n{}", part.place, part.text.trim_end()));
    Content {
        text: parts.collect::<Vec<_>>().join("\n\n"),
        title: document.title,
        links: Vec::new(),
        remarks: document.left_out.into_iter().map(|what| format!("left out: {what}")).collect(),
    }
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice<'a> {
    pub(crate) text: &'a str,
    /// Where it begins and ends, in bytes.
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// At most so many bytes of a text from there on, ended where a line or a word ends, if one does in its second half.
pub(crate) fn slice(text: &str, from: usize, most: usize) -> Slice<'_> {
    let from = text.ceil_char_boundary(from.min(text.len()));
    let end = text.floor_char_boundary(from.saturating_add(most).min(text.len()));
    let whole = &text[from..end];
    let end = if end == text.len() {
        end
    } else {
        let half = whole.len() / 2;
        let at =
            whole.rfind('\n').filter(|at| *at > half).or_else(|| whole.rfind(' ').filter(|at| *at > half));
        at.map_or(end, |at| from + at + 1)
    };
    Slice { text: &text[from..end], from, to: end }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
