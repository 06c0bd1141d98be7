//! Whatever a text cites: it is read, and its places stand where they are said to.

use proptest::prelude::*;

use super::*;

fn texts() -> impl Strategy<Value = String> {
    let path = prop_oneof![
        Just("a.md".to_owned()),
        Just("../../etc/passwd.txt".to_owned()),
        Just("/etc/hosts.conf".to_owned()),
        Just("https://x.org/a.md".to_owned()),
        Just("C:\\a.md".to_owned()),
        Just("\u{1b}]8;;a.md".to_owned()),
        Just(".md".to_owned()),
        any::<String>(),
    ];
    let line = prop_oneof![
        any::<u64>().prop_map(|line| line.to_string()),
        any::<i64>().prop_map(|line| line.to_string())
    ];
    let mark = prop_oneof![Just(":"), Just("#L"), Just(":-"), Just("::")];
    let around = prop_oneof![
        any::<String>(),
        Just(" (\"so it is said there\" ".to_owned()),
        Just("\n```\n".to_owned())
    ];
    let place = (around, path, mark, line, any::<bool>()).prop_map(|(around, path, mark, line, is_range)| {
        let to = if is_range { format!("-{line}") } else { String::new() };
        format!("{around}{path}{mark}{line}{to}")
    });
    prop::collection::vec(place, 0..5).prop_map(|places| places.concat())
}

proptest! {
    #[test]
    fn whatever_is_cited_is_read_and_left_out(text in texts()) {
        for found in scan::places(&text) {
            prop_assert!(text[found.at.clone()].starts_with(&found.place.path));
        }
        let result = TaskResult { conclusion: text.clone(), body: text, ..TaskResult::default() };
        let places = cites(&Product::Result(result.clone()));
        let judged = places.into_iter().map(|cite| (cite, Verdict::False { why: "no".into() }));
        let judged = Judged { cites: judged.collect() };
        let product = Some(Product::Result(result));
        let submission = Submission { ending: Ending::Done, reason: String::new(), product };
        let left = left_out(submission, &judged);
        prop_assert!(left.product.is_some());
    }
}
