//! Evaluation by rhai, confined to expressions of numbers.

use std::sync::LazyLock;

use rhai::{Dynamic, Engine, EvalAltResult, OptimizationLevel, ParseErrorType, Scope};

use super::{
    normalise::{MAX_EXPRESSION, normalise},
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
    #[error("`{0}` is no part of arithmetic; use numbers, + - * / ^ % ( ) and functions")]
    Character(char),
    /// It cannot be read.
    #[error("this is not an arithmetic expression: {0}")]
    Syntax(String),
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

type Outcome = Result<Number, EvaluationError>;
type OfFloat = fn(f64) -> f64;
type OfMany = fn(&[Number]) -> Outcome;
type Called = Result<Number, Box<EvalAltResult>>;

/// The value of an expression.
pub(super) fn evaluate(expression: &str) -> Outcome {
    static ENGINE: LazyLock<Engine> = LazyLock::new(engine);
    let normal = normalise(expression)?;
    let mut scope = Scope::new();
    scope.push_constant("pi", std::f64::consts::PI);
    scope.push_constant("e", std::f64::consts::E);
    scope.push_constant("tau", std::f64::consts::TAU);
    let value: Dynamic =
        ENGINE.eval_expression_with_scope(&mut scope, &normal).map_err(|error| explain(*error))?;
    let number = number(&value).ok_or(EvaluationError::NotANumber)?;
    match number {
        Number::Float(value) => checked(value).map(Number::tidy),
        Number::Whole(_) => Ok(number),
    }
}

fn engine() -> Engine {
    let mut engine = Engine::new_raw();
    engine
        .set_optimization_level(OptimizationLevel::None)
        .set_fast_operators(false)
        .set_max_operations(20_000)
        .set_max_expr_depths(64, 1)
        .set_max_call_levels(8)
        .set_max_variables(8)
        .set_max_functions(0)
        .set_max_modules(0)
        .set_max_string_size(256)
        .set_max_array_size(16)
        .set_max_map_size(16);
    for symbol in
        ["eval", "print", "debug", "import", "export", "fn", "call", "curry", "Fn", "is_shared", "type_of"]
    {
        engine.disable_symbol(symbol);
    }
    engine.register_type_with_name::<Number>("number");
    register_operators(&mut engine);
    register_functions(&mut engine);
    engine
}

/// Every operator for every pair of the three types a value can have in rhai.
fn register_operators(engine: &mut Engine) {
    macro_rules! pairs {
        ($name:literal, $method:ident: $($left:ty, $right:ty;)*) => {
            $(engine.register_fn($name, |a: $left, b: $right| called(Number::from(a).$method(Number::from(b))));)*
        };
    }
    macro_rules! operators {
        ($($name:literal $method:ident),*) => {
            $(pairs!($name, $method:
                i64, i64; i64, f64; i64, Number; f64, i64; f64, f64; f64, Number; Number, i64; Number, f64; Number, Number;);)*
        };
    }
    operators!("+" add, "-" subtract, "*" multiply, "/" divide, "%" remainder, "**" power);
    engine.register_fn("-", |a: i64| called(Number::from(a).negate()));
    engine.register_fn("-", |a: f64| -a);
    engine.register_fn("-", |a: Number| called(a.negate()));
    engine.register_fn("+", |a: Number| a);
}

fn register_functions(engine: &mut Engine) {
    let floats: [(&str, OfFloat); 19] = [
        ("cbrt", f64::cbrt),
        ("floor", f64::floor),
        ("ceil", f64::ceil),
        ("trunc", f64::trunc),
        ("exp", f64::exp),
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("tan", f64::tan),
        ("asin", f64::asin),
        ("acos", f64::acos),
        ("atan", f64::atan),
        ("sinh", f64::sinh),
        ("cosh", f64::cosh),
        ("tanh", f64::tanh),
        ("degrees", f64::to_degrees),
        ("radians", f64::to_radians),
        ("sqrt", f64::sqrt),
        ("sign", |x| if x == 0.0 { 0.0 } else { x.signum() }),
        ("float", |x| x),
    ];
    for (name, function) in floats {
        one(engine, name, move |x| checked(function(x.float())).map(Number::tidy));
    }
    one(engine, "abs", Number::absolute);
    one(engine, "round", |x| x.round(Number::Whole(0)));
    one(engine, "ln", |x| logarithm(x.float(), f64::ln));
    one(engine, "log", |x| logarithm(x.float(), f64::log10));
    one(engine, "log10", |x| logarithm(x.float(), f64::log10));
    one(engine, "log2", |x| logarithm(x.float(), f64::log2));
    one(engine, "factorial", factorial);
    two(engine, "round", Number::round);
    two(engine, "mod", Number::modulo);
    two(engine, "pow", Number::power);
    two(engine, "log", logarithm_to_base);
    two(engine, "atan2", |y, x| checked(y.float().atan2(x.float())));
    two(engine, "hypot", |x, y| checked(x.float().hypot(y.float())).map(Number::tidy));
    two(engine, "gcd", gcd);
    two(engine, "lcm", lcm);
    register_variadic(engine);
}

fn register_variadic(engine: &mut Engine) {
    let functions: [(&str, OfMany); 4] = [
        ("min", |all| extreme(all, |a, b| a < b)),
        ("max", |all| extreme(all, |a, b| a > b)),
        ("sum", sum),
        ("mean", mean),
    ];
    macro_rules! arities {
        ($name:ident, $function:ident: $($($argument:ident)+;)*) => {
            $(engine.register_fn($name, move |$($argument: Dynamic),+| {
                called(numbers(&[$($argument),+]).and_then(|all| $function(&all)))
            });)*
        };
    }
    for (name, function) in functions {
        arities!(name, function:
            a; a b; a b c; a b c d; a b c d e; a b c d e f; a b c d e f g; a b c d e f g h;
            a b c d e f g h i; a b c d e f g h i j; a b c d e f g h i j k; a b c d e f g h i j k l;);
    }
}

fn one(
    engine: &mut Engine,
    name: &str,
    function: impl Fn(Number) -> Outcome + Send + Sync + Clone + 'static,
) {
    engine.register_fn(name, move |x: Dynamic| -> Called {
        called(number(&x).ok_or(EvaluationError::NotANumber).and_then(&function))
    });
}

fn two(
    engine: &mut Engine,
    name: &str,
    function: impl Fn(Number, Number) -> Outcome + Send + Sync + Clone + 'static,
) {
    engine.register_fn(name, move |x: Dynamic, y: Dynamic| -> Called {
        called(numbers(&[x, y]).and_then(|both| function(both[0], both[1])))
    });
}

fn called(outcome: Outcome) -> Called {
    outcome.map_err(|error| Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(error), rhai::Position::NONE)))
}

