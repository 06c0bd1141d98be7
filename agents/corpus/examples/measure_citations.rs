//! Error rates of the rules for citations: `measure_citations DIRECTORY [-v]`.
//!
//! The directory has `STATEMENTS.jsonl` (`id`, `truth`, `class`, `file`, `from`, `to`, `statement`, optional `more` places)
//! and the documents below `DOCS`. Prints per class: true statements refused or moved to another line, and false statements
//! delivered as cited. `-v` lists these statements.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use muster_corpus::{CitedPlace, decode, longest_quote, look_up_among};
use muster_shared::flow::{LookedUp, PlaceFound};
use serde_json::Value;

/// Counts of one class.
#[derive(Default)]
struct Row {
    all: usize,
    refused: usize,
    moved: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: measure_citations DIRECTORY [-v]")?;
    let is_verbose = arguments.next().is_some();
    let directory = Path::new(&directory);
    let mut documents = BTreeMap::new();
    read_documents(&directory.join("DOCS"), "", &mut documents)?;
    let mut rows: BTreeMap<(bool, String), Row> = BTreeMap::new();
    for line in std::fs::read_to_string(directory.join("STATEMENTS.jsonl"))?.lines() {
        let statement: Value = serde_json::from_str(line)?;
        let places = places(&statement);
        let found = look_up_among(&documents, &places)?;
        let is_true = statement["truth"] == true;
        let is_refused = found.iter().any(|found| found.standing().is_none());
        let is_moved = found.iter().any(|found| matches!(found, PlaceFound::Stands(at) if at.line.is_some()));
        let row =
            rows.entry((!is_true, statement["class"].as_str().unwrap_or_default().to_owned())).or_default();
        row.all += 1;
        row.refused += usize::from(is_refused);
        row.moved += usize::from(is_moved);
        if is_verbose && (is_true && (is_refused || is_moved) || !is_true && !is_refused) {
            println!("{} {} {}", statement["id"], statement["class"], statement["statement"]);
            for (place, found) in places.into_iter().zip(found) {
                let looked = LookedUp { path: place.path, line: place.line, words: 0, found };
                println!("    {}", looked.fault().or_else(|| looked.correction()).unwrap_or_default());
            }
        }
    }
    print(&rows);
    Ok(())
}

fn read_documents(
    directory: &Path,
    prefix: &str,
    documents: &mut BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_documents(&entry.path(), &format!("{path}/"), documents)?;
        } else if let Some(text) = decode(std::fs::read(entry.path())?) {
            documents.insert(path, text);
        }
    }
    Ok(())
}

/// The places of a statement, cited together.
fn places(statement: &Value) -> Vec<CitedPlace> {
    let text = statement["statement"].as_str().unwrap_or_default();
    let line = |place: &Value, field: &str| place[field].as_u64().and_then(|line| u32::try_from(line).ok());
    let place = |place: &Value| CitedPlace {
        path: place["file"].as_str().unwrap_or_default().to_owned(),
        line: line(place, "from").unwrap_or_default(),
        last: line(place, "to").unwrap_or_default(),
        quote: longest_quote(text).unwrap_or_default().to_owned(),
        statement: text.to_owned(),
        group: 1,
    };
    let more = statement["more"].as_array().into_iter().flatten();
    std::iter::once(statement).chain(more).map(place).collect()
}

fn print(rows: &BTreeMap<(bool, String), Row>) {
    let percent = |part: usize, all: usize| {
        let (part, all) =
            (u32::try_from(part).unwrap_or(u32::MAX), u32::try_from(all.max(1)).unwrap_or(u32::MAX));
        100.0 * f64::from(part) / f64::from(all)
    };
    for is_false in [false, true] {
        println!(
            "{}",
            if is_false { "false: class, number, delivered" } else { "true: class, number, refused, moved" }
        );
        let mut sum = Row::default();
        for ((_, class), row) in rows.iter().filter(|((of, _), _)| *of == is_false) {
            sum = Row {
                all: sum.all + row.all,
                refused: sum.refused + row.refused,
                moved: sum.moved + row.moved,
            };
            print_row(is_false, class, row, percent);
        }
        print_row(is_false, "all", &sum, percent);
    }
}

fn print_row(is_false: bool, class: &str, row: &Row, percent: impl Fn(usize, usize) -> f64) {
    let Row { all, refused, moved } = row;
    let counted = if is_false { all - refused } else { *refused };
    let moved = if is_false { String::new() } else { format!(", {moved}") };
    println!("  {class:<10} {all:>4} {counted:>4} ({:.1} %){moved}", percent(counted, *all));
}
