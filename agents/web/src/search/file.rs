//! Answers out of a file, for tests and without a network.

use std::cmp::Reverse;

use muster_tools::ToolFailure;

use super::{Found, Query, provider, tidy};
use crate::failure::WebFailure;
use muster_tools::settings::SearchProvider;

/// Largest file, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The results of a file in which words of the query stand, those with most of them first. How new they are does not count.
pub(super) fn search(path: Option<&str>, query: &Query) -> Result<Vec<Found>, ToolFailure> {
    let wrong = |why: String| ToolFailure::from(WebFailure::Setting(why));
    let path =
        path.ok_or_else(|| wrong("tool.search.endpoint has to name the file with results".to_owned()))?;
    let cannot =
        |why: String| wrong(format!("tool.search.endpoint names {path}, which cannot be used: {why}"));
    let size = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.len();
    if size > LARGEST {
        return Err(cannot(format!("it is larger than {LARGEST} bytes")));
    }
    let file = std::fs::read(path).map_err(|error| cannot(error.to_string()))?;
    let all = provider::found(SearchProvider::File, &file).map_err(cannot)?;
    let words: Vec<String> = query.words.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let mut ranked: Vec<(usize, Found)> = all
        .into_iter()
        .filter_map(tidy)
        .filter(|found| query.site.as_deref().is_none_or(|site| is_from(&found.url, site)))
        .map(|found| (hits(&found, &words), found))
        .filter(|(hits, _)| *hits > 0)
        .collect();
    ranked.sort_by_key(|(hits, _)| Reverse(*hits));
    Ok(ranked.into_iter().map(|(_, found)| found).take(query.most).collect())
}

fn hits(found: &Found, words: &[String]) -> usize {
    let text = format!("{} {} {}", found.title, found.snippet, found.url).to_lowercase();
    words.iter().filter(|word| text.contains(word.as_str())).count()
}

fn is_from(url: &str, site: &str) -> bool {
    let host =
        url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    host.strip_suffix(site).is_some_and(|below| below.is_empty() || below.ends_with('.'))
}
