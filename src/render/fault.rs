//! Errors as text: the failed operation, its place in a file, the remedy.

use std::fmt;

use miette::{Diagnostic, ReportHandler};
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

/// Returns the labeled line of the file, with a mark below the labeled text.
fn snippet(error: &dyn Diagnostic) -> Option<String> {
    let label = error.labels()?.next()?;
    let end = label.offset() + label.len();
    // From the start of the file to the line after the label.
    let found = error.source_code()?.read_span(&(0, end).into(), 0, 1).ok()?;
    let whole = String::from_utf8_lossy(found.data());
    let head = whole.get(..label.offset())?;
    let start = head.rfind('\n').map_or(0, |at| at + 1);
    let line: String =
        whole.get(start..)?.lines().next().unwrap_or_default().chars().take(MAX_LINE).collect();
    let line = line.replace('\t', " ");
    let before = head.get(start..)?.chars().count().min(line.chars().count());
    let length = label.len().clamp(1, line.chars().count().saturating_sub(before).max(1));
    let number = (head.matches('\n').count() + 1).to_string();
    let margin = " ".repeat(number.len());
    Some(format!(
        " {margin} ╭─[{}:{number}:{}]\n {number} │ {line}\n {margin} · {}{} {}\n {margin} ╰────",
        found.name().unwrap_or_default(),
        before + 1,
        " ".repeat(before),
        "─".repeat(length),
        label.label().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use miette::{MietteDiagnostic, NamedSource, Report, SourceSpan};

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
        let wanted = "  × limit is not a\n  │ setting\n   ╭─[muster.toml:2:1]\n 2 │ limit = true\n   · ───── here\n   ╰────\n  \
                      help: leave it out";
        assert_eq!(shown, wanted);
    }
}
