//! From what people and models write to what is computed.

use muster_shared::text::{DecimalMark, DigitReading, decimal_mark};

use super::evaluate::EvaluationError;

/// Longest expression, in characters.
pub(super) const MAX_EXPRESSION: usize = 2_000;

/// Rewrites an expression: `^` for powers, `%` after a value for hundredths, `of` for times, signs from
/// typography, numbers in one notation.
pub(super) fn normalise(expression: &str) -> Result<String, EvaluationError> {
    let expression = expression.trim().trim_end_matches('=').trim_end();
    if expression.is_empty() {
        return Err(EvaluationError::Empty);
    }
    let chars: Vec<char> = expression.chars().map(plain).collect();
    if chars.len() > MAX_EXPRESSION {
        return Err(EvaluationError::TooLong);
    }
    if let Some(stray) = chars.iter().find(|c| !allowed(**c)) {
        return Err(EvaluationError::Character(*stray));
    }
    rewrite(&chars, &numbers(&chars))
}

/// Digits of an expression with their separators.
struct Number {
    start: usize,
    end: usize,
    written: String,
    reading: DigitReading,
}

/// Numbers of an expression. Between the arguments of a function, a comma separates.
fn numbers(chars: &[char]) -> Vec<Number> {
    let (mut found, mut calls, mut at) = (Vec::new(), Vec::new(), 0);
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let is_name = |at: usize| chars.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_');
    while at < chars.len() {
        match chars[at] {
            '(' => calls.push(at > 0 && is_name(at - 1)),
            ')' => {
                calls.pop();
            }
            _ => {}
        }
        let is_start = is_digit(at) || chars[at] == '.' && is_digit(at + 1);
        if !is_start || at > 0 && is_name(at - 1) {
            at += 1;
            continue;
        }
        let is_argument = calls.contains(&true);
        let is_group = |at: usize| (1..=3).all(|next| is_digit(at + next)) && !is_digit(at + 4);
        let goes_on = |at: usize| match chars.get(at) {
            Some(' ') => is_group(at),
            Some(',') => !is_argument && is_digit(at + 1),
            Some('.' | '_') => is_digit(at + 1),
            Some(c) => c.is_ascii_digit(),
            None => false,
        };
        let end = (at + 1..).find(|end| !goes_on(*end)).unwrap_or(chars.len());
        let written: String = chars[at..end].iter().collect();
        let digits = if written.starts_with('.') { format!("0{written}") } else { written.clone() };
        found.push(Number { start: at, end, written, reading: DigitReading::read(&digits) });
        at = end;
    }
    found
}

/// Value of a number in an expression, where a point is the decimal mark unless another number needs a comma.
fn value(number: &Number, mark: Option<DecimalMark>) -> Result<&str, EvaluationError> {
    let point = number.reading.with_point.as_deref().filter(|_| number.written.contains('.'));
    let value = number.reading.value(mark).or(point);
    match (value, &number.reading.with_point, &number.reading.with_comma) {
        (Some(value), _, _) => Ok(value),
        (None, Some(one), Some(other)) => {
            Err(EvaluationError::Ambiguous(number.written.clone(), one.clone(), other.clone()))
        }
        (None, _, _) => Err(EvaluationError::Syntax(format!("`{}` is not one number", number.written))),
    }
}

fn plain(c: char) -> char {
    match c {
        '×' | '·' => '*',
        '÷' => '/',
        '−' | '–' => '-',
        '\u{a0}' | '\u{202f}' | '\t' | '\n' | '\r' => ' ',
        other => other,
    }
}

fn allowed(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, ' ' | '_' | '.' | ',' | '(' | ')' | '+' | '-' | '*' | '/' | '%' | '^')
}

fn rewrite(chars: &[char], numbers: &[Number]) -> Result<String, EvaluationError> {
    let mark = decimal_mark(numbers.iter().map(|number| &number.reading));
    let mut out = String::with_capacity(chars.len() + 16);
    let mut numbers = numbers.iter().peekable();
    for (at, c) in chars.iter().copied().enumerate() {
        if let Some(number) = numbers.peek().filter(|number| number.start <= at) {
            if number.start == at {
                out.push_str(value(number, mark)?);
            }
            numbers.next_if(|number| number.end == at + 1);
            continue;
        }
        match c {
            '^' => out.push_str("**"),
            '%' if starts_value(following(chars, at)) && !followed_by_of(chars, at) => out.push('%'),
            '%' => out.push_str("/100.0"),
            'o' if is_of(chars, at) => out.push('*'),
            'f' if at > 0 && is_of(chars, at - 1) => {}
            other => out.push(other),
        }
    }
    Ok(out)
}

fn following(chars: &[char], at: usize) -> Option<char> {
    chars[at + 1..].iter().copied().find(|c| *c != ' ')
}

fn starts_value(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '(' | '.'))
}

fn followed_by_of(chars: &[char], at: usize) -> bool {
    let gap = chars[at + 1..].iter().take_while(|c| **c == ' ').count();
    is_of(chars, at + 1 + gap)
}

/// Whether the word `of` stands here by itself.
fn is_of(chars: &[char], at: usize) -> bool {
    let letter = |at: usize| chars.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_');
    chars.get(at) == Some(&'o')
        && chars.get(at + 1) == Some(&'f')
        && !letter(at + 2)
        && (at == 0 || !letter(at - 1))
}
