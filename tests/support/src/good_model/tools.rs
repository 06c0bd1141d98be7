//! The tools that a request declares, found by what they take and by parts of their names.

use serde_json::{Map, Value, json};

/// A declared tool.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) name: String,
    schema: Value,
}

/// The declared tools.
#[derive(Debug, Clone, Default)]
pub(super) struct Tools(Vec<Declared>);

impl Tools {
    pub(super) fn of(body: &Value) -> Self {
        let empty = Vec::new();
        let listed = body.get("tools").and_then(Value::as_array).unwrap_or(&empty);
        let nested = |tool: &Value| {
            tool.get("functionDeclarations")
                .or_else(|| tool.get("function_declarations"))
                .and_then(Value::as_array)
                .cloned()
        };
        let flat = listed.iter().flat_map(|tool| nested(tool).unwrap_or_else(|| vec![tool.clone()]));
        Self(flat.filter_map(|tool| declared(tool.get("function").unwrap_or(&tool))).collect())
    }

    /// Those that the system prompt tells of in words: `- name: what it does`, then its arguments as a JSON Schema.
    pub(super) fn in_words(system: &str) -> Self {
        let mut found = Vec::new();
        let mut name = None;
        for line in system.lines() {
            if let Some((word, _)) = line.strip_prefix("- ").and_then(|line| line.split_once(':')) {
                name = Some(word.trim_matches('`')).filter(|word| is_name(word));
            } else if let Some(schema) = line.trim_start().strip_prefix("arguments: ").and_then(read)
                && let Some(name) = name.take()
            {
                found.push(Declared { name: name.to_owned(), schema });
            }
        }
        Self(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The schema of what is submitted at the end.
    pub(super) fn submit(&self) -> Option<&Value> {
        self.0.iter().find(|tool| tool.name == "submit").map(|tool| &tool.schema)
    }

    pub(super) fn search(&self) -> Option<&Declared> {
        self.found("search", &["query", "q", "words"], &["corpus", "doc"])
    }

    pub(super) fn read(&self) -> Option<&Declared> {
        let documents = |tool: &&Declared| !tool.name.contains("workspace") && !tool.name.contains("context");
        self.0.iter().filter(documents).find(|tool| tool.name.contains("read") && tool.takes("path"))
    }

    pub(super) fn calculator(&self) -> Option<&Declared> {
        self.0.iter().find(|tool| tool.takes("expression"))
    }

    pub(super) fn write(&self) -> Option<&Declared> {
        self.0.iter().find(|tool| tool.name.contains("write") && tool.takes("path"))
    }

    fn found(&self, part: &str, takes: &[&str], rather: &[&str]) -> Option<&Declared> {
        let fits = |tool: &&Declared| tool.name.contains(part) && takes.iter().any(|field| tool.takes(field));
        let all: Vec<&Declared> = self.0.iter().filter(fits).collect();
        all.iter().find(|tool| rather.iter().any(|word| tool.name.contains(word))).or(all.first()).copied()
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn read(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn declared(tool: &Value) -> Option<Declared> {
    let name = tool.get("name").and_then(Value::as_str)?.to_owned();
    let fields = ["parameters", "input_schema", "parametersJsonSchema"];
    let schema = fields.iter().find_map(|field| tool.get(*field)).cloned().unwrap_or_default();
    Some(Declared { name, schema })
}

impl Declared {
    /// Whether it takes an argument of this name.
    pub(super) fn takes(&self, field: &str) -> bool {
        self.schema.pointer(&format!("/properties/{field}")).is_some()
    }

    /// The first of these arguments that it takes.
    fn first_of<'a>(&self, fields: &[&'a str]) -> Option<&'a str> {
        fields.iter().find(|field| self.takes(field)).copied()
    }

    /// A search for words, in one document where the tool can.
    pub(super) fn searching(&self, words: &str, most: usize, path: Option<&str>) -> Value {
        let mut arguments = Map::new();
        arguments.insert(self.first_of(&["query", "q", "words"]).unwrap_or("query").to_owned(), json!(words));
        if let Some(field) = self.first_of(&["k", "limit", "most", "hits"]) {
            let allowed = self
                .schema
                .pointer(&format!("/properties/{field}/maximum"))
                .and_then(Value::as_u64)
                .unwrap_or(20);
            arguments.insert(field.to_owned(), json!((most as u64).min(allowed)));
        }
        if let (Some(field), Some(path)) = (self.first_of(&["path", "paths", "in"]), path) {
            let is_list = self.schema.pointer(&format!("/properties/{field}/type")) == Some(&json!("array"));
            arguments.insert(field.to_owned(), if is_list { json!([path]) } else { json!(path) });
        }
        self.complete(arguments)
    }

    /// Reading lines of a document.
    pub(super) fn reading(&self, path: &str, from: u32, to: u32) -> Value {
        let mut arguments = Map::new();
        arguments.insert("path".to_owned(), json!(path));
        for (fields, line) in [(&["from", "start", "begin"], from), (&["to", "end", "until"], to)] {
            if let Some(field) = self.first_of(fields) {
                arguments.insert(field.to_owned(), json!(line));
            }
        }
        self.complete(arguments)
    }

    pub(super) fn computing(&self, expression: &str) -> Value {
        self.complete(Map::from_iter([("expression".to_owned(), json!(expression))]))
    }

    pub(super) fn writing(&self, path: &str, text: &str) -> Value {
        let field = self.first_of(&["text", "content", "body"]).unwrap_or("text");
        self.complete(Map::from_iter([("path".to_owned(), json!(path)), (field.to_owned(), json!(text))]))
    }

    /// What else has to be given, by its type.
    fn complete(&self, arguments: Map<String, Value>) -> Value {
        completed(&self.schema, arguments)
    }

    /// Whether a thought goes with its arguments.
    pub(super) fn takes_thought(&self) -> bool {
        self.takes("thought")
    }
}

/// Arguments with everything that a schema requires: by its kind, where nothing is known to say.
pub(super) fn completed(schema: &Value, mut fields: Map<String, Value>) -> Value {
    let required =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if name != "thought" && !fields.contains_key(name) {
            let wanted = schema.pointer(&format!("/properties/{name}")).unwrap_or(&Value::Null);
            fields.insert(name.to_owned(), plain(wanted));
        }
    }
    Value::Object(fields)
}

/// The plainest value of a schema.
fn plain(schema: &Value) -> Value {
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        "array" => json!([]),
        "object" => completed(schema, Map::new()),
        "boolean" => json!(false),
        "integer" | "number" => json!(schema.get("minimum").and_then(Value::as_i64).unwrap_or(0)),
        _ => json!("none"),
    }
}
