//! One operation as a tool.

use std::collections::BTreeMap;

use muster_shared::text::beginning;
use muster_shared::wire::tool_server::MOST_DESCRIPTION;
use serde_json::{Map, Value, json};

use super::OpenApi;
use super::document::Document;
use super::schema::Schemas;
use crate::file::http::{Http, Method, Places};
use crate::file::{Does, Parameters, ToolFile, schema};
use muster_tools::patterns::is_name;

/// The argument that holds the body of a request.
const BODY: &str = "body";
/// Most characters of what an operation says of itself.
const MOST_WORDS: usize = 1_500;
/// Most arguments of one operation.
const MOST_ARGUMENTS: usize = 64;

/// One operation of a document.
pub(super) struct Operation<'a> {
    /// By which a tool file chooses it.
    pub(super) name: String,
    path: &'a str,
    method: Method,
    /// What holds for all operations of its path.
    item: &'a Value,
    written: &'a Map<String, Value>,
}

/// A parameter as it is written.
struct Parameter<'a> {
    name: &'a str,
    place: Place,
    required: bool,
    written: &'a Value,
}

/// Where a parameter goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl<'a> Operation<'a> {
    pub(super) fn new(
        path: &'a str,
        method: Method,
        item: &'a Value,
        written: &'a Map<String, Value>,
    ) -> Self {
        let named = written.get("operationId").and_then(Value::as_str).map(str::to_owned);
        // One without a name is called by what it is.
        let name = named.unwrap_or_else(|| format!("{}{path}", method.as_str().to_lowercase()));
        Self { name, path, method, item, written }
    }

    /// The tool that calls it.
    pub(super) fn tool(
        &self,
        openapi: &OpenApi,
        file: &ToolFile,
        document: &Document,
    ) -> Result<ToolFile, String> {
        let name = format!("{}_{}", file.name, plain(&self.name));
        if !is_name(&name) {
            return Err(format!("{:?} is no name for a tool, or too long", beginning(&name, 80)));
        }
        let (mut schemas, mut places) = (Schemas::of(document), Places::default());
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for parameter in self.parameters(document)? {
            match parameter.place {
                Place::Path => {}
                Place::Query => places.query.push(parameter.name.to_owned()),
                Place::Header => places.headers.push(parameter.name.to_owned()),
                Place::Cookie if parameter.required => {
                    return Err(format!("its parameter `{}` is a cookie, which is not sent", parameter.name));
                }
                Place::Cookie => continue,
            }
            if parameter.required || parameter.place == Place::Path {
                required.push(Value::from(parameter.name));
            }
            let schema = parameter.schema(&mut schemas)?;
            if properties.insert(parameter.name.to_owned(), schema).is_some() {
                return Err(format!("two of its parameters are called `{}`", parameter.name));
            }
        }
        if let Some((schema, is_required)) = self.body(document, &mut schemas)? {
            if properties.insert(BODY.to_owned(), schema).is_some() {
                return Err(format!("one of its parameters is called `{BODY}`, as what is sent"));
            }
            if is_required {
                required.push(Value::from(BODY));
            }
            places.body = Some(BODY.to_owned());
        }
        if properties.len() > MOST_ARGUMENTS {
            return Err(format!("it has more than {MOST_ARGUMENTS} parameters"));
        }
        let is_unknown = |name: &&str| !properties.contains_key(*name);
        if let Some(name) = in_braces(self.path)?.into_iter().find(is_unknown) {
            return Err(format!("nothing says what `{name}` in its path is"));
        }
        let parameters = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        let parameters =
            schema::check(parameters).map_err(|why| format!("its schema cannot be used: {why}"))?;
        let url = format!("{}{}", openapi.base, self.path);
        let pure = matches!(self.method, Method::Get | Method::Head);
        let http = Http::new(&url, self.method, openapi.headers.clone(), Vec::new())?.placing(places);
        Ok(ToolFile {
            name,
            description: self.description(file),
            parameters: Parameters::Here(parameters),
            pure,
            cache: file.cache.clone().filter(|_| pure),
            does: Does::Http(http),
            ..file.clone()
        })
    }

    /// What it does, in the words of the document, and of what it is a part, in those of the file.
    fn description(&self, file: &ToolFile) -> String {
        let words =
            |name: &str| self.written.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let said: Vec<&str> =
            [words("summary"), words("description")].into_iter().filter(|one| !one.is_empty()).collect();
        let said =
            if said.is_empty() { format!("{} {}", self.method.as_str(), self.path) } else { said.join(" ") };
        let said = format!("{} ({})", beginning(&said, MOST_WORDS), file.description);
        muster_shared::text::within_bytes(&said, MOST_DESCRIPTION)
    }

    /// Its parameters, and those of its path that it does not change.
    fn parameters<'b>(&'b self, document: &'b Document) -> Result<Vec<Parameter<'b>>, String> {
        let of = |list: Option<&'b Value>| match list {
            None => Ok(<&[Value]>::default()),
            Some(Value::Array(all)) => Ok(all.as_slice()),
            Some(_) => Err("its parameters are no list".to_owned()),
        };
        let mut all: BTreeMap<(&str, u8), Parameter<'b>> = BTreeMap::new();
        for written in of(self.item.get("parameters"))?.iter().chain(of(self.written.get("parameters"))?) {
            let parameter = Parameter::read(document.resolved(written)?)?;
            all.insert((parameter.name, parameter.place as u8), parameter);
        }
        Ok(all.into_values().collect())
    }

    /// The schema of what it is sent, and whether it must be sent.
    fn body(&self, document: &Document, schemas: &mut Schemas<'_>) -> Result<Option<(Value, bool)>, String> {
        let Some(written) = self.written.get("requestBody") else { return Ok(None) };
        let written = document.resolved(written)?;
        let is_required = written["required"] == true;
        let is_json = |kind: &str| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind == "application/json" || kind.ends_with("+json")
        };
        let content = written["content"].as_object();
        let found = content.and_then(|content| content.iter().find(|(kind, _)| is_json(kind)));
        match found {
            Some((_, media)) => {
                let schema =
                    media.get("schema").map_or_else(|| Ok(json!({})), |schema| schemas.inlined(schema))?;
                Ok(Some((schema, is_required)))
            }
            None if is_required => Err("what it is sent is not JSON".to_owned()),
            None => Ok(None),
        }
    }
}

