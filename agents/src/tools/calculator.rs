//! The calculator: arithmetic that a model should not do in its head.
//!
//! Integers are exact up to 128 bits, what does not fit becomes a decimal that is marked as approximate, and a division
//! that leaves a rest gives a decimal.

use async_trait::async_trait;
use serde_json::{Value, json};

use self::evaluate::EvaluationError;
use self::parse::evaluate;
use super::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

#[path = "calculator/evaluate.rs"]
mod evaluate;
#[path = "calculator/normalise.rs"]
mod normalise;
#[path = "calculator/number.rs"]
mod number;
#[path = "calculator/parse.rs"]
mod parse;

/// The tool `calculator`.
#[derive(Debug, Default, Clone, Copy)]
pub struct Calculator;

/// The value of an arithmetic expression as it is shown, and whether it is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calculated {
    /// The value in decimal digits.
    pub value: String,
    /// Whether digits were lost: a rest without end, or a number above 128 bits.
    pub approximate: bool,
}

/// Evaluates an arithmetic expression.
///
/// # Errors
/// When it is not an expression of numbers, or has no real value; the message says what to change.
pub fn calculate(expression: &str) -> Result<Calculated, EvaluationError> {
    let number = evaluate(expression)?;
    let (value, approximate) = number.shown();
    Ok(Calculated { value, approximate })
}

