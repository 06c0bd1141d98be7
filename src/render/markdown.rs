//! Reports on a terminal: Markdown as styled text, wrapped at the width of the terminal.

use comfy_table::{ContentArrangement, Table, presets};
use minimad::{Composite, CompositeStyle, Compound, Line, TableRow};
use textwrap::Options;

use super::paint::{self, Style};

/// A Markdown text for a terminal of so many columns.
pub(crate) fn styled(text: &str, columns: usize) -> String {
    let parsed = minimad::parse_text(text, minimad::Options::default());
    let mut out = String::with_capacity(text.len() * 2);
    let mut rows: Vec<&TableRow<'_>> = Vec::new();
    for line in &parsed.lines {
        let text = match line {
            Line::TableRow(row) => {
                rows.push(row);
                continue;
            }
            // The one parts the head of a table from the rest, the other is no text.
            Line::TableRule(_) | Line::CodeFence(_) => continue,
            Line::Normal(composite) => wrapped(composite, columns),
            Line::HorizontalRule => "─".repeat(columns),
        };
        end_table(&mut out, &mut rows, columns);
        out.push_str(&text);
        out.push('\n');
    }
    end_table(&mut out, &mut rows, columns);
    out
}

fn wrapped(composite: &Composite<'_>, columns: usize) -> String {
    let words: String =
        composite.compounds.iter().map(|compound| with_style(compound, composite.style)).collect();
    let mut words = words.as_str();
    let (first, further) = match composite.style {
        // To the parser, a line that begins with a dash is text.
        CompositeStyle::Paragraph => match words.trim_start_matches(' ').strip_prefix("- ") {
            Some(item) => {
                let indent = " ".repeat(words.len() - item.len() - 2);
                words = item;
                (format!("{indent}• "), format!("{indent}  "))
            }
            None => (String::new(), String::new()),
        },
        CompositeStyle::Header(_) => (String::new(), String::new()),
        CompositeStyle::ListItem(depth) => {
            let indent = "  ".repeat(depth.into());
            (format!("{indent}• "), format!("{indent}  "))
        }
        CompositeStyle::Quote => ("│ ".to_owned(), "│ ".to_owned()),
        // What is laid out by hand is left as it is.
        CompositeStyle::Code => return format!("    {words}"),
    };
    textwrap::fill(words, Options::new(columns).initial_indent(&first).subsequent_indent(&further))
}

fn with_style(compound: &Compound<'_>, style: CompositeStyle) -> String {
    let text = compound.src;
    match style {
        CompositeStyle::Header(1) => paint::styled(&paint::styled(text, Style::BOLD), Style::UNDERLINE),
        CompositeStyle::Header(_) => paint::styled(text, Style::BOLD),
        CompositeStyle::Quote if !compound.bold => paint::styled(text, Style::DIM),
        _ => match (compound.code, compound.bold, compound.italic, compound.strikeout) {
            (true, _, _, _) => paint::styled(text, Style::CYAN),
            (_, true, _, _) => paint::styled(text, Style::BOLD),
            (_, _, true, _) => paint::styled(text, Style::ITALIC),
            (_, _, _, true) => paint::styled(text, Style::STRUCK),
            (false, false, false, false) => text.to_owned(),
        },
    }
}

fn end_table(out: &mut String, rows: &mut Vec<&TableRow<'_>>, columns: usize) {
    let mut rows = std::mem::take(rows).into_iter().map(cells);
    let Some(head) = rows.next() else { return };
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(columns).unwrap_or(u16::MAX))
        .set_header(head);
    table.add_rows(rows);
    out.push_str(&format!("{table}\n"));
}

fn cells(row: &TableRow<'_>) -> Vec<String> {
    let text = |cell: &Composite<'_>| cell.compounds.iter().map(|compound| compound.src).collect::<String>();
    row.cells.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, columns: usize) -> String {
        let mut out = String::new();
        let mut in_escape = false;
        for letter in styled(text, columns).chars() {
            match letter {
                '\u{1b}' => in_escape = true,
                'm' if in_escape => in_escape = false,
                _ if in_escape => {}
                letter => out.push(letter),
            }
        }
        out
    }

    #[test]
    fn marks_become_styles_and_words_stay() {
        let text = "# Apples\n\nThey are **red** and `round`.\n\n- one\n  - two\n\n> so it is\n";
        assert_eq!(plain(text, 60), "Apples\n\nThey are red and round.\n\n• one\n  • two\n\n│ so it is\n");
        let shown = styled(text, 60);
        assert!(super::super::safe::painted(&shown).contains("\u{1b}[1mred"), "{shown:?}");
    }

    #[test]
    fn long_lines_are_wrapped_where_their_item_begins() {
        assert_eq!(plain("- one two three four", 12), "• one two\n  three four\n");
        assert_eq!(plain("**one** two three", 8), "one two\nthree\n");
    }

    #[test]
    fn tables_keep_within_the_width_and_code_as_it_is() {
        let table = plain("|a|b|\n|-|-|\n|one two three four five six|2|\n", 24);
        assert!(table.lines().all(|line| line.chars().count() <= 24), "{table}");
        assert!(table.contains("one") && table.contains("six") && table.contains('2'), "{table}");
        assert_eq!(plain("```\nlet a  =  1;\n```\n", 10), "    let a  =  1;\n");
    }
}
