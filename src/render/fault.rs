//! Errors as text: the failed operation, its place in a file, the remedy.

use std::fmt;

use miette::{Diagnostic, ReportHandler, SourceSpan};
use textwrap::Options;

/// Longest line that is shown of a file, in characters.
const MAX_LINE: usize = 200;

/// Formats the reports of `miette`.
pub(crate) struct FaultHandler;

impl ReportHandler for FaultHandler {
    fn debug(&self, error: &dyn Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(error, crate::output::columns()))
    }
}

fn text_of(error: &dyn Diagnostic, columns: usize) -> String {
    let wrapped = |text: &str, first: &str, further: &str| {
        textwrap::fill(text, Options::new(columns).initial_indent(first).subsequent_indent(further))
    };
    let mut parts = vec![wrapped(&error.to_string(), "  × ", "  │ ")];
    parts.extend(snippet(error));
    parts.extend(error.help().map(|help| wrapped(&help.to_string(), "  help: ", "        ")));
    parts.join("\n")
}

/// Returns the labeled line of the file between its neighbors, with a mark below the labeled text.
fn snippet(error: &dyn Diagnostic) -> Option<String> {
    let label = error.labels()?.next()?;
    let end = label.offset() + label.len();
    // From the start of the file to the line after the label.
    let found = error.source_code()?.read_span(&SourceSpan::from((0_usize, end)), 0, 1).ok()?;
    let whole = String::from_utf8_lossy(found.data());
    let head = whole.get(..label.offset())?;
    let (at, start) = (head.matches('\n').count(), head.rfind('\n').map_or(0, |at| at + 1));
    let margin = " ".repeat((at + 2).to_string().len());
    let column = head.get(start..)?.chars().count();
    let name = found.name().unwrap_or_default();
    let mut shown = vec![format!(" {margin} ╭─[{name}:{}:{}]", at + 1, column + 1)];
    for (number, line) in
        whole.lines().enumerate().skip(at.saturating_sub(1)).take_while(|(n, _)| *n <= at + 1)
    {
        let line: String = line.replace('\t', " ").chars().take(MAX_LINE).collect();
        shown.push(format!(" {:>width$} │ {line}", number + 1, width = margin.len()));
        if number == at {
            let before = column.min(line.chars().count());
            let length = label.len().clamp(1, line.chars().count().saturating_sub(before).max(1));
            let mark = " ".repeat(before) + &"─".repeat(length);
            shown.push(format!(" {margin} · {mark} {}", label.label().unwrap_or_default()));
        }
    }
    shown.push(format!(" {margin} ╰────"));
    Some(shown.join("\n"))
}

#[cfg(test)]
mod tests {
    use miette::{MietteDiagnostic, NamedSource, Report};

    use super::*;

    #[test]
    fn error_shows_message_place_and_remedy() {
        let text = "a = 1\nlimit = true\n".to_owned();
        let at = miette::LabeledSpan::new_with_span(Some("here".to_owned()), SourceSpan::from((6, 5)));
        let report = Report::new(
            MietteDiagnostic::new("limit is not a setting").with_help("leave it out").with_label(at),
        )
        .with_source_code(NamedSource::new("muster.toml", text));
        let shown = text_of(report.as_ref(), 24);
        let wanted = "  × limit is not a\n  │ setting\n   ╭─[muster.toml:2:1]\n 1 │ a = 1\n 2 │ limit = true\n   · ───── here\n   ╰────\n  \
                      help: leave it out";
        assert_eq!(shown, wanted);
    }
}
