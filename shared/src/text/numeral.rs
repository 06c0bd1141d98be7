//! Reader of numbers in text: `2,009`, `2 009` and `2009` are one number, `17.5` and `175` are two.

use std::ops::Range;

use super::unit::is_currency;

/// A number that stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numeral {
    /// Where it stands, in bytes.
    pub at: Range<usize>,
    /// It without what parts thousands, and with a decimal point: `-2009`, `17.5`, `3.1.2`.
    pub digits: String,
    /// The letters that follow at once, in lower case: `mb` of `39MB`.
    pub suffix: String,
}

impl Numeral {
    /// Its value; nothing for a version or the like.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.digits.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// How many decimal places it was written with.
    #[must_use]
    pub fn decimals(&self) -> usize {
        self.digits.split_once('.').map_or(0, |(_, after)| after.len())
    }
}

/// The numbers of a text, in order. Digits within a name are none: `sha256`, `max_5`, `3f2a`.
#[must_use]
pub fn numerals(text: &str) -> Vec<Numeral> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let (_, letter) = chars[at];
        if letter.is_ascii_digit() {
            at = read(text, &chars, at, &mut found);
        } else if is_of_name(letter) {
            at = end_of(&chars, at, is_of_name);
        } else {
            at += 1;
        }
    }
    found
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn end_of(chars: &[(usize, char)], from: usize, is_part: impl Fn(char) -> bool) -> usize {
    (from..chars.len()).find(|at| !is_part(chars[*at].1)).unwrap_or(chars.len())
}

/// Reads what begins with a digit; gives where it ends.
fn read(text: &str, chars: &[(usize, char)], from: usize, found: &mut Vec<Numeral>) -> usize {
    let byte = |at: usize| chars.get(at).map_or(text.len(), |(byte, _)| *byte);
    let digits = |from: usize| end_of(chars, from, |c| c.is_ascii_digit());
    let mut groups = vec![(None, from..digits(from))];
    let mut end = digits(from);
    while let Some((_, separator)) = chars.get(end).copied().filter(|(_, c)| is_separator(*c)) {
        let next = end + 1..digits(end + 1);
        let is_time = separator == ':' && groups.iter().all(|(_, group)| group.len() <= 2) && next.len() == 2;
        if separator == ':' && !is_time {
            break;
        }
        let is_space = !matches!(separator, '.' | ',' | ':');
        if next.is_empty() || is_space && next.len() != 3 {
            break;
        }
        end = next.end;
        groups.push((Some(separator), next));
    }
    let rest = end_of(chars, end, is_of_name);
    let suffix: String = chars[end..rest].iter().flat_map(|(_, c)| c.to_lowercase()).collect();
    if suffix.chars().any(|c| c.is_ascii_digit() || c == '_') {
        return rest;
    }
    let sign = sign_before(chars, from);
    let parts: Vec<(Option<char>, &str)> =
        groups.iter().map(|(by, group)| (*by, &text[byte(group.start)..byte(group.end)])).collect();
    match joined(&parts) {
        Some(digits) => {
            let start = if sign { byte(from - 1) } else { byte(from) };
            let digits = if sign { format!("-{digits}") } else { digits };
            found.push(Numeral { at: start..byte(end), digits, suffix });
        }
        // A list: each is a number of its own.
        None => found.extend(groups.iter().map(|(_, group)| Numeral {
            at: byte(group.start)..byte(group.end),
            digits: plain(&text[byte(group.start)..byte(group.end)]),
            suffix: String::new(),
        })),
    }
    rest
}

const fn is_separator(letter: char) -> bool {
    matches!(letter, '.' | ',' | ':' | '\'' | '’' | '_' | '\u{a0}' | '\u{202f}')
}

/// Whether a minus sign stands right before, that parts no range, date or name.
fn sign_before(chars: &[(usize, char)], from: usize) -> bool {
    let is_minus = from > 0 && matches!(chars[from - 1].1, '-' | '−');
    let before = from.checked_sub(2).map(|at| chars[at].1);
    is_minus
        && before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '|' | '=' | '`' | '"' | ','))
}

/// Decimal mark of a notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

