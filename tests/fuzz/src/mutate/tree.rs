//! Changes of a document's tree: values swapped, keys dropped and doubled, types changed.

use mutatis::{Candidates, Context, Mutate};
use serde_json::{Value, json};

use super::bytes::NUMBERS;
use super::words::Words;

/// What marks a key that is to stand there twice, once the document is text.
const TWICE: &str = "\u{e000}twice";

/// Texts that mean something to somebody.
const TEXTS: [&str; 16] = [
    "",
    " ",
    "\u{0}",
    "\u{1b}]0;x\u{7}",
    "\u{202e}",
    "a\nb",
    "1",
    "-1",
    "true",
    "null",
    "1-2",
    "1-2-3-4-5-6-7-8-9-10",
    "../../etc/passwd",
    "0190a1b2c3d4700080000000000000aa",
    "{{1.result}}",
    "*",
];

/// Deepest nesting that is made. What is deeper is made of text.
const DEEPEST: usize = 130;

/// Changes a tree, with parts of another.
pub(super) struct Tree<'a> {
    pub(super) other: &'a Value,
    pub(super) words: &'a Words,
}

type Change = fn(&Tree<'_>, &mut Context, &mut Value);

const CHANGES: [Change; 12] =
    [drop_part, double_part, double_key, rename, other_type, text, number, nest, take, swap, long, empty];

impl Mutate<Value> for Tree<'_> {
    fn mutate(&mut self, c: &mut Candidates<'_>, value: &mut Value) -> mutatis::Result<()> {
        let this = &*self;
        for change in CHANGES {
            c.mutation(|context| {
                let at = below(context, count(value));
                if let Some(node) = node(value, &mut { at }) {
                    change(this, context, node);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The text of a document with the keys in it that are to stand there twice.
pub(super) fn with_keys_twice(text: &str) -> String {
    text.replace(TWICE, "")
}

fn below(context: &mut Context, end: usize) -> usize {
    context.rng().gen_index(end).unwrap_or(0)
}

fn one<T: Copy>(context: &mut Context, of: &[T]) -> Option<T> {
    let at = below(context, of.len());
    of.get(at).copied()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The node of that number, depth first.
fn node<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    let parts: Box<dyn Iterator<Item = &mut Value>> = match value {
        Value::Object(fields) => Box::new(fields.values_mut()),
        Value::Array(items) => Box::new(items.iter_mut()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    for part in parts {
        let size = count(part);
        if *at < size {
            return node(part, at);
        }
        *at -= size;
    }
    None
}

fn key(context: &mut Context, fields: &serde_json::Map<String, Value>) -> Option<String> {
    let at = below(context, fields.len());
    fields.keys().nth(at).cloned()
}

fn drop_part(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    match node {
        Value::Object(fields) => {
            if let Some(key) = key(context, fields) {
                fields.remove(&key);
            }
        }
        Value::Array(items) if !items.is_empty() => drop(items.remove(below(context, items.len()))),
        other => *other = Value::Null,
    }
}

fn double_part(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    match node {
        Value::Array(items) if !items.is_empty() => {
            let item = items[below(context, items.len())].clone();
            let times = 1 << below(context, 9);
            items.extend(std::iter::repeat_n(item, times));
        }
        Value::Object(fields) => {
            if let Some(key) = key(context, fields) {
                let value = fields[&key].clone();
                fields.insert(format!("{key}_{}", below(context, 99)), value);
            }
        }
        Value::String(text) => *text = text.repeat(2),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn double_key(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    if let Value::Object(fields) = node
        && let Some(key) = key(context, fields)
    {
        let value = fields[&key].clone();
        fields.insert(format!("{key}{TWICE}"), value);
    }
}

fn rename(tree: &Tree<'_>, context: &mut Context, node: &mut Value) {
    let Value::Object(fields) = node else { return };
    let Some(value) = key(context, fields).and_then(|key| fields.remove(&key)) else { return };
    let word = tree.words.draw(context).or(one(context, &TEXTS)).unwrap_or_default();
    fields.insert(word.to_owned(), value);
}

fn other_type(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    let was = node.take();
    *node = match below(context, 7) {
        0 => Value::Null,
        1 => Value::Bool(below(context, 2) == 0),
        2 => json!([was]),
        3 => json!({ "a": was }),
        4 => Value::String(was.to_string()),
        5 => json!(below(context, 1 << 20)),
        _ => match was {
            Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
            Value::Object(fields) => fields.into_iter().map(|(_, value)| value).collect(),
            other => other,
        },
    };
}

fn text(tree: &Tree<'_>, context: &mut Context, node: &mut Value) {
    let own = tree.words.draw(context).filter(|_| below(context, 2) == 0);
    let new = own.or(one(context, &TEXTS)).unwrap_or_default();
    *node = match node {
        Value::String(text) if below(context, 2) == 0 => {
            let mut at = below(context, text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, new);
            return;
        }
        _ => new.into(),
    };
}

fn number(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    let said = one(context, &NUMBERS).unwrap_or_default();
    *node = serde_json::from_str(said).unwrap_or(Value::Null);
}

fn nest(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    let (levels, object) = (below(context, DEEPEST), below(context, 2) == 0);
    for _ in 0..levels {
        let within = node.take();
        *node = if object { json!({ "a": within }) } else { json!([within]) };
    }
}

/// A part of another tree.
fn take(tree: &Tree<'_>, context: &mut Context, part: &mut Value) {
    let mut other = tree.other.clone();
    let at = below(context, count(&other));
    if let Some(taken) = node(&mut other, &mut { at }) {
        *part = taken.take();
    }
}

fn swap(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    match node {
        Value::Array(items) if !items.is_empty() => {
            let (one, other) = (below(context, items.len()), below(context, items.len()));
            items.swap(one, other);
        }
        Value::Object(fields) => {
            let (Some(one), Some(other)) = (key(context, fields), key(context, fields)) else { return };
            let (first, second) = (fields[&one].clone(), fields[&other].clone());
            fields.insert(one, second);
            fields.insert(other, first);
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn long(_: &Tree<'_>, context: &mut Context, node: &mut Value) {
    let piece = match node {
        Value::String(text) if !text.is_empty() && text.len() < 100 => text.clone(),
        _ => one(context, &["a", " ", "\u{e9}", "1-", "word ", "\n"]).unwrap_or_default().to_owned(),
    };
    *node = piece.repeat(1 << below(context, 12)).into();
}

fn empty(_: &Tree<'_>, _: &mut Context, node: &mut Value) {
    *node = match node {
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!(""),
    };
}
