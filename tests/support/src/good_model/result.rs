//! What a task has found so far, and the result that is made of it.

use serde_json::{Map, Value, json};

use super::answers::{self, Answer};
use super::facts::{self, Line};
use super::request::Seen;
use super::words::{self, Asked, Sum};

/// One thing that is asked, and the line that answers it.
pub(super) struct Cell {
    pub(super) aspect: String,
    /// The document of which it is asked; of any, when absent.
    pub(super) path: Option<String>,
    pub(super) line: Option<Line>,
    /// Whether the line says all that the words of the question name.
    pub(super) is_whole: bool,
}

/// A sum, and what came of it.
pub(super) struct Computed {
    pub(super) sum: Sum,
    pub(super) value: Option<String>,
}

/// A statement of an earlier task, with where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) text: String,
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) quote: String,
}

/// What a task has found so far.
pub(super) struct Gathered {
    pub(super) asked: Asked,
    pub(super) cells: Vec<Cell>,
    pub(super) sums: Vec<Computed>,
    pub(super) files: Vec<String>,
    pub(super) lines: Vec<Line>,
    /// Whether documents are to be looked into.
    pub(super) looks_up: bool,
    given: Vec<Given>,
    /// What earlier tasks concluded.
    concluded: Vec<String>,
    columns: Vec<String>,
}

impl Gathered {
    pub(super) fn from(seen: &Seen) -> Self {
        let task = seen.task();
        let asked = words::asked(task);
        let sums: Vec<Computed> = words::sums(task).into_iter().map(|sum| computed(seen, sum)).collect();
        let given: Vec<Given> = seen.all("result").flat_map(given).collect();
        let concluded: Vec<String> = seen.all("result").filter_map(conclusion).collect();
        let looks_up = seen.has_documents() && sums.is_empty() && concluded.is_empty();
        let lines = if looks_up { seen.lines() } else { Vec::new() };
        let refused = refused(seen);
        let cells = if looks_up { cells(seen, &asked, &lines, &refused) } else { Vec::new() };
        let wanted = seen.fence("goal").filter(|_| !concluded.is_empty()).unwrap_or(task);
        let known = seen.documents();
        let files = words::files(wanted).into_iter().filter(|name| !known.contains(name)).collect();
        Self { asked, cells, sums, files, lines, looks_up, given, concluded, columns: words::columns(wanted) }
    }

    /// The result, by the schema that the request has for it.
    pub(super) fn submitted(&self, seen: &Seen) -> Answer {
        let unanswered = self.unanswered();
        let mut fields = Map::new();
        let is_done = unanswered.is_empty();
        fields.insert("ending".to_owned(), json!(if is_done { "done" } else { "done_partial" }));
        if !is_done {
            fields.insert("reason".to_owned(), json!("the documents do not say all of it"));
            fields.insert("unanswered".to_owned(), json!(unanswered));
        }
        fields.insert("conclusion".to_owned(), json!(self.conclusion()));
        fields.insert("findings".to_owned(), self.findings());
        if self.asked.of_each || !self.concluded.is_empty() {
            fields.insert("body".to_owned(), json!(self.document()));
        }
        if seen.system.contains("`claims`") || seen.said.contains("`claims`") {
            fields.insert("claims".to_owned(), self.claims());
        }
        Answer::submitting(
            seen,
            format!("{} is known, and nothing more can be found.", self.cells.len()),
            fields,
        )
    }

    fn found(&self) -> impl Iterator<Item = (&Cell, &Line)> {
        self.cells.iter().filter_map(|cell| Some((cell, cell.line.as_ref()?)))
    }

    fn unanswered(&self) -> Vec<String> {
        let open = self.cells.iter().filter(|cell| cell.line.is_none()).map(|cell| match &cell.path {
            Some(path) => format!("{} in {path}", cell.aspect),
            None => cell.aspect.clone(),
        });
        let sums = self.sums.iter().filter(|sum| sum.value.is_none()).map(|sum| sum.sum.label.clone());
        open.chain(sums).collect()
    }

