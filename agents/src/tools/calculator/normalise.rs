//! From what people and models write to what is computed.

use super::evaluate::EvaluationError;

/// Longest expression, in characters.
pub(super) const MAX_EXPRESSION: usize = 2_000;

/// Rewrites an expression: `^` for powers, `%` after a value for hundredths, `of` for times, signs from
/// typography, commas between thousands.
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
    Ok(rewrite(&chars))
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

fn rewrite(chars: &[char]) -> String {
    let mut out = String::with_capacity(chars.len() + 16);
    let mut depth = 0usize;
    for (at, c) in chars.iter().copied().enumerate() {
        match c {
            '(' => {
                depth += 1;
                out.push(c);
            }
            ')' => {
                depth = depth.saturating_sub(1);
                out.push(c);
            }
            '^' => out.push_str("**"),
            ',' if depth == 0 && parts_thousands(chars, at) => {}
            '%' if starts_value(following(chars, at)) && !followed_by_of(chars, at) => out.push('%'),
            '%' => out.push_str("/100.0"),
            'o' if is_of(chars, at) => out.push('*'),
            'f' if at > 0 && is_of(chars, at - 1) => {}
            '.' if at == 0 || !chars[at - 1].is_ascii_digit() => out.push_str("0."),
            other => out.push(other),
        }
    }
    out
}

/// Whether a comma at nesting depth zero stands before exactly three digits.
fn parts_thousands(chars: &[char], at: usize) -> bool {
    let digits = chars[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
    at > 0 && chars[at - 1].is_ascii_digit() && digits == 3
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
