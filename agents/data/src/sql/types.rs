//! What the values of a column are, guessed from all of them.

use muster_shared::text::{DecimalMark, WholeNumber};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
    /// Numbers in the notation of people, with this decimal mark: `1,234.50`, `$5`, `(300)`, `12 %`.
    WrittenNumber(DecimalMark),
    /// Numbers of which each can have two values, such as `1,234`; kept as text.
    AmbiguousNumber,
    /// Days or moments in the form of ISO 8601, kept as text: they sort and compare as they are.
    Date,
    /// Anything.
    Text,
}

impl ColumnType {
    /// What models are told.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Real | Self::WrittenNumber(_) => "real",
            Self::Date => "date",
            Self::AmbiguousNumber | Self::Text => "text",
        }
    }

    /// How SQLite has it declared.
    pub(crate) const fn declared(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real | Self::WrittenNumber(_) => "REAL",
            Self::AmbiguousNumber | Self::Date | Self::Text => "TEXT",
        }
    }

    /// Remark about the reading of its values, for an answer that uses them.
    pub(crate) const fn remark(self) -> Option<&'static str> {
        match self {
            Self::WrittenNumber(_) => Some("text was read as numbers"),
            Self::AmbiguousNumber => Some(
                "kept as text, because numbers such as 1,234 can have two values; do not compute with it as it is",
            ),
            Self::Integer | Self::Real | Self::Date | Self::Text => None,
        }
    }
}

/// A value as it goes into a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(&'a str),
}

/// What all values of a column may still be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guess {
    seen: bool,
    integer: bool,
    real: bool,
    /// Whether each value is a number if the decimal mark is a point.
    point: bool,
    /// Whether each value is a number if the decimal mark is a comma.
    comma: bool,
    /// Whether some value depends on the decimal mark.
    ambiguous: bool,
    date: bool,
}

impl Guess {
    /// Nothing is known yet.
    pub(crate) const fn new() -> Self {
        Self {
            seen: false,
            integer: true,
            real: true,
            point: true,
            comma: true,
            ambiguous: false,
            date: true,
        }
    }

    /// Looks at a value.
    pub(crate) fn see(&mut self, text: &str) {
        let text = text.trim();
        if is_nothing(text) {
            return;
        }
        self.seen = true;
        self.integer = self.integer && integer(text).is_some();
        self.real = self.real && real(text).is_some();
        self.date = self.date && is_date(text);
        // Whole numbers are the same with both marks.
        if (self.point || self.comma) && !self.integer {
            let number = written(text);
            let has = |mark| number.as_ref().is_some_and(|number| number.value(Some(mark)).is_some());
            self.point = self.point && has(DecimalMark::Point);
            self.comma = self.comma && has(DecimalMark::Comma);
            self.ambiguous = self.ambiguous || number.is_some_and(|number| number.value(None).is_none());
        }
    }

    /// Decimal mark that its values need, if all of them are numbers and only one mark fits.
    pub(crate) const fn mark(self) -> Option<DecimalMark> {
        match self {
            Self { seen: true, point: true, comma: false, .. } => Some(DecimalMark::Point),
            Self { seen: true, point: false, comma: true, .. } => Some(DecimalMark::Comma),
            Self { .. } => None,
        }
    }

    /// Type of the column. `mark`: decimal mark of the other columns.
    pub(crate) const fn ends(self, mark: Option<DecimalMark>) -> ColumnType {
        match self {
            Self { seen: false, .. } => ColumnType::Text,
            Self { integer: true, .. } => ColumnType::Integer,
            // `1.234` is a whole number next to `1,5`.
            Self { real: true, ambiguous: true, comma: true, .. }
                if matches!(mark, Some(DecimalMark::Comma)) =>
            {
                ColumnType::WrittenNumber(DecimalMark::Comma)
            }
            Self { real: true, .. } => ColumnType::Real,
            Self { date: true, .. } => ColumnType::Date,
            Self { point: true, comma: true, ambiguous, .. } => match mark {
                Some(mark) => ColumnType::WrittenNumber(mark),
                None if ambiguous => ColumnType::AmbiguousNumber,
                None => ColumnType::WrittenNumber(DecimalMark::Point),
            },
            Self { point: true, .. } => ColumnType::WrittenNumber(DecimalMark::Point),
            Self { comma: true, .. } => ColumnType::WrittenNumber(DecimalMark::Comma),
            Self { .. } => ColumnType::Text,
        }
    }
}

/// A value of a column of this type.
pub(crate) fn field(text: &str, of: ColumnType) -> Field<'_> {
    let plain = text.trim();
    if plain.is_empty() {
        return Field::Null;
    }
    let number = match of {
        ColumnType::Integer => integer(plain).map(Field::Integer),
        ColumnType::Real => real(plain).map(Field::Real),
        ColumnType::WrittenNumber(mark) => {
            written(plain).and_then(|number| number.value(Some(mark))).map(Field::Real)
        }
        ColumnType::Date => is_date(plain).then_some(Field::Text(plain)),
        ColumnType::AmbiguousNumber | ColumnType::Text => return Field::Text(text),
    };
    // Only what stands for nothing is left among values that were all looked at.
    number.unwrap_or(Field::Null)
}

