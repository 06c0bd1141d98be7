use proptest::prelude::*;

use super::*;

/// Sun, 06 Nov 1994 08:49:37 GMT.
const THEN: u64 = 784_111_777_000;

/// Headers with their values.
type Lines<'a> = &'a [(&'a str, &'a str)];

fn headers(lines: &[(&str, &str)]) -> BTreeMap<String, String> {
    lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn head(status: u16, lines: &[(&str, &str)]) -> Head {
    Head { url: String::new(), status, headers: headers(lines), asked_ms: THEN, came_ms: THEN }
}

const DATE: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");

#[test]
fn what_may_be_kept_is_what_its_site_lets() {
    let table: [(u16, Lines<'_>, bool); 17] = [
        (200, &[("cache-control", "max-age=60")], true),
        (200, &[("cache-control", "public, S-MAXAGE=5")], true),
        (200, &[("cache-control", "max-age=60, no-store")], false),
        (200, &[("cache-control", "private, max-age=60")], false),
        (200, &[("cache-control", "Private=\"set-cookie\"")], false),
        (200, &[("etag", "\"a\"")], true),
        (200, &[("last-modified", "x")], true),
        (200, &[("expires", "0")], true),
        (200, &[], false),
        (200, &[("etag", "\"a\""), ("vary", "*")], false),
        (200, &[("etag", "\"a\""), ("vary", "accept-encoding")], true),
        (206, &[("cache-control", "max-age=60")], false),
        (301, &[], true),
        (302, &[], false),
        (302, &[("cache-control", "max-age=60")], true),
        (500, &[("cache-control", "max-age=60")], false),
        (404, &[("cache-control", "max-age=60")], true),
    ];
    for (status, lines, kept) in table {
        assert_eq!(may_keep(status, &headers(lines)), kept, "{status} {lines:?}");
    }
}

#[test]
fn an_answer_counts_as_long_as_is_said_of_it() {
    let table: [(Lines<'_>, u64); 11] = [
        (&[("cache-control", "max-age=60")], 60),
        (&[("cache-control", "max-age=60, s-maxage=10")], 10),
        (&[("cache-control", "max-age=60, max-age=5")], 5),
        (&[("cache-control", "max-age=\"60\"")], 60),
        (&[("cache-control", "max-age=nonsense")], 0),
        (&[("cache-control", "no-cache, max-age=60")], 0),
        (&[("cache-control", "max-age=60"), ("age", "50")], 10),
        (&[DATE, ("expires", "Sun, 06 Nov 1994 08:50:37 GMT")], 60),
        (&[("expires", "0")], 0),
        (&[DATE, ("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT")], 100),
        (&[DATE, ("last-modified", "Sun, 06 Nov 1904 08:32:57 GMT")], 0),
    ];
    for (lines, seconds) in table {
        let head = head(200, lines);
        let at = |ms| freshness(&head, THEN + ms);
        assert_eq!(at(seconds * 1000), Freshness::Stale, "{lines:?}");
        if seconds > 0 {
            assert_eq!(at(seconds * 1000 - 1), Freshness::Fresh, "{lines:?}");
        }
    }
}

#[test]
fn an_answer_of_the_future_does_not_count() {
    let head = head(200, &[("cache-control", "max-age=60")]);
    assert_eq!(freshness(&head, THEN - 1), Freshness::Stale);
}

#[test]
fn a_confirmed_answer_counts_anew_and_forgets_its_age() {
    let old = head(200, &[("cache-control", "max-age=60"), ("age", "59"), ("content-type", "text/plain")]);
    let said = headers(&[("cache-control", "max-age=10"), ("content-type", "text/html")]);
    let new = confirmed(old, said, THEN + 70_000, THEN + 70_000);
    assert_eq!(freshness(&new, THEN + 79_999), Freshness::Fresh);
    assert_eq!(freshness(&new, THEN + 80_000), Freshness::Stale);
    assert_eq!(new.header("content-type"), Some("text/plain"));
}

#[test]
fn a_stale_answer_stands_in_unless_that_is_forbidden_or_it_is_too_old() {
    let longest = Duration::from_secs(100);
    let stands = |lines: &[(&str, &str)], seconds: u64| {
        may_stand_in(&head(200, lines), THEN + seconds * 1000, longest)
    };
    assert!(stands(&[("cache-control", "max-age=1")], 100));
    assert!(!stands(&[("cache-control", "max-age=1")], 101));
    assert!(!stands(&[("cache-control", "max-age=1, must-revalidate")], 2));
    assert!(!stands(&[("cache-control", "no-cache")], 2));
}

proptest! {
    #[test]
    fn no_header_makes_the_rules_fail(control in ".{0,60}", age in ".{0,20}", date in ".{0,30}", now: u64, came: u64) {
        let mut head = head(200, &[("cache-control", &control), ("age", &age), ("date", &date), ("expires", &date)]);
        head.came_ms = came;
        let _ = may_keep(200, &head.headers);
        let _ = freshness(&head, now);
        let _ = may_stand_in(&head, now, Duration::MAX);
        prop_assert!(age_ms(&head, now) >= now.saturating_sub(came));
    }
}
