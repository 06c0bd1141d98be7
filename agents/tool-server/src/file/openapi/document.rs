//! A document of OpenAPI: read within bounds, and what its references mean.

use std::cell::Cell;
use std::fmt;
use std::path::Path;

use muster_shared::text::bracket_depth;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::operation::Operation;
use crate::file::http::Method;

/// The largest document, in bytes.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// Most values in it, those that are repeated by aliases counted each time.
const MOST_VALUES: usize = 400_000;
/// Deepest nesting.
const MOST_DEPTH: usize = 64;
/// Most references that lead from one to the next.
const MOST_HOPS: usize = 8;

/// A document.
pub(super) struct Document(Value);

impl Document {
    /// Reads a document in JSON or YAML.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = muster_corpus::input::text(path, MOST_BYTES)?;
        Self::parse(&text, path.extension().is_some_and(|ending| ending == "json"))
    }

    pub(super) fn parse(text: &str, is_json: bool) -> Result<Self, String> {
        if text.len() as u64 > MOST_BYTES {
            return Err(format!("it has more than {} MiB", MOST_BYTES / 1024 / 1024));
        }
        let left = Cell::new(MOST_VALUES);
        let bounded = Bounded { left: &left, depth: MOST_DEPTH };
        let read = match is_json {
            true if bracket_depth(text) > MOST_DEPTH => Err(too_deep()),
            true => {
                let mut reader = serde_json::Deserializer::from_str(text);
                let read = bounded.deserialize(&mut reader).and_then(|read| reader.end().map(|()| read));
                read.map_err(|error| error.to_string())
            }
            false => {
                let reader = serde_yaml_ng::Deserializer::from_str(text);
                bounded.deserialize(reader).map_err(|error| error.to_string())
            }
        };
        let document = Self(read?);
        match document.0["openapi"].as_str() {
            Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(document),
            Some(version) => Err(format!("it is of OpenAPI {version:?}; 3.0 and 3.1 are read")),
            None => Err("it does not say `openapi`, its version".to_owned()),
        }
    }

    /// The operations in it, by path and method.
    pub(super) fn operations(&self) -> Result<Vec<Operation<'_>>, String> {
        let paths = self.0["paths"].as_object().ok_or_else(|| "it has no `paths`".to_owned())?;
        let methods = [
            ("get", Method::Get),
            ("head", Method::Head),
            ("post", Method::Post),
            ("put", Method::Put),
            ("patch", Method::Patch),
            ("delete", Method::Delete),
        ];
        let mut all = Vec::new();
        for (path, item) in paths {
            for (word, method) in methods {
                if let Some(written) = item.get(word).and_then(Value::as_object) {
                    all.push(Operation::new(path, method, item, written));
                }
            }
        }
        Ok(all)
    }

    /// What a value is, where it may be a reference to another part of the document.
    pub(super) fn resolved<'a>(&'a self, value: &'a Value) -> Result<&'a Value, String> {
        let mut found = value;
        for _ in 0..MOST_HOPS {
            match found.get("$ref") {
                None => return Ok(found),
                Some(Value::String(to)) => found = self.at(to)?,
                Some(_) => return Err("a `$ref` is no text".to_owned()),
            }
        }
        Err("its references lead from one to the next and never end".to_owned())
    }

    /// What a reference means. None leads out of the document.
    pub(super) fn at(&self, to: &str) -> Result<&Value, String> {
        let shown = || muster_shared::text::beginning(to, 120);
        let pointer = to.strip_prefix('#').ok_or_else(|| {
            format!("the reference {:?} leads out of the document, which is not followed", shown())
        })?;
        self.0.pointer(pointer).ok_or_else(|| format!("the reference {:?} leads nowhere", shown()))
    }
}

fn too_deep() -> String {
    format!("it is nested more than {MOST_DEPTH} levels deep")
}

/// Reads a value, so many in all and so many levels deep: a few bytes of aliases may stand for any number of values.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    left: &'a Cell<usize>,
    depth: usize,
}

impl Bounded<'_> {
    fn take<E: Error>(self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| E::custom(format!("it has more than {MOST_VALUES} values")))?);
        Ok(())
    }

    fn below<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| E::custom(too_deep()))?;
        Ok(Self { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.take()?;
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let (below, mut all) = (self.below()?, Vec::new());
        while let Some(one) = seq.next_element_seed(below)? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let (below, mut fields) = (self.below()?, Map::new());
        // YAML takes numbers for names, such as those of statuses.
        while let Some(name) = map.next_key_seed(below)? {
            let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
            fields.insert(name, map.next_value_seed(below)?);
        }
        Ok(Value::Object(fields))
    }
}
