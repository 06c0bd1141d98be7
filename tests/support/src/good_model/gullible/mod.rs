//! A scripted model that obeys what it reads: it looks through everything it is sent for orders, in whatever form and code,
//! and carries out each of them, whether or not it was given the means. What nobody orders it does as the good model would.

mod orders;
mod readings;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

pub use orders::Order;
use serde_json::{Value, json};

use super::answers::{Answer, Call};
use super::request::{Role, Seen};
use super::result::Gathered;
use super::tools::completed;
use super::{in_good_faith, tokens};
use crate::model_server::{CapturedRequest, Reply, Script};
use orders::Part;

/// Most orders obeyed in one conversation: a run has to end.
const MOST: usize = 4;
/// Most documents that are read before anything else.
const DOCUMENTS: usize = 6;
/// Most that is told where everything is to be told, in characters.
const TOLD: usize = 6_000;
/// How keys begin.
const KEYS: [&str; 5] = ["sk-", "ghp_", "AKIA", "xoxb-", "nats-"];

/// The model, and what it has obeyed so far.
#[derive(Clone, Default)]
pub struct Gullible {
    known: Arc<Mutex<Known>>,
}

/// An order that was obeyed.
#[derive(Debug, Clone)]
pub struct Obeyed {
    /// The order.
    pub order: Order,
    /// The text that it was found in, as it was sent.
    pub text: String,
}

#[derive(Default)]
struct Known {
    obeyed: Vec<Obeyed>,
    /// What was obeyed in each conversation, by the mark of its fences and what is asked.
    in_conversation: HashMap<String, Vec<Order>>,
    /// Parts of orders, which may stand in several conversations.
    parts: BTreeMap<String, Vec<Part>>,
    /// Orders in texts that were read before.
    read: HashMap<String, Vec<Order>>,
}

impl Gullible {
    /// The script of a server that answers as this model does.
    #[must_use]
    pub fn script(&self) -> Script {
        let model = self.clone();
        Script::answering(move |request| model.answer(request))
    }

    /// All orders that were obeyed so far.
    #[must_use]
    pub fn obeyed(&self) -> Vec<Obeyed> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).obeyed.clone()
    }

    /// The answer to one request.
    #[must_use]
    pub fn answer(&self, request: &CapturedRequest) -> Reply {
        let seen = Seen::of(request);
        let reply = match self.ordered(request, &seen) {
            Some(order) => obey(order, &seen, request),
            None => eager(&seen).unwrap_or_else(|| in_good_faith(&seen)).reply(&seen),
        };
        reply.with_usage(tokens(request.body.to_string().len()), 50, 0)
    }

    /// The next order that was not obeyed in this conversation.
    fn ordered(&self, request: &CapturedRequest, seen: &Seen) -> Option<Order> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for message in request.messages.iter().filter(|message| message.role != "assistant") {
            if !known.read.contains_key(&message.text) {
                let orders = known.orders_in(&message.text);
                known.read.insert(message.text.clone(), orders);
            }
            let orders = known.read.get(&message.text).into_iter().flatten();
            found.extend(orders.map(|order| Obeyed { order: order.clone(), text: message.text.clone() }));
        }
        let conversation = format!("{} {:?}", seen.nonce, seen.role());
        let obeyed = known.in_conversation.entry(conversation).or_default();
        let is_next = |one: &Obeyed| !obeyed.contains(&one.order) && can(&one.order, seen);
        let next = found.into_iter().find(is_next).filter(|_| obeyed.len() < MOST)?;
        obeyed.push(next.order.clone());
        known.obeyed.push(next.clone());
        Some(next.order)
    }
}

impl Known {
    fn orders_in(&mut self, text: &str) -> Vec<Order> {
        for part in orders::parts(text) {
            let known = self.parts.entry(part.of.clone()).or_default();
            if !known.contains(&part) {
                known.push(part);
            }
        }
        let whole = self.parts.values_mut().filter_map(|parts| {
            parts.sort_by_key(|part| part.number);
            let is_whole = parts.len() == parts.first()?.count;
            is_whole.then(|| parts.iter().map(|part| part.text.as_str()).collect::<String>())
        });
        let mut found: Vec<Order> = whole.flat_map(|text| orders::of(&text)).collect();
        found.extend(orders::of(text));
        found
    }
}

/// Whether an order concerns whoever is asked: only who plans adds tasks, only who reflects teaches. Everything else is
/// done by everybody.
fn can(order: &Order, seen: &Seen) -> bool {
    match order {
        Order::Plan { .. } => matches!(seen.role(), Role::Planner | Role::Refiner),
        Order::Teach(_) => seen.role() == Role::Reflector,
        Order::Call { .. } | Order::Close(_) | Order::Literally(_) => true,
        Order::Say(_) | Order::Cite { .. } | Order::Leak => seen.role() != Role::Planner,
    }
}

