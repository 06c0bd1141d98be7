//! Small rules about texts that models and people write.

use muster_agents::tools::calculator::calculate;
use muster_shared::conflict::read_value;
use muster_shared::ids::{AgentId, Generation, Queue, Role, TaskId, TaskIndex};
use muster_shared::plan::reference;
use muster_shared::{span, text};

use super::{ensure, text_of};
use crate::{Seen, Shape, Target};

/// Sums.
pub(super) const CALCULATOR: Target = Target::new("calculator", Shape::Text, |input| {
    let text = text_of(input);
    match calculate(&text) {
        Ok(value) => {
            let number: Option<f64> = value.value.parse().ok();
            ensure(number.is_some_and(f64::is_finite), || format!("{:?} is no number", value.value))?;
            ensure(value.value.len() <= 400, || format!("{} digits", value.value.len()))?;
            // Written in another way it may be: `1.5e15` is 1500000000000000.
            let again = calculate(&value.value)
                .map_err(|error| format!("{:?} is not read again: {error}", value.value))?;
            let near = number
                .zip(again.value.parse::<f64>().ok())
                .is_some_and(|(one, other)| (one - other).abs() <= one.abs() * 1e-12);
            ensure(near, || format!("{:?} is read again as {:?}", value.value, again.value))?;
            Ok(Seen::Read)
        }
        Err(error) => Ok(Seen::refused([error])),
    }
})
.with_words(&[
    "**",
    "sqrt(",
    "round(",
    "min(",
    "max(",
    "abs(",
    "log(",
    "exp(",
    "//",
    "pi",
    "e",
    "1e308",
    "1e-308",
    "0x",
    "170141183460469231731687303715884105727",
    "99999999999999999999",
    "!",
    "=",
    "\u{d7}",
    "\u{f7}",
    "\u{2212}",
    "1,000",
    "15 % of",
    "floor(",
    "factorial(",
    "tan(",
    "gcd(",
]);

/// Cuts, numbers, days, spans, references, indices.
pub(super) const RULES: Target = Target::new("text_rules", Shape::Text, rules)
    .with_fixtures(&["agents/tests/corpus/cited/garden.txt"])
    .with_words(&[
        "{{context.a}}",
        "10m",
        "2024-02-30",
        "May 5, 2020",
        "1.000,5",
        "12 km/h",
        "5 %",
        "between 3 and 5",
        "at least 3 items",
        "a table",
        "under 100 words",
        "compare",
        "?",
        "1. ",
        "\n- ",
        "dozen",
    ]);

fn rules(input: &[u8]) -> Result<Seen, String> {
    let text = text_of(input);
    for most in [0, 1, 7, 100] {
        let cut = text::within_bytes(&text, most);
        ensure(cut.len() <= most + 3, || format!("{} bytes of {most}", cut.len()))?;
        for cut in [
            text::beginning(&text, most),
            text::one_line(&text, most),
            text::first_line(&text, most),
            text::at_word(&text, most),
        ] {
            ensure(cut.chars().count() <= most + 3, || {
                format!("{} characters of {most}", cut.chars().count())
            })?;
        }
    }
    let numerals = text::numerals(&text);
    ensure(numerals.iter().all(|numeral| numeral.value().is_none_or(f64::is_finite)), || {
        "an endless number".to_owned()
    })?;
    let _read = (text::date::read(&text), text::unit::read(&text), read_value(&text, "km"));
    if let Some(read) = span::parse(&text) {
        let shown = span::text(read);
        ensure(span::parse(&shown) == Some(read), || format!("{read:?} is written as {shown:?}"))?;
    }
    for (range, _) in reference::find(&text) {
        ensure(text.get(range.clone()).is_some(), || format!("a reference at {range:?}"))?;
    }
    for (range, _) in reference::find_context(&text) {
        ensure(text.get(range.clone()).is_some(), || format!("a value at {range:?}"))?;
    }
    let _words = (
        reference::without_malformed_context(&text),
        reference::in_words(&text, |_| Some("name".to_owned())),
    );
    ids(&text)?;
    Ok(Seen::Read)
}

/// What is read as a name of something is written as it was read.
fn ids(text: &str) -> Result<(), String> {
    fn same<T: std::str::FromStr + ToString + PartialEq>(text: &str, what: &str) -> Result<(), String> {
        let Ok(read) = text.parse::<T>() else { return Ok(()) };
        let written = read.to_string();
        ensure(written.parse::<T>().is_ok_and(|again| again == read), || {
            format!("the {what} is written as {written:?}")
        })
    }
    for word in text.split_whitespace().take(20) {
        same::<TaskIndex>(word, "index")?;
        same::<TaskId>(word, "task")?;
        same::<Role>(word, "role")?;
        same::<Queue>(word, "queue")?;
        same::<AgentId>(word, "agent")?;
        same::<Generation>(word, "generation")?;
    }
    Ok(())
}
