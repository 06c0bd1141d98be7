//! `muster explain`: a page of sections, as text for a terminal or as Markdown.

mod audit;
mod course;
mod result;
mod spent;

use muster_shared::explain::{Explanation, Told};
use muster_shared::ids::Seq;

use super::figures;
use super::paint::Paint;
use crate::args::Reader;

/// Most columns of one line.
const LONGEST: usize = 400;

/// An explanation as it is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    title: String,
    sections: Vec<Section>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    title: &'static str,
    lines: Vec<Line>,
}

/// A line of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    /// Something that is told, and how deep it stands below the line before it.
    Words(usize, String),
    /// A command that shows more, and what it shows.
    Command(String, String),
}

/// What is told of a run, and to whom.
pub(crate) fn page(explained: &Explanation, reader: Reader) -> Page {
    let teller = Teller { explained, reader };
    let what = match &explained.task {
        Some(task) => format!("Task {task} of run {}", explained.run.short()),
        None => format!("Run {}", explained.run.short()),
    };
    let mut sections = result::sections(&teller);
    sections.extend(course::sections(&teller));
    sections.extend(spent::sections(&teller));
    sections.extend(audit::sections(&teller));
    sections.retain(|section| !section.lines.is_empty());
    Page { title: format!("{what}: {}", figures::one_line(&explained.goal, 200)), sections }
}

impl Page {
    /// As text for a terminal of `width` columns, if there is one.
    pub(crate) fn text(&self, width: Option<usize>, paint: Paint) -> String {
        let mut parts = vec![paint.bold(&self.title)];
        for section in &self.sections {
            let lines: Vec<String> = section.lines.iter().map(Line::text).collect();
            parts.push(format!("{}\n{}", paint.bold(section.title), lines.join("\n")));
        }
        let whole = parts.join("\n\n");
        width.map_or(whole.clone(), |width| figures::wrap(&whole, width))
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut parts = vec![format!("# {}", escaped(&self.title))];
        for section in &self.sections {
            let lines: Vec<String> = section.lines.iter().map(Line::markdown).collect();
            parts.push(format!("## {}\n\n{}", section.title, lines.join("\n")));
        }
        parts.join("\n\n")
    }
}

impl Line {
    fn text(&self) -> String {
        match self {
            Self::Words(depth, text) => format!("{}{text}", " ".repeat(2 + depth * 2)),
            Self::Command(command, why) => format!("  {command}  # {why}"),
        }
    }

    fn markdown(&self) -> String {
        match self {
            Self::Words(depth, text) => format!("{}- {}", " ".repeat(depth * 2), escaped(text)),
            Self::Command(command, why) => format!("- `{command}`: {}", escaped(why)),
        }
    }
}

/// A text in which nothing is taken for Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if "\\`*_<[".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

/// Tells of a run to somebody.
struct Teller<'a> {
    explained: &'a Explanation,
    reader: Reader,
}

impl Teller<'_> {
    /// Most items of one section.
    const fn most(&self) -> usize {
        match self.reader {
            Reader::User => 8,
            Reader::Developer => 12,
            Reader::Auditor => 40,
        }
    }

    /// Whether what only those want is told who look into the works.
    const fn is_deep(&self) -> bool {
        match self.reader {
            Reader::User => false,
            Reader::Developer | Reader::Auditor => true,
        }
    }

    /// A section with as many items as may be, and how many there are besides.
    fn section<T>(&self, title: &'static str, items: &[T], tell: impl Fn(&T) -> Vec<Line>) -> Section {
        let mut lines: Vec<Line> = items.iter().take(self.most()).flat_map(tell).collect();
        lines.extend(more(items.len(), self.most()));
        Section { title, lines }
    }

    /// Something that is told, each of its lines on its own.
    fn told(&self, told: &Told, depth: usize) -> Vec<Line> {
        let mut texts = told.text.lines();
        let first = one_line(texts.next().unwrap_or_default());
        let mut lines = vec![Line::Words(depth, format!("{first}{}", self.entries(&told.entries)))];
        lines.extend(texts.map(|text| Line::Words(depth + 1, one_line(text))));
        let room = 1 + self.most();
        if lines.len() > room {
            let left_out = lines.len() - room;
            lines.truncate(room);
            lines.push(Line::Words(depth + 1, format!("and {left_out} more: --json shows all")));
        }
        lines
    }

    /// The same with how long after the beginning it was.
    fn timed(&self, told: &Told) -> Vec<Line> {
        let mut lines = self.told(told, 0);
        if let (Some(at), Some(Line::Words(_, text))) = (told.at, lines.first_mut()) {
            *text = format!("+{} {text}", figures::span(at.since(self.explained.began_at)));
        }
        lines
    }

    /// The entries that something rests on; users are not told.
    fn entries(&self, entries: &[Seq]) -> String {
        let shown: Vec<String> = entries.iter().take(4).map(ToString::to_string).collect();
        let further = if entries.len() > shown.len() { ", …" } else { "" };
        match (self.is_deep(), shown.as_slice()) {
            (false, _) | (true, []) => String::new(),
            (true, [one]) => format!(" [entry {one}]"),
            (true, several) => format!(" [entries {}{further}]", several.join(", ")),
        }
    }
}

/// What is said of items for which there is no room.
fn more(all: usize, most: usize) -> Option<Line> {
    let left_out = all.checked_sub(most).filter(|left_out| *left_out > 0)?;
    Some(Line::Words(0, format!("and {left_out} more: --json shows all")))
}

fn one_line(text: &str) -> String {
    figures::one_line(text, LONGEST)
}

fn words(text: impl Into<String>) -> Line {
    Line::Words(0, text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        assert_eq!(more(12, 12), None);
        assert_eq!(more(15, 12), Some(words("and 3 more: --json shows all")));
    }

    #[test]
    fn texts_of_others_are_no_markdown() {
        let page = Page {
            title: "Run a_b".to_owned(),
            sections: vec![Section {
                title: "Parts",
                lines: vec![
                    words("**bold** <b>"),
                    Line::Words(1, "deeper".to_owned()),
                    Line::Command("muster trace x".to_owned(), "it".to_owned()),
                ],
            }],
        };
        let wanted =
            "# Run a\\_b\n\n## Parts\n\n- \\*\\*bold\\*\\* \\<b>\n  - deeper\n- `muster trace x`: it";
        assert_eq!(page.markdown(), wanted);
        assert_eq!(page.text(None, Paint::PLAIN).lines().last(), Some("  muster trace x  # it"));
    }
}