/// Whether a cell stands for a number or a day, so that it is no heading.
pub(crate) fn is_value(text: &str) -> bool {
    let text = text.trim();
    real(text).is_some() || written(text).is_some() || is_date(text)
}

/// What people write where there is nothing; it makes no column of numbers one of texts.
fn is_nothing(text: &str) -> bool {
    text.is_empty() || ["na", "n/a", "nan", "null", "none", "-", "–"].contains(&text.to_lowercase().as_str())
}

/// A whole number as it is counted with: `007` is a name, and what has more digits than fit is a text.
fn integer(text: &str) -> Option<i64> {
    if has_leading_zero(text) { None } else { text.parse().ok() }
}

fn real(text: &str) -> Option<f64> {
    let begins = text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let too_long = !text.contains(['.', 'e', 'E']) && text.trim_start_matches(['-', '+']).len() > 18;
    if !begins || has_leading_zero(text) || too_long && integer(text).is_none() {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number in the notation of people. `007` is a name.
fn written(text: &str) -> Option<WholeNumber<'_>> {
    if has_leading_zero(text) { None } else { WholeNumber::read(text) }
}

fn has_leading_zero(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']).as_bytes();
    digits.first() == Some(&b'0') && digits.get(1).is_some_and(u8::is_ascii_digit)
}

/// `2026-11-22`, also with a time after it.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits =
        |from: usize, to: usize| bytes.get(from..to).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    let number = |from: usize| text.get(from..from + 2).and_then(|part| part.parse::<u8>().ok());
    let is_day = digits(0, 4)
        && bytes.get(4) == Some(&b'-')
        && digits(5, 7)
        && bytes.get(7) == Some(&b'-')
        && digits(8, 10)
        && number(5).is_some_and(|month| (1..=12).contains(&month))
        && number(8).is_some_and(|day| (1..=31).contains(&day));
    let is_time = |rest: &[u8]| {
        matches!(rest.first(), Some(b'T' | b' '))
            && rest.len() >= 6
            && rest[1..].iter().all(|byte| byte.is_ascii_digit() || b":.+-Z".contains(byte))
    };
    is_day && bytes.get(10..).is_some_and(|rest| rest.is_empty() || is_time(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(cells: &[&str], mark: Option<DecimalMark>) -> ColumnType {
        let mut guess = Guess::new();
        for cell in cells {
            guess.see(cell);
        }
        guess.ends(mark)
    }

    #[test]
    fn a_column_is_what_all_its_values_are() {
        use ColumnType::{AmbiguousNumber, Date, Integer, Real, Text, WrittenNumber};
        use DecimalMark::{Comma, Point};
        for (cells, mark, wanted) in [
            (&["1", "-2", ""][..], None, Integer),
            (&["1", "2.5", "1e3", "N/A"], None, Real),
            (&["1,5", "2"], None, WrittenNumber(Comma)),
            (&["1,234.50", "2,000.00", "10.00"], None, WrittenNumber(Point)),
            (&["1.234,56", "10,00"], None, WrittenNumber(Comma)),
            (&["$12.50", "(300)", "−5"], None, WrittenNumber(Point)),
            (&["12%", "8"], None, WrittenNumber(Point)),
            (&["1,234", "5"], None, AmbiguousNumber),
            (&["1,234", "5"], Some(Point), WrittenNumber(Point)),
            (&["1.234", "5"], None, Real),
            (&["1.234", "5"], Some(Comma), WrittenNumber(Comma)),
            (&["007", "1"], None, Text),
            (&["12345678901234567890"], None, Text),
            (&["2026-01-02", "2026-01-02T10:00:00Z", "2026-01-02 10:00"], None, Date),
            (&["2026-13-02"], None, Text),
            (&["inf", "1"], None, Text),
            (&["nan", "1"], None, Integer),
            (&["", ""], None, Text),
            (&["1", "x"], None, Text),
            (&["1,5", "x"], None, Text),
            (&["0", "0.5"], None, Real),
        ] {
            assert_eq!(guessed(cells, mark), wanted, "{cells:?}");
        }
    }

    #[test]
    fn what_stands_for_nothing_is_nothing_among_numbers_and_stays_among_texts() {
        assert_eq!(field("N/A", ColumnType::Real), Field::Null);
        assert_eq!(field("N/A", ColumnType::Text), Field::Text("N/A"));
        assert_eq!(field(" 7 ", ColumnType::Integer), Field::Integer(7));
        assert_eq!(field("7,5 €", ColumnType::WrittenNumber(DecimalMark::Comma)), Field::Real(7.5));
        assert_eq!(field("", ColumnType::Text), Field::Null);
    }
}
