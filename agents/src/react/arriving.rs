//! An answer as it arrives: what of it is thought, and what is told.

/// A text that arrives piece by piece.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    place: AnswerPart,
    /// What of it is not understood yet.
    held: String,
}

impl Arriving {
    /// Takes the next piece: what it costs does not grow with what came before.
    pub(super) fn take(&mut self, piece: &str, thought: &mut String, answer: &mut String) {
        self.held.push_str(piece);
        let understood = self.place.share_out(&self.held, thought, answer);
        self.held.drain(..understood);
    }

    /// Nothing more comes: what is held back is told, if anybody can read it.
    pub(super) fn end(&mut self, answer: &mut String) {
        let left = std::mem::take(&mut self.held);
        // Half a mark of JSON is nothing to read.
        if matches!(self.place, AnswerPart::Prose) || !left.trim_start().starts_with(['{', '[', '\\']) {
            answer.push_str(&left);
        }
    }
}

/// How far an answer has come in. Arguments of calls, and answers in JSON, begin with the thought; of what follows the
/// texts are shown: nobody wants to read its brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum AnswerPart {
    /// Before the thought.
    #[default]
    Before,
    /// Within it.
    Within,
    /// In JSON, after the thought or without one.
    Json(Texts),
    /// In words.
    Prose,
}

impl AnswerPart {
    /// Gives each part of newly arrived arguments to whom it belongs, and says how many bytes were understood; what is
    /// left may be cut in the middle.
    fn share_out(&mut self, new: &str, thought: &mut String, answer: &mut String) -> usize {
        let mut done = 0;
        loop {
            let rest = &new[done..];
            match self {
                Self::Before => match opening(rest) {
                    AnswerStart::Thought(after) => (*self, done) = (Self::Within, done + after),
                    AnswerStart::Other if rest.trim_start().starts_with(['{', '[']) => {
                        *self = Self::Json(Texts::default());
                    }
                    AnswerStart::Other => *self = Self::Prose,
                    AnswerStart::Unclear => return done,
                },
                Self::Within => {
                    let (taken, ended) = take_text(rest, thought);
                    done += taken;
                    if !ended {
                        return done;
                    }
                    *self = Self::Json(Texts::after_a_member());
                }
                Self::Json(texts) => return done + texts.take(rest, answer),
                Self::Prose => {
                    answer.push_str(rest);
                    return new.len();
                }
            }
        }
    }
}

/// Deepest nesting that is kept in mind.
const DEEPEST: usize = 64;

/// The texts in JSON that arrives: values, without names and marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Texts {
    /// For each bracket that is open, whether it is an object's.
    open: Vec<bool>,
    /// Whether the next text is a name.
    names: bool,
    /// Within a text; whether it is shown.
    within: Option<bool>,
}

impl Texts {
    fn after_a_member() -> Self {
        Self { open: vec![true], ..Self::default() }
    }

    fn take(&mut self, new: &str, shown: &mut String) -> usize {
        let mut done = 0;
        while let Some(letter) = new[done..].chars().next() {
            if let Some(is_shown) = self.within {
                let mut hidden = String::new();
                let (taken, ended) =
                    take_text(&new[done..], if is_shown { &mut *shown } else { &mut hidden });
                done += taken;
                if !ended {
                    return done;
                }
                self.within = None;
                if is_shown {
                    shown.push(' ');
                }
                continue;
            }
            match letter {
                '{' | '[' if self.open.len() < DEEPEST => {
                    self.open.push(letter == '{');
                    self.names = letter == '{';
                }
                '}' | ']' => {
                    self.open.pop();
                }
                ',' => self.names = self.open.last() == Some(&true),
                ':' => self.names = false,
                '"' => self.within = Some(!self.names),
                _ => {}
            }
            done += letter.len_utf8();
        }
        done
    }
}

enum AnswerStart {
    /// The thought begins after so many bytes.
    Thought(usize),
    /// Something else comes first.
    Other,
    /// Too little is there to tell.
    Unclear,
}

