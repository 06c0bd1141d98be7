//! Text as people write it: which words say nothing, where a text is cut, which names are alike, numbers, days, units. Pure.
//!
//! Whoever reads or shortens text does it with what is here, so that a rule holds alike wherever it is needed. What
//! decisions read with these rules stays as it is: a run that is decided again has to come to the same.

mod brackets;
mod calendar;
pub mod cut;
pub mod date;
mod fault;
mod nearest;
mod numeral;
pub mod stop;
pub mod unit;
mod unseen;
mod words;

pub use brackets::bracket_depth;
pub use calendar::MONTHS;
pub use cut::{at_word, beginning, first_line, normalise_space, one_line, quoted, within_bytes};
pub use fault::Fault;
pub use nearest::nearest_name;
pub use numeral::{DecimalMark, DigitReading, Numeral, WholeNumber, decimal_mark, number_in_words, numerals};
pub use unseen::is_control;
pub use words::counted;

/// Whether it is a name of lower case letters, digits, `-` and `_`, of at most this many bytes.
pub(crate) fn is_short_name(name: &str, max_bytes: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= max_bytes && name.bytes().all(fits)
}
