//! Arithmetic that a goal asks for, as expressions the calculator accepts.

use muster_shared::text::{DigitReading, decimal_mark};
use regex::{Captures, Regex};

use super::text::normalise_space;

/// Most expressions taken from one goal.
const MAX_EXPRESSIONS: usize = 4;

pattern!(NUMBER, r"\d+(?:[.,]\d+|[ \x{a0}\x{202f}]\d{3}\b)*");
pattern!(
    PERCENT_OF,
    r"(?i)\b(\d+(?:[.,]\d+|[ \x{a0}\x{202f}]\d{3}\b)*)\s*(?:%|per ?cent)\s+of\s+(\d+(?:[.,]\d+|[ \x{a0}\x{202f}]\d{3}\b)*)"
);
pattern!(ROOT, r"(?i)\bsquare root of\s+(\d+(?:[.,]\d+|[ \x{a0}\x{202f}]\d{3}\b)*)");
pattern!(
    SUM,
    r"(?i)\b(sum|product|average|mean) of\s+(\d+(?:[.,]\d+)*(?:(?:\s*,\s*and\s+|\s*,\s+|\s+and\s+)\d+(?:[.,]\d+)*)*)"
);
pattern!(
    CHAIN,
    r"\(*-?\d+(?:[.,]\d+|[ \x{a0}\x{202f}]\d{3}\b)*%?\)*(?:\s*(?:\*\*|[-+*/^×÷·−])\s*\(*-?\d+(?:[.,]\d+|[ \x{a0}\x{202f}]\d{3}\b)*%?\)*)+"
);
pattern!(SPACED_SIGN, r"\d[%)]*\s+[-+*/^×÷·−]\s+[(-]*\d|[*^×÷+]");
pattern!(DATE, r"^\d{1,4}[-/]\d{1,2}[-/]\d{1,4}$");
pattern!(
    ASKS,
    r"(?i)\b(?:compute|calculate|work out|add up|multiply|divide|subtract|how much is|evaluate)\b"
);
pattern!(SPOKEN, r"(?i)(\d)\s+(plus|minus|times|multiplied by|divided by|to the power of)\s+(\d)");

/// The arithmetic in a goal, as expressions, in the order they are asked.
pub(super) fn expressions(goal: &str) -> Vec<String> {
    let goal = in_signs(&normalise_space(goal));
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut take = |rule: &Regex, expression: &dyn Fn(&Captures<'_>) -> Option<String>| {
        for hit in rule.captures_iter(&goal) {
            if let (Some(all), Some(expression)) = (hit.get(0), expression(&hit)) {
                found.push((all.start(), expression));
            }
        }
    };
    take(&PERCENT_OF, &|hit| Some(format!("{}% of {}", &hit[1], &hit[2])));
    take(&ROOT, &|hit| {
        // A comma would separate the arguments of the function.
        let reading = DigitReading::read(&hit[1]);
        Some(format!("sqrt({})", reading.value(None).unwrap_or(&hit[1])))
    });
    take(&SUM, &|hit| of_list(&hit[1], &hit[2]));
    let asks = ASKS.is_match(&goal);
    take(&CHAIN, &|hit| {
        let chain = balanced(hit[0].trim());
        let meant = asks || SPACED_SIGN.is_match(&chain);
        (meant && !DATE.is_match(&chain)).then(|| plain_signs(&chain))
    });
    found.sort();
    found.dedup_by(|a, b| a.1 == b.1);
    found.into_iter().map(|(_, expression)| expression).take(MAX_EXPRESSIONS).collect()
}

fn in_signs(text: &str) -> String {
    SPOKEN
        .replace_all(text, |hit: &Captures<'_>| {
            let sign = match hit[2].to_lowercase().as_str() {
                "plus" => "+",
                "minus" => "-",
                "divided by" => "/",
                "to the power of" => "^",
                _ => "*",
            };
            format!("{} {sign} {}", &hit[1], &hit[3])
        })
        .into_owned()
}