fn opening(text: &str) -> AnswerStart {
    let mut rest = text;
    for mark in ["{", "\"thought\"", ":", "\""] {
        rest = rest.trim_start();
        match rest.strip_prefix(mark) {
            Some(after) => rest = after,
            None if mark.starts_with(rest) => return AnswerStart::Unclear,
            None => return AnswerStart::Other,
        }
    }
    AnswerStart::Thought(text.len() - rest.len())
}

/// Takes a JSON text up to its closing mark, or as far as it is there, and says whether it was closed.
fn take_text(text: &str, into: &mut String) -> (usize, bool) {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (at + 1, true),
            '\\' => match letters.next() {
                None => return (at, false),
                Some((_, 'n' | 'r' | 't')) => into.push(' '),
                Some((_, 'u')) => {
                    let Some(code) = text.get(at + 2..at + 6) else { return (at, false) };
                    let code = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
                    into.push(code.unwrap_or('\u{fffd}'));
                    letters.nth(3);
                }
                Some((_, escaped)) => into.push(escaped),
            },
            letter => into.push(letter),
        }
    }
    (text.len(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thought_of_a_call_is_told_from_its_answer_however_it_arrives() {
        let whole = r#"{ "thought": "say \"so\"\nand é", "query": "x"}"#;
        for size in 1..=whole.len() {
            let (mut place, mut shown) = (AnswerPart::Before, 0);
            let (mut thought, mut answer) = (String::new(), String::new());
            for end in (size..whole.len()).step_by(size).chain([whole.len()]) {
                let end = whole.floor_char_boundary(end);
                shown += place.share_out(&whole[shown..end], &mut thought, &mut answer);
            }
            assert_eq!((thought.as_str(), answer.as_str()), ("say \"so\" and é", "x "), "{size}");
        }
        let (mut place, mut thought, mut answer) = (AnswerPart::Before, String::new(), String::new());
        let other = r#"{"query": "x"}"#;
        assert_eq!(place.share_out(other, &mut thought, &mut answer), other.len());
        assert_eq!((thought.as_str(), answer.as_str()), ("", "x "));
        let (mut place, mut thought, mut answer) = (AnswerPart::Before, String::new(), String::new());
        let prose = "It is {so}, \"they\" say.";
        assert_eq!(place.share_out(prose, &mut thought, &mut answer), prose.len());
        assert_eq!((thought.as_str(), answer.as_str()), ("", prose));
    }

    #[test]
    fn what_was_understood_of_an_answer_is_not_looked_at_again() {
        let (mut arriving, mut thought, mut answer) = (Arriving::default(), String::new(), String::new());
        let whole = format!(r#"{{"thought": "t", "body": "{}"}}"#, "a\\nlong \\u00e0 text ".repeat(2_000));
        let mut most = 0;
        for piece in whole.as_bytes().chunks(7).map(|piece| std::str::from_utf8(piece).unwrap_or_default()) {
            arriving.take(piece, &mut thought, &mut answer);
            most = most.max(arriving.held.len());
        }
        assert_eq!((thought.as_str(), answer.len()), ("t", "a long à text ".len() * 2_000 + 1));
        assert!(most < 32, "{most} bytes are held");
    }

    #[test]
    fn nobody_is_shown_the_brackets_of_an_answer() {
        let whole = r#"{"thought": "t", "action": "submit", "arguments": {"conclusion": "Eggs \u00e0 la", "findings":
            [{"claim": "a \"b\"", "confidence": 90}, {"claim": "c"}], "done": true}}"#;
        for size in 1..=whole.len() {
            let (mut place, mut shown) = (AnswerPart::Before, 0);
            let (mut thought, mut answer) = (String::new(), String::new());
            for end in (size..whole.len()).step_by(size).chain([whole.len()]) {
                shown += place.share_out(&whole[shown..end], &mut thought, &mut answer);
            }
            assert_eq!((thought.as_str(), answer.as_str()), ("t", "submit Eggs à la a \"b\" c "), "{size}");
        }
    }
}
