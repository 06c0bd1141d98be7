//! Why an expression has no value, and the functions that it may call.

use super::{
    normalise::MAX_EXPRESSION,
    number::{Number, checked},
};

/// The functions, as a description names them.
pub(super) const FUNCTIONS: &str = "sqrt cbrt abs sign round(x, places) floor ceil trunc min max sum mean ln log(x, base) log2 log10 exp \
     pow sin cos tan asin acos atan atan2 sinh cosh tanh degrees radians hypot factorial gcd lcm mod, and pi e tau";

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// Nothing was given.
    #[error("the expression is empty; give one such as `2 * (3 + 4)`")]
    Empty,
    /// It is longer than allowed.
    #[error("the expression is too long: at most {MAX_EXPRESSION} characters; compute it in parts")]
    TooLong,
    /// It holds a character that no arithmetic has.
    #[error("`{}` is no part of arithmetic; use numbers, + - * / ^ % ( ) and functions", muster_shared::text::quoted(&.0.to_string(), 1))]
    Character(char),
    /// It cannot be read.
    #[error("this is not an arithmetic expression: {0}")]
    Syntax(String),
    /// It has a number with two readings, which follow.
    #[error("`{0}` can mean {1} or {2}; write one of them")]
    Ambiguous(String, String, String),
    /// It calls a function that does not exist.
    #[error("there is no function `{0}` for these arguments; there are {FUNCTIONS}")]
    Function(String),
    /// It names something that is not a number.
    #[error("`{0}` is not known; put in its value as a number")]
    Name(String),
    /// Division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The square root of a negative number and the like.
    #[error("it has no real value")]
    NotReal,
    /// Above the range of floating point.
    #[error("the result is too large (above 1.8e308)")]
    TooLarge,
    /// A logarithm of zero or less.
    #[error("a logarithm needs a number above zero, and a base above zero other than one")]
    Logarithm,
    /// A factorial of something else.
    #[error("a factorial needs a whole number from 0 to 170")]
    Factorial,
    /// A whole number was needed.
    #[error("gcd and lcm need whole numbers")]
    Whole,
    /// The number of decimal places is out of range.
    #[error("the decimal places must be a whole number from 0 to 15")]
    Places,
    /// The expression is no number, such as `true`.
    #[error("the expression is not a number")]
    NotANumber,
    /// It would take too long.
    #[error("the expression is too deep or too long to compute; do it in parts")]
    Limit,
}

type Evaluation = Result<Number, EvaluationError>;

/// The value of a function for these arguments.
pub(super) fn call(name: &str, arguments: &[Number]) -> Evaluation {
    if let ([x], Some(function)) = (arguments, of_float(name)) {
        return checked(function(x.float())).map(Number::tidy);
    }
    match (name, arguments) {
        ("abs", [x]) => x.absolute(),
        ("round", [x]) => x.round(Number::Whole(0)),
        ("ln", [x]) => logarithm(x.float(), f64::ln),
        ("log" | "log10", [x]) => logarithm(x.float(), f64::log10),
        ("log2", [x]) => logarithm(x.float(), f64::log2),
        ("factorial", [x]) => factorial(*x),
        ("round", [x, places]) => x.round(*places),
        ("mod", [x, y]) => x.modulo(*y),
        ("pow", [x, y]) => x.power(*y),
        ("log", [x, base]) => logarithm_to_base(*x, *base),
        ("atan2", [y, x]) => checked(y.float().atan2(x.float())),
        ("hypot", [x, y]) => checked(x.float().hypot(y.float())).map(Number::tidy),
        ("gcd", [a, b]) => gcd(*a, *b),
        ("lcm", [a, b]) => lcm(*a, *b),
        ("min", [_, ..]) => extreme(arguments, |a, b| a < b),
        ("max", [_, ..]) => extreme(arguments, |a, b| a > b),
        ("sum", [_, ..]) => sum(arguments),
        ("mean", [_, ..]) => mean(arguments),
        _ => Err(EvaluationError::Function(name.to_owned())),
    }
}

/// A function of one number that is computed in floating point.
fn of_float(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "cbrt" => f64::cbrt,
        "floor" => f64::floor,
        "ceil" => f64::ceil,
        "trunc" => f64::trunc,
        "exp" => f64::exp,
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "asin" => f64::asin,
        "acos" => f64::acos,
        "atan" => f64::atan,
        "sinh" => f64::sinh,
        "cosh" => f64::cosh,
        "tanh" => f64::tanh,
        "degrees" => f64::to_degrees,
        "radians" => f64::to_radians,
        "sqrt" => f64::sqrt,
        "sign" => |x| if x == 0.0 { 0.0 } else { x.signum() },
        "float" => |x| x,
        _ => return None,
    })
}

/// The value of a name.
pub(super) fn constant(name: &str) -> Evaluation {
    match name {
        "pi" => Ok(Number::Float(std::f64::consts::PI)),
        "e" => Ok(Number::Float(std::f64::consts::E)),
        "tau" => Ok(Number::Float(std::f64::consts::TAU)),
        "true" | "false" => Err(EvaluationError::NotANumber),
        _ => Err(EvaluationError::Name(name.to_owned())),
    }
}

fn extreme(all: &[Number], better: fn(f64, f64) -> bool) -> Evaluation {
    all.iter()
        .copied()
        .reduce(|best, next| if better(next.float(), best.float()) { next } else { best })
        .ok_or(EvaluationError::Empty)
}

fn sum(all: &[Number]) -> Evaluation {
    all.iter().try_fold(Number::Whole(0), |total, next| total.add(*next))
}

fn mean(all: &[Number]) -> Evaluation {
    sum(all)?.divide(Number::Whole(all.len() as i128))
}

fn logarithm(x: f64, function: fn(f64) -> f64) -> Evaluation {
    if x > 0.0 { checked(function(x)) } else { Err(EvaluationError::Logarithm) }
}

fn logarithm_to_base(x: Number, base: Number) -> Evaluation {
    let (x, base) = (x.float(), base.float());
    if x > 0.0 && base > 0.0 && base != 1.0 {
        checked(x.ln() / base.ln())
    } else {
        Err(EvaluationError::Logarithm)
    }
}

fn factorial(x: Number) -> Evaluation {
    let n = x.whole().filter(|n| (0..=170).contains(n)).ok_or(EvaluationError::Factorial)?;
    (2..=n).try_fold(Number::Whole(1), |product, next| product.multiply(Number::Whole(next)))
}

fn gcd(a: Number, b: Number) -> Evaluation {
    let (mut a, mut b) = a.whole().zip(b.whole()).ok_or(EvaluationError::Whole)?;
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or(0));
    }
    Number::Whole(a).absolute()
}

fn lcm(a: Number, b: Number) -> Evaluation {
    let divisor = gcd(a, b)?;
    if divisor.float() == 0.0 { Ok(Number::Whole(0)) } else { a.divide(divisor)?.multiply(b)?.absolute() }
}