/// Meaning of the digits and separators of one number. In both fields: digits with a decimal point, without separators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DigitReading {
    /// Value if the decimal mark is a point.
    pub with_point: Option<String>,
    /// Value if the decimal mark is a comma.
    pub with_comma: Option<String>,
}

impl DigitReading {
    /// Reads digits with separators: `1,5`, `1.234,56`, `1 234`, `1'234`. A separator groups only before exactly three digits.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut parts = Vec::new();
        let (mut mark, mut rest) = (None, text);
        while let Some(at) = rest.find(|letter: char| !letter.is_ascii_digit()) {
            parts.push((mark, &rest[..at]));
            mark = rest[at..].chars().next();
            rest = &rest[at + mark.map_or(0, char::len_utf8)..];
        }
        parts.push((mark, rest));
        let is_mark = |mark: char| mark == ' ' || is_separator(mark) && mark != ':';
        let is_number = parts.iter().all(|(mark, group)| !group.is_empty() && mark.is_none_or(is_mark));
        if is_number { Self::of(&parts) } else { Self::default() }
    }

    fn of(parts: &[(Option<char>, &str)]) -> Self {
        Self { with_point: read_with(parts, '.'), with_comma: read_with(parts, ',') }
    }

    /// Value with this decimal mark; without one, the value that does not depend on it.
    #[must_use]
    pub fn value(&self, mark: Option<DecimalMark>) -> Option<&str> {
        let (point, comma) = (self.with_point.as_deref(), self.with_comma.as_deref());
        match mark {
            _ if point == comma => point,
            Some(DecimalMark::Point) => point,
            Some(DecimalMark::Comma) => comma,
            None => self.mark().and(point.or(comma)),
        }
    }

    /// Decimal mark that this number needs, if it has only one reading.
    #[must_use]
    pub const fn mark(&self) -> Option<DecimalMark> {
        match (&self.with_point, &self.with_comma) {
            (Some(_), None) => Some(DecimalMark::Point),
            (None, Some(_)) => Some(DecimalMark::Comma),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// More likely value: a comma groups three digits, a point does not.
    #[must_use]
    pub fn likely(&self) -> Option<&str> {
        self.with_point.as_deref().or(self.with_comma.as_deref())
    }

    /// Values that differ: two for an ambiguous number such as `1,234`.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let other = self.with_comma.as_deref().filter(|comma| Some(*comma) != self.with_point.as_deref());
        self.with_point.as_deref().into_iter().chain(other).filter_map(|value| value.parse().ok())
    }
}

/// Decimal mark of the numbers of one text or column: the one that some of them need, if no other needs the other one.
pub fn decimal_mark<'a>(numbers: impl Iterator<Item = &'a DigitReading>) -> Option<DecimalMark> {
    let mut marks = numbers.filter_map(DigitReading::mark);
    let first = marks.next()?;
    marks.all(|mark| mark == first).then_some(first)
}

/// Groups of digits, each with the mark before it, as one number.
fn read_with(parts: &[(Option<char>, &str)], decimal: char) -> Option<String> {
    let (whole, fraction) = match parts.split_last() {
        Some(((Some(mark), last), rest)) if *mark == decimal => (rest, *last),
        Some(_) | None => (parts, ""),
    };
    let mut marks = whole.iter().filter_map(|(mark, _)| *mark);
    let mark = marks.next();
    let in_thousands = || {
        let (first, rest) = whole.split_first()?;
        let fits = (1..=3).contains(&first.1.len()) && !first.1.starts_with('0');
        (fits && rest.iter().all(|(_, group)| group.len() == 3)).then_some(())
    };
    if mark
        .is_some_and(|mark| mark == decimal || marks.any(|other| other != mark) || in_thousands().is_none())
    {
        return None;
    }
    let digits: String = whole.iter().map(|(_, group)| *group).collect();
    let fraction = if fraction.bytes().all(|digit| digit == b'0') { "" } else { fraction };
    Some(if fraction.is_empty() { plain(&digits) } else { format!("{}.{fraction}", plain(&digits)) })
}

