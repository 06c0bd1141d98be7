//! Whether a site is asked again. Pure.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::transfer::{Answer, NoAnswer};

/// Retries of a request after a 429, a 503 or a failed connection. A site that is still busy after two is busy for
/// longer than a call lasts.
const MAX_RETRIES: u32 = 2;

/// Longest delay before a retry; a site that requests more gets none. A call has one minute in all.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(10);

/// How long to wait before asking again; none when what came is what there is. A site that is busy is asked again when it
/// says when, and that is soon; one that nobody could connect to is asked once more, at its next turn.
pub(super) fn after(answer: &Result<Answer, NoAnswer>, asked: u32, now: SystemTime) -> Option<Duration> {
    if asked >= MAX_RETRIES {
        return None;
    }
    match answer {
        Ok(answer) if matches!(answer.status, 429 | 503) => {
            wanted(&answer.headers, now).filter(|wait| *wait <= MAX_RETRY_WAIT)
        }
        Err(NoAnswer::NotConnected(_)) if asked == 0 => Some(Duration::ZERO),
        _ => None,
    }
}

/// How long a site wants us to wait: a number of seconds or a date.
fn wanted(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn answered(status: u16, retry_after: Option<&str>) -> Result<Answer, NoAnswer> {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        Ok(Answer { status, headers, body: Bytes::new(), cut: false })
    }

    #[test]
    fn only_who_says_when_is_asked_again_and_who_could_not_be_reached_once() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let after = |answer, asked| super::after(&answer, asked, now).map(|wait| wait.as_secs());
        assert_eq!(after(answered(503, Some("3")), 0), Some(3));
        assert_eq!(after(answered(429, Some("Sun, 06 Nov 1994 08:49:44 GMT")), 1), Some(7));
        assert_eq!(after(answered(429, Some("Sun, 06 Nov 1994 08:49:30 GMT")), 1), Some(0));
        assert_eq!(after(answered(503, Some("11")), 0), None);
        assert_eq!(after(answered(503, Some("-1")), 0), None);
        assert_eq!(after(answered(503, None), 0), None);
        assert_eq!(after(answered(503, Some("3")), 2), None);
        assert_eq!(after(answered(500, Some("3")), 0), None);
        assert_eq!(after(Err(NoAnswer::NotConnected(String::new())), 0), Some(0));
        assert_eq!(after(Err(NoAnswer::NotConnected(String::new())), 1), None);
        assert_eq!(after(Err(NoAnswer::TimedOut), 0), None);
        assert_eq!(after(Err(NoAnswer::Broken(String::new())), 0), None);
    }
}
