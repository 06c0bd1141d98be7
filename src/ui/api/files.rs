//! The files that tasks of a run wrote. What is in them is anybody's: it is given to be kept, and never shown as a page.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use muster_agents::tools::workspace::WorkspacePath;

use super::super::reply::{Problem, Reply, json};
use super::{Named, Shared, run_of};
use crate::commands::artifacts;
use crate::delivered_file::download_name;

/// Pictures that browsers may show: by their first bytes, whatever they are called. None of them runs anything.
const PICTURES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// The list, as `muster artifacts --json` prints it.
pub(crate) async fn list(State(ui): Shared, Named(run): Named<String>) -> Reply {
    let run = run_of(&ui, &run).await?;
    let listed = ui.bus()?.files().list(run).await?;
    json(&artifacts::in_json(run, &listed.files))
}

/// One of them.
pub(crate) async fn bytes(State(ui): Shared, Named((run, path)): Named<(String, String)>) -> Reply {
    let run = run_of(&ui, &run).await?;
    let path = WorkspacePath::parse(&path).map_err(|error| Problem::bad(error.to_string()))?;
    let found = ui.bus()?.files().read(run, path.as_str()).await?;
    let bytes = found.ok_or_else(|| {
        Problem::not_found(format!("run {} has no file {path}", run.short()))
            .help("its list of files names them")
    })?;
    let kind = kind(&bytes);
    let mut answer = Response::new(Body::from(bytes));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_DISPOSITION, kept_as(path.as_str()));
    // Opened by itself it is nothing but bytes.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(answer)
}

fn kind(bytes: &[u8]) -> &'static str {
    let found = PICTURES.iter().find(|(begins, _)| bytes.starts_with(begins)).map(|(_, kind)| *kind);
    match found {
        Some("image/webp") if bytes.get(8..12) != Some(b"WEBP") => "application/octet-stream",
        Some(kind) => kind,
        None => "application/octet-stream",
    }
}

/// Under which name a browser keeps it: the last part of the path, of letters that no browser takes for anything else.
fn kept_as(path: &str) -> HeaderValue {
    let name = download_name(path);
    let kept = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(kept).take(150).collect();
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_picture_by_what_is_in_it_alone() {
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n...."), "image/png");
        assert_eq!(kind(b"RIFF....WEBPVP8 "), "image/webp");
        for bytes in [
            &b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>"[..],
            b"<html>",
            b"RIFF....AVI ",
            b"",
            b"%PDF",
        ] {
            assert_eq!(kind(bytes), "application/octet-stream");
        }
    }

    #[test]
    fn names_are_harmless() {
        for (path, name) in [
            ("a/b.md", "b.md"),
            ("x\"; filename=evil.html", "x___filename_evil.html"),
            ("a/\r\nSet-Cookie: x", "__Set-Cookie__x"),
            ("ü.md", "_.md"),
            ("tools/x.tool.toml", "x.tool.toml.untrusted"),
        ] {
            assert_eq!(
                kept_as(path).to_str().unwrap_or_default(),
                format!("attachment; filename=\"{name}\""),
                "{path}"
            );
        }
    }
}
