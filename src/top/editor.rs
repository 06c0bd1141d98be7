//! A line that is typed.

use super::key::Key;

/// Longest line, in bytes.
const MOST: usize = 16 * 1024;

/// A line with a place in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// Where the next character goes, in bytes.
    at: usize,
}

impl Editor {
    /// A line to go on with, at its end.
    pub(super) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), at: text.len() }
    }

    /// What was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What stands before the place, and what stands after it.
    pub(super) fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.at)
    }

    /// Writes a text at the place; line ends become spaces.
    pub(super) fn insert(&mut self, text: &str) {
        for c in text.chars() {
            let c = if c.is_control() { ' ' } else { c };
            if self.text.len() + c.len_utf8() > MOST {
                return;
            }
            self.text.insert(self.at, c);
            self.at += c.len_utf8();
        }
    }

    /// Does what a key says. Says whether it means something here.
    pub(super) fn press(&mut self, key: Key) -> bool {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Left | Key::Ctrl('b') => self.at = self.before(),
            Key::Right | Key::Ctrl('f') => self.at = self.after(),
            Key::Home | Key::Ctrl('a') => self.at = 0,
            Key::End | Key::Ctrl('e') => self.at = self.text.len(),
            Key::Backspace | Key::Ctrl('h') => self.cut(self.before(), self.at),
            Key::Delete | Key::Ctrl('d') => self.cut(self.at, self.after()),
            Key::Ctrl('u') => self.cut(0, self.at),
            Key::Ctrl('k') => self.cut(self.at, self.text.len()),
            Key::Ctrl('w') => self.cut(self.word_before(), self.at),
            _ => return false,
        }
        true
    }

    fn cut(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    fn before(&self) -> usize {
        self.text[..self.at].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.at..].chars().next().map_or(self.at, |c| self.at + c.len_utf8())
    }

    fn word_before(&self) -> usize {
        let words = self.text[..self.at].trim_end();
        words
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + words[at..].chars().next().map_or(0, char::len_utf8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_as_in_a_shell() {
        let mut line = Editor::of("göod mörning");
        let press = |line: &mut Editor, keys: &[Key]| {
            for key in keys {
                line.press(*key);
            }
            line.text().to_owned()
        };
        assert_eq!(press(&mut line, &[Key::Ctrl('w'), Key::Char('d'), Key::Char('ä')]), "göod dä");
        assert_eq!(press(&mut line, &[Key::Left, Key::Left, Key::Delete, Key::Char('D')]), "göod Dä");
        assert_eq!(press(&mut line, &[Key::Home, Key::Right, Key::Right, Key::Backspace]), "god Dä");
        assert_eq!(press(&mut line, &[Key::End, Key::Ctrl('b'), Key::Ctrl('k')]), "god D");
        assert_eq!(press(&mut line, &[Key::Ctrl('u')]), "");
        assert_eq!(
            press(&mut line, &[Key::Backspace, Key::Left, Key::Right, Key::Delete, Key::Ctrl('w')]),
            ""
        );
        line.insert("one\ntwo\u{1b}[2J");
        assert_eq!(line.text(), "one two [2J");
        assert!(!line.press(Key::Enter));
        line.insert(&"x".repeat(100_000));
        assert_eq!(line.text().len(), MOST);
    }
}