#[async_trait]
impl Tool for Calculator {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "calculator",
            format!(
                "Computes an arithmetic expression of numbers: + - * / ^ ( ), `15% of 80`, `mod(a, b)`, and {}. \
                 `log` is to base 10, angles are in radians. `1,5`, `1 000`, `1,234.5` and `1.234,5` are numbers too.",
                evaluate::FUNCTIONS
            ),
            json!({
            "expression": {
                "type": "string",
                "minLength": 1,
                "maxLength": normalise::MAX_EXPRESSION,
                "description": "For example `(1200 * 15%) / 3`, `2^64`, `round(sqrt(2), 4)`."
            }
        }),
            &["expression"],
        )
        .with_sample(json!({"expression": "2 + 3"}))
    }

    async fn call(&self, _: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let expression = args["expression"].as_str().unwrap_or_default();
        let Calculated { value, approximate } =
            calculate(expression).map_err(|error| ToolFailure::InvalidArguments(error.to_string()))?;
        let sign = if approximate { "≈" } else { "=" };
        Ok(ToolOutput::text(format!("{} {sign} {value}", expression.trim()))
            .with_data(json!({"value": value, "approximate": approximate})))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(expression: &str) -> String {
        match calculate(expression) {
            Ok(Calculated { value, approximate: false }) => value,
            Ok(Calculated { value, approximate: true }) => format!("~{value}"),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn expressions_have_these_values() {
        for (expression, expected) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3", "9"),
            ("7 / 2", "3.5"),
            ("6 / 2", "3"),
            ("1 / 3", "~0.333333333333333"),
            ("0.1 + 0.2", "0.3"),
            ("1.10 * 3", "3.3"),
            ("2 ^ 10", "1024"),
            ("2 ** 10", "1024"),
            ("2 ^ 3 ^ 2", "512"),
            ("-2 ^ 2", "-4"),
            ("(-2) ^ 2", "4"),
            ("2 ^ -2", "0.25"),
            ("8 / -2 ^ 2", "-2"),
            ("5 - -2 ^ 2", "9"),
            ("2 ^ 64", "18446744073709551616"),
            ("9223372036854775807 + 1", "9223372036854775808"),
            ("9223372036854775807 * 9223372036854775807", "85070591730234615847396907784232501249"),
            ("2 ^ 200", "~1.60693804425899e60"),
            ("-5", "-5"),
            ("--5", "5"),
            ("2 ^ -2 ^ 2", "0.0625"),
            ("10 - 4 - 3", "3"),
            ("sum(1,2,3,4,5,6,7,8,9,10,11,12,13,14)", "105"),
            ("+5", "5"),
            (".5 * 4", "2"),
            ("1e3", "1000"),
            ("1_000 + 1", "1001"),
            ("1,234,567 + 1", "1234568"),
            ("1,5 + 2,5", "4"),
            ("(1 000 + 1) * 1", "1001"),
            ("1.234,56 + 1", "1235.56"),
            ("1,234 + 0.5", "1234.5"),
            ("1,234 + 0,5", "1.734"),
            ("1.234 + 1", "2.234"),
            ("1.05 + .05", "1.1"),
            ("max(1,234)", "234"),
            ("15% of 80", "12"),
            ("200 * 15%", "30"),
            ("50%", "0.5"),
            ("(1200 * 15%) / 3", "60"),
            ("7 % 3", "1"),
            ("-7 % 3", "-1"),
            ("mod(-7, 3)", "2"),
            ("7.5 % 2", "1.5"),
        ] {
            assert_eq!(value(expression), expected, "{expression}");
        }
    }

    #[test]
    fn functions_have_these_values() {
        for (expression, expected) in [
            ("sqrt(16)", "4"),
            ("sqrt(2)", "~1.4142135623731"),
            ("cbrt(27)", "3"),
            ("round(2.5)", "3"),
            ("round(3.14159, 2)", "3.14"),
            ("floor(-1.5)", "-2"),
            ("ceil(1.2)", "2"),
            ("abs(-3)", "3"),
            ("min(3, 1, 2)", "1"),
            ("max(3, 1.5, 2)", "3"),
            ("sum(1, 2, 3, 4)", "10"),
            ("mean(1, 2, 3, 4)", "2.5"),
            ("ln(e)", "1"),
            ("log(1000)", "3"),
            ("log(8, 2)", "3"),
            ("log2(1024)", "10"),
            ("exp(0)", "1"),
            ("sin(0)", "0"),
            ("cos(pi)", "-1"),
            ("atan2(1, 1) * 4 - pi", "0"),
            ("factorial(20)", "2432902008176640000"),
            ("gcd(12, 18)", "6"),
            ("lcm(4, 6)", "12"),
            ("3 × 4 ÷ 2 − 1", "5"),
            ("2 + 2 =", "4"),
        ] {
            assert_eq!(value(expression), expected, "{expression}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (expression, said) in [
            ("1 / 0", "division by zero"),
            ("1.5 / 0", "division by zero"),
            ("5 % 0", "division by zero"),
            ("mod(5, 0)", "division by zero"),
            ("0 ^ -1", "division by zero"),
            ("sqrt(-1)", "no real value"),
            ("(-8) ^ 0.5", "no real value"),
            ("ln(0)", "above zero"),
            ("log(-1)", "above zero"),
            ("asin(2)", "no real value"),
            ("10 ^ 400", "too large"),
            ("factorial(-1)", "whole number from 0 to 170"),
            ("factorial(1000)", "whole number from 0 to 170"),
            ("foo(1)", "no function `foo`"),
            ("x + 1", "`x`"),
            ("1 +", "not an arithmetic expression"),
            ("", "empty"),
            ("   ", "empty"),
            ("let x = 1; x", "`=`"),
            ("\"a\" + \"b\"", "`\"`"),
            ("eval(1)", "no function `eval`"),
            ("(1", "something is missing at its end"),
            ("sqrt(1, 2)", "no function `sqrt` for these arguments"),
            ("true", "not a number"),
            ("[1, 2]", "`[`"),
            ("1 2", "not an arithmetic expression"),
            ("1,234 + 1", "`1,234` can mean 1234 or 1.234"),
            ("1,2,3", "`1,2,3` is not one number"),
        ] {
            let shown = value(expression);
            assert!(shown.starts_with("error: ") && shown.contains(said), "{expression}: {shown}");
        }
    }

    #[test]
    fn deep_and_long_expressions_are_refused_not_fatal() {
        assert!(value(&"(".repeat(1_900)).starts_with("error: "));
        assert!(value(&format!("{}1{}", "(".repeat(900), ")".repeat(900))).starts_with("error: "));
        assert!(value(&"-".repeat(1_900)).starts_with("error: "));
        assert!(value(&format!("{}1", "2^".repeat(900))).starts_with("error: "));
        assert!(value(&"1+".repeat(5_000)).contains("long"));
        assert!(value(&"sqrt(".repeat(380)).starts_with("error: "));
    }

    proptest! {
        #[test]
        fn whole_numbers_are_added_and_multiplied_exactly(a in any::<i32>(), b in any::<i32>()) {
            prop_assert_eq!(value(&format!("{a} + {b}")), (i64::from(a) + i64::from(b)).to_string());
            prop_assert_eq!(value(&format!("({a}) * ({b})")), (i64::from(a) * i64::from(b)).to_string());
        }

        #[test]
        fn cents_add_up(a in 0u32..100_000_000, b in 0u32..100_000_000) {
            let money = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
            let sum = money(u64::from(a) + u64::from(b));
            let trimmed = sum.trim_end_matches('0').trim_end_matches('.').to_owned();
            prop_assert_eq!(value(&format!("{} + {}", money(a.into()), money(b.into()))), trimmed);
        }
    }
}