impl<'a> Parameter<'a> {
    fn read(written: &'a Value) -> Result<Self, String> {
        let name = written["name"].as_str().unwrap_or_default();
        let is_sound = !name.is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'[' | b']'));
        if !is_sound {
            return Err(format!("one of its parameters is called {:?}", beginning(name, 80)));
        }
        let place = match written["in"].as_str() {
            Some("path") => Place::Path,
            Some("query") => Place::Query,
            Some("header") => Place::Header,
            Some("cookie") => Place::Cookie,
            _ => return Err(format!("nothing says where its parameter `{name}` goes")),
        };
        Ok(Self { name, place, required: written["required"] == true, written })
    }

    fn schema(&self, schemas: &mut Schemas<'_>) -> Result<Value, String> {
        let name = self.name;
        let usual = match self.place {
            Place::Query | Place::Cookie => "form",
            Place::Path | Place::Header => "simple",
        };
        let is_usual = self.written.get("style").is_none_or(|style| style == usual);
        if !is_usual || self.written.get("content").is_some() || self.written["explode"] == false {
            return Err(format!("its parameter `{name}` is written in a way that is not known here"));
        }
        // Whoever fills in a header chooses what it says, and not who asks.
        let is_ours = ["authorization", "host", "cookie", "content-length", "content-type", "accept"];
        if self.place == Place::Header && is_ours.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(format!("its parameter `{name}` is a header that the tool file sets (`headers`)"));
        }
        let mut schema = match self.written.get("schema") {
            Some(schema) => schemas.inlined(schema)?,
            None => json!({}),
        };
        if let (Some(fields), Some(said)) = (schema.as_object_mut(), self.written["description"].as_str()) {
            fields.insert("description".to_owned(), Value::from(beginning(said, MOST_WORDS)));
        }
        Ok(schema)
    }
}

/// A name as tools have it.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let plain: String = name.chars().map(letter).collect();
    plain.trim_matches('_').to_owned()
}

/// The names in braces of a path.
fn in_braces(path: &str) -> Result<Vec<&str>, String> {
    let wrong = || format!("its path {:?} is none", beginning(path, 120));
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return Err(wrong());
    }
    let (mut names, mut rest) = (Vec::new(), path);
    while let Some((_, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').ok_or_else(wrong)?;
        names.push(name);
        rest = behind;
    }
    Ok(names)
}
