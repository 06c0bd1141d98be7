//! Answers beside, and within, very large documents.

use std::fmt::Write as _;
use std::fs;

use super::testing::{Folder, offer, run};

const ANSWER: &str = "The apple colour is red.";

/// Words that say nothing, without an end of line.
fn filler(bytes: usize, ends: &str) -> String {
    let mut text = String::with_capacity(bytes + 100);
    let mut number = 0_u32;
    while text.len() < bytes {
        number += 1;
        let _ = write!(
            text,
            "Record {number} of the fruit list says that nothing was noted of its colour then.{ends}"
        );
    }
    text
}

fn within(mut text: String) -> String {
    let middle = text.floor_char_boundary(text.len() / 2);
    let at = text[..middle].rfind("Record").unwrap();
    text.insert_str(at, &format!("{ANSWER} "));
    text
}

#[test]
fn an_answer_is_found_beside_and_within_large_documents() {
    const LARGE: usize = 6_600_000;
    let lines: String = (0..300_000).map(|n| format!("{n} some fruit has a colour\n")).collect();
    let cases: [(&str, Vec<(&str, String)>); 5] = [
        ("one line beside", vec![("apple.md", ANSWER.to_owned()), ("big.txt", filler(LARGE, " "))]),
        ("lines beside", vec![("apple.md", ANSWER.to_owned()), ("big.txt", lines.clone())]),
        (
            "both beside",
            vec![
                ("apple.md", ANSWER.to_owned()),
                ("one.txt", filler(LARGE, " ")),
                ("many.log", lines.clone()),
            ],
        ),
        ("within one line", vec![("big.txt", within(filler(LARGE, " ")))]),
        ("within many lines", vec![("big.txt", within(filler(LARGE, "\n")))]),
    ];
    for (case, documents) in cases {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in &documents {
            fs::write(folder.path().join(path), text).unwrap();
        }
        let (mut tools, _) = Folder::open(folder.path());
        let ran = run(&offer("What is the apple colour?"), &mut tools);
        assert!(ran.report.body.contains("apple colour is red"), "{case}:\n{}", ran.report.body);
        assert_eq!(ran.report.unanswered, Vec::<String>::new(), "{case}");
    }
}
