//! Books: EPUB 3.3. Its chapters are the documents of its spine, each cited by its lines.

use std::collections::HashMap;

use super::words::title_of;
use crate::found::{Failure, Found, Part};
use crate::html;
use crate::limits::Budget;
use crate::package::Package;
use crate::xml::{Met, walk};

/// The chapters of a book.
pub(crate) fn epub(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut package = Package::open(bytes, budget)?;
    let container = package.need("META-INF/container.xml", budget)?;
    let mut at = None;
    walk(&container, crate::limits::MAX_NESTING, |met| {
        if let Met::Begin("rootfile", attributes) = met {
            at = at.take().or_else(|| attributes.get("full-path"));
        }
    })?;
    let at = at.ok_or_else(|| Failure::broken("it does not say where its contents are"))?;
    let contents = package.need(&at, budget)?;
    let chapters = spine(&contents)?;
    let folder = at.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Found::of("epub", Vec::new());
    found.title = title_of(&contents);
    for (number, file) in (1u64..).zip(chapters) {
        if budget.room() == 0 || !budget.take_document() {
            found.leave_out(format!("the chapters from {number} on: there is too much"));
            break;
        }
        let name = joined(folder, &file);
        let source = match package.get(&name, budget) {
            Ok(Some(source)) => source,
            Ok(None) => {
                found.leave_out(format!("chapter {number}: it is missing"));
                continue;
            }
            Err(failure) => {
                found.leave_out(format!("chapter {number}: it {}", failure.in_short()));
                continue;
            }
        };
        let source = muster_corpus::decode(source).unwrap_or_default();
        let (mut text, _) = html::to_text(&source, budget.room());
        budget.take_text(&mut text);
        if !text.is_empty() {
            found.parts.push(Part { within: number.to_string(), ..Part::text(text) });
        }
    }
    Ok(found)
}

/// The files of the chapters, in the order in which they are read.
fn spine(contents: &[u8]) -> Result<Vec<String>, Failure> {
    let (mut files, mut order) = (HashMap::new(), Vec::new());
    walk(contents, crate::limits::MAX_NESTING, |met| {
        let Met::Begin(name, attributes) = met else { return };
        match name {
            "item" => {
                if let (Some(id), Some(file)) = (attributes.get("id"), attributes.get("href")) {
                    files.insert(id, file);
                }
            }
            "itemref" => order.extend(attributes.get("idref")),
            _ => {}
        }
    })?;
    Ok(order.iter().filter_map(|id| files.get(id).cloned()).collect())
}

/// A path from a folder on, with its percent signs read.
fn joined(folder: &str, file: &str) -> String {
    let file = unescaped(file.split('#').next().unwrap_or(file));
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn unescaped(file: &str) -> String {
    let mut bytes = Vec::with_capacity(file.len());
    let mut rest = file.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_chapters_are_joined() {
        for (folder, file, path) in [
            ("OEBPS", "text/one.xhtml#x", "OEBPS/text/one.xhtml"),
            ("a/b", "../c%20d.xhtml", "a/c d.xhtml"),
            ("", "../../x%zz", "x%zz"),
        ] {
            assert_eq!(joined(folder, file), path);
        }
    }
}
