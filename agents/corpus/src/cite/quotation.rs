//! Quotes in statements: texts in quotation marks long enough to be literal text of a document. Pure.

/// Fewest words in quotation marks that are a quote rather than a term.
const QUOTED_WORDS: usize = 4;

/// Quotation marks, opening and closing.
const PAIRS: [(char, char); 5] = [('“', '”'), ('"', '"'), ('„', '“'), ('«', '»'), ('»', '«')];

/// The longest quote of a statement.
#[must_use]
pub fn longest_quote(statement: &str) -> Option<&str> {
    let quotes = PAIRS.into_iter().flat_map(|(open, close)| in_marks(statement, open, close));
    quotes.filter(|quote| is_long(quote)).max_by_key(|quote| quote.len())
}

/// The quote that ends a text.
#[must_use]
pub fn last_quote(text: &str) -> Option<&str> {
    let (open, close) = PAIRS.into_iter().find(|(_, close)| text.ends_with(*close))?;
    let (_, quote) = text.strip_suffix(close)?.rsplit_once(open)?;
    Some(quote).filter(|quote| is_long(quote))
}

fn is_long(quote: &str) -> bool {
    quote.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count() >= QUOTED_WORDS
}

/// The texts between these marks. Marks without a partner, or in reversed order, enclose nothing.
fn in_marks(text: &str, open: char, close: char) -> Vec<&str> {
    let is_odd = open == close && text.matches(open).count() % 2 == 1;
    let is_reversed = PAIRS.contains(&(close, open))
        && text.find([open, close]).is_some_and(|at| !text[at..].starts_with(open));
    let (mut found, mut rest) = (Vec::new(), if is_odd || is_reversed { "" } else { text });
    while let Some((_, after)) = rest.split_once(open) {
        let Some((inside, after)) = after.split_once(close) else { break };
        found.push(inside);
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_found_in_the_marks_of_several_languages() {
        for (statement, longest, last) in [
            ("It says \"a b c d\" and \"one two three four\"", "one two three four", "one two three four"),
            ("Es heißt „die Freiheit und nicht den Preis“ dort.", "die Freiheit und nicht den Preis", ""),
            ("« un deux » est plus grand que « trois quatre »", "", ""),
            ("»eins zwei drei vier« und mehr als das hier »fünf«", "eins zwei drei vier", ""),
            ("a 5\" disk of the \"so called\" old kind", "", ""),
            ("the “term” is short", "", ""),
        ] {
            assert_eq!(longest_quote(statement).unwrap_or_default(), longest, "{statement}");
            assert_eq!(last_quote(statement).unwrap_or_default(), last, "{statement}");
        }
    }
}
