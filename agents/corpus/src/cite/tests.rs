use super::*;

struct Shelf(Vec<(&'static str, Rc<Page>)>);

impl Shelf {
    fn new(documents: &[(&'static str, &str)]) -> Self {
        Self(
            documents
                .iter()
                .map(|(path, text)| (*path, Rc::new(Page::new(path, text, crate::Unit::Line))))
                .collect(),
        )
    }
}

impl Library for Shelf {
    fn page(&self, path: &str) -> Result<Option<Rc<Page>>, CorpusError> {
        Ok(self.0.iter().find(|(known, _)| *known == path).map(|(_, page)| Rc::clone(page)))
    }

    fn paths(&self) -> Result<Rc<Vec<String>>, CorpusError> {
        Ok(Rc::new(self.0.iter().map(|(path, _)| (*path).to_owned()).collect()))
    }

    fn likely(&self, _: &str) -> Result<Vec<(String, u32)>, CorpusError> {
        Ok(self.0.iter().map(|(path, _)| ((*path).to_owned(), 1)).collect())
    }
}

const GUIDE: &str = "# Limits\n\nA delegation goes down at most **20** levels\n(see [depth](depth.md#x)), unless the run says\n\
                     otherwise. It never goes deeper.\n\n## Retries\n\n- a call is tried 3 times\n- a task is tried 5 times\n\n\
                     | limit | usual |\n|---|---|\n| steps | 50 |\n| retries | 4 |\n\nThe record has 2,009 lines.\n";
const CODE: &str = "/// Settings of a consumer.\npub struct Consumer {\n    pub max_deliver: i64,\n    pub ackWait: u64,\n}\n";

fn at(path: &str, line: u32, quote: &str, statement: &str) -> CitedPlace {
    CitedPlace { path: path.into(), line, quote: quote.into(), statement: statement.into(), group: 1 }
}

fn said(found: &PlaceFound) -> String {
    match found {
        PlaceFound::Stands(standing) if standing.is_as_cited() => "stands".into(),
        PlaceFound::Stands(Standing { path, line, quote, .. }) => {
            format!("corrected {path:?} {line:?} {}", quote.is_some())
        }
        PlaceFound::Elsewhere { path, line } => format!("{path}:{line}"),
        PlaceFound::NoFile { nearest } => format!("no file, near {nearest}"),
        PlaceFound::NoLine { lines } => format!("{lines} lines"),
        PlaceFound::Otherwise { there, lacks } if lacks.is_empty() => format!("there: {there}"),
        PlaceFound::Otherwise { there, lacks } => format!("lacks {}: {there}", lacks.join(", ")),
    }
}

#[test]
fn each_place_is_told_what_stands_there() {
    let shelf = Shelf::new(&[("docs/guide.md", GUIDE), ("src/consumer.rs", CODE)]);
    let guide = |line, quote, statement| at("docs/guide.md", line, quote, statement);
    let there = "there: A delegation goes down at most **20** levels (see depth), unless the run says";
    for (place, expected) in [
        (guide(3, "a delegation goes down at most 20 levels", ""), "stands"),
        (guide(3, "At most 20 levels (see depth), unless the run says otherwise", ""), "stands"),
        (guide(3, "at most **20** levels\n(see [depth](depth.md#x))", ""), "stands"),
        (guide(3, "3| A delegation goes down", ""), "stands"),
        (guide(4, "A delegation goes down … unless the run", ""), "stands"),
        (guide(3, "A delegation goes down at most 21 levels", ""), there),
        (
            guide(3, "A delegation may go down at most 20 levels see depth unless the run says", ""),
            "corrected None None true",
        ),
        (guide(3, "It always goes deeper", ""), there),
        (guide(9, "a task is tried 5 times", ""), "corrected None Some(10) false"),
        (guide(9_998, "a task is tried 5 times", ""), "corrected None Some(10) false"),
        (guide(9_998, "no such words anywhere", ""), "17 lines"),
        (guide(0, "", "Delegation is limited."), "17 lines"),
        (guide(3, "pub max_deliver: i64", ""), "src/consumer.rs:3"),
        (guide(3, "pub struct Consumer { pub max_deliver", ""), "src/consumer.rs:2"),
        (at("guide.md", 3, "at most 20 levels", ""), "corrected Some(\"docs/guide.md\") None false"),
        (at("docs/gide.md", 3, "at most 20 levels", ""), "no file, near docs/guide.md"),
        (guide(3, "", "Delegations may nest 20 levels deep."), "stands"),
        (guide(3, "", "Delegations may nest 21 levels deep."), there),
        (guide(14, "", "The usual limit of steps is 50."), "stands"),
        (guide(14, "", "The usual limit of steps is 4."), "there: | steps | 50 | | retries | 4 |"),
        (guide(17, "", "There are 2009 lines in the record."), "stands"),
        (guide(3, "", "A task is tried five times."), "stands"),
        (guide(3, "", "Die Delegation ist auf 20 Ebenen begrenzt und geht nicht tiefer."), "stands"),
        (guide(3, "", "Die Delegation ist auf 21 Ebenen begrenzt und geht nicht tiefer."), there),
        (guide(1, "", ""), "stands"),
        (guide(4, "", "`max_deliver` is a setting of the delegation."), "src/consumer.rs:1"),
        (at("src/consumer.rs", 3, "", "`max_deliver` is an i64."), "stands"),
        (
            at("src/consumer.rs", 3, "", "`max_delivery` is an i64."),
            "there: pub max_deliver: i64, pub ackWait: u64,",
        ),
    ] {
        let found = look_up(&shelf, std::slice::from_ref(&place), false).unwrap();
        assert_eq!(said(&found[0]), expected, "{place:?}");
    }
}

#[test]
fn places_cited_together_stand_together() {
    let shelf = Shelf::new(&[("guide.md", GUIDE), ("consumer.rs", CODE)]);
    let both = "A delegation goes down 20 levels, and 2,009 lines are in the record.";
    let places = [at("guide.md", 3, "", both), at("guide.md", 17, "", both)];
    let found: Vec<String> = look_up(&shelf, &places, false).unwrap().iter().map(said).collect();
    assert_eq!(found, ["stands", "stands"]);
    let shown = look_up(&shelf, &[at("guide.md", 9, "tried 3 times", "")], true).unwrap();
    let PlaceFound::Stands(Standing { text, .. }) = &shown[0] else { panic!("{shown:?}") };
    assert_eq!(text, "- a call is tried 3 times");
}

#[test]
fn what_is_said_beside_a_quote_is_borne_out() {
    const PLAN: &str = "# Kestrel 2.1\n\n## Memory\n\nNotes are kept for thirty days, then dropped. A note has at most 400\n\
                        characters, 12.5 % of them for its source. Loops never wait for notes of other loops.\n\n\
                        - by day\n- by week\n- by hand\n\n| kind | most |\n|---|---|\n| plain | 40 |\n| marked | 60 |\n\n\
                        ## Tools\n\nA tool is called 7 times.\n";
    let shelf = Shelf::new(&[("kestrel.md", PLAN), ("loom.md", "# Loom\n\nNotes are kept for one week.\n")]);
    let days = "Notes are kept for thirty days";
    for (line, quote, statement, expected) in [
        (5, days, "Kestrel keeps notes for 30 days.", ""),
        (5, days, "Kestrel keeps notes for 720 hours, about a month.", ""),
        (5, days, "Kestrel keeps notes for ninety days.", "ninety days"),
        (5, days, "Kestrel keeps notes for 45 days.", "45"),
        (5, days, "Kestrel keeps notes for 30 hours.", "30"),
        (5, days, "Kestrel 2.1 keeps notes of 400 characters for 30 days (see section 9, line 5).", ""),
        (5, days, "Kestrel 2.2 keeps notes for 30 days.", "2.2"),
        (
            6,
            "12.5 % of them for its source",
            "An eighth, 12.5 %, is for the source: 50 characters of 400.",
            "",
        ),
        (6, "12.5 % of them for its source", "An eighth, 15 %, is for the source.", "15 %"),
        (6, "characters, 12.5 % of them", "About 13 % of a note are its source, in three ways.", ""),
        (14, "plain | 40", "Plain and marked ones together may be 100.", "100"),
        (14, "plain | 40", "Plain ones may be 40, a third less than the 60 of marked ones.", ""),
        (5, days, "A tool is called up to 7; notes are kept.", "7"),
        (6, "Loops never wait for notes", "Loops never wait for notes of other loops.", ""),
        (
            6,
            "Loops never wait for notes",
            "Loops wait for notes of other loops.",
            "Loops wait for notes of other loops",
        ),
    ] {
        let found = look_up(&shelf, &[at("kestrel.md", line, quote, statement)], false).unwrap();
        let lacks = match &found[0] {
            PlaceFound::Otherwise { lacks, .. } => lacks.join("; "),
            PlaceFound::Stands(_) => String::new(),
            other => panic!("{other:?}"),
        };
        assert!(
            lacks.contains(expected) && lacks.is_empty() == expected.is_empty(),
            "{statement}: {lacks:?}"
        );
    }
}

#[test]
fn what_is_said_of_two_documents_is_looked_up_in_each() {
    let shelf = Shelf::new(&[
        ("kestrel.md", "# Kestrel\n\nNotes are kept for thirty days.\n"),
        ("loom.md", "# Loom\n\nNotes are kept for one week.\n"),
    ]);
    let found = |statement: &str, second: &str| -> Vec<String> {
        let places = [
            at("kestrel.md", 3, "Notes are kept for thirty days", statement),
            at("loom.md", 3, second, statement),
        ];
        look_up(&shelf, &places, false).unwrap().iter().map(said).collect()
    };
    let week = "Notes are kept for one week";
    assert_eq!(found("Kestrel keeps them for 30 days, Loom for 7 days.", week), ["stands", "stands"]);
    let both = found("Both keep them for 30 days.", "Notes are kept for thirty days");
    assert_eq!(both, ["stands", "kestrel.md:3"], "the words of one stand in the other only");
    let wrong = found("Kestrel keeps them for 30 days, Loom for 9 days.", week);
    assert!(wrong.iter().all(|found| found.starts_with("lacks 9")), "{wrong:?}");
}
