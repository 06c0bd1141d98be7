//! What a text claims, by rule: a number with its unit, a day, yes or no, else words.

use crate::flow::{Claim, ClaimValue, Finite};
use crate::text::{DigitReading, date, normalise_space, unit};

/// Most words of a unit.
const MOST_WORDS_OF_A_UNIT: usize = 3;

/// Words before a number that make it no other one.
const ABOUT: [&str; 12] = [
    "about",
    "approximately",
    "approx.",
    "approx",
    "around",
    "roughly",
    "nearly",
    "almost",
    "some",
    "ca.",
    "circa",
    "~",
];

/// Reads what is claimed; nothing when there is nothing. A unit that stands by itself belongs to a number.
#[must_use]
pub fn read_value(text: &str, unit: &str) -> Option<ClaimValue> {
    let text: String = normalise_space(text).chars().take(Claim::MAX_TEXT).collect();
    if text.is_empty() {
        return None;
    }
    let value = verdict(&text).or_else(|| date::read(&text).map(ClaimValue::Date));
    Some(value.or_else(|| quantity(&text, unit)).unwrap_or(ClaimValue::Text(text)))
}

fn verdict(text: &str) -> Option<ClaimValue> {
    match text.to_lowercase().trim_end_matches(['.', '!']) {
        "yes" | "true" => Some(ClaimValue::Verdict(true)),
        "no" | "false" => Some(ClaimValue::Verdict(false)),
        _ => None,
    }
}

/// A number with its unit, if the text is nothing else.
fn quantity(text: &str, beside: &str) -> Option<ClaimValue> {
    let mut text = text.trim_end_matches('.');
    while let Some(rest) = ABOUT.iter().find_map(|word| after_word(text, word)) {
        text = rest;
    }
    let (currency, text) = leading_currency(text);
    let end = text.find(|letter: char| !is_of_number(letter)).unwrap_or(text.len());
    // A letter within a number makes it another thing: a version, a name.
    let (digits, rest) = text.split_at(exponent(text, end));
    let value = number(digits.trim())?;
    let (times, rest) = unit::without_multiple(rest);
    let unit =
        [rest, currency, beside].into_iter().map(str::trim).find(|unit| !unit.is_empty()).unwrap_or("");
    let (more, unit) = if times > 1.0 { (1.0, unit) } else { unit::without_multiple(unit) };
    if unit.split(' ').count() > MOST_WORDS_OF_A_UNIT
        || unit.chars().any(|letter| letter.is_ascii_digit() && !["m2", "km2", "m3"].contains(&unit))
    {
        return None;
    }
    if unit.starts_with(['-', '–', '/', ':', '.']) {
        return None;
    }
    let value = Finite::new(value * times * more)?;
    Some(ClaimValue::Number { value, unit: unit.chars().take(Claim::MAX_TEXT).collect() })
}

fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word))?;
    let rest = &text[head.len()..];
    (word == "~" || rest.starts_with(' ')).then(|| rest.trim_start())
}

fn leading_currency(text: &str) -> (&str, &str) {
    let found = ["$", "€", "£", "¥"].into_iter().find(|sign| text.starts_with(sign));
    found.map_or(("", text), |sign| (sign, text[sign.len()..].trim_start()))
}

const fn is_of_number(letter: char) -> bool {
    letter.is_ascii_digit() || matches!(letter, '.' | ',' | '+' | '-' | '−' | ' ' | '\u{202f}' | '\u{a0}')
}

/// Where a number ends that may have an exponent.
fn exponent(text: &str, end: usize) -> usize {
    let Some(rest) = text[end..].strip_prefix(['e', 'E']) else { return end };
    let power = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let digits = power.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || power[digits..].starts_with(char::is_alphanumeric) {
        return end;
    }
    text.len() - power.len() + digits
}

/// Value of digits with separators, a sign and an exponent.
fn number(text: &str) -> Option<f64> {
    let (mantissa, _) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
    let power = text[mantissa.len()..].get(1..).unwrap_or("0");
    let (is_negative, digits) = match mantissa.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let reading = DigitReading::read(digits);
    let value: f64 = format!("{}e{power}", reading.likely()?).parse().ok()?;
    Some(if is_negative { -value } else { value })
}