    fn conclusion(&self) -> String {
        let mut said: Vec<String> = self
            .sums
            .iter()
            .filter_map(|sum| Some(format!("{}: {}.", sum.sum.label, sum.value.as_ref()?)))
            .collect();
        if self.asked.of_each && self.looks_up {
            said.push(format!("{} of {} points are answered.", self.found().count(), self.cells.len()));
        } else {
            said.extend(
                self.found()
                    .map(|(_, line)| format!("{} (`{}:{}`)", plain(&line.text), line.path, line.number)),
            );
        }
        said.extend(
            self.concluded
                .iter()
                .filter(|_| !self.asked.of_each || said.is_empty())
                .take(3)
                .cloned()
                .collect::<Vec<_>>(),
        );
        said.extend(self.recommended());
        if !self.files.is_empty() {
            said.push(format!("Files: {}.", self.files.join(", ")));
        }
        if said.is_empty() {
            said.push("What was looked into does not say it.".to_owned());
        }
        said.join(" ")
    }

    /// The document that answers most, where documents are compared.
    fn recommended(&self) -> Option<String> {
        let cells = self.found().map(|(_, line)| line.path.clone());
        let paths: Vec<String> = cells.chain(self.given.iter().map(|given| given.path.clone())).collect();
        let count = |path: &String| paths.iter().filter(|one| *one == path).count();
        let mut named: Vec<&String> = paths.iter().collect();
        named.sort();
        named.dedup();
        let best = named.iter().max_by_key(|path| (count(path), std::cmp::Reverse(**path)))?;
        (named.len() > 1 && (self.asked.of_each || !self.given.is_empty()))
            .then(|| format!("Recommended: `{best}`, which answers {} points.", count(best)))
    }

    fn findings(&self) -> Value {
        let own = self.found().map(|(cell, line)| {
            let about = cell.path.as_ref().map_or_else(String::new, |_| format!("{}: ", cell.aspect));
            json!({"text": format!("{about}{}", plain(&line.text)), "citations": [{"path": line.path, "line": line.number, "quote": line.text}]})
        });
        let given = self.given.iter().map(|given| {
            json!({"text": given.text, "citations": [{"path": given.path, "line": given.line, "quote": given.quote}]})
        });
        own.chain(given).collect()
    }

    fn claims(&self) -> Value {
        let claim = |(cell, line): (&Cell, &Line)| {
            let number = line
                .text
                .split(|c: char| !c.is_ascii_digit() && c != '.')
                .find_map(|word| word.trim_matches('.').parse::<f64>().ok())?;
            let subject = cell
                .path
                .as_ref()
                .map_or_else(|| cell.aspect.clone(), |path| format!("{} in {path}", cell.aspect));
            Some(
                json!({"subject": subject, "value": number, "confidence": 90, "method": "read in the document",
                        "evidence": [{"path": line.path, "line": line.number, "quote": line.text}]}),
            )
        };
        self.found().filter_map(claim).collect()
    }

    /// The whole answer as a document.
    fn document(&self) -> String {
        let mut text = format!("{}\n", self.conclusion());
        for aspect in &self.asked.aspects {
            let of_it: Vec<String> = self
                .found()
                .filter(|(cell, _)| cell.aspect == *aspect)
                .map(|(_, line)| format!("- `{}:{}`: {}", line.path, line.number, plain(&line.text)))
                .collect();
            if !of_it.is_empty() {
                text.push_str(&format!("\n## {aspect}\n\n{}\n", of_it.join("\n")));
            }
        }
        for given in &self.given {
            text.push_str(&format!("\n- {} (`{}:{}`)", given.text, given.path, given.line));
        }
        text
    }

