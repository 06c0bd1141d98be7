use super::*;

fn at(path: &str, lines: (u32, u32), quote: &str, statement: &str) -> CitedPlace {
    let (line, last) = lines;
    CitedPlace { path: path.into(), line, last, quote: quote.into(), statement: statement.into(), group: 1 }
}

fn found(documents: &[(&str, &str)], asked: &[CitedPlace]) -> Vec<String> {
    let documents = documents.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let describe = |found: PlaceFound| match found {
        PlaceFound::Stands(Standing { path: None, line: None, .. }) => "stands".to_owned(),
        PlaceFound::Stands(Standing { path, line, .. }) => format!("{} {line:?}", path.unwrap_or_default()),
        PlaceFound::NoFile { nearest } => format!("no file, near {nearest}"),
        PlaceFound::NoLine { lines } => format!("{lines} lines"),
        PlaceFound::NoQuote { there } => format!("no quote: {there}"),
        PlaceFound::Contradicted { values, .. } => {
            values.into_iter().map(|value| format!("{} for {}", value.stated, value.there)).collect()
        }
    };
    look_up_among(&documents, asked).unwrap().into_iter().map(describe).collect()
}

const GUIDE: &str = "# Limits\n\nA delegation goes down at most **20** levels\n(see [depth](depth.md#x)), unless the run\n\
                     allows `<script>` tags. It never goes deeper.\n\n- a call is tried 3 times\n- a task is tried 5 times\n";

#[test]
fn only_files_lines_and_quotes_are_checked_without_values() {
    let guide = |line, quote, statement| at("docs/guide.md", (line, 0), quote, statement);
    let documents = [("docs/guide.md", GUIDE), ("src/a.rs", "pub max_deliver: i64,\n")];
    let there = "no quote: A delegation goes down at most **20** levels";
    for (place, expected) in [
        (guide(3, "A DELEGATION goes down at most 20 levels", ""), "stands"),
        (guide(3, "at most **20** levels\n(see [depth](depth.md#x))", ""), "stands"),
        (guide(3, "3| A delegation goes down … unless the run", ""), "stands"),
        (guide(3, "A delegation goes down at most 21 levels", ""), there),
        (guide(3, "A delegation may go down at most 20 levels", ""), there),
        (guide(3, "pub max_deliver: i64", ""), there),
        (guide(3, "a task is tried 5 times", ""), " Some(8)"),
        (guide(999, "a task is tried 5 times", ""), " Some(8)"),
        (guide(3, "tried", ""), "stands"),
        (guide(999, "", "Delegation is limited."), "8 lines"),
        (guide(0, "", "Delegation is limited."), "8 lines"),
        (guide(3, "", "Something else, and never the same."), "stands"),
        (guide(8, "tags. It never goes deeper", ""), " Some(5)"),
        (at("guide.md", (3, 4), "at most 20 levels", ""), "docs/guide.md None"),
        (at("docs/gide.md", (3, 0), "at most 20 levels", ""), "no file, near docs/guide.md"),
    ] {
        assert_eq!(found(&documents, std::slice::from_ref(&place)), [expected], "{place:?}");
    }
}

#[test]
fn values_are_compared_with_all_lines_that_are_cited_together() {
    let documents = [
        ("kestrel.md", "# Kestrel\n\nNotes are kept for 30 days.\nA note has at most 400 characters.\n"),
        ("loom.md", "# Loom\n\nNotes are kept for 7 days.\n"),
    ];
    for (statement, expected) in [
        ("Kestrel keeps notes for 30 days, Loom for 7 days.", "stands"),
        ("Kestrel keeps notes for 23 days longer.", "stands"),
        ("Kestrel keeps notes for 90 days, Loom for 7 days.", "90"),
    ] {
        let places = [at("kestrel.md", (3, 0), "", statement), at("loom.md", (3, 0), "", statement)];
        let found = found(&documents, &places);
        assert!(found.iter().all(|found| found.starts_with(expected)), "{statement}: {found:?}");
    }
    let quoted = |path: &str| at(path, (3, 0), "Notes are kept for 7 days", "");
    assert_eq!(found(&documents, &[quoted("kestrel.md"), quoted("loom.md")]), ["stands", "stands"]);
}