fn number(value: &Dynamic) -> Option<Number> {
    value
        .as_int()
        .ok()
        .map(Number::from)
        .or_else(|| value.as_float().ok().map(Number::from))
        .or_else(|| value.clone().try_cast::<Number>())
}

fn numbers(values: &[Dynamic]) -> Result<Vec<Number>, EvaluationError> {
    values.iter().map(|value| number(value).ok_or(EvaluationError::NotANumber)).collect()
}

fn extreme(all: &[Number], better: fn(f64, f64) -> bool) -> Outcome {
    all.iter()
        .copied()
        .reduce(|best, next| if better(next.float(), best.float()) { next } else { best })
        .ok_or(EvaluationError::Empty)
}

fn sum(all: &[Number]) -> Outcome {
    all.iter().try_fold(Number::Whole(0), |total, next| total.add(*next))
}

fn mean(all: &[Number]) -> Outcome {
    sum(all)?.divide(Number::Whole(all.len() as i128))
}

fn logarithm(x: f64, function: fn(f64) -> f64) -> Outcome {
    if x > 0.0 { checked(function(x)) } else { Err(EvaluationError::Logarithm) }
}

fn logarithm_to_base(x: Number, base: Number) -> Outcome {
    let (x, base) = (x.float(), base.float());
    if x > 0.0 && base > 0.0 && base != 1.0 {
        checked(x.ln() / base.ln())
    } else {
        Err(EvaluationError::Logarithm)
    }
}

fn factorial(x: Number) -> Outcome {
    let n = x.whole().filter(|n| (0..=170).contains(n)).ok_or(EvaluationError::Factorial)?;
    (2..=n).try_fold(Number::Whole(1), |product, next| product.multiply(Number::Whole(next)))
}

fn gcd(a: Number, b: Number) -> Outcome {
    let (mut a, mut b) = both_whole(a, b)?;
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or(0));
    }
    Number::Whole(a).absolute()
}

fn lcm(a: Number, b: Number) -> Outcome {
    let divisor = gcd(a, b)?;
    if divisor.float() == 0.0 { Ok(Number::Whole(0)) } else { a.divide(divisor)?.multiply(b)?.absolute() }
}

fn both_whole(a: Number, b: Number) -> Result<(i128, i128), EvaluationError> {
    a.whole().zip(b.whole()).ok_or(EvaluationError::Whole)
}

fn explain(error: EvalAltResult) -> EvaluationError {
    match error {
        EvalAltResult::ErrorRuntime(value, _) => {
            value.try_cast::<EvaluationError>().unwrap_or(EvaluationError::NotANumber)
        }
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => explain(*inner),
        EvalAltResult::ErrorVariableNotFound(name, _) => EvaluationError::Name(name),
        EvalAltResult::ErrorFunctionNotFound(signature, _) => {
            EvaluationError::Function(signature.split([' ', '(']).next().unwrap_or(&signature).to_owned())
        }
        EvalAltResult::ErrorParsing(ParseErrorType::ExprTooDeep, _)
        | EvalAltResult::ErrorTooManyOperations(_)
        | EvalAltResult::ErrorStackOverflow(_)
        | EvalAltResult::ErrorDataTooLarge(_, _) => EvaluationError::Limit,
        EvalAltResult::ErrorParsing(kind, position) => {
            let place = position.position().map(|at| format!(" (at character {at})")).unwrap_or_default();
            EvaluationError::Syntax(format!("{kind}{place}"))
        }
        other => EvaluationError::Syntax(other.to_string()),
    }
}
