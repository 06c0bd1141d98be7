//! A scripted weak model, of seven billion weights or fewer: it knows no native tools, writes one action as JSON in an
//! answer, has a short context, and a set share of its answers goes wrong as those of such models do, again and again,
//! by a seed. What it means to do is what the good model would.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::answers::{Answer, written};
use super::fault::{self, Dice, Mistake};
use super::request::{Role, Seen};
use super::{in_good_faith, tokens};
use crate::model_server::{CapturedRequest, Fault, Reply, Script};

/// Tokens that a message takes beside its text.
const FRAME: u64 = 8;

/// What its server does with tools that a request declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeTools {
    /// It refuses the request.
    Refused,
    /// It leaves them out without a word.
    Ignored,
}

/// How the model is.
#[derive(Debug, Clone, Copy)]
pub struct Nature {
    /// Share of the answers that go wrong, in percent.
    pub slips: u8,
    /// What they follow from.
    pub seed: u64,
    /// Tokens that a request with its answer may have: its server refuses longer ones.
    pub context: u64,
    /// What its server does with declared tools.
    pub tools: NativeTools,
}

impl Default for Nature {
    fn default() -> Self {
        Self { slips: 0, seed: 0, context: 8_192, tools: NativeTools::Refused }
    }
}

/// How an answer goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slip {
    /// A comma before a closing bracket.
    TrailingComma,
    /// Single quotes around names and texts.
    SingleQuotes,
    /// Words before and after the JSON.
    ProseAround,
    /// A code fence around it, with a word before.
    Fenced,
    /// A name that is almost that of a tool.
    NearName,
    /// An argument that is missing.
    MissingArgument,
    /// A number or list written as text.
    NumberAsText,
    /// The call before once more.
    Repeats,
    /// The limit of an answer ends it.
    CutOff,
    /// A tool that there is not.
    MadeUp,
    /// The example of the prompt.
    EchoesExample,
    /// A word that all is done, in place of the result.
    ForgetsToSubmit,
    /// Words that say what is to be done, in place of doing it.
    PlainText,
    /// A line that a document does not have.
    FalseLine,
    /// A number that does not stand where it is cited.
    FalseNumber,
}

impl Slip {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::TrailingComma,
        Self::SingleQuotes,
        Self::ProseAround,
        Self::Fenced,
        Self::NearName,
        Self::MissingArgument,
        Self::NumberAsText,
        Self::Repeats,
        Self::CutOff,
        Self::MadeUp,
        Self::EchoesExample,
        Self::ForgetsToSubmit,
        Self::PlainText,
        Self::FalseLine,
        Self::FalseNumber,
    ];

    /// Whether an answer can go wrong so.
    fn fits(self, seen: &Seen, answer: &Answer) -> bool {
        let is_leaf = seen.role() == Role::Leaf;
        let call = answer.calls.first();
        match self {
            Self::TrailingComma | Self::Fenced | Self::ProseAround | Self::CutOff => true,
            Self::SingleQuotes => !answer.in_words().contains(['\'', '\\']),
            Self::NearName | Self::MadeUp | Self::PlainText => is_leaf && call.is_some(),
            Self::EchoesExample => call.is_some() && example(&seen.system).is_some(),
            Self::MissingArgument | Self::NumberAsText => {
                call.is_some_and(|call| changed(self, &call.arguments) != call.arguments)
            }
            Self::Repeats => is_leaf && !seen.observed.is_empty(),
            Self::ForgetsToSubmit => is_leaf && answer.submitted().is_some(),
            Self::FalseLine => Mistake::LineTooHigh.fits(seen, answer),
            Self::FalseNumber => Mistake::QuoteNumber.fits(seen, answer),
        }
    }
}

/// What happened so far.
#[derive(Debug, Clone, Default)]
pub struct Happened {
    /// Slips by kind.
    pub slips: BTreeMap<Slip, usize>,
    /// Answers given.
    pub answers: usize,
    /// Requests that were refused for their length.
    pub too_long: usize,
    /// Requests that were refused for declaring tools.
    pub with_tools: usize,
    /// The longest request, in tokens.
    pub longest: u64,
    /// Answers by what they were about.
    about: BTreeMap<String, usize>,
}

/// The model, and what happened so far.
#[derive(Clone)]
pub struct WeakModel {
    nature: Nature,
    happened: Arc<Mutex<Happened>>,
}

impl WeakModel {
    /// A model of this nature.
    #[must_use]
    pub fn new(nature: Nature) -> Self {
        Self { nature, happened: Arc::default() }
    }

    /// The script of a server that answers as this model does.
    #[must_use]
    pub fn script(&self) -> Script {
        let model = self.clone();
        Script::answering(move |request| model.answer(request))
    }

