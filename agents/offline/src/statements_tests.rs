#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

/// The statements that stand by themselves: no whole lists, tables or sections, nor sentences that are read together.
fn single(path: &str, lines: &BTreeMap<u32, String>) -> Vec<Statement> {
    let mut found = statements(path, lines, &BTreeMap::new());
    found.retain(|statement| !statement.kind.is_whole() && statement.parts == 1);
    found
}

fn of(path: &str, text: &str) -> Vec<(u32, String)> {
    let lines = (1..).zip(text.lines().map(str::to_owned)).collect();
    single(path, &lines).into_iter().map(|statement| (statement.line, statement.text)).collect()
}

fn pairs(found: &[(u32, String)]) -> Vec<(u32, &str)> {
    found.iter().map(|(line, text)| (*line, text.as_str())).collect()
}

#[test]
fn a_wrapped_sentence_is_cited_where_it_begins() {
    let found = of(
        "a.txt",
        "The record is the only\ntruth. Agents write steps to\nit and go on.\n\nNew paragraph here.",
    );
    assert_eq!(
        pairs(&found),
        [
            (1, "The record is the only truth."),
            (2, "Agents write steps to it and go on."),
            (5, "New paragraph here.")
        ]
    );
}

#[test]
fn markdown_loses_its_signs() {
    let text = "# Limits\n\nWhat holds:\n- **Depth.** A chain has at most three links.\n- `max_width` is 5\n\n> Quoted words stay here.\n\n[ref]: http://x\n";
    let lines = (1..).zip(text.lines().map(str::to_owned)).collect();
    let found = single("a.md", &lines);
    let texts: Vec<_> = found.iter().map(|statement| (statement.line, statement.text.as_str())).collect();
    assert_eq!(
        texts,
        [
            (3, "What holds"),
            (4, "A chain has at most three links."),
            (5, "`max_width` is 5"),
            (7, "Quoted words stay here.")
        ]
    );
    assert_eq!(found[1].heading, "Depth");
    assert!(found[1].context.contains("limit"));
}

#[test]
fn rows_of_tables_say_what_they_say() {
    let text = "| id | capability | from |\n|---|---|---|\n| O4 | Delegation loops are refused | A |\n\nAfter the table.";
    let found = of("a.md", text);
    assert_eq!(pairs(&found), [(3, "Delegation loops are refused"), (5, "After the table.")]);
}

#[test]
fn comments_of_source_name_what_they_describe() {
    let text = "/// Most levels of the plan.\npub max_depth: u16,\n\n/*\n * Two lines of\n * comment here.\n */\nfn go() {}\n";
    let lines = (1..).zip(text.lines().map(str::to_owned)).collect();
    let found = statements("a.rs", &lines, &BTreeMap::new());
    assert_eq!(found[0].text, "Most levels of the plan.");
    assert_eq!(found[0].heading, "`max_depth`");
    assert!(
        found.iter().any(|statement| statement.line == 5 && statement.text == "Two lines of comment here.")
    );
    assert!(
        found
            .iter()
            .any(|statement| statement.kind == StatementKind::Code && statement.text.contains("max_depth"))
    );
}

#[test]
fn html_is_read_as_text() {
    let text = "<html><head><title>T x</title>\n<script>\nvar a = 'no words';\n</script></head>\n<body><h2>Snapshots</h2>\n<p>They are kept\nfor <b>30 days</b> here.</p><ul><li>One item stands here</li></ul>";
    let found = of("a.html", text);
    assert!(found.contains(&(6, "They are kept for 30 days here.".to_owned())), "{found:?}");
    assert!(found.iter().all(|(_, text)| !text.contains("no words")));
}

#[test]
fn a_sentence_that_points_back_brings_the_one_before() {
    let found = of("a.md", "The lease is an optimisation. It is renewed every second.");
    assert!(found.contains(&(1, "The lease is an optimisation. It is renewed every second.".to_owned())));
}

#[test]
fn a_glossary_on_one_line_comes_apart() {
    let found = of("a.md", "**goal** what a person asks · **record** the run's event log, the only truth.");
    assert!(found.contains(&(1, "record: the run's event log, the only truth.".to_owned())), "{found:?}");
}

#[test]
fn a_part_that_begins_inside_a_code_block_is_told_from_prose() {
    let text =
        "src/\n  ids.rs\n```\nNames may improve; the shape should not erode.\n\nEvery run has one record.";
    let lines = (40..).zip(text.lines().map(str::to_owned)).collect();
    let found = statements("a.md", &lines, &BTreeMap::new());
    assert!(found.iter().any(|found| found.kind == StatementKind::Sentence && found.line == 43), "{found:?}");
}

proptest! {
    #[test]
    fn no_document_upsets_it(
        text in "([\\PC]{0,30}|```|\\| a \\| b \\||# h|- item|---|<p>|/\\*|\\*\\*x\\.\\*\\* y|\n|\n\n){0,30}",
        extension in prop::sample::select(vec!["md", "txt", "html", "rs", "py", "sql", "toml", ""]),
    ) {
        let path = format!("f.{extension}");
        let lines: BTreeMap<u32, String> = (1..).zip(text.split('\n').map(str::to_owned)).collect();
        for statement in statements(&path, &lines, &BTreeMap::new()) {
            prop_assert!(lines.contains_key(&statement.line));
            prop_assert!(statement.line <= statement.last_line);
            prop_assert!(!statement.text.is_empty());
        }
    }
}
