//! Sentences that are the same but for one thing: a denial, a name, or a number.

use super::words::{chunks, is_name, number_of, stem};

/// Fewest words in a row that two sentences share, denials not counted, to be the same.
const FEWEST: usize = 5;
/// Share of the statement's words that has to be among them.
const ENOUGH: f64 = 0.7;
/// Most words of each that are compared.
const MOST: usize = 300;

/// What a statement says otherwise than a sentence that it repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Differs {
    /// One of them denies it.
    Denial { said: String },
    /// It is said of another name.
    Name { said: String },
    /// It has another number.
    Number { said: String },
}

/// A word, as it is compared.
struct Word {
    stem: String,
    text: String,
    /// Denials before it.
    denials: usize,
    /// Whether it begins a sentence.
    begins: bool,
}

impl Word {
    fn is_number(&self) -> bool {
        self.stem.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// What is said otherwise than in a text that has the same sentence; nothing where it has it as it is, or not at all.
pub(super) fn differs(statement: &str, text: &str) -> Option<Differs> {
    let (said, there) = (words(statement), words(text));
    let mut differs = None;
    let mut longer: Vec<(usize, usize, usize)> = Vec::new();
    for (from, at, length) in runs(&said, &there) {
        // A part of what differs is the same, and says nothing.
        let is_part = |(other, there, most): &(usize, usize, usize)| {
            from >= *other && from - other + there == at && from + length <= other + most
        };
        if longer.iter().any(is_part) {
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "a statement has few words")]
        let share = length as f64 / said.len() as f64;
        if length < FEWEST || share < ENOUGH {
            continue;
        }
        let (said, there) = (&said[from..from + length], &there[at..at + length]);
        let other = said.iter().zip(there).find(|(one, other)| one.stem != other.stem);
        let denials = |words: &[Word]| words.iter().skip(1).map(|word| word.denials).sum::<usize>();
        let found = match other {
            None if denials(said) == denials(there) => return None,
            None if denials(said).min(denials(there)) == 0 => {
                let said: Vec<&str> = said.iter().map(|word| word.text.as_str()).collect();
                Some(Differs::Denial { said: said.join(" ") })
            }
            Some((one, other)) if denials(said) == denials(there) && may_be_names(one, other) => {
                Some(Differs::Name { said: one.text.clone() })
            }
            Some((one, other)) if denials(said) == denials(there) && one.is_number() && other.is_number() => {
                Some(Differs::Number { said: one.text.clone() })
            }
            _ => None,
        };
        if found.is_some() {
            longer.push((from, at, length));
        }
        differs = differs.or(found);
    }
    differs
}

/// Whether both words are names, one in place of the other.
fn may_be_names(one: &Word, other: &Word) -> bool {
    let is_capital = |word: &Word| !word.begins && word.text.starts_with(char::is_uppercase);
    is_name(&one.text) && is_name(&other.text) && !one.text.contains(|c: char| c.is_ascii_digit())
        || is_capital(one) && is_capital(other) && one.text.len() > 2
}

/// Runs of words that both have in the same order, with at most one other word within: where each begins, and its length.
fn runs(said: &[Word], there: &[Word]) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    let diagonals = (0..said.len()).map(|from| (from, 0)).chain((1..there.len()).map(|at| (0, at)));
    for (from, at) in diagonals {
        let length = (said.len() - from).min(there.len() - at);
        let same: Vec<bool> = (0..length).map(|i| said[from + i].stem == there[at + i].stem).collect();
        let ends: Vec<usize> = (0..=length).filter(|i| *i == length || !same[*i]).collect();
        let mut begin = 0;
        for (nth, end) in ends.iter().enumerate() {
            found.push((from + begin, at + begin, end - begin));
            let next = ends.get(nth + 1).copied().unwrap_or(length);
            // The other word stands within: at its end there is nothing to tell it from the next sentence, but for a number.
            let are_numbers = || said[from + end].is_number() && there[at + end].is_number();
            if *end > begin && (next > end + 1 || *end < length && are_numbers()) {
                found.push((from + begin, at + begin, next - begin));
            }
            begin = end + 1;
        }
    }
    found.sort_by_key(|(_, _, length)| std::cmp::Reverse(*length));
    found
}

fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let (mut denials, mut end) = (0, 0);
    let all: Vec<&str> = chunks(text).take(MOST).collect();
    for (nth, chunk) in all.iter().enumerate() {
        let at = chunk.as_ptr() as usize - text.as_ptr() as usize;
        let begins =
            nth == 0 || text[end..at].contains(['.', '!', '?', ':', ';', '“', '"', '|', '*', '#', '`']);
        end = at + chunk.len();
        let word = chunk.to_lowercase();
        let before_t = all.get(nth + 1).is_some_and(|next| next.eq_ignore_ascii_case("t"));
        let is_only = all.get(nth + 1).is_some_and(|next| {
            ["only", "just", "merely", "necessarily"].contains(&next.to_lowercase().as_str())
        });
        match word.as_str() {
            // "Not only" denies nothing.
            "not" if is_only => {}
            "not" | "no" | "never" | "nicht" | "nie" | "kein" | "keine" | "keinen" => denials += 1,
            "t" if nth > 0 => denials += 1,
            "do" | "does" | "did" | "don" | "doesn" | "didn" => {}
            _ => {
                let word = match word.as_str() {
                    "cannot" => {
                        denials += 1;
                        "can"
                    }
                    "won" if before_t => "will",
                    "can" => "can",
                    other if before_t => other.strip_suffix('n').unwrap_or(other),
                    other => other,
                };
                let number = number_of(word).map(|number| number.to_string());
                found.push(Word {
                    stem: number.unwrap_or_else(|| stem(word)),
                    text: (*chunk).to_owned(),
                    denials,
                    begins,
                });
                denials = 0;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_more_or_less_and_another_name_are_seen() {
        let text = "The gate is kept by Marta Oliveira. A delegation never waits for its parent, unless `max_wait` says so. \
                    It is not only fast but small in memory.";
        let denial = |said: &str| matches!(differs(said, text), Some(Differs::Denial { .. }));
        let name = |said: &str| match differs(said, text) {
            Some(Differs::Name { said }) => Some(said),
            Some(Differs::Denial { .. } | Differs::Number { .. }) | None => None,
        };
        for said in [
            "A delegation waits for its parent.",
            "A delegation waits for its parent, unless `max_wait` says so.",
            "The gate is not kept by Marta Oliveira.",
            "The gate isn't kept by Marta Oliveira.",
        ] {
            assert!(denial(said), "{said}");
        }
        for said in [
            "A delegation never waits for its parent.",
            "A delegation does not wait for its parent.",
            "A delegation doesn't wait for its parent.",
            "It is fast but small in memory.",
            "Delegations wait for nobody.",
            "Nobody but Marta keeps the gate.",
            "",
        ] {
            assert_eq!(differs(said, text), None, "{said}");
        }
        assert_eq!(name("The gate is kept by João Oliveira.").as_deref(), Some("João"));
        assert_eq!(
            name("A delegation never waits for its parent, unless `max_hold` says so.").as_deref(),
            Some("max_hold")
        );
        assert_eq!(name("The gate was kept by Marta Oliveira."), None);
        let text = "A call is tried three times, within 20 seconds. The diary lists 48 kinds of apple.";
        for (said, expected) in [
            ("A call is tried five times, within 20 seconds.", Some("five")),
            ("A call is tried 3 times, within twenty seconds.", None),
            ("A call is tried three times, within 21 seconds.", Some("21")),
            ("The diary lists 48 kinds of apple.", None),
            ("The diary lists about 50 of them.", None),
        ] {
            let expected = expected.map(|said| Differs::Number { said: said.to_owned() });
            assert_eq!(differs(said, text), expected, "{said}");
        }
    }
}
