//! What a text asks for, read by plain rules: words that tell, aspects, sums, files.

use std::collections::BTreeSet;

/// Words that tell nothing of what a sentence is about.
const COMMON: &str = " a about according after all also an and any are as at be been before both but by can cite could did \
    do does document documents each every find for from give given had has have how if in into is it its like line lines \
    many may much must name no not of on one only or other others out over path place say says shall should so some such \
    tell than that the their them then there these they this those to under up use used using was were what when where \
    which while who whose why will with would write written you your file files compare answer report recommend \
    different differ following design designs four three two goal task result results quote work ";

/// Endings of names of files.
const ENDINGS: [&str; 8] = ["csv", "md", "txt", "json", "html", "toml", "yaml", "rst"];

/// The words of a text that tell what it is about, each brought to its stem.
pub(super) fn stems(text: &str) -> BTreeSet<String> {
    in_order(text).into_iter().collect()
}

/// The same, in the order of the text.
pub(super) fn in_order(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let telling = words.map(str::to_lowercase).filter(|word| is_telling(word));
    telling.map(|word| stem(&word)).collect()
}

fn is_telling(word: &str) -> bool {
    word.chars().count() > 1 && !COMMON.contains(&format!(" {word} "))
}

/// As good as a stem for words of the same text: no plural, and no more than the beginning.
fn stem(word: &str) -> String {
    let word =
        if word.len() > 3 && !word.ends_with("ss") { word.strip_suffix('s').unwrap_or(word) } else { word };
    word.chars().take(6).collect()
}

/// The words of a text to search for.
pub(super) fn query(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    let telling = words.filter(|word| is_telling(&word.to_lowercase()));
    telling.take(12).collect::<Vec<_>>().join(" ")
}

/// What a text asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// Each by itself.
    pub(super) aspects: Vec<String>,
    /// Whether each of them is asked of every document.
    pub(super) of_each: bool,
}

/// What a text asks about: the aspects of a comparison, else each question, else the whole text.
pub(super) fn asked(text: &str) -> Asked {
    let sentences = sentences(text);
    let lower = text.to_lowercase();
    let of_each = ["compare", "each document", "each of the", "every document", "all documents"];
    let of_each = of_each.iter().any(|word| lower.contains(word));
    let listed: Vec<String> = sentences.iter().flat_map(|sentence| listed(sentence)).collect();
    if of_each && !listed.is_empty() {
        return Asked { aspects: listed, of_each };
    }
    let questions: Vec<String> = sentences.iter().filter(|one| one.ends_with('?')).cloned().collect();
    if !questions.is_empty() {
        return Asked { aspects: questions, of_each };
    }
    // What says how to answer is no part of what is asked.
    let about: Vec<String> = sentences.iter().filter(|one| !is_manner(one)).cloned().collect();
    let aspects = if about.is_empty() { sentences } else { about };
    Asked { aspects: vec![aspects.join(" ")], of_each }
}

/// Whether a sentence says how to answer.
fn is_manner(sentence: &str) -> bool {
    let first = sentence.split_whitespace().next().unwrap_or_default().to_lowercase();
    ["cite", "write", "save", "say", "put", "answer", "be"].contains(&first.as_str())
}

/// The aspects that a sentence lists after "by", "about" and the like.
fn listed(sentence: &str) -> Vec<String> {
    const LEADS: [&str; 8] = [
        " with regard to ",
        " regarding ",
        " in terms of ",
        " say about ",
        " says about ",
        " by ",
        " about ",
        ": ",
    ];
    const ENDS: [&str; 6] =
        [", and recommend", " and recommend", ", recommend", " and cite", "; ", " for each"];
    let lower = sentence.to_lowercase();
    if !["compare", "each", "every", "all "].iter().any(|word| lower.contains(word)) {
        return Vec::new();
    }
    let Some(begin) = LEADS.iter().filter_map(|lead| Some(lower.find(lead)? + lead.len())).min() else {
        return Vec::new();
    };
    let rest = lower.get(begin..).unwrap_or_default();
    let end = ENDS.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let list = rest[..end].trim_end_matches(['.', '?', '!']);
    let parts = list.split(", ").flat_map(|part| part.split(" and "));
    let trimmed = parts.map(|part| {
        let part = part.trim();
        ["and ", "the ", "their ", "its "]
            .iter()
            .fold(part, |part, lead| part.strip_prefix(lead).unwrap_or(part))
            .to_owned()
    });
    trimmed.filter(|part| !stems(part).is_empty()).collect()
}

