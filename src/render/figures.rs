//! Times, sizes and counts as people read them, and texts cut to fit.

use std::time::Duration;

use muster_shared::flow::{Budget, Usage};
use muster_shared::time::Millis;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::safe;

/// A span of time: `0.4s`, `12.3s`, `3m05s`, `2h07m`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds < 60 {
        // Tenths, not rounded up to a full minute.
        return format!("{}.{}s", seconds, span.subsec_millis() / 100);
    }
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    if hours == 0 {
        format!("{minutes}m{:02}s", seconds % 60)
    } else {
        format!("{hours}h{:02}m", minutes % 60)
    }
}

/// Texts on one line, separated by commas.
pub(crate) fn list(items: impl IntoIterator<Item = impl ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// Each item on a line.
pub(crate) fn lines(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join("\n")
}

/// Milliseconds as a short span: `4 ms`, `1.2s`.
pub(crate) fn millis(millis: u64) -> String {
    if millis < 1000 { format!("{millis} ms") } else { span(Duration::from_millis(millis)) }
}

/// The time of day in UTC: `20:33:48.120`.
pub(crate) fn clock(at: Millis) -> String {
    timestamp(at).map_or_else(|| "?".to_owned(), |at| at.strftime("%H:%M:%S%.3f").to_string())
}

/// Date and time in UTC: `2026-11-20 20:33:48`.
pub(crate) fn date(at: Millis) -> String {
    timestamp(at).map_or_else(|| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

fn timestamp(at: Millis) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(at.0).ok()?).ok()
}

/// Bytes: `512 B`, `12.3 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes.saturating_mul(10) / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// A text as a word of a command line that can be pasted.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A count: `950`, `3.2k`, `1.5M`.
pub(crate) fn count(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// `1 task`, `2 tasks`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", self::count(count)) }
}

/// What was used, in a few words.
pub(crate) fn usage(usage: &Usage) -> String {
    let mut parts = vec![plural(usage.model_calls, "model call"), plural(usage.tool_calls, "tool call")];
    if usage.input_tokens + usage.output_tokens > 0 {
        parts.push(format!("{} tokens in, {} out", count(usage.input_tokens), count(usage.output_tokens)));
    }
    if usage.cached_tokens > 0 {
        parts.push(format!("{} of them from the cache", count(usage.cached_tokens)));
    }
    if usage.cost_micros > 0 {
        parts.push(dollars(usage.cost_micros));
    }
    if usage.saved_micros > 0 {
        parts.push(format!("{} saved by the cache", dollars(usage.saved_micros)));
    }
    if usage.reused_calls > 0 {
        let saved = Some(usage.reused_micros).filter(|micros| *micros > 0);
        let saved = saved.map(|micros| format!(" ({} saved)", dollars(micros))).unwrap_or_default();
        parts.push(format!("{} reused{saved}", plural(usage.reused_calls, "earlier answer")));
    }
    if usage.wasted_calls > 0 {
        parts.push(format!("{} without an answer", plural(usage.wasted_calls, "call")));
    }
    parts.join(", ")
}

/// How much of a budget was used: `3 of 20 model calls, $0.0123 of $1.5000`.
pub(crate) fn spent(budget: &Budget, usage: &Usage) -> String {
    let counted = |used: u64, limit: Option<u64>, noun: &str| {
        limit.map(|limit| format!("{} of {}", count(used), plural(limit, noun)))
    };
    let parts = [
        counted(usage.calls(), budget.model_calls, "model call"),
        counted(usage.tokens(), budget.tokens, "token"),
        budget.cost_micros.map(|limit| format!("{} of {}", dollars(usage.cost_micros), dollars(limit))),
        counted(usage.steps, budget.steps, "step"),
    ];
    list(parts.into_iter().flatten())
}

/// An amount of money: `$0.0123`.
pub(crate) fn dollars(micros: u64) -> String {
    format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

/// A text on one line of at most `most` columns; what could move the cursor or hide text is left out.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    cut(&safe::text(&words.join(" ")), most)
}

/// As much of a text as fits in `most` columns of a terminal, marked when cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let fits = |c: &char| match room.checked_sub(c.width().unwrap_or(0)) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}…", kept.trim_end())
}

