//! Reads an expression and computes it as it goes. Powers bind first and to the right, then signs, then `*`, `/` and `%`,
//! then `+` and `-`.

use super::evaluate::{EvaluationError, call, constant};
use super::normalise::normalise;
use super::number::{Number, checked};

/// Deepest nesting of parentheses, signs and powers.
const MAX_DEPTH: usize = 64;

type Evaluation = Result<Number, EvaluationError>;

/// The value of an expression.
pub(super) fn evaluate(expression: &str) -> Evaluation {
    let text = normalise(expression)?;
    let mut reader = Reader { text: &text, at: 0, depth: 0 };
    let value = reader.sum()?;
    match reader.next() {
        None => match value {
            Number::Float(value) => checked(value).map(Number::tidy),
            Number::Whole(_) => Ok(value),
        },
        Some(_) => Err(reader.unexpected()),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn sum(&mut self) -> Evaluation {
        let mut value = self.product()?;
        loop {
            value = match self.take(&["+", "-"]) {
                Some("+") => value.add(self.product()?)?,
                Some(_) => value.subtract(self.product()?)?,
                None => return Ok(value),
            };
        }
    }

    fn product(&mut self) -> Evaluation {
        let mut value = self.signed()?;
        loop {
            value = match self.take(&["*", "/", "%"]) {
                Some("*") => value.multiply(self.signed()?)?,
                Some("/") => value.divide(self.signed()?)?,
                Some(_) => value.remainder(self.signed()?)?,
                None => return Ok(value),
            };
        }
    }

    /// A sign binds less tightly than a power: `-2^2` is -4.
    fn signed(&mut self) -> Evaluation {
        self.nested(|reader| match reader.take(&["-", "+"]) {
            Some("-") => reader.signed()?.negate(),
            Some(_) => reader.signed(),
            None => reader.power(),
        })
    }

    fn power(&mut self) -> Evaluation {
        let base = self.atom()?;
        match self.take(&["**"]) {
            Some(_) => base.power(self.signed()?),
            None => Ok(base),
        }
    }

    fn atom(&mut self) -> Evaluation {
        match self.next() {
            Some('(') => {
                self.at += 1;
                let value = self.sum()?;
                self.expect(")")?;
                Ok(value)
            }
            Some(letter) if letter.is_ascii_digit() => self.number(),
            Some(letter) if letter.is_ascii_alphabetic() => self.named(),
            _ => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Evaluation {
        let bytes = self.rest().as_bytes();
        let digits =
            |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        let whole = end;
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        let written = &self.rest()[..end];
        let exact = if end == whole { written.parse().ok().map(Number::Whole) } else { None };
        let value = match exact {
            Some(value) => value,
            None => checked(written.parse().map_err(|_| self.unexpected())?)?,
        };
        self.at += end;
        Ok(value)
    }

    /// A constant, or a function with its arguments.
    fn named(&mut self) -> Evaluation {
        let rest: &'a str = self.rest();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let name = &rest[..rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())];
        self.at += name.len();
        if self.take(&["("]).is_none() {
            return constant(name);
        }
        let mut arguments = Vec::new();
        if self.take(&[")"]).is_none() {
            arguments.push(self.sum()?);
            while self.take(&[","]).is_some() {
                arguments.push(self.sum()?);
            }
            self.expect(")")?;
        }
        call(name, &arguments)
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Evaluation) -> Evaluation {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(EvaluationError::Limit);
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), EvaluationError> {
        self.take(&[sign]).map(drop).ok_or_else(|| self.unexpected())
    }

    /// Takes one of these signs, if it comes next.
    fn take(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        self.next();
        let found = signs.iter().copied().find(|sign| self.rest().starts_with(sign))?;
        self.at += found.len();
        Some(found)
    }

    /// What comes next, past spaces.
    fn next(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(' ').len();
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn unexpected(&mut self) -> EvaluationError {
        EvaluationError::Syntax(match self.next() {
            Some(letter) => format!("`{letter}` cannot stand at character {}", self.at + 1),
            None => "something is missing at its end".to_owned(),
        })
    }
}
