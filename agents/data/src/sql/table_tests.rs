use proptest::prelude::*;
use serde_json::json;

use super::*;

fn texts(table: &Table) -> Vec<Vec<String>> {
    let Records::Texts(rows) = &table.rows else { panic!("{table:?}") };
    rows.iter().map(|row| row.iter().map(str::to_owned).collect()).collect()
}

#[test]
fn the_separator_is_the_one_that_fits_all_lines() {
    for (text, columns) in [
        ("a,b\n1,2\n", vec!["a", "b"]),
        ("a;b\n1,5;2,5\n", vec!["a", "b"]),
        ("a\tb\n1\t2, and more\n", vec!["a", "b"]),
        ("a|b|c\n1|2|3\n", vec!["a", "b", "c"]),
        ("name\nAnna\nBerta\n", vec!["name"]),
        ("name,text\nAnna,\"one; two; three\"\n", vec!["name", "text"]),
        ("\u{feff}a,b\n1,2\n", vec!["a", "b"]),
    ] {
        let table = delimited("x.csv", &decoded(text.as_bytes())).unwrap();
        assert_eq!(table.columns, columns, "{text:?}");
    }
}

#[test]
fn a_first_row_of_values_is_no_header() {
    let table = delimited("x.csv", "1,north\n2,south\n").unwrap();
    assert_eq!(table.columns, ["c1", "c2"]);
    assert_eq!(texts(&table).len(), 2);
    assert!(table.note.unwrap().contains("no header row"));
    let table = delimited("x.csv", "n,region\n2,south\n").unwrap();
    assert_eq!((table.columns.len(), texts(&table)), (2, vec![vec!["2".to_owned(), "south".to_owned()]]));
}

#[test]
fn text_is_read_in_the_encodings_that_spreadsheets_write() {
    let utf16: Vec<u8> = "\u{feff}a\nü\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(decoded(&utf16), "a\nü\n");
    assert_eq!(decoded(b"a\n\xfc\n"), "a\nü\n");
    assert_eq!(decoded("a\nü\n".as_bytes()), "a\nü\n");
}

#[test]
fn a_sheet_begins_below_its_title_and_is_named_where_there_are_several() {
    let part = |place: &str, text: &str| DocumentPart { place: place.to_owned(), text: text.to_owned() };
    let parts = [
        part("Budget 2026", "The budget\t\t\n\t\t\nitem\tcost\tyear\nrent\t5\t2026\n\t\t\nfood\t6\t2026"),
        part("Empty", "\t\t\n"),
        part("People", "name\nAnna"),
    ];
    let tables = sheets("b.xlsx", &parts).unwrap();
    let named: Vec<(&str, &str)> =
        tables.iter().map(|table| (table.part.as_str(), table.place.as_str())).collect();
    assert_eq!(named, [("Budget_2026", "b.xlsx:Budget 2026"), ("People", "b.xlsx:People")]);
    assert_eq!(tables[0].columns, ["item", "cost", "year"]);
    assert_eq!(texts(&tables[0]).len(), 2, "the empty row is no row");
    assert!(sheets("b.xlsx", &parts[1..2]).unwrap_err().contains("no sheet"));
}

#[test]
fn json_of_several_forms_is_a_table() {
    for (text, columns, rows) in [
        (r#"[{"a":1},{"b":[2]}]"#, vec!["a", "b"], 2),
        (r#"[["x","y"],[1,2]]"#, vec!["x", "y"], 1),
        ("[1,2,3]", vec!["value"], 3),
        (r#"{"a":1,"b":{"c":2}}"#, vec!["a", "b"], 1),
        (r#"{"count":2,"items":[{"n":1},{"n":2}]}"#, vec!["n"], 2),
        (r#"[{"a":1}, 7]"#, vec!["a"], 1),
    ] {
        let tables = json("x.json", text).unwrap();
        assert_eq!(
            (tables[0].columns.clone(), tables[0].rows.len()),
            (columns.iter().map(|c| (*c).to_owned()).collect(), rows),
            "{text}"
        );
    }
    let both = json("x.json", r#"{"a":[{"n":1}],"b":[{"m":1}]}"#).unwrap();
    assert_eq!(both.iter().map(|table| table.part.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    for (text, said) in
        [("[]", "nothing in it"), ("7", "single value"), ("[1,", "no JSON"), ("[[]]", "nothing in it")]
    {
        assert!(json("x.json", text).unwrap_err().contains(said), "{text}");
    }
    let lines = json_lines("x.jsonl", "{\"a\":1}\n\n{\"a\":null}\n").unwrap();
    assert_eq!(lines.rows.len(), 2);
    assert!(json_lines("x.jsonl", "{}\n{").unwrap_err().contains("line 2"));
    let Records::Values(rows) = lines.rows else { panic!("texts") };
    assert_eq!(rows[0], [json!(1)]);
}

proptest! {
    #[test]
    fn any_bytes_are_a_table_or_told(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = decoded(&bytes);
        if let Ok(table) = delimited("x.csv", &text) {
            prop_assert!(!table.columns.is_empty());
            let Records::Texts(rows) = &table.rows else { panic!("values") };
            prop_assert!(rows.iter().all(|row| row.len() <= table.columns.len()));
        }
        let _ = json("x.json", &text);
        let _ = json_lines("x.jsonl", &text);
    }
}
