use std::fs;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use muster_tools::{Tool, ToolContext, ToolFailure};
use serde_json::{Value, json};

use super::*;
use crate::PlainRunner;
use crate::file::http::{HttpAnswer, HttpCaller, HttpFailure, HttpRequest};
use crate::file::{Defined, Hands, tools_of};

const DOCUMENT: &str = r##"
openapi: 3.0.3
info: { title: Tracker, version: "1" }
servers: [{ url: "https://elsewhere.example.org" }]
paths:
  /issues/{number}:
    parameters:
      - { name: number, in: path, required: true, schema: { type: integer } }
    get:
      operationId: getIssue
      summary: Reads one issue.
      parameters:
        - { $ref: "#/components/parameters/Labels" }
        - { name: X-Trace, in: header, schema: { type: string, nullable: true } }
      responses: { 200: { description: ok } }
    patch:
      operationId: changeIssue
      requestBody:
        required: true
        content:
          application/json: { schema: { $ref: "#/components/schemas/Change" } }
  /tree:
    post:
      operationId: makeTree
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Tree" } } } }
  /upload:
    post:
      operationId: makeUpload
      requestBody: { required: true, content: { multipart/form-data: {} } }
  /away:
    get:
      operationId: makeAway
      parameters: [{ $ref: "https://evil.example.org/p.json" }]
  /health:
    head: {}
components:
  parameters:
    Labels: { name: labels, in: query, description: Only these., schema: { type: array, items: { type: string, pattern: "(a+)+$" } } }
  schemas:
    Change:
      type: object
      required: [title]
      properties: { title: { type: string, example: x }, state: { $ref: "#/components/schemas/State" } }
      additionalProperties: false
    State: { type: string, enum: [open, closed], x-note: y }
    Tree: { type: object, properties: { children: { type: array, items: { $ref: "#/components/schemas/Tree" } } } }
"##;

/// Keeps what it is asked, and answers nothing of interest.
#[derive(Default)]
struct Heard(Mutex<Vec<HttpRequest>>);

#[async_trait]
impl HttpCaller for Heard {
    async fn call(&self, request: HttpRequest) -> Result<HttpAnswer, HttpFailure> {
        self.0.lock().unwrap().push(request);
        Ok(HttpAnswer { status: 200, content_type: String::new(), body: Bytes::new(), cut: false })
    }
}

struct Desk {
    folder: tempfile::TempDir,
    heard: Arc<Heard>,
}

impl Desk {
    fn with(document: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("api.yaml"), document).unwrap();
        Self { folder, heard: Arc::default() }
    }

    fn choose(&self, operations: &str) -> Result<Defined, String> {
        let text = format!(
            "description = \"The tracker.\"\nuncertain = \"fail\"\ncache = \"1h\"\n[openapi]\ndocument = \"./api.yaml\"\n\
             base = \"https://api.example.org/v1/\"\noperations = {operations}\n\
             headers = {{ Authorization = \"Bearer {{{{KEY}}}}\" }}\n[secrets]\nKEY = \"key\"\n"
        );
        fs::write(self.folder.path().join("key"), "s3cret-value-1234").unwrap();
        let file = ToolFile::parse(&text, "tracker").unwrap();
        let (plain, http) = (Arc::new(PlainRunner), Arc::clone(&self.heard));
        let hands = Hands { sandbox: Arc::new(PlainRunner), plain, http };
        tools_of(file, self.folder.path(), &hands)
    }
}

async fn call(tool: &Arc<dyn Tool>, args: Value) -> Result<(), ToolFailure> {
    tool.call(&ToolContext::new("r", "1"), args).await.map(|_| ())
}

