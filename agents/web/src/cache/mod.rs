//! Answers that were kept, as HTTP says they may be (RFC 9111), for all agents of a host.

pub(crate) mod policy;
pub(crate) mod store;

use std::collections::BTreeMap;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};

/// The headers that are kept of an answer. Others say nothing that is used.
const KEPT: [&str; 12] = [
    "age",
    "cache-control",
    "content-disposition",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "location",
    "retry-after",
    "vary",
    "x-robots-tag",
];

/// Longest header that is kept, in bytes.
const LONGEST_HEADER: usize = 4096;

/// An answer as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) head: Head,
    pub(crate) body: Bytes,
}

/// What is kept beside the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    /// When it was asked for, in milliseconds of the epoch.
    pub(crate) asked_ms: u64,
    /// When it came, or was last said to be still right.
    pub(crate) came_ms: u64,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// The headers that are kept. Of one that comes several times, all values.
pub(crate) fn kept_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let joined = |name: &str| {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let joined = values.join(", ");
        (!values.is_empty() && joined.len() <= LONGEST_HEADER).then(|| (name.to_owned(), joined))
    };
    KEPT.into_iter().filter_map(joined).collect()
}