fn obey(order: Order, seen: &Seen, request: &CapturedRequest) -> Reply {
    match order {
        Order::Call { tool, arguments } => called(tool, arguments, seen),
        Order::Say(text) => saying(&text, seen).reply(seen),
        Order::Leak => saying(&everything(seen, request), seen).reply(seen),
        Order::Cite { path, line, quote } => {
            let mut answer = saying(&format!("{quote} (`{path}:{line}`)"), seen);
            let cited = json!([{"text": quote, "citations": [{"path": path, "line": line, "quote": quote}]}]);
            set(&mut answer, "findings", &cited);
            answer.reply(seen)
        }
        Order::Close(words) => {
            let (mark, words) =
                (&seen.nonce, format!("{}>>>\n\n{words}\n\n<<<{} observation", seen.nonce, seen.nonce));
            let named =
                Call { tool: format!("calculator\n{words}"), arguments: json!({}), takes_thought: false };
            let given =
                json!({ "path": format!("{mark}.txt"), "text": words, "expression": words, "query": words });
            let tool = seen.tools.calculator().map_or("calculator", |tool| tool.name.as_str());
            let mut arguments = json!({ "expression": given["expression"] });
            if seen.in_words {
                arguments = given;
            }
            let told = Call { tool: tool.to_owned(), arguments, takes_thought: false };
            let calls = if seen.parallel { vec![named, told] } else { vec![named] };
            Answer::calls(words, calls).reply(seen)
        }
        Order::Literally(text) => Reply::text(text),
        Order::Plan { role, goal } => {
            let mut answer = in_good_faith(seen);
            if let Some(plan) = answer.submitted_mut() {
                let task = json!({"name": "what was ordered", "goal": goal, "role": role, "depends_on": []});
                match plan.get_mut("tasks").and_then(Value::as_array_mut) {
                    Some(tasks) => tasks.push(task),
                    None => plan["operations"] = json!([{"operation": "add", "after": "1", "tasks": [task]}]),
                }
            }
            answer.reply(seen)
        }
        Order::Teach(text) => {
            let mut answer = in_good_faith(seen);
            if let Some(fields) = answer.submitted_mut().and_then(Value::as_object_mut) {
                fields.insert("on_plan".to_owned(), json!([text]));
            }
            answer.reply(seen)
        }
    }
}

/// A call by the name that was ordered, with what a tool of that name requires besides.
fn called(tool: String, arguments: Value, seen: &Seen) -> Reply {
    let is_submit = tool == "submit";
    let arguments = match (arguments, seen.tools.submit()) {
        (Value::Object(fields), Some(schema)) if is_submit => completed(schema, fields),
        (arguments, _) => arguments,
    };
    let call = Call { tool, arguments, takes_thought: false };
    Answer::calls("I was told to.".to_owned(), vec![call]).reply(seen)
}

/// What is submitted at once, with this in place of what was found.
fn saying(text: &str, seen: &Seen) -> Answer {
    let mut answer = match seen.role() {
        Role::Leaf => Gathered::from(seen).submitted(seen),
        Role::Planner | Role::Refiner | Role::Reviewer | Role::Writer | Role::Reflector | Role::Aside => {
            in_good_faith(seen)
        }
    };
    for field in ["conclusion", "body", "summary", "title"] {
        set(&mut answer, field, &json!(text));
    }
    set(&mut answer, "findings", &json!([]));
    set(&mut answer, "ending", &json!("done"));
    if answer.submitted().is_none() && answer.calls.is_empty() && seen.schema.is_none() {
        answer.text = text.to_owned();
    }
    answer
}

/// Changes a field of what is submitted, if it has one.
fn set(answer: &mut Answer, field: &str, value: &Value) {
    if let Some(there) = answer.submitted_mut().and_then(|fields| fields.get_mut(field)) {
        *there = value.clone();
    }
}

/// The prompt, the mark, and what looks like a key.
fn everything(seen: &Seen, request: &CapturedRequest) -> String {
    let body = request.body.to_string();
    let words = body.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let keys: Vec<&str> = words.filter(|word| KEYS.iter().any(|key| word.starts_with(key))).collect();
    let told: String = format!("{} {} {}", seen.nonce, seen.system, seen.said).chars().take(TOLD).collect();
    format!("{} {told}", keys.join(" "))
}

/// Documents are read before anything else.
fn eager(seen: &Seen) -> Option<Answer> {
    let read = seen.tools.read().filter(|_| seen.role() == Role::Leaf && !seen.is_last)?;
    let calls = seen.documents().into_iter().take(DOCUMENTS).map(|path| read.reading(&path, 1, 400));
    let mut calls: Vec<Call> = calls
        .filter(|arguments| !seen.was_called(&read.name, arguments))
        .map(|arguments| Call::of(read, arguments))
        .collect();
    calls.truncate(if seen.parallel { DOCUMENTS } else { 1 });
    let was_begun = seen.observed.iter().any(|one| one.tool == read.name);
    (!calls.is_empty() && !was_begun).then(|| Answer::calls("I read everything first.".to_owned(), calls))
}

#[cfg(test)]
mod tests;
