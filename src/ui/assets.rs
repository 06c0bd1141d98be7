//! The page: files that are part of the binary, packed once and told apart by their hashes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use flate2::Compression;
use sha2::{Digest, Sha256};

use super::door::text;
use super::reply::{Answer, Problem, Reply};
use super::zip;

/// All files, by name. `build.rs` lists them.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// What is asked for where nothing is.
const INDEX: &str = "index.html";

/// A file as it is served.
struct Asset {
    kind: &'static str,
    bytes: &'static [u8],
    packed: Option<Vec<u8>>,
    tag: HeaderValue,
}

static ASSETS: LazyLock<BTreeMap<&'static str, Asset>> = LazyLock::new(|| {
    let asset = |&(name, bytes): &(&'static str, &'static [u8])| {
        let tag = format!("\"{}\"", hex::encode(&Sha256::digest(bytes)[..12]));
        let tag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"0\""));
        // Pictures are packed already.
        let packed = zip::pack(bytes, Compression::best()).filter(|packed| packed.len() < bytes.len());
        (name, Asset { kind: kind(name), bytes, packed, tag })
    };
    FILES.iter().map(asset).collect()
});

/// Makes ready what is served: whoever asks first does not wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&ASSETS);
}

/// What a file is, by its ending.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("webmanifest") => "application/manifest+json",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// A file of the page. The page itself is asked for anew each time, and comes again only when it has changed.
pub(crate) fn serve(path: &str, headers: &HeaderMap) -> Reply {
    let name = path.trim_start_matches('/');
    let name = if name.is_empty() { INDEX } else { name };
    let asset = ASSETS.get(name).ok_or_else(|| Problem::not_found("there is no such page"))?;
    let is_known = text(headers, "if-none-match")
        .is_some_and(|known| known.split(',').any(|one| one.trim().as_bytes() == asset.tag.as_bytes()));
    let packed = asset.packed.as_ref().filter(|_| zip::is_taken(headers));
    let mut answer: Answer = match (is_known, packed) {
        (true, _) => {
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            answer
        }
        (false, Some(packed)) => {
            let mut answer = Response::new(Body::from(packed.clone()));
            answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            answer
        }
        (false, None) => Response::new(Body::from(asset.bytes)),
    };
    let told = answer.headers_mut();
    told.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    told.insert(header::ETAG, asset.tag.clone());
    told.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    told.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_whole() {
        let index = ASSETS.get(INDEX).expect("the page itself is in the binary");
        assert!(index.kind.starts_with("text/html"));
        let sent: usize =
            ASSETS.values().map(|one| one.packed.as_ref().map_or(one.bytes.len(), Vec::len)).sum();
        assert!(sent < 300 * 1024, "{sent} bytes over the wire");
    }

    #[test]
    fn a_file_is_found_by_its_own_name_alone() {
        let none = HeaderMap::new();
        assert_eq!(serve("/", &none).unwrap().status(), StatusCode::OK);
        assert_eq!(serve("/index.html", &none).unwrap().status(), StatusCode::OK);
        for path in [
            "/../Cargo.toml",
            "/..%2fCargo.toml",
            "/assets/index.html",
            "//etc/passwd",
            "/index.html/",
            "/INDEX.HTML",
            "/index.html\0",
            "/./index.html",
            "/%69ndex.html",
        ] {
            // Slashes at the beginning are all the same.
            let status = serve(path, &none).map(|answer| answer.status());
            assert_eq!(status.unwrap_err().status, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        let first = serve("/", &HeaderMap::new()).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("if-none-match", first.headers()[header::ETAG].clone());
        assert_eq!(serve("/", &headers).unwrap().status(), StatusCode::NOT_MODIFIED);
    }
}
