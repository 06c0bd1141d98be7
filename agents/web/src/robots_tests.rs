use proptest::prelude::*;

use super::*;

#[test]
fn the_longest_rule_that_fits_decides() {
    let table: [(&str, &str, bool); 26] = [
        ("", "/a", true),
        ("User-agent: *\nDisallow: /", "/a", false),
        ("User-agent: *\nDisallow: /", "/robots.txt", true),
        ("User-agent: *\nDisallow:", "/a", true),
        ("User-agent: *\nDisallow: /a", "/ab", false),
        ("User-agent: *\nDisallow: /a", "/b", true),
        ("User-agent: *\nDisallow: /a\nAllow: /ab", "/abc", true),
        ("User-agent: *\nAllow: /a\nDisallow: /ab", "/abc", false),
        ("User-agent: *\nAllow: /page\nDisallow: /page", "/page", true),
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif", false),
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif?z", true),
        ("User-agent: *\nDisallow: /*?q=", "/x?q=1", false),
        ("User-agent: *\nDisallow: /a*b*c", "/axxbyyc", false),
        ("User-agent: *\nDisallow: /a%3cd.html", "/a%3Cd.html", false),
        ("User-agent: *\nDisallow: /%7Ejoe", "/~joe/index", false),
        ("User-agent: *\nDisallow: /ü", "/%C3%BC", false),
        ("User-agent: *\nDisallow: /a%2Fb", "/a/b", true),
        ("User-agent: muster\nDisallow: /x\n\nUser-agent: *\nDisallow: /", "/a", true),
        ("User-agent: *\nDisallow: /\nUser-agent: MUSTER/2.0\nAllow: /", "/a", true),
        ("User-agent: musterbot\nDisallow: /", "/a", true),
        ("User-agent: other\nUser-agent: Muster\nDisallow: /a", "/a", false),
        (
            "User-agent: muster\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\nUser-agent: muster\nDisallow: /c",
            "/c",
            false,
        ),
        ("User-agent: muster\nDisallow: /a\nUser-agent: x\nDisallow: /b", "/b", true),
        ("\u{feff}user-AGENT : *  # all\r\n disallow: /a # x\r\n", "/a", false),
        ("Sitemap: x\nUser-agent: *\nCrawl-delay: 3\nDisallow: /a", "/a", false),
        ("Disallow: /", "/a", true),
    ];
    for (file, path, allowed) in table {
        assert_eq!(Rules::read(file.as_bytes()).allow(path), allowed, "{file:?} {path}");
    }
}

#[test]
fn a_file_with_a_group_for_us_that_is_empty_leaves_us_free() {
    assert!(!Rules::read(b"User-agent: muster\nUser-agent: x\n\nUser-agent: *\nDisallow: /").allow("/a"));
    assert!(Rules::read(b"User-agent: muster\nDisallow:\nUser-agent: *\nDisallow: /").allow("/a"));
}

#[test]
fn rules_that_could_not_be_read_close_the_site() {
    assert!(!Rules::closed().allow("/") && Rules::open().allow("/"));
}

#[test]
fn patterns_made_to_take_long_do_not() {
    let stars = "*a".repeat(1000);
    let file = format!("User-agent: *\n{}", format!("Disallow: /{stars}b\n").repeat(5));
    let begun = std::time::Instant::now();
    assert!(Rules::read(file.as_bytes()).allow(&format!("/{}", "a".repeat(4000))));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}

proptest! {
    #[test]
    fn any_bytes_are_some_rules(file in proptest::collection::vec(any::<u8>(), 0..400), path in "/.{0,40}") {
        let _ = Rules::read(&file).allow(&path);
    }

    #[test]
    fn a_pattern_without_signs_is_the_beginning_of_what_it_fits(pattern in "/[a-z]{0,6}", path in "/[a-z]{0,8}") {
        prop_assert_eq!(fits(pattern.as_bytes(), path.as_bytes()), path.starts_with(&pattern));
    }
}
