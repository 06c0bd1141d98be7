//! Text put together line by line: white space within a line is one space, empty lines are kept apart by one.

/// Text that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    done: String,
    line: String,
    /// More than this is not gathered, in bytes.
    most: usize,
    /// What stands before the next text of a line, such as the marks of a heading.
    mark: String,
    is_full: bool,
}

impl Lines {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Adds text to the line, with white space as it is in prose.
    pub(crate) fn text(&mut self, text: &str) {
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if !word.is_empty() {
                self.push(word);
            }
            if word.len() < piece.len() {
                self.space();
            }
        }
    }

    /// Adds text to the line as it is; line breaks in it end lines.
    pub(crate) fn verbatim(&mut self, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.end_line();
            }
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                self.push(line);
            }
        }
    }

    /// A tab within the line.
    pub(crate) fn tab(&mut self) {
        while self.line.ends_with(' ') {
            self.line.pop();
        }
        self.push_raw("\t");
    }

    /// What the line begins with once there is text in it.
    pub(crate) fn mark(&mut self, mark: &str) {
        self.end_line();
        mark.clone_into(&mut self.mark);
    }

    /// A heading of that level.
    pub(crate) fn heading(&mut self, level: usize) {
        self.gap();
        self.mark(&format!("{} ", "#".repeat(level.clamp(1, 6))));
    }

    /// Ends the line, if anything is in it.
    pub(crate) fn end_line(&mut self) {
        self.mark.clear();
        let line = self.line.trim_end();
        if !line.trim().is_empty() && !self.is_full {
            self.done.push_str(line);
            self.done.push('\n');
            self.is_full = self.done.len() >= self.most;
        }
        self.line.clear();
    }

    /// Ends the line, and keeps what follows apart by an empty one.
    pub(crate) fn gap(&mut self) {
        self.end_line();
        if !self.done.is_empty() && !self.done.ends_with("\n\n") {
            self.done.push('\n');
        }
    }

    /// How much there is, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.done.len()
    }

    /// All of it.
    pub(crate) fn finish(mut self) -> String {
        self.end_line();
        let end = self.done.trim_end().len();
        self.done.truncate(end);
        self.done
    }

    fn space(&mut self) {
        if !self.line.is_empty() && !self.line.ends_with([' ', '\t']) {
            self.push_raw(" ");
        }
    }

    fn push(&mut self, word: &str) {
        if !self.mark.is_empty() {
            self.line.push_str(&std::mem::take(&mut self.mark));
        }
        self.push_raw(word);
    }

    fn push_raw(&mut self, text: &str) {
        if self.done.len() + self.line.len() + text.len() > self.most {
            self.is_full = self.done.len() + self.line.len() >= self.most;
            return;
        }
        self.line.push_str(text);
    }
}
