use serde_json::json;

use super::*;
use crate::flow::Finding;

fn said(text: &str) -> TaskResult {
    TaskResult { conclusion: text.to_owned(), ..TaskResult::default() }
}

fn holds(expected: &str, text: &str) -> bool {
    unmet(expected, &said(text), None).is_empty()
}

#[test]
fn what_is_expected_is_held_against_what_is_given() {
    for (expected, good, bad) in [
        ("a JSON array of exactly three colours", "[\"red\", \"green\", \"blue\"]", "banana"),
        (
            "a JSON array of exactly three colours",
            "So: ```json\n[\"a\",\"b\",\"c\"]\n```",
            "[\"red\", \"green\"]",
        ),
        ("A JSON array of 3 colours.", "[1,2,3]", "red, green and blue"),
        ("JSON", "{\"a\": 1}", "a is 1"),
        ("The result as JSON.", "[]", "none"),
        ("a JSON object with keys name and price", "{\"name\": 1, \"price\": 2}", "{\"name\": 1}"),
        ("JSON object with the fields `name`, `price`", "{\"name\": 1, \"price\": 2}", "{\"price\": 2}"),
        ("a list of five risks", "1. a\n2. b\n3. c\n4. d\n5. e", "1. a\n2. b"),
        ("a list of the three best colours", "red, green and blue", "red"),
        ("A list with at least 2 items", "- a\n- b\n- c", "a"),
        ("3-5 bullet points", "* a\n* b\n* c\n* d", "* a\n* b"),
        ("JSON with the fields path and line", "{\"found\": [{\"path\": 1, \"line\": 2}]}", "{\"path\": 1}"),
        ("three bullet points", "* a\n* b\n* c", "* a\n* b"),
        ("a list of two to four names", "Ada, Bob", "Ada, Bob, Cy, Di, Ed"),
        ("at most 5 words", "no more than that", "these are certainly more words than that"),
        ("No more than five words.", "five words are not many", "six words are one word more"),
        (
            "a 10-word summary, at most 10 words",
            "short",
            "one two three four five six seven eight nine ten eleven",
        ),
        ("one word", "red", "it is quite red"),
        ("at least 3 sentences", "One. Two. Three.", "One."),
        ("a single paragraph", "One.\nTwo.", "One.\n\nTwo."),
        ("a number", "It is 42.", "banana"),
        ("the number of files", "There are seven.", "many of them"),
        ("only a number", "42", "I counted them all twice and it is 42"),
        ("a number and nothing else", "42", "I counted them all twice and it is 42"),
        ("yes or no", "Yes, it is.", "banana"),
        ("Yes/no with a reason", "No: it is late.", "late"),
        ("a table", "| a | b |\n|---|---|\n| 1 | 2 |", "a is 1"),
        ("a Markdown table with two columns", "| a | b |\n|---|---|\n| 1 | 2 |", "| a |\n|---|\n| 1 |"),
        ("a table comparing apples and pears", "fruit,colour\napple,red", "apples are red"),
    ] {
        assert!(holds(expected, good), "{expected}: {:?}", unmet(expected, &said(good), None));
        let faults = unmet(expected, &said(bad), None);
        assert!(!faults.is_empty(), "{expected}: {bad}");
        assert!(faults[0].contains("expected was"), "{faults:?}");
    }
}

#[test]
fn where_words_leave_doubt_nothing_is_demanded() {
    for expected in [
        "",
        "a sentence",
        "The answer to what was asked.",
        "One or more sources.",
        "a table or a list",
        "JSON or text",
        "a summary of the JSON parsers",
        "the errors in the JSON files",
        "no table, please",
        "a number of examples",
        "a summary of table 3",
        "the water table of Paris",
        "about 200 words",
        "200 words",
        "two sentences for each city",
        "exactly 12 months of data",
        "a list of colours, if there are any",
        "what limits.md says of the 20 levels",
        "the lines 3 to 7 of the file",
        "a clear statement, not a table",
        "Statements that answer the question in other words, each with path and line.",
        "The findings whose quotation stands at the place given.",
        "The value of each expression.",
        "The questions that stay open, and what would answer them.",
        "What the documents say to each question.",
        "one claim with the value that holds",
    ] {
        assert!(holds(expected, "banana"), "{expected}: {:?}", unmet(expected, &said("banana"), None));
    }
}

#[test]
fn data_findings_and_files_count_too() {
    let data = TaskResult { data: Some(Box::new(json!(["a", "b", "c"]))), ..said("see the data") };
    assert_eq!(unmet("a JSON array of exactly three colours", &data, None), Vec::<String>::new());
    let findings = TaskResult { findings: vec![Finding::default(); 5], ..said("see what was found") };
    assert_eq!(unmet("a list of 5 risks", &findings, None), Vec::<String>::new());
    let file = "a file named notes/out.md of at most 3 words";
    assert_eq!(
        unmet(file, &said("it was written down there"), None),
        Vec::<String>::new(),
        "it is not known"
    );
    assert_eq!(unmet(file, &said("x"), Some(&["notes/out.md".to_owned()])), Vec::<String>::new());
    let faults = unmet("written to out.md", &said("x"), Some(&["other.md".to_owned()]));
    assert!(faults[0].contains("no file out.md was written"), "{faults:?}");
}