/// A text of several lines without what could move the cursor: models and documents write what they like.
pub(crate) fn harmless(text: &str) -> String {
    safe::text(text).into_owned()
}

/// A text with every line set in.
pub(crate) fn indent(text: &str, by: usize) -> String {
    let space = " ".repeat(by);
    lines(text.lines().map(|line| if line.is_empty() { String::new() } else { format!("{space}{line}") }))
}

/// A text whose lines are broken at words to fit into `width` columns; what goes on is set in a little further.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    lines(text.lines().map(|line| wrap_line(line, width.max(20))))
}

/// A text broken at words if the output has a width.
pub(crate) fn fitted(text: String, width: Option<usize>) -> String {
    match width {
        Some(width) => wrap(&text, width),
        None => text,
    }
}

fn wrap_line(line: &str, width: usize) -> String {
    // What is painted is short.
    if line.width() <= width || line.contains('\u{1b}') {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let further = " ".repeat((indent + 2).min(width / 2));
    let mut text = " ".repeat(indent.min(width / 2));
    let (mut room, mut is_first) = (width.saturating_sub(text.len()), true);
    for word in line.trim_start_matches(' ').split(' ') {
        if word.is_empty() && is_first {
            continue;
        }
        let needed = word.width() + usize::from(!is_first);
        if needed > room && !is_first {
            text.push('\n');
            text += &further;
            room = width.saturating_sub(further.len());
            is_first = true;
        }
        if !is_first {
            text.push(' ');
        }
        text += word;
        room = room.saturating_sub(word.width() + usize::from(!is_first));
        is_first = false;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        let spans = [(0, "0.0s"), (450, "0.4s"), (59_999, "59.9s"), (185_000, "3m05s"), (7_620_000, "2h07m")];
        for (millis, wanted) in spans {
            assert_eq!(span(Duration::from_millis(millis)), wanted);
        }
        let sizes = [(5, "5 B"), (1536, "1.5 KiB"), (12_897_484, "12.2 MiB"), (u64::MAX, "1677721.5 TiB")];
        for (size, wanted) in sizes {
            assert_eq!(bytes(size), wanted);
        }
        for (n, wanted) in [(999, "999"), (1000, "1.0k"), (3250, "3.2k"), (1_500_000, "1.5M")] {
            assert_eq!(count(n), wanted);
        }
        assert_eq!(clock(Millis(1_000)), "00:00:01.000");
        assert_eq!(clock(Millis(u64::MAX)), "?");
    }

    #[test]
    fn usage_names_only_what_there_is() {
        let mut used = Usage { model_calls: 1, tool_calls: 2, ..Usage::default() };
        assert_eq!(usage(&used), "1 model call, 2 tool calls");
        used.input_tokens = 1200;
        used.cost_micros = 12_345;
        assert_eq!(usage(&used), "1 model call, 2 tool calls, 1.2k tokens in, 0 out, $0.0123");
        used.wasted_calls = 1;
        let budget = Budget { model_calls: Some(20), cost_micros: Some(1_500_000), ..Budget::UNLIMITED };
        assert_eq!(spent(&budget, &used), "2 of 20 model calls, $0.0123 of $1.5000");
    }

    #[test]
    fn long_lines_are_broken_at_words() {
        assert_eq!(wrap("  - one two three four five", 20), "  - one two three\n    four five");
        assert_eq!(wrap("  goal    one two three", 20), "  goal    one two\n    three", "columns stay");
        assert_eq!(wrap("short\n", 20), "short");
        assert_eq!(wrap(&"x".repeat(30), 20), "x".repeat(30), "a word is not broken");
    }

    #[test]
    fn texts_of_others_cannot_move_the_cursor() {
        assert_eq!(one_line("a\n\u{1b}[2Jb\u{202e}c", 80), "a \\u{1b}[2Jb\\u{202e}c");
        assert_eq!(harmless("a\n\u{1b}[2Jb\r"), "a\n\\u{1b}[2Jb\\u{d}");
        assert_eq!(cut("déjà vu", 5), "déjà…");
        assert_eq!(cut("计划工作", 5), "计划…", "wide characters take two columns");
        assert_eq!(cut("计划", 4), "计划");
    }
}
