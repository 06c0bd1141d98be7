//! What the values of a column are, guessed from all of them.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
    /// Numbers that are written with a comma, as beside semicolons.
    CommaReal,
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
            Self::Real | Self::CommaReal => "real",
            Self::Date => "date",
            Self::Text => "text",
        }
    }

    /// How SQLite has it declared.
    pub(crate) const fn declared(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real | Self::CommaReal => "REAL",
            Self::Date | Self::Text => "TEXT",
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
    comma: bool,
    date: bool,
}

impl Guess {
    /// Nothing is known yet. `comma`: whether numbers may be written with one.
    pub(crate) const fn new(comma: bool) -> Self {
        Self { seen: false, integer: true, real: true, comma, date: true }
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
        self.comma = self.comma && comma_real(text).is_some();
        self.date = self.date && is_date(text);
    }

    /// What the column is.
    pub(crate) const fn ends(self) -> ColumnType {
        match self {
            Self { seen: false, .. } => ColumnType::Text,
            Self { integer: true, .. } => ColumnType::Integer,
            Self { real: true, .. } => ColumnType::Real,
            Self { comma: true, .. } => ColumnType::CommaReal,
            Self { date: true, .. } => ColumnType::Date,
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
        ColumnType::CommaReal => comma_real(plain).map(Field::Real),
        ColumnType::Date => is_date(plain).then_some(Field::Text(plain)),
        ColumnType::Text => return Field::Text(text),
    };
    // Only what stands for nothing is left among values that were all looked at.
    number.unwrap_or(Field::Null)
}

/// Whether a cell stands for a number or a day, so that it is no heading.
pub(crate) fn is_value(text: &str) -> bool {
    let text = text.trim();
    real(text).is_some() || comma_real(text).is_some() || is_date(text)
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

fn comma_real(text: &str) -> Option<f64> {
    if text.contains('.') || text.matches(',').count() > 1 {
        return None;
    }
    real(&text.replace(',', "."))
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

    fn guessed(cells: &[&str], comma: bool) -> ColumnType {
        let mut guess = Guess::new(comma);
        for cell in cells {
            guess.see(cell);
        }
        guess.ends()
    }

    #[test]
    fn a_column_is_what_all_its_values_are() {
        for (cells, comma, wanted) in [
            (vec!["1", "-2", ""], false, ColumnType::Integer),
            (vec!["1", "2.5", "1e3", "N/A"], false, ColumnType::Real),
            (vec!["1,5", "2"], true, ColumnType::CommaReal),
            (vec!["1,5", "2"], false, ColumnType::Text),
            (vec!["007", "1"], false, ColumnType::Text),
            (vec!["12345678901234567890"], false, ColumnType::Text),
            (vec!["2026-01-02", "2026-01-02T10:00:00Z", "2026-01-02 10:00"], false, ColumnType::Date),
            (vec!["2026-13-02"], false, ColumnType::Text),
            (vec!["inf", "1"], false, ColumnType::Text),
            (vec!["nan", "1"], false, ColumnType::Integer),
            (vec!["", ""], false, ColumnType::Text),
            (vec!["1", "x"], false, ColumnType::Text),
            (vec!["0", "0.5"], false, ColumnType::Real),
        ] {
            assert_eq!(guessed(&cells, comma), wanted, "{cells:?}");
        }
    }

    #[test]
    fn what_stands_for_nothing_is_nothing_among_numbers_and_stays_among_texts() {
        assert_eq!(field("N/A", ColumnType::Real), Field::Null);
        assert_eq!(field("N/A", ColumnType::Text), Field::Text("N/A"));
        assert_eq!(field(" 7 ", ColumnType::Integer), Field::Integer(7));
        assert_eq!(field("7,5", ColumnType::CommaReal), Field::Real(7.5));
        assert_eq!(field("", ColumnType::Text), Field::Null);
    }
}
