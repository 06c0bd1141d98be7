//! Values with places that are filled in: `{{args.name}}`, `{{steps.find.data.hits.0.path}}`. Pure.
//!
//! A text that is one place and nothing else becomes what stands there, whatever its type; in a longer text it is written
//! out. A `?` at the end (`{{args.limit?}}`) lets it be missing: then it is left out of the list or table it stands in.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Largest value that one template may come to, in bytes of JSON.
pub(crate) const MOST_FILLED: usize = 1024 * 1024;
/// Most keys of one place.
const MOST_KEYS: usize = 16;

/// A value with places in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Template {
    /// As it is.
    Plain(Value),
    /// What stands at a place.
    Whole(Place),
    /// A text with places in it.
    Text(Vec<Piece>),
    /// A list.
    List(Vec<Template>),
    /// A table.
    Table(Vec<(String, Template)>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// As it is.
    Text(String),
    /// What stands at a place, written out.
    Place(Place),
}

/// Where a value is found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    root: Root,
    keys: Vec<String>,
    pub(crate) optional: bool,
    written: String,
}

/// Where a place begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Root {
    /// The arguments of the call.
    Args,
    /// What came of a step.
    Step(String),
    /// The element that a loop is at.
    Item,
    /// How many elements or calls came before.
    Index,
    /// What came of the call itself.
    Result,
}

/// What places are looked up in.
pub(crate) trait Scope {
    /// The value of a root; nothing where there is none.
    fn root(&self, root: &Root) -> Option<&Value>;
}

/// Why a template cannot be filled in.
pub(crate) type Unfilled = String;

impl Template {
    /// Reads the places in a value.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => return read_text(text),
            Value::Array(all) => Self::List(all.iter().map(Self::read).collect::<Result<_, _>>()?),
            Value::Object(fields) => {
                let read = |(name, value): (&String, &Value)| Ok((name.clone(), Self::read(value)?));
                Self::Table(fields.iter().map(read).collect::<Result<_, String>>()?)
            }
            _ => Self::Plain(value.clone()),
        })
    }

    /// The places in it.
    pub(crate) fn places(&self) -> Vec<&Place> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Whole(place) => vec![place],
            Self::Text(pieces) => {
                let places = pieces.iter().filter_map(|piece| match piece {
                    Piece::Place(place) => Some(place),
                    Piece::Text(_) => None,
                });
                places.collect()
            }
            Self::List(all) => all.iter().flat_map(Self::places).collect(),
            Self::Table(fields) => fields.iter().flat_map(|(_, value)| value.places()).collect(),
        }
    }

    /// The value with its places filled in; nothing where it is a place that may be missing, and is.
    pub(crate) fn fill(&self, scope: &dyn Scope) -> Result<Option<Value>, Unfilled> {
        self.fill_within(scope, &mut { MOST_FILLED })
    }

    fn fill_within(&self, scope: &dyn Scope, left: &mut usize) -> Result<Option<Value>, Unfilled> {
        let present = |all: &[Self], left: &mut usize| {
            let each = all.iter().map(|one| one.fill_within(scope, left));
            each.collect::<Result<Vec<_>, _>>()
        };
        Ok(Some(match self {
            Self::Plain(value) => taken(value, left)?,
            Self::Whole(place) => match place.find(scope)? {
                Some(found) => taken(found, left)?,
                None => return Ok(None),
            },
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    let part = match piece {
                        Piece::Text(text) => text.clone(),
                        Piece::Place(place) => place.find(scope)?.map_or_else(String::new, in_words),
                    };
                    take(part.len(), left)?;
                    text.push_str(&part);
                }
                Value::String(text)
            }
            Self::List(all) => Value::Array(present(all, left)?.into_iter().flatten().collect()),
            Self::Table(fields) => {
                let mut filled = Map::new();
                for (name, value) in fields {
                    take(name.len(), left)?;
                    if let Some(value) = value.fill_within(scope, left)? {
                        filled.insert(name.clone(), value);
                    }
                }
                Value::Object(filled)
            }
        }))
    }
}

fn taken(value: &Value, left: &mut usize) -> Result<Value, Unfilled> {
    take(size(value), left)?;
    Ok(value.clone())
}

fn take(bytes: usize, left: &mut usize) -> Result<(), Unfilled> {
    *left = left
        .checked_sub(bytes)
        .ok_or_else(|| format!("what is filled in has more than {} KiB", MOST_FILLED / 1024))?;
    Ok(())
}

/// Bytes of the JSON form.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::Array(all) => all.iter().map(|one| size(one) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, one)| name.len() + 4 + size(one)).sum::<usize>() + 2
        }
    }
}

/// How deep lists and tables stand in each other.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(all) => 1 + all.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A text as it is; anything else as JSON.
pub(crate) fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    }
}

fn read_text(text: &str) -> Result<Template, String> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, behind) = after
            .split_once("}}")
            .ok_or_else(|| "`{{` without `}}`: a place is written {{args.name}}".to_owned())?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(Piece::Place(Place::read(inside)?));
        rest = behind;
    }
    if pieces.is_empty() {
        return Ok(Template::Plain(Value::String(text.to_owned())));
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(match pieces.as_slice() {
        [Piece::Place(place)] => Template::Whole(place.clone()),
        _ => Template::Text(pieces),
    })
}