/// The groups as one number, version or time; `None` for a list.
fn joined(parts: &[(Option<char>, &str)]) -> Option<String> {
    let only = |mark: char| parts.iter().all(|(by, _)| by.is_none_or(|by| by == mark));
    let groups = |change: fn(&str) -> String, mark: &str| {
        parts.iter().map(|(_, group)| change(group)).collect::<Vec<_>>().join(mark)
    };
    if parts.iter().any(|(by, _)| *by == Some(':')) {
        return Some(groups(plain, ":"));
    }
    let reading = DigitReading::of(parts);
    reading.likely().map(str::to_owned).or_else(|| only('.').then(|| groups(str::to_owned, ".")))
}

/// Digits without leading zeros.
fn plain(digits: &str) -> String {
    let rest = digits.trim_start_matches('0');
    if rest.is_empty() { "0".to_owned() } else { rest.to_owned() }
}

/// Number that is a whole text: a cell, a field, a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeNumber<'a> {
    /// Digits and separators.
    pub digits: DigitReading,
    /// Whether it is below zero: `-3`, `−3`, `(300)`.
    pub is_negative: bool,
    /// Currency or `%`, as written; empty without one.
    pub unit: &'a str,
}

impl<'a> WholeNumber<'a> {
    /// Reads `1,5`, `−3`, `(300)`, `€5`, `12 %`, `1 234 EUR`.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let in_brackets = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        let (is_minus, text) = unsigned(in_brackets.unwrap_or(text));
        let start = text.find(|letter: char| letter.is_ascii_digit() || letter == '.')?;
        let before = text[..start].trim();
        let before_sign = before.strip_suffix(['-', '−']).map(str::trim_end);
        let end = text.rfind(|letter: char| letter.is_ascii_digit())? + 1;
        let after = text[end..].trim();
        let unit = match (before_sign.unwrap_or(before), after) {
            (unit, "") | ("", unit) => unit,
            (_, _) => return None,
        };
        if !(unit.is_empty() || unit == "%" && before.is_empty() || is_currency(unit)) {
            return None;
        }
        let digits = text.get(start..end)?;
        let digits = match digits.strip_prefix('.') {
            Some(after) => DigitReading::read(&format!("0.{after}")),
            None => DigitReading::read(digits),
        };
        let is_negative = in_brackets.is_some() || is_minus || before_sign.is_some();
        digits.likely().is_some().then_some(Self { digits, is_negative, unit })
    }

    /// Value with this decimal mark; without one, the value that does not depend on it.
    #[must_use]
    pub fn value(&self, mark: Option<DecimalMark>) -> Option<f64> {
        let value: f64 = self.digits.value(mark)?.parse().ok()?;
        Some(if self.is_negative { -value } else { value })
    }
}

