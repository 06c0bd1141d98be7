//! Which answers may be kept, and how long they count: the rules of RFC 9111 for a cache that is shared. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Head;

/// Longest time for which an answer counts that says nothing of it: a tenth of its age, and no more than this.
const LONGEST_GUESS_MS: u64 = 24 * 3600 * 1000;

/// How a kept answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It counts.
    Fresh,
    /// Its site has to be asked.
    Stale,
}

/// Directives of `Cache-Control` that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Directives {
    /// Nothing of it is kept, or not by a cache that is shared.
    forbidden: bool,
    /// It is asked for anew each time.
    no_cache: bool,
    /// It is not given once it is stale.
    must_revalidate: bool,
    /// It may be kept although nothing else says so.
    public: bool,
    max_age: Option<u64>,
    shared_max_age: Option<u64>,
}

fn directives(head: &BTreeMap<String, String>) -> Directives {
    let mut found = Directives::default();
    let seconds = |value: &str| value.trim_matches('"').parse::<u64>().unwrap_or(0);
    let least = |known: Option<u64>, value: &str| {
        Some(known.map_or(seconds(value), |known| known.min(seconds(value))))
    };
    for part in head.get("cache-control").into_iter().flat_map(|line| line.split(',')) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "private" => found.forbidden = true,
            "no-cache" => found.no_cache = true,
            "must-revalidate" | "proxy-revalidate" => found.must_revalidate = true,
            "public" => found.public = true,
            "max-age" => found.max_age = least(found.max_age, value.trim()),
            "s-maxage" => found.shared_max_age = least(found.shared_max_age, value.trim()),
            // Others are not for us.
            _ => {}
        }
    }
    found
}

/// Whether an answer may be kept.
pub(crate) fn may_keep(status: u16, headers: &BTreeMap<String, String>) -> bool {
    let said = directives(headers);
    let varies = headers.get("vary").is_some_and(|vary| vary.contains('*'));
    let says_how_long =
        said.max_age.is_some() || said.shared_max_age.is_some() || headers.contains_key("expires");
    let is_usual = matches!(status, 200 | 203 | 301 | 308 | 404 | 410);
    let can_be_asked_again = headers.contains_key("etag") || headers.contains_key("last-modified");
    let is_final = matches!(status, 200..=299 | 300..=303 | 307 | 308 | 404 | 410) && !matches!(status, 206);
    // What neither counts for a while nor can be asked for again is of no use.
    let is_of_use = says_how_long || (is_usual && (can_be_asked_again || matches!(status, 301 | 308)));
    is_final && !said.forbidden && !varies && is_of_use
}

/// How old an answer is, in milliseconds: what caches on the way said, and the time since.
pub(crate) fn age_ms(head: &Head, now_ms: u64) -> u64 {
    let said =
        head.header("age").and_then(|age| age.trim().parse::<u64>().ok()).unwrap_or(0).saturating_mul(1000);
    let apparent = date_ms(head.header("date")).map_or(0, |date| head.came_ms.saturating_sub(date));
    let on_the_way = head.came_ms.saturating_sub(head.asked_ms);
    let at_first = apparent.max(said.saturating_add(on_the_way));
    at_first.saturating_add(now_ms.saturating_sub(head.came_ms))
}

/// How a kept answer stands now.
pub(crate) fn freshness(head: &Head, now_ms: u64) -> Freshness {
    let said = directives(&head.headers);
    if said.no_cache || head.came_ms > now_ms {
        return Freshness::Stale;
    }
    if age_ms(head, now_ms) < lifetime_ms(head, &said) { Freshness::Fresh } else { Freshness::Stale }
}

fn lifetime_ms(head: &Head, said: &Directives) -> u64 {
    if let Some(seconds) = said.shared_max_age.or(said.max_age) {
        return seconds.saturating_mul(1000);
    }
    let date = date_ms(head.header("date")).unwrap_or(head.came_ms);
    if let Some(expires) = head.header("expires") {
        // What is no date means that it is over.
        return date_ms(Some(expires)).map_or(0, |expires| expires.saturating_sub(date));
    }
    match date_ms(head.header("last-modified")) {
        Some(modified) => (date.saturating_sub(modified) / 10).min(LONGEST_GUESS_MS),
        None if matches!(head.status, 301 | 308) => LONGEST_GUESS_MS,
        None => 0,
    }
}

/// Whether a stale answer may be given because its site cannot be reached.
pub(crate) fn may_stand_in(head: &Head, now_ms: u64, longest: Duration) -> bool {
    let said = directives(&head.headers);
    let is_young = u128::from(now_ms.saturating_sub(head.came_ms)) <= longest.as_millis();
    !said.no_cache && !said.must_revalidate && said.shared_max_age.is_none() && is_young
}

/// The headers that ask whether a kept answer is still right.
pub(crate) fn conditions(head: &Head) -> Vec<(&'static str, String)> {
    let etag = head.header("etag").map(|etag| ("if-none-match", etag.to_owned()));
    let modified = head.header("last-modified").map(|date| ("if-modified-since", date.to_owned()));
    etag.into_iter().chain(modified).collect()
}

/// A kept answer of which the site says that it is still right, with what the site says of it now.
pub(crate) fn confirmed(mut head: Head, said: BTreeMap<String, String>, asked_ms: u64, came_ms: u64) -> Head {
    // How old another cache thought it was is over.
    head.headers.remove("age");
    head.headers.extend(said.into_iter().filter(|(name, _)| name != "content-type"));
    Head { asked_ms, came_ms, ..head }
}

/// A date of HTTP, in milliseconds of the epoch.
fn date_ms(text: Option<&str>) -> Option<u64> {
    let date = httpdate::parse_http_date(text?.trim()).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