/// The text without brackets that have no counterpart in it.
fn balanced(chain: &str) -> String {
    let (mut open, mut kept) = (0_usize, String::new());
    for letter in chain.chars() {
        match letter {
            '(' => open += 1,
            ')' if open == 0 => continue,
            ')' => open -= 1,
            _ => {}
        }
        kept.push(letter);
    }
    while open > 0 {
        let Some(at) = kept.rfind('(') else { break };
        kept.remove(at);
        open -= 1;
    }
    kept
}

/// Signs as the calculator writes them.
fn plain_signs(text: &str) -> String {
    text.replace("**", "^").replace(['×', '·'], "*").replace('÷', "/").replace('−', "-")
}

fn of_list(what: &str, list: &str) -> Option<String> {
    let numbers: Vec<&str> = NUMBER
        .find_iter(list)
        .map(|number| number.as_str())
        // `1,2,3` is a list.
        .flat_map(|written| match DigitReading::read(written).likely() {
            Some(_) => vec![written],
            None => written.split(',').collect(),
        })
        .collect();
    (numbers.len() > 1).then(|| match what.to_lowercase().as_str() {
        "product" => numbers.join(" * "),
        "sum" => numbers.join(" + "),
        _ => format!("({}) / {}", numbers.join(" + "), numbers.len()),
    })
}

/// Reason why an expression is not computed: a number with two readings, of which no other number decides.
pub(super) fn ambiguity(expression: &str) -> Option<String> {
    let numbers: Vec<(&str, DigitReading)> = NUMBER
        .find_iter(expression)
        .map(|found| (found.as_str(), DigitReading::read(found.as_str())))
        .collect();
    let mark = decimal_mark(numbers.iter().map(|(_, reading)| reading));
    let (written, reading) = numbers.iter().find(|(_, reading)| reading.value(mark).is_none())?;
    let (one, other) = (reading.with_point.as_ref()?, reading.with_comma.as_ref()?);
    Some(format!("`{written}` can mean {one} or {other}; write one of them"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arithmetic_is_found_where_it_is_asked() {
        let table: &[(&str, &[&str])] = &[
            ("What is 12 % of 3,400?", &["12% of 3,400"]),
            ("What is 1,5 plus 2,5?", &["1,5 + 2,5"]),
            ("What is 1 000 plus 1?", &["1 000 + 1"]),
            ("sum of 1,2,3", &["1 + 2 + 3"]),
            ("Compute (1200 * 3) / 7 and explain snapshots", &["(1200 * 3) / 7"]),
            ("What is 7 times 6?", &["7 * 6"]),
            ("the sum of 1, 2 and 3.5", &["1 + 2 + 3.5"]),
            ("the average of 2 and 4", &["(2 + 4) / 2"]),
            ("square root of 2", &["sqrt(2)"]),
            ("calculate 17-4", &["17-4"]),
            ("What happened on 2024-01-05?", &[]),
            ("What does task 1-2-3 do?", &[]),
            ("Is it 24/7 support?", &[]),
            ("How many slots has a worker?", &[]),
            ("2^64?", &["2^64"]),
        ];
        for (goal, expected) in table {
            assert_eq!(expressions(goal), *expected, "{goal}");
        }
    }

    #[test]
    fn ambiguous_numbers_are_named() {
        for (expression, is_ambiguous) in [
            ("1,5 + 2,5", false),
            ("1 000 + 1", false),
            ("1.234,56 + 1", false),
            ("12% of 3,400", true),
            ("1.234 + 1", true),
            ("1.234 + 0.5", false),
            ("1.234 + 0,5", false),
        ] {
            assert_eq!(ambiguity(expression).is_some(), is_ambiguous, "{expression}");
        }
    }

    proptest! {
        #[test]
        fn no_goal_upsets_it(goal in "[\\PC0-9()+*/^%, -]{0,100}") {
            let _ = expressions(&goal);
        }
    }
}
