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

#[test]
fn lines_of_all_kinds_are_read_as_what_they_are() {
    type Case = (&'static str, &'static str, &'static [(u32, &'static str)]);
    let table: &[Case] = &[
        ("a.csv", "id,name,elevation\nW1,Torrin Dam,418\n", &[(2, "W1: name: Torrin Dam; elevation: 418")]),
        (
            "a.yaml",
            "queue:\n  # Seconds to wait.\n  wait: 30\n",
            &[(2, "Seconds to wait (`wait: 30`)"), (3, "`wait: 30`")],
        ),
        (
            "a.log",
            "2024-03-18T04:39:40Z ERROR storage is gone\n2024-03-18T04:40:00Z INFO all well\n",
            &[(1, "2024-03-18T04:39:40Z ERROR storage is gone"), (2, "2024-03-18T04:40:00Z INFO all well")],
        ),
        (
            "a.txt",
            "Root cause\n\nIt ran out of ids.\n\n1. TERM\n1.1 The lease runs.\n1.2 It ends then.\n",
            &[(3, "It ran out of ids."), (6, "The lease runs."), (7, "It ends then.")],
        ),
        (
            "a.txt",
            "Orphan   A sensor that was not heard.\n\ncode  name  meaning\n0x05  BUSY  try again\n",
            &[(1, "A sensor that was not heard."), (4, "0x05: name: BUSY; meaning: try again")],
        ),
    ];
    for (path, text, expected) in table {
        let found = of(path, text);
        assert_eq!(pairs(&found), *expected, "{path}: {text}");
    }
}

#[test]
fn wholes_stand_in_their_own_lines_below_their_heading() {
    let text = "# Kiln\n\n## Firing\n\n1. Load.\n\n   ```\n   kiln --load\n   ```\n\n2. Close the door.\n\n## Glazes\n\n\
                | glaze | cone |\n|---|---|\n| celadon | 9 |\n| tin | 4 |\n";
    let lines = (1..).zip(text.lines().map(str::to_owned)).collect();
    let found = statements("a.md", &lines, &BTreeMap::new());
    let whole = |kind| found.iter().find(|one| one.kind == kind).map(|one| (one.line, one.text.as_str()));
    let list = "1. Load.\n\n   ```\n   kiln --load\n   ```\n\n2. Close the door.";
    assert_eq!(whole(StatementKind::List), Some((5, list)));
    let rows = "| glaze | cone |\n|---|---|\n| celadon | 9 |\n| tin | 4 |";
    assert_eq!(whole(StatementKind::Table), Some((17, rows)));
    assert!(found.iter().filter(|one| one.kind.is_whole()).all(|one| !one.heading.is_empty()));
}

proptest! {
    #[test]
    fn no_document_upsets_it(
        text in "([\\PC]{0,30}|```|a  b  c|2024-01-01T00:00:00Z x|4.2 Clause|key:|x = 1|\\[s\\]|    def f\\(x\\):|A1  b|\\| a \\| b \\||# h|- item|---|<p>|/\\*|\\*\\*x\\.\\*\\* y|\n|\n\n){0,30}",
        extension in prop::sample::select(vec![
            "md", "txt", "html", "rs", "py", "sql", "toml", "", "csv", "yaml", "log", "rst", "tsv",
        ]),
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
