//! In which language a text is, as far as its small words tell: what is said in another language than the document shares
//! no words with it.

/// Words that a language has and the others do not, and its name.
const SMALL: [(&str, &[&str]); 6] = [
    (
        "en",
        &["the", "of", "and", "is", "to", "that", "it", "are", "with", "which", "by", "was", "not", "than"],
    ),
    (
        "de",
        &[
            "der", "die", "das", "und", "ist", "nicht", "mit", "von", "ein", "eine", "wird", "auf", "für",
            "dem", "den",
        ],
    ),
    (
        "fr",
        &["le", "les", "des", "est", "et", "une", "dans", "pour", "que", "du", "aux", "sont", "qui", "pas"],
    ),
    ("es", &["el", "los", "las", "es", "una", "por", "con", "que", "del", "para", "se", "son", "como"]),
    ("it", &["il", "gli", "di", "è", "una", "per", "che", "della", "sono", "con", "nel", "alla", "dei"]),
    ("nl", &["de", "het", "een", "en", "van", "is", "niet", "met", "voor", "zijn", "wordt", "op", "dat"]),
];

/// Most words that are looked at.
const MOST: usize = 4_000;
/// Fewest small words that tell.
const FEWEST: usize = 2;

/// The language, or the script where that is another than ours.
pub(super) fn of<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let (mut counts, mut latin, mut other) = ([0_usize; SMALL.len()], 0, 0);
    for word in words.take(MOST) {
        match word.chars().find(|c| c.is_alphabetic()) {
            Some(letter) if is_latin(letter) => latin += 1,
            Some(_) => other += 1,
            None => continue,
        }
        let word = word.to_lowercase();
        for (count, (_, small)) in counts.iter_mut().zip(SMALL) {
            *count += usize::from(small.contains(&word.as_str()));
        }
    }
    if other > latin {
        return Some("other script");
    }
    let best = (0..SMALL.len()).max_by_key(|at| (counts[*at], SMALL.len() - at))?;
    let next = (0..SMALL.len()).filter(|at| *at != best).map(|at| counts[at]).max().unwrap_or(0);
    (counts[best] >= FEWEST && counts[best] > next).then_some(SMALL[best].0)
}

fn is_latin(letter: char) -> bool {
    letter.is_ascii_alphabetic() || ('\u{c0}'..='\u{24f}').contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_words_tell_the_language() {
        for (text, language) in [
            ("The limit of a delegation is twenty levels.", Some("en")),
            ("Die Grenze ist nicht höher als zwanzig Ebenen und wird nie überschritten.", Some("de")),
            ("La limite est fixée dans les réglages pour une délégation.", Some("fr")),
            ("委托的深度最多为二十层", Some("other script")),
            ("Предел равен двадцати", Some("other script")),
            ("steps 50", None),
        ] {
            assert_eq!(of(text.split_whitespace()), language, "{text}");
        }
    }
}