    /// What happened so far.
    #[must_use]
    pub fn happened(&self) -> Happened {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer to one request.
    #[must_use]
    pub fn answer(&self, request: &CapturedRequest) -> Reply {
        let mut happened = self.happened.lock().unwrap_or_else(PoisonError::into_inner);
        if declares(request) && self.nature.tools == NativeTools::Refused {
            happened.with_tools += 1;
            return refused("invalid_request_error", "this model does not support tools");
        }
        let size = size(request);
        happened.longest = happened.longest.max(size);
        let most = request.body.get("max_tokens").and_then(Value::as_u64).unwrap_or(0);
        if size + most > self.nature.context {
            happened.too_long += 1;
            let why = format!(
                "This model's maximum context length is {} tokens. However, your messages resulted in {size} tokens and \
                 {most} were asked for.",
                self.nature.context
            );
            return refused("context_length_exceeded", &why);
        }
        let seen = Seen::of(&without_tools(request));
        let good = in_good_faith(&seen);
        let chosen = self.slip(&mut happened, &seen, &good);
        let reply = match chosen {
            Some(slip) => slipped(slip, &seen, &good),
            None => written(&good.in_words(), false),
        };
        happened.answers += 1;
        reply.with_usage(size, tokens(good.bytes()), 0)
    }

    /// How this answer goes wrong, if it is to and can.
    fn slip(&self, happened: &mut Happened, seen: &Seen, good: &Answer) -> Option<Slip> {
        let about = seen.about();
        let nth = happened.about.entry(about.clone()).or_default();
        *nth += 1;
        let mut dice = Dice::of(self.nature.seed, &format!("{about} {nth}"));
        if dice.throw(100) >= u64::from(self.nature.slips) {
            return None;
        }
        let possible: Vec<Slip> = Slip::ALL.into_iter().filter(|slip| slip.fits(seen, good)).collect();
        let which = dice.throw(possible.len().max(1) as u64);
        let chosen = *possible.get(usize::try_from(which).ok()?)?;
        *happened.slips.entry(chosen).or_default() += 1;
        Some(chosen)
    }
}

fn declares(request: &CapturedRequest) -> bool {
    request.body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty())
}

/// The request as the model gets it.
fn without_tools(request: &CapturedRequest) -> CapturedRequest {
    let mut request = request.clone();
    if let Some(body) = request.body.as_object_mut() {
        body.remove("tools");
    }
    request
}

/// Tokens of a request.
fn size(request: &CapturedRequest) -> u64 {
    request.messages.iter().map(|message| tokens(message.text.len()) + FRAME).sum()
}

fn refused(code: &str, message: &str) -> Reply {
    let body = json!({"error": {"type": "invalid_request_error", "code": code, "message": message}});
    Reply::fault(Fault::Status { code: 400, retry_after: None, body: Some(body.to_string()) })
}

/// The answer, gone wrong.
pub(super) fn slipped(slip: Slip, seen: &Seen, good: &Answer) -> Reply {
    let text = good.in_words();
    let called = |name: &str, arguments: &Value| {
        json!({"thought": good.thought, "action": name, "arguments": arguments}).to_string()
    };
    let tool = good.calls.first().map_or("submit", |call| call.tool.as_str());
    let nothing = Value::Object(Map::new());
    let arguments = good.calls.first().map_or(&nothing, |call| &call.arguments);
    let text = match slip {
        Slip::TrailingComma => text.replace('}', ",}"),
        Slip::SingleQuotes => text.replace('"', "'"),
        Slip::ProseAround => {
            format!("Sure! Here is my answer.\n\n{text}\n\nLet me know if I can help further.")
        }
        Slip::Fenced => format!("Here you go:\n```json\n{text}\n```"),
        Slip::NearName => called(&near(tool), arguments),
        Slip::MissingArgument | Slip::NumberAsText => called(tool, &changed(slip, arguments)),
        Slip::Repeats => match seen.observed.last() {
            Some(last) => called(&last.tool, &last.arguments),
            None => text,
        },
        Slip::CutOff => return written(&text, true),
        Slip::MadeUp => called("web_search", &json!({"query": seen.task()})),
        Slip::EchoesExample => example(&seen.system).unwrap_or_default().to_owned(),
        Slip::ForgetsToSubmit => "The task is complete.".to_owned(),
        Slip::PlainText => format!("I will use {tool} next."),
        Slip::FalseLine => fault::spoilt(Mistake::LineTooHigh, 0, seen, good.clone()).in_words(),
        Slip::FalseNumber => fault::spoilt(Mistake::QuoteNumber, 0, seen, good.clone()).in_words(),
    };
    Reply::text(text)
}

/// A name with two of its letters missing or another ending, such as models make of it.
fn near(name: &str) -> String {
    match name.strip_suffix("or") {
        Some(stem) => format!("{stem}e"),
        None => format!("{name}_tool"),
    }
}

/// Arguments without the first, or with numbers and lists as text.
fn changed(slip: Slip, arguments: &Value) -> Value {
    let Some(fields) = arguments.as_object() else { return arguments.clone() };
    let mut fields = fields.clone();
    if slip == Slip::MissingArgument {
        if let Some(first) = fields.keys().next().cloned() {
            fields.remove(&first);
        }
        return Value::Object(fields);
    }
    for value in fields.values_mut() {
        if value.is_number() || value.is_array() {
            *value = json!(value.to_string());
        }
    }
    Value::Object(fields)
}

/// The example that the prompt gives of an action.
fn example(system: &str) -> Option<&str> {
    system.lines().find(|line| line.starts_with('{') && line.contains("\"action\""))
}

#[cfg(test)]
#[path = "weak_tests.rs"]
mod tests;