fn unsigned(text: &str) -> (bool, &str) {
    match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Spelled-out numbers of English, German, French, Spanish, Italian and Portuguese. Words with another meaning are left
/// out: "one" and its translations (articles), "null", "once", "cent".
const WORDS: [(usize, &[&str]); 31] = [
    (0, &["zero", "zéro", "cero"]),
    (2, &["two", "zwei", "deux", "dos", "dois", "duas"]),
    (3, &["three", "drei", "trois", "tres", "tre", "três"]),
    (4, &["four", "vier", "quatre", "cuatro", "quattro", "quatro"]),
    (5, &["five", "fünf", "cinq", "cinco", "cinque"]),
    (6, &["six", "sechs", "seis"]),
    (7, &["seven", "sieben", "sept", "siete", "sette", "sete"]),
    (8, &["eight", "acht", "huit", "ocho", "oito"]),
    (9, &["nine", "neun", "neuf", "nueve", "nove"]),
    (10, &["ten", "zehn", "dix", "diez", "dieci", "dez"]),
    (11, &["eleven", "elf", "onze", "undici"]),
    (12, &["twelve", "zwölf", "douze", "doce", "dodici", "doze"]),
    (13, &["thirteen", "dreizehn", "treize", "trece"]),
    (14, &["fourteen", "vierzehn", "quatorze", "catorce"]),
    (15, &["fifteen", "fünfzehn", "quinze", "quince"]),
    (16, &["sixteen", "sechzehn", "seize", "dieciséis"]),
    (17, &["seventeen", "siebzehn", "diecisiete"]),
    (18, &["eighteen", "achtzehn", "dieciocho"]),
    (19, &["nineteen", "neunzehn", "diecinueve"]),
    (20, &["twenty", "zwanzig", "vingt", "veinte", "venti", "vinte"]),
    (30, &["thirty", "dreißig", "trente", "treinta", "trenta", "trinta"]),
    (40, &["forty", "vierzig", "quarante", "cuarenta", "quaranta", "quarenta"]),
    (50, &["fifty", "fünfzig", "cinquante", "cincuenta", "cinquanta"]),
    (60, &["sixty", "sechzig", "soixante", "sesenta", "sessanta"]),
    (70, &["seventy", "siebzig", "setenta", "settanta"]),
    (80, &["eighty", "achtzig", "ochenta", "ottanta", "oitenta"]),
    (90, &["ninety", "neunzig", "noventa", "novanta"]),
    (100, &["hundred", "hundert", "cien", "cento"]),
    (1_000, &["thousand", "tausend", "mille", "mil"]),
    (1_000_000, &["million", "millón"]),
    (1_000_000_000, &["billion", "milliarde"]),
];

/// Value of a spelled-out number, in lower case.
#[must_use]
pub fn number_in_words(word: &str) -> Option<usize> {
    WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_one_form() {
        for (text, expected) in [
            ("2,009 and 2009 and 2\u{202f}009 and 2_009", &["2009", "2009", "2009", "2009"][..]),
            ("17.5 % of 175", &["17.5", "175"]),
            ("1.000.000,50 and 1,000,000.50", &["1000000.50", "1000000.50"]),
            ("version 3.1.2, Rust 1.90", &["3.1.2", "1.90"]),
            ("5.0 and 5,00", &["5", "5"]),
            ("0,5 and 0.125", &["0.5", "0.125"]),
            ("[1,2,3]", &["1", "2", "3"]),
            ("-5 is not 3-5, nor 2026-03-05", &["-5", "3", "5", "2026", "3", "5"]),
            ("39MB, 20k, sha256, max_5, 3f2a", &["39", "20"]),
            ("at 08:30 or 7:05:09, item 7, 3:1.", &["8:30", "7:5:9", "7", "3", "1"]),
            ("none", &[]),
        ] {
            let found: Vec<String> = numerals(text).into_iter().map(|number| number.digits).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(numerals("39MB")[0].suffix, "mb");
        assert_eq!(numerals("a −5 b").first().map(|n| n.digits.as_str()), Some("-5"));
    }

    #[test]
    fn whole_numbers_have_a_value_for_each_decimal_mark() {
        for (text, point, comma) in [
            ("1,5", None, Some(1.5)),
            ("1.5", Some(1.5), None),
            ("1,234.5", Some(1234.5), None),
            ("1.234,56", None, Some(1234.56)),
            ("1,234", Some(1234.0), Some(1.234)),
            ("1.234", Some(1.234), Some(1234.0)),
            ("0,234", None, Some(0.234)),
            ("1 234", Some(1234.0), Some(1234.0)),
            ("12 %", Some(12.0), Some(12.0)),
            ("−3", Some(-3.0), Some(-3.0)),
            ("(300)", Some(-300.0), Some(-300.0)),
            ("€5", Some(5.0), Some(5.0)),
            ("-$ 1,234.50", Some(-1234.5), None),
            (".5", Some(0.5), None),
        ] {
            let number = WholeNumber::read(text).unwrap();
            let values = [DecimalMark::Point, DecimalMark::Comma].map(|mark| number.value(Some(mark)));
            assert_eq!(values, [point, comma], "{text}");
            let certain = if point == comma { point } else { point.xor(comma) };
            assert_eq!(number.value(None), certain, "{text}");
        }
        for text in ["", "-", "1,23,4", "1 23", "1.2.3", "12 kg", "5 %%", "$5 €", "(5", "1a234", "2026-01-02"]
        {
            assert_eq!(WholeNumber::read(text), None, "{text}");
        }
    }
}