impl Place {
    fn read(inside: &str) -> Result<Self, String> {
        let (path, optional) = match inside.trim().strip_suffix('?') {
            Some(path) => (path, true),
            None => (inside.trim(), false),
        };
        let is_key = |key: &str| {
            !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        let mut keys: Vec<String> = path.split('.').map(str::to_owned).collect();
        let wrong = |what: &str| {
            Err(format!("{{{{{}}}}} is no place: {what}", muster_shared::text::beginning(inside, 80)))
        };
        if !keys.iter().all(|key| is_key(key)) || keys.len() > MOST_KEYS {
            return wrong("it is names and numbers with dots between them, 16 at most");
        }
        let root = match keys.remove(0).as_str() {
            "args" => Root::Args,
            "item" => Root::Item,
            "index" if keys.is_empty() => Root::Index,
            "result" => Root::Result,
            "steps" if !keys.is_empty() => Root::Step(keys.remove(0)),
            _ => return wrong("it begins with `args`, `steps.NAME`, `item`, `index` or `result`"),
        };
        let part = keys.first().map(String::as_str);
        let has_parts = matches!(root, Root::Step(_) | Root::Result);
        if has_parts && !matches!(part, Some("status" | "content" | "data")) {
            return wrong("what came of a step is its `status`, `content` or `data`");
        }
        Ok(Self { root, keys, optional, written: path.to_owned() })
    }

    /// Where it begins.
    pub(crate) const fn root(&self) -> &Root {
        &self.root
    }

    /// Its first key after the root.
    pub(crate) fn first(&self) -> Option<&str> {
        self.keys.first().map(String::as_str)
    }

    /// What stands there; nothing where it may be missing, and is.
    fn find<'a>(&self, scope: &'a dyn Scope) -> Result<Option<&'a Value>, Unfilled> {
        match self.look(scope) {
            Some(found) => Ok(Some(found)),
            None if self.optional => Ok(None),
            None => Err(format!("there is nothing at {}", self.written)),
        }
    }

    /// What stands there.
    pub(crate) fn look<'a>(&self, scope: &'a dyn Scope) -> Option<&'a Value> {
        self.keys.iter().try_fold(scope.root(&self.root)?, |found, key| match found {
            Value::Object(fields) => fields.get(key),
            Value::Array(all) => all.get(key.parse::<usize>().ok()?),
            _ => None,
        })
    }
}

/// The steps that these places are about.
pub(crate) fn steps_of<'a>(places: impl IntoIterator<Item = &'a Place>) -> BTreeSet<&'a str> {
    let step = |place: &'a Place| match &place.root {
        Root::Step(name) => Some(name.as_str()),
        _ => None,
    };
    places.into_iter().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Of(Value);

    impl Scope for Of {
        fn root(&self, root: &Root) -> Option<&Value> {
            match root {
                Root::Args => self.0.get("args"),
                Root::Step(name) => self.0.get("steps")?.get(name),
                Root::Item => self.0.get("item"),
                Root::Index => self.0.get("index"),
                Root::Result => self.0.get("result"),
            }
        }
    }

    fn filled(template: &Value) -> Result<Option<Value>, String> {
        let scope = Of(json!({
            "args": { "n": 3, "list": ["a", { "x": null }], "text": "t" },
            "steps": { "find": { "status": "done", "content": "c", "data": { "hits": [1, 2] } } },
            "item": "i", "index": 7,
        }));
        Template::read(template)?.fill(&scope)
    }

    #[test]
    fn a_whole_value_keeps_its_type_and_in_a_text_it_is_written_out() {
        let table = [
            (json!("{{args.n}}"), json!(3)),
            (json!("n is {{ args.n }}!"), json!("n is 3!")),
            (json!("{{args.list.1.x}}"), json!(null)),
            (json!("{{steps.find.data.hits}}"), json!([1, 2])),
            (json!("{{steps.find.data}}{{item}}"), json!("{\"hits\":[1,2]}i")),
            (json!({ "a": "{{args.none?}}", "b": ["{{args.none?}}", "{{index}}"] }), json!({ "b": [7] })),
            (json!("<{{args.none?}}>"), json!("<>")),
            (json!("plain }} text { x }"), json!("plain }} text { x }")),
        ];
        for (template, wanted) in table {
            assert_eq!(filled(&template), Ok(Some(wanted)), "{template}");
        }
        assert_eq!(filled(&json!("{{args.none?}}")), Ok(None));
        for (template, words) in [
            (json!("{{args.none}}"), "nothing at args.none"),
            (json!("{{args.text.0}}"), "nothing at"),
            (json!("{{args.list.2}}"), "nothing at"),
            (json!("{{steps.other.data}}"), "nothing at"),
            (json!("{{args"), "without"),
            (json!("{{}}"), "no place"),
            (json!("{{steps.find}}"), "`status`"),
            (json!("{{steps.find.hits}}"), "`status`"),
            (json!("{{env.HOME}}"), "begins with"),
            (json!("{{args..n}}"), "no place"),
            (json!("{{index.x}}"), "begins with"),
        ] {
            let why = filled(&template).unwrap_err();
            assert!(why.contains(words), "{template}: {why}");
        }
    }

    #[test]
    fn a_template_that_would_grow_beyond_all_bounds_is_not_filled_in() {
        let scope = Of(json!({ "args": { "long": "x".repeat(100_000) } }));
        let many = Value::String("{{args.long}}".repeat(20));
        let why = Template::read(&many).unwrap().fill(&scope).unwrap_err();
        assert!(why.contains("1024 KiB"), "{why}");
        let list = Value::Array(vec![json!("{{args.long}}"); 20]);
        assert!(Template::read(&list).unwrap().fill(&scope).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "[{}a-z.?0-9 ]{0,60}") {
            if let Ok(template) = Template::read(&Value::String(text)) {
                let _ = template.fill(&Of(json!({})));
            }
        }
    }
}