    /// What is to stand in a file that was asked for.
    pub(super) fn content(&self, name: &str) -> String {
        if !name.ends_with(".csv") {
            let rows: Vec<String> = self
                .sums
                .iter()
                .filter_map(|sum| Some(format!("- {}: {}", sum.sum.label, sum.value.as_ref()?)))
                .collect();
            let body = if rows.is_empty() { self.document() } else { rows.join("\n") };
            return format!("# {}\n\n{body}\n", name.rsplit_once('.').map_or(name, |(name, _)| name));
        }
        let wanted = self.columns.len().max(2);
        let header = if self.columns.is_empty() { "what,value".to_owned() } else { self.columns.join(",") };
        let sums = self.sums.iter().filter_map(|sum| {
            let value = sum.value.clone()?;
            let mut cells = if wanted > 2 && sum.sum.parts.len() + 1 == wanted {
                sum.sum.parts.clone()
            } else {
                vec![sum.sum.label.clone()]
            };
            cells.resize(wanted - 1, String::new());
            cells.push(value);
            Some(cells.join(","))
        });
        let found = self.found().map(|(cell, line)| format!("{},{}:{}", cell.aspect, line.path, line.number));
        let rows: Vec<String> = std::iter::once(header).chain(sums).chain(found).collect();
        rows.join("\n") + "\n"
    }
}

fn computed(seen: &Seen, sum: Sum) -> Computed {
    let value = seen.tools.calculator().and_then(|calculator| {
        let said = &seen.called(&calculator.name, &calculator.computing(&sum.expression))?.text;
        let last = said.rsplit(['=', '≈']).next().filter(|last| *last != said.as_str())?;
        let number: String =
            last.trim().chars().take_while(|c| c.is_ascii_digit() || ".-e".contains(*c)).collect();
        (!number.is_empty()).then_some(number)
    });
    Computed { sum, value }
}

/// Places that a result cited and that its refusal names: they are not named again.
fn refused(seen: &Seen) -> Vec<String> {
    let submitted = seen.observed.iter().filter(|one| one.tool == "submit");
    let named = submitted.flat_map(|one| {
        let written = one.arguments.to_string();
        answers::cited(&one.text).into_iter().filter(move |place| {
            let (path, line) = place.rsplit_once(':').unwrap_or_default();
            written.contains(path)
                && (written.contains(&format!("\"line\":{line},"))
                    || written.contains(&format!("\"line\":{line}}}")))
        })
    });
    named.collect()
}

/// What is asked, each of every document where it is asked so, with the lines that answer it.
fn cells(seen: &Seen, asked: &Asked, lines: &[Line], refused: &[String]) -> Vec<Cell> {
    let is_usable = |line: &&Line| !refused.contains(&format!("{}:{}", line.path, line.number));
    let usable: Vec<Line> = lines.iter().filter(is_usable).cloned().collect();
    let paths: Vec<Option<String>> = match seen.documents() {
        documents if asked.of_each && !documents.is_empty() => documents.into_iter().map(Some).collect(),
        _ => vec![None],
    };
    let mut cells = Vec::new();
    for aspect in &asked.aspects {
        for path in &paths {
            let best = facts::best(&usable, aspect, path.as_deref());
            cells.push(Cell {
                aspect: aspect.clone(),
                path: path.clone(),
                is_whole: best.is_some_and(|(_, fit)| facts::is_whole(fit, aspect)),
                line: best.map(|(line, _)| line.clone()),
            });
        }
    }
    cells
}

/// A line without its marks.
pub(super) fn plain(text: &str) -> String {
    text.trim_start_matches(['-', '*', '>', '|', ' ']).trim_end_matches(['|', ' ']).replace("**", "")
}

/// The statements of a result, with where they stand: `- text [path:line]`, and `path:line says: quote`.
pub(super) fn given(result: &str) -> Vec<Given> {
    let mut found: Vec<Given> = Vec::new();
    for line in result.lines() {
        if let Some((at, quote)) = line.trim().split_once(" says: ") {
            if let (Some((path, number)), Some(last)) = (
                at.rsplit_once(':'),
                found.iter_mut().rev().find(|one| at == format!("{}:{}", one.path, one.line)),
            ) && last.path == path
                && number.parse() == Ok(last.line)
            {
                quote.clone_into(&mut last.quote);
            }
            continue;
        }
        let Some((text, cited)) = line.strip_prefix("- ").and_then(|line| line.split_once(" [")) else {
            continue;
        };
        let cited = cited.split(']').next().unwrap_or_default();
        if let Some((path, line)) = cited.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            found.push(Given { text: text.to_owned(), path: path.to_owned(), line, quote: String::new() });
        }
    }
    found
}

/// What a result concludes: its line after the name.
pub(super) fn conclusion(result: &str) -> Option<String> {
    result.lines().nth(1).map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}
