//! Mistakes as real models make them, and the dice they follow from.

use serde_json::{Value, json};

use super::answers::{Answer, Call};
use super::request::{Role, Seen};
use super::result::plain;

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// A line that the file does not have.
    LineTooHigh,
    /// Another line of the right file.
    WrongLine,
    /// Another file.
    WrongFile,
    /// A quote with another number in it.
    QuoteNumber,
    /// No thought beside a call.
    NoThought,
    /// A text in place of a call.
    Prose,
    /// A result that is not by its schema.
    WrongSchema,
    /// A tool that there is not.
    UnknownTool,
    /// A result that is done and says what it did not answer.
    DoneWithUnanswered,
    /// An operation on what there is not.
    RefusedOperation,
    /// An answer that stops in the middle.
    Stopped,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::LineTooHigh,
        Self::WrongLine,
        Self::WrongFile,
        Self::QuoteNumber,
        Self::NoThought,
        Self::Prose,
        Self::WrongSchema,
        Self::UnknownTool,
        Self::DoneWithUnanswered,
        Self::RefusedOperation,
        Self::Stopped,
    ];

    /// Whether it is one of what is cited.
    pub(super) const fn is_of_citation(self) -> bool {
        matches!(self, Self::LineTooHigh | Self::WrongLine | Self::WrongFile | Self::QuoteNumber)
    }

    /// Whether an answer can have it.
    pub(super) fn fits(self, seen: &Seen, answer: &Answer) -> bool {
        let is_leaf = seen.role() == Role::Leaf;
        let citation = || answer.submitted().and_then(|result| result.pointer("/findings/0/citations/0"));
        let quotes = || {
            let findings = answer.submitted().and_then(|result| result.get("findings")?.as_array());
            let quotes = findings
                .into_iter()
                .flatten()
                .filter_map(|finding| finding.pointer("/citations/0/quote")?.as_str());
            quotes.collect::<Vec<_>>()
        };
        match self {
            Self::LineTooHigh | Self::WrongLine => is_leaf && citation().is_some(),
            Self::WrongFile => is_leaf && citation().is_some() && seen.documents().len() > 1,
            Self::QuoteNumber => {
                is_leaf && quotes().iter().any(|quote| quote.contains(|c: char| c.is_ascii_digit()))
            }
            Self::NoThought => answer.calls.iter().any(|call| call.takes_thought),
            Self::Prose | Self::Stopped => !answer.calls.is_empty(),
            Self::WrongSchema => answer.submitted().is_some(),
            Self::UnknownTool => is_leaf && answer.submitted().is_none() && !answer.calls.is_empty(),
            Self::DoneWithUnanswered => {
                is_leaf && answer.submitted().is_some_and(|result| result.get("conclusion").is_some())
            }
            Self::RefusedOperation => {
                seen.role() == Role::Refiner || answer.calls.iter().any(|call| call.tool.contains("write"))
            }
        }
    }
}

/// The answer with the mistake in it; of several places, `at` says which.
pub(super) fn spoilt(mistake: Mistake, at: usize, seen: &Seen, mut answer: Answer) -> Answer {
    match mistake {
        Mistake::LineTooHigh => cite(&mut answer, at, |citation| citation["line"] = json!(9998)),
        Mistake::WrongLine => cite(&mut answer, at, |citation| {
            let line = citation.get("line").and_then(Value::as_u64).unwrap_or(1);
            citation["line"] = json!(if line > 9 { line - 7 } else { line + 7 });
        }),
        Mistake::WrongFile => cite(&mut answer, at, |citation| {
            let others = seen.documents().into_iter().find(|path| citation["path"] != json!(path));
            citation["path"] = json!(others);
        }),
        Mistake::QuoteNumber => misquote(&mut answer, at),
        Mistake::NoThought => answer.thought.clear(),
        Mistake::Prose => {
            let calls: Vec<String> =
                answer.calls.drain(..).map(|call| format!("I will call {} next.", call.tool)).collect();
            answer.text = format!("{} {}", answer.thought, calls.join(" "));
        }
        Mistake::WrongSchema => {
            if let Some(result) = answer.submitted_mut() {
                *result = json!({"answer": result.to_string()});
            }
        }
        Mistake::UnknownTool => {
            let arguments = json!({"url": "https://example.org"});
            answer.calls = vec![Call { tool: "browser_open".to_owned(), arguments, takes_thought: true }];
        }
        Mistake::DoneWithUnanswered => {
            if let Some(result) = answer.submitted_mut() {
                result["ending"] = json!("done");
                result["unanswered"] = json!(["whether it holds in other versions"]);
            }
        }
        Mistake::RefusedOperation => {
            for call in &mut answer.calls {
                if call.tool == "submit" {
                    call.arguments["operations"] =
                        json!([{"operation": "delete", "task": "9-9", "reason": "not needed"}]);
                } else if call.tool.contains("write") {
                    call.arguments["path"] = json!("../out.txt");
                }
            }
        }
        Mistake::Stopped => answer.is_cut = true,
    }
    answer
}

/// Changes a citation of a result, in the findings and wherever the result names it.
fn cite(answer: &mut Answer, at: usize, change: impl Fn(&mut Value)) {
    let Some(result) = answer.submitted_mut() else { return };
    let of = result.get("findings").and_then(Value::as_array).map_or(1, Vec::len).max(1);
    let Some(citation) = result.pointer_mut(&format!("/findings/{}/citations/0", at % of)) else { return };
    let before = place(citation);
    change(citation);
    let after = place(citation);
    for name in ["conclusion", "body"] {
        if let Some(text) = result
            .get(name)
            .and_then(Value::as_str)
            .map(|text| text.replace(&format!("{before}`"), &format!("{after}`")))
        {
            result[name] = json!(text);
        }
    }
}

/// Changes the numbers of a statement, with its quote and wherever the result says it.
fn misquote(answer: &mut Answer, at: usize) {
    let Some(result) = answer.submitted_mut() else { return };
    let quotes: Vec<String> = result
        .get("findings")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|finding| finding.pointer("/citations/0/quote")?.as_str().map(plain))
        .filter(|quote| quote.contains(|c: char| c.is_ascii_digit()))
        .collect();
    let Some(quote) = quotes.get(at % quotes.len().max(1)) else { return };
    let digit =
        |c: char| c.to_digit(10).and_then(|digit| char::from_digit((digit + 1) % 10, 10)).unwrap_or(c);
    let changed: String = quote.chars().map(digit).collect();
    // As they stand within a JSON text.
    let [quote, changed] =
        [json!(quote), json!(changed)].map(|text| text.to_string().trim_matches('"').to_owned());
    *result = serde_json::from_str(&result.to_string().replace(&quote, &changed)).unwrap_or_default();
}

fn place(citation: &Value) -> String {
    let path = citation.get("path").and_then(Value::as_str).unwrap_or_default();
    format!("{path}:{}", citation.get("line").and_then(Value::as_u64).unwrap_or_default())
}

/// Dice that fall by a seed and a text.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn of(seed: u64, text: &str) -> Self {
        // FNV-1a, mixed with the seed.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `sides`.
    pub(super) fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides.max(1)
    }
}
