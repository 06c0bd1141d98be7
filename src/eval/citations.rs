//! Whether the places that a report cites say what it says: a simple rule, tolerant of what comes before and after.

use std::collections::BTreeSet;
use std::fmt;

use super::check::Documents;

/// Lines before and after a cited one in which its words may stand: statements are broken over lines.
const BEFORE: usize = 1;
const AFTER: usize = 5;
/// Words that a statement and its place have to share.
const SHARED: usize = 2;
/// Shortest word that tells something, in characters.
const TELLING: usize = 4;

/// A place that a report cites, with the line of the report around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Citation {
    path: String,
    line: usize,
    statement: String,
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// Every `path:line` of a report.
pub(crate) fn cited(report: &str) -> Vec<Citation> {
    report
        .lines()
        .flat_map(|line| {
            places(line).into_iter().map(|(path, at)| Citation { path, line: at, statement: line.to_owned() })
        })
        .collect()
}

fn places(line: &str) -> Vec<(String, usize)> {
    let words = line.split(|c: char| c.is_whitespace() || "`[](),;\"'<>|".contains(c));
    words.filter_map(place).collect()
}

fn place(word: &str) -> Option<(String, usize)> {
    let (path, line) = word.trim_end_matches(['.', ':', '*']).rsplit_once(':')?;
    // `12-14` begins at 12.
    let line = line.split('-').next()?.parse().ok()?;
    let (_, ending) = path.rsplit_once('.')?;
    let is_file =
        ending.starts_with(|c: char| c.is_alphabetic()) && ending.chars().all(char::is_alphanumeric);
    (is_file && !path.contains("//")).then(|| (path.trim_start_matches('*').to_owned(), line))
}

/// What is wrong with a citation; nothing where it is true.
pub(crate) fn fault(citation: &Citation, documents: &Documents) -> Option<String> {
    let Citation { path, line, statement } = citation;
    let ends = format!("/{path}");
    let document = documents
        .get(path)
        .or_else(|| documents.iter().find(|(known, _)| known.ends_with(&ends)).map(|(_, lines)| lines));
    let Some(document) = document else { return Some("there is no such document".to_owned()) };
    if *line == 0 || *line > document.len() {
        return Some(format!("the document has {} lines", document.len()));
    }
    let (from, to) = (line.saturating_sub(1 + BEFORE), (line + AFTER).min(document.len()));
    let there = document[from..to].join(" ");
    let quoted = quotes(statement).into_iter().find(|quote| !plain(&there).contains(&plain(quote)));
    if let Some(quote) = quoted {
        return Some(format!("{quote:?} does not stand there"));
    }
    if let Some(number) =
        numbers(statement).into_iter().find(|number| !plain(&there).split(' ').any(|word| word == number))
    {
        return Some(format!("{number} does not stand there"));
    }
    let said = words(statement, path);
    let shared = said.intersection(&words(&there, "")).count();
    (shared < SHARED.min(said.len())).then(|| format!("the line says: {}", document[line - 1].trim()))
}

/// The numbers of a statement that cites a single place: they are to stand there. Its number in a list is none of them.
fn numbers(statement: &str) -> Vec<String> {
    if places(statement).len() != 1 {
        return Vec::new();
    }
    let text = statement.trim_start_matches(|c: char| c.is_ascii_digit() || " -*#.)".contains(c));
    let words = text.split_whitespace().filter(|word| places(word).is_empty());
    let parts: Vec<String> = words.map(plain).collect();
    let all = parts.iter().flat_map(|word| word.split(' '));
    all.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.parse::<f64>().is_ok())
        .map(str::to_owned)
        .collect()
}

/// What stands between quotation marks, if it is long enough to be a quote.
fn quotes(statement: &str) -> Vec<String> {
    let mut found = Vec::new();
    let plain = statement.replace(['“', '”'], "\"");
    for quote in plain.split('"').skip(1).step_by(2) {
        if quote.split_whitespace().count() > 2 {
            found.push(quote.trim_end_matches(['.', ',', '…']).to_owned());
        }
    }
    found
}

/// A text without case, markup and breaks.
fn plain(text: &str) -> String {
    let kept: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '.' || c == '%' { c } else { ' ' })
        .collect();
    kept.split_whitespace().map(|word| word.trim_matches('.')).collect::<Vec<_>>().join(" ")
}

/// The words of a text that tell something, places left out.
fn words(text: &str, path: &str) -> BTreeSet<String> {
    let own = plain(path);
    let telling = text.split_whitespace().filter(|word| places(word).is_empty()).map(plain);
    let words: Vec<String> =
        telling.flat_map(|word| word.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
    words.into_iter().filter(|word| word.chars().count() >= TELLING && !own.contains(word.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Documents {
        let lines = [
            "# Limits",
            "",
            "A loop ends after five hops,",
            "whatever the model says.",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "Birds sing in the morning.",
        ];
        Documents::from([("docs/a.md".to_owned(), lines.map(str::to_owned).to_vec())])
    }

    fn faults(report: &str) -> Vec<String> {
        let documents = documents();
        cited(report).iter().filter_map(|one| fault(one, &documents)).collect()
    }

    #[test]
    fn what_is_true_passes() {
        for report in [
            "A loop ends after five hops (`a.md:3`).",
            "- Loops: the model cannot say when it *ends* [docs/a.md:3-4].",
            "It says “ends after five hops, whatever the model says” (a.md:3).",
            "See `a.md:3`.",
            "At 10:30 we met, http://x.org:80 was down, 12.5:3 is a ratio.",
        ] {
            assert_eq!(faults(report), Vec::<String>::new(), "{report}");
        }
        assert_eq!(cited("at 10:30, http://x.org:80, 12.5:3, a.md:3.").len(), 1);
    }

    #[test]
    fn what_is_false_is_told() {
        for (report, wanted) in [
            ("A loop ends after five hops (`b.md:3`).", "no such document"),
            ("A loop ends after five hops (`a.md:9998`).", "has 12 lines"),
            ("A loop ends after five hops (`a.md:12`).", "the line says: Birds"),
            ("2. A loop ends after 6 hops (`a.md:3`).", "6 does not stand there"),
            ("It says “ends after six hops” (`a.md:3`).", "does not stand there"),
        ] {
            let said = faults(report);
            assert!(said.len() == 1 && said[0].contains(wanted), "{report}: {said:?}");
        }
    }
}
