//! Numbers of the calculator: whole as long as they fit, else floating.

use super::evaluate::EvaluationError;

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// Exact.
    Whole(i128),
    /// 64-bit floating point, never infinite nor NaN when it leaves an operation.
    Float(f64),
}

use Number::{Float, Whole};

type Evaluation = Result<Number, EvaluationError>;

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "the loss is what the caller asks for")]
    pub(super) fn float(self) -> f64 {
        match self {
            Whole(value) => value as f64,
            Float(value) => value,
        }
    }

    /// The whole number this is, if it is one.
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    pub(super) fn whole(self) -> Option<i128> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self {
            Whole(value) => Some(value),
            Float(value) => (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i128),
        }
    }

    pub(super) fn add(self, other: Self) -> Evaluation {
        either(self, other, i128::checked_add, |a, b| a + b)
    }

    pub(super) fn subtract(self, other: Self) -> Evaluation {
        either(self, other, i128::checked_sub, |a, b| a - b)
    }

    pub(super) fn multiply(self, other: Self) -> Evaluation {
        either(self, other, i128::checked_mul, |a, b| a * b)
    }

    pub(super) fn divide(self, other: Self) -> Evaluation {
        other.nonzero()?;
        let exact = |a: i128, b: i128| {
            if a.checked_rem(b)? == 0 { a.checked_div(b) } else { None }
        };
        either(self, other, exact, |a, b| a / b)
    }

    /// The rest, with the sign of the dividend.
    pub(super) fn remainder(self, other: Self) -> Evaluation {
        other.nonzero()?;
        either(self, other, i128::checked_rem, |a, b| a % b)
    }

    /// The rest, with the sign of the divisor, as in mathematics.
    pub(super) fn modulo(self, other: Self) -> Evaluation {
        let rest = self.remainder(other)?;
        if rest.float() != 0.0 && (rest.float() < 0.0) != (other.float() < 0.0) {
            rest.add(other)
        } else {
            Ok(rest)
        }
    }

    pub(super) fn power(self, exponent: Self) -> Evaluation {
        if self.float() == 0.0 && exponent.float() < 0.0 {
            return Err(EvaluationError::DivisionByZero);
        }
        let exact = |base: i128, exponent: i128| base.checked_pow(u32::try_from(exponent).ok()?);
        either(self, exponent, exact, f64::powf)
    }

    pub(super) fn negate(self) -> Evaluation {
        Whole(0).subtract(self)
    }

    pub(super) fn absolute(self) -> Evaluation {
        if self.float() < 0.0 { self.negate() } else { Ok(self) }
    }

    /// Rounds half away from zero to so many decimal places.
    pub(super) fn round(self, places: Self) -> Evaluation {
        let places = places
            .whole()
            .and_then(|places| i32::try_from(places).ok())
            .filter(|places| (0..=15).contains(places))
            .ok_or(EvaluationError::Places)?;
        match self {
            Whole(_) => Ok(self),
            Float(value) => {
                let scale = 10f64.powi(places);
                if value.abs() * scale >= 1e15 {
                    return Ok(self);
                }
                // Rounded to what is shown first, so that 1.005 rounds as it reads.
                checked((shown_value(value) * scale * (1.0 + f64::EPSILON)).round() / scale).map(Self::tidy)
            }
        }
    }

    /// A whole float becomes a whole number.
    pub(super) fn tidy(self) -> Self {
        self.whole().map_or(self, Whole)
    }

    fn nonzero(self) -> Result<(), EvaluationError> {
        if self.float() == 0.0 { Err(EvaluationError::DivisionByZero) } else { Ok(()) }
    }

    /// The number in digits, and whether digits were lost.
    pub(super) fn shown(self) -> (String, bool) {
        match self {
            Whole(value) => (value.to_string(), false),
            Float(value) => shown_float(value),
        }
    }
}

/// A float as an outcome, if it is a number.
pub(super) fn checked(value: f64) -> Evaluation {
    if value.is_nan() {
        Err(EvaluationError::NotReal)
    } else if value.is_infinite() {
        Err(EvaluationError::TooLarge)
    } else {
        Ok(Float(value))
    }
}

/// Whole arithmetic where both are whole and the result fits, else floating.
fn either(
    a: Number,
    b: Number,
    whole: impl Fn(i128, i128) -> Option<i128>,
    float: impl Fn(f64, f64) -> f64,
) -> Evaluation {
    if let (Whole(a), Whole(b)) = (a, b)
        && let Some(exact) = whole(a, b)
    {
        return Ok(Whole(exact));
    }
    checked(float(a.float(), b.float()))
}

/// Fifteen significant digits are those a 64-bit float surely holds.
fn shown_value(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}

fn shown_float(value: f64) -> (String, bool) {
    let rounded = shown_value(value);
    if rounded == 0.0 {
        return ("0".to_owned(), false);
    }
    let large = rounded.abs() >= 1e15;
    let text = if large || rounded.abs() < 1e-7 { format!("{rounded:e}") } else { rounded.to_string() };
    let mantissa = text.split('e').next().unwrap_or(&text);
    let digits = mantissa.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count();
    (text, large || digits >= 14)
}
