//! Text that is redrawn in place on a terminal: what to write so that a new frame takes the place of the last one.

use unicode_width::UnicodeWidthStr;

/// Begins and ends an update that terminals show at once; those that do not know it ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// What stands on the terminal now: its last frame, with the cursor at the end of it.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// Columns that each line takes.
    widths: Vec<usize>,
}

impl Frame {
    /// What to write to put `said`, which stays, and below it `tree` in the place of the last frame. A tree taller
    /// than the terminal loses lines before its last one: what has scrolled away cannot be redrawn.
    pub(crate) fn next(&mut self, said: &str, tree: &str, columns: usize, rows: usize) -> String {
        let tree = fitting(tree, rows);
        let mut text = format!("{BEGIN}{}", self.back_to_its_start(columns));
        for line in said.lines() {
            // Cleared first: a line said may be longer than the terminal is wide.
            text += &format!("\x1b[J{line}\n");
        }
        text += &super::figures::lines(tree.iter().map(|line| format!("{line}\x1b[K")));
        text += "\x1b[J";
        text += END;
        self.widths = tree.iter().map(|line| width(line)).collect();
        text
    }

    /// What to write after the last frame, so that what follows stands below it.
    pub(crate) fn end(&mut self) -> &'static str {
        let shown = !self.widths.is_empty();
        self.widths.clear();
        if shown { "\n" } else { "" }
    }

    fn back_to_its_start(&self, columns: usize) -> String {
        // A terminal that was made narrower has wrapped the lines.
        let rows: usize = self.widths.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        match rows.saturating_sub(1) {
            0 => "\r".to_owned(),
            up => format!("\r\x1b[{up}A"),
        }
    }
}

fn fitting(tree: &str, rows: usize) -> Vec<&str> {
    let mut lines: Vec<&str> = tree.lines().collect();
    let too_many = lines.len().saturating_sub(rows.max(1));
    if too_many > 0 {
        let last = lines.len() - 1;
        lines.drain(last.saturating_sub(too_many)..last);
    }
    lines
}

/// Columns of a line, without what paints it.
fn width(line: &str) -> usize {
    let mut plain = String::with_capacity(line.len());
    let mut painting = false;
    for c in line.chars() {
        match (painting, c) {
            (false, '\x1b') => painting = true,
            (true, 'm') => painting = false,
            (true, _) => {}
            (false, c) => plain.push(c),
        }
    }
    plain.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal shows that understands just the sequences written here.
    #[derive(Default)]
    struct Terminal {
        lines: Vec<String>,
        row: usize,
        column: usize,
    }

    impl Terminal {
        fn write(&mut self, text: &str) {
            let mut rest = text;
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '\x1b' => {
                        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len() - 1);
                        self.obey(&rest[1..=end]);
                        rest = &rest[end + 1..];
                    }
                    '\r' => self.column = 0,
                    '\n' => (self.row, self.column) = (self.row + 1, 0),
                    c => self.put(c),
                }
            }
        }

        fn obey(&mut self, sequence: &str) {
            self.lines.resize(self.lines.len().max(self.row + 1), String::new());
            match sequence.split_at(sequence.len() - 1) {
                (up, "A") => self.row -= up.parse().unwrap_or(1),
                ("", "K") => self.lines[self.row].truncate(self.column),
                ("", "J") => {
                    self.lines[self.row].truncate(self.column);
                    self.lines.truncate(self.row + 1);
                }
                ("?2026", _) | (_, "m") => {}
                other => unreachable!("{other:?}"),
            }
        }

        fn put(&mut self, c: char) {
            self.lines.resize(self.lines.len().max(self.row + 1), String::new());
            let line = &mut self.lines[self.row];
            line.truncate(self.column);
            line.push(c);
            self.column += 1;
        }

        fn shows(&self) -> String {
            self.lines.join("|")
        }
    }

    #[test]
    fn a_frame_takes_the_place_of_the_last_one() {
        let (mut frame, mut terminal) = (Frame::default(), Terminal::default());
        let steps = [
            ("", "one", "one"),
            ("", "one\ntwo\nthree", "one|two|three"),
            ("said", "1\n2", "said|1|2"),
            ("", "longer\n2\n3", "said|longer|2|3"),
            ("more\nand more", "", "said|more|and more|"),
            ("", "tree", "said|more|and more|tree"),
        ];
        for (said, tree, wanted) in steps {
            terminal.write(&frame.next(said, tree, 80, 24));
            assert_eq!(terminal.shows(), wanted);
        }
        terminal.write(frame.end());
        terminal.write("after");
        assert_eq!(terminal.shows(), "said|more|and more|tree|after");
        assert_eq!(frame.end(), "", "ended once");
    }

    #[test]
    fn a_key_echoed_at_the_end_of_the_frame_is_overwritten() {
        let (mut frame, mut terminal) = (Frame::default(), Terminal::default());
        terminal.write(&frame.next("", "tree\nsummary", 80, 24));
        terminal.write("^C");
        terminal.write(&frame.next("asked to stop", "tree\nsummary", 80, 24));
        assert_eq!(terminal.shows(), "asked to stop|tree|summary");
    }

    #[test]
    fn a_tree_taller_than_the_terminal_keeps_its_last_line() {
        assert_eq!(fitting("1\n2\n3\n4\nsummary", 3), ["1", "2", "summary"]);
        assert_eq!(fitting("1\nsummary", 3), ["1", "summary"]);
        assert_eq!(fitting("1\nsummary", 0), ["summary"]);
        assert_eq!(fitting("", 3), Vec::<&str>::new());
    }

    #[test]
    fn lines_that_a_narrower_terminal_has_wrapped_are_gone_over() {
        let mut frame = Frame::default();
        let painted = format!("\x1b[32m{}\x1b[39m", "x".repeat(50));
        frame.next("", &painted, 80, 24);
        assert_eq!(frame.back_to_its_start(20), "\r\x1b[2A");
        assert_eq!(frame.back_to_its_start(80), "\r");
    }
}