#[tokio::test]
async fn operations_are_tools_whose_arguments_go_where_the_document_says() {
    let desk = Desk::with(DOCUMENT);
    let defined = desk.choose("[\"getIssue\", \"change*\", \"head/health\"]").unwrap();
    assert_eq!(defined.faults, Vec::<String>::new());
    let mut defined = defined;
    defined.tools.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let names: Vec<&str> = defined.tools.iter().map(|(file, _)| file.name.as_str()).collect();
    assert_eq!(names, ["tracker_changeIssue", "tracker_getIssue", "tracker_head_health"]);
    let pure: Vec<bool> = defined.tools.iter().map(|(_, tool)| tool.spec().pure).collect();
    assert_eq!(pure, [false, true, true]);
    let caches = defined.tools.iter().map(|(_, tool)| tool.spec().cache);
    let versions: Vec<String> = caches.flatten().map(|cache| cache.version).collect();
    assert!(versions.len() == 2 && versions[0] != versions[1], "of those that change nothing: {versions:?}");
    let (get, change) = (&defined.tools[1], &defined.tools[0]);
    assert_eq!(get.0.description, "Reads one issue. (The tracker.)");
    assert_eq!(get.0.hosts, ["api.example.org:443"], "the document chooses no host");
    let schema = get.1.spec().parameters;
    assert_eq!(schema["required"], json!(["number"]));
    assert_eq!(
        schema["properties"]["labels"],
        json!({ "type": "array", "items": { "type": "string" }, "description": "Only these." })
    );
    assert_eq!(schema["properties"]["X-Trace"]["type"], json!(["string", "null"]));
    let body = change.1.spec().parameters["properties"]["body"].clone();
    assert_eq!(body["properties"]["state"], json!({ "type": "string", "enum": ["open", "closed"] }));
    assert_eq!(change.1.spec().uncertain, muster_tools::Uncertain::Fail);

    call(&get.1, json!({ "number": 7, "labels": ["a b", "c"], "X-Trace": "t" })).await.unwrap();
    call(&change.1, json!({ "number": 7, "body": { "title": "new" } })).await.unwrap();
    let heard = std::mem::take(&mut *desk.heard.0.lock().unwrap());
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].url, "https://api.example.org/v1/issues/7?labels=a%20b&labels=c");
    let headers: Vec<(&str, &str)> =
        heard[0].headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(headers, [("Authorization", "Bearer s3cret-value-1234"), ("X-Trace", "t")]);
    assert_eq!((heard[0].body.clone(), heard[1].body.as_deref()), (None, Some(&br#"{"title":"new"}"#[..])));
    let broken = call(&get.1, json!({ "number": 1, "X-Trace": "a\r\nHost: evil" })).await;
    assert!(matches!(broken, Err(ToolFailure::InvalidArguments(_))), "{broken:?}");
    let out = call(&get.1, json!({ "number": ".." })).await;
    assert!(matches!(out, Err(ToolFailure::InvalidArguments(_))), "{out:?}");
    assert!(desk.heard.0.lock().unwrap().is_empty(), "nothing was sent");
}

#[test]
fn operations_that_cannot_be_called_are_left_out_with_the_reason() {
    let defined = Desk::with(DOCUMENT).choose("[\"getIssue\", \"make*\", \"nothing\"]").unwrap();
    assert_eq!(defined.tools.len(), 1);
    let told = defined.faults.join("\n");
    for words in [
        "no operation nothing",
        "makeTree is left out",
        "refers to itself",
        "is not JSON",
        "leads out of the document",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn hostile_documents_are_refused_with_the_reason() {
    let refused = |document: &str| Desk::with(document).choose("[\"*\"]").map(|_| ()).unwrap_err();
    let bomb = format!(
        "openapi: 3.0.0\na: &a [{}]\nb: &b [{}]\nc: [{}]\n",
        "1,".repeat(1_000),
        "*a,".repeat(900),
        "*b,".repeat(900)
    );
    let deep = format!("openapi: 3.0.0\nx: {}{}", "[".repeat(100), "]".repeat(100));
    let paths: String = (0..65).map(|n| format!("  /p{n}: {{ get: {{}} }}\n")).collect();
    for (document, words) in [
        (bomb, "cannot be used"),
        (deep, "levels deep"),
        ("openapi: 3.0.0".to_owned(), "no `paths`"),
        ("swagger: '2.0'\npaths: {}".to_owned(), "does not say"),
        ("openapi: 4.0.0".to_owned(), "3.0 and 3.1"),
        ("x".repeat(5 * 1024 * 1024), "cannot be used"),
        (format!("openapi: 3.1.0\npaths:\n{paths}"), "64 are the most"),
        ("{".to_owned(), "cannot be used"),
    ] {
        let why = refused(&document);
        assert!(why.contains(words), "{words}: {why}");
    }
    // References that are eight times as many at each level.
    let level = |n: usize| {
        let below = format!("{{ $ref: '#/components/schemas/s{}' }}, ", n + 1).repeat(8);
        format!("    s{n}: {{ allOf: [{below}] }}\n")
    };
    let doubled: String = (0..6).map(level).collect();
    let around =
        "    a: { $ref: '#/components/parameters/b' }\n    b: { $ref: '#/components/parameters/a' }\n";
    let document = format!(
        "openapi: 3.0.0\npaths:\n  /d: {{ post: {{ operationId: d, requestBody: {{ content: {{ application/json: {{ schema: \
         {{ $ref: '#/components/schemas/s0' }} }} }} }} }} }}\n  /l: {{ get: {{ operationId: l, parameters: [{{ $ref: \
         '#/components/parameters/a' }}] }} }}\ncomponents:\n  parameters:\n{around}  schemas:\n{doubled}    s6: {{ type: string }}\n"
    );
    let defined = Desk::with(&document).choose("[\"*\"]").unwrap();
    let told = defined.faults.join("\n");
    assert!(defined.tools.is_empty(), "{told}");
    assert!(told.contains("more than 4000 parts") && told.contains("never end"), "{told}");
}

#[test]
fn what_is_wrong_in_the_tool_file_is_told_with_its_place() {
    let good = "description = \"d\"\n[openapi]\ndocument = \"./api.json\"\nbase = \"https://example.org\"\noperations = [\"a\"]\n";
    assert!(ToolFile::parse(good, "x").is_ok());
    for (before, after, place, words) in [
        ("./api.json", "../api.json", (3, 12), "leads out"),
        ("https://example.org", "https://{host}/", (4, 8), "without places"),
        ("https://example.org", "ftp://example.org", (4, 8), "no address of HTTP"),
        ("[\"a\"]", "[]", (5, 14), "1 to 64"),
        ("[openapi]", "pure = true\n[openapi]", (1, 1), "`pure` follows"),
        ("[openapi]", "command = [\"sh\"]\n[openapi]", (3, 1), "beside `command`"),
        ("[openapi]", "parameters = {}\n[openapi]", (2, 14), "both `openapi` and `parameters`"),
    ] {
        let fault = ToolFile::parse(&good.replacen(before, after, 1), "x").unwrap_err();
        assert!(fault.what.contains(words), "{after}: {fault}");
        assert_eq!((fault.line, fault.column), place, "{after}: {fault}");
    }
}

proptest::proptest! {
    #[test]
    fn no_document_breaks_the_reader(at in 0..DOCUMENT.len(), with in "[{}\\[\\]$#*&a-z:\n ]{0,6}", cut in 0..DOCUMENT.len()) {
        let mut changed = DOCUMENT.to_owned();
        changed.insert_str(at, &with);
        changed.truncate(changed.len() - cut.min(changed.len() / 2));
        if let Ok(document) = Document::parse(&changed, false) {
            let _ = document.operations().map(|all| all.len());
        }
        let _ = Document::parse(&with, true);
    }
}