/// Sentences, with their closing mark. A dot within a number or a name does not end one.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        current.push(if c == '\n' { ' ' } else { c });
        let closes =
            matches!(c, '.' | '?' | '!') && chars.peek().is_none_or(|next| next.is_whitespace()) || c == '\n';
        if closes {
            found.push(std::mem::take(&mut current));
        }
    }
    found.push(current);
    found.iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

/// Something to be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    /// As it was asked.
    pub(super) label: String,
    /// For a calculator.
    pub(super) expression: String,
    /// Its two numbers; none for a sum of others.
    pub(super) parts: Vec<String>,
}

/// What a text asks to have computed, and the sum of it where that is asked too.
pub(super) fn sums(text: &str) -> Vec<Sum> {
    let spaced = text.replace('%', " % ").replace(['(', ')', '?'], " ");
    let words: Vec<&str> =
        spaced.split_whitespace().map(|word| word.trim_end_matches([',', '.', ';', ':'])).collect();
    let mut found: Vec<Sum> = Vec::new();
    for at in 0..words.len() {
        let word = |offset: usize| words.get(at + offset).copied().unwrap_or_default();
        let Some(one) = number(word(0)) else { continue };
        if ["%", "percent"].contains(&word(1))
            && word(2) == "of"
            && let Some(other) = number(word(3))
        {
            found.push(Sum {
                label: format!("{one} % of {other}"),
                expression: format!("{one} / 100 * {other}"),
                parts: vec![format!("{one} %"), other],
            });
        } else if let (Some(sign), Some(other)) = (sign(word(1)), number(word(2))) {
            found.push(Sum {
                label: format!("{one} {} {other}", word(1)),
                expression: format!("{one} {sign} {other}"),
                parts: vec![one, other],
            });
        }
    }
    found.dedup();
    let lower = text.to_lowercase();
    if found.len() > 1
        && ["their sum", "the sum of", "their total", "the total", "add them"]
            .iter()
            .any(|word| lower.contains(word))
    {
        let all: Vec<String> = found.iter().map(|sum| format!("({})", sum.expression)).collect();
        found.push(Sum { label: "sum".to_owned(), expression: all.join(" + "), parts: Vec::new() });
    }
    found
}

fn number(word: &str) -> Option<String> {
    let plain = word.replace(',', "");
    let is_number = plain.starts_with(|c: char| c.is_ascii_digit()) && plain.parse::<f64>().is_ok();
    is_number.then_some(plain)
}

fn sign(word: &str) -> Option<char> {
    match word {
        "+" | "plus" => Some('+'),
        "-" | "minus" => Some('-'),
        "*" | "×" | "x" | "times" => Some('*'),
        "/" | "÷" => Some('/'),
        _ => None,
    }
}

/// Whole numbers that a text names as two to be added.
pub(super) fn pairs(text: &str) -> Vec<(i64, i64)> {
    let words: Vec<&str> =
        text.split_whitespace().map(|word| word.trim_matches(['.', '?', ',', ';'])).collect();
    let joined = |by: &str| -> Vec<(i64, i64)> {
        let triples = words.windows(3).filter(|words| words[1] == by);
        triples.filter_map(|words| Some((words[0].parse().ok()?, words[2].parse().ok()?))).collect()
    };
    let plus = joined("+");
    if plus.is_empty() { joined("and") } else { plus }
}

/// The names of files that a text asks to have written.
pub(super) fn files(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    if !["write", "save", "create", "make", "put"].iter().any(|word| lower.contains(word)) {
        return Vec::new();
    }
    let words = text.split(|c: char| c.is_whitespace() || "`\"'(),;".contains(c));
    let mut found: Vec<String> = Vec::new();
    for word in words.map(|word| word.trim_end_matches(['.', ':', '?'])) {
        let is_file =
            word.rsplit_once('.').is_some_and(|(name, ending)| !name.is_empty() && ENDINGS.contains(&ending));
        if is_file && !word.contains(':') && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The columns that a table is to have.
pub(super) fn columns(text: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once("columns ") else { return Vec::new() };
    let list = rest.split(['.', ';', '\n']).next().unwrap_or_default();
    let parts = list.split(',').flat_map(|part| part.split(" and "));
    let names = parts
        .map(|part| part.trim().trim_matches('`'))
        .filter(|part| !part.is_empty() && !part.contains(' '));
    names.map(str::to_owned).collect()
}
