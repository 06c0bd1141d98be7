//! `web_search` with each provider's documented answers, from a scripted server.

use std::io::Write;
use std::time::Duration;

use muster_tools::ToolFailure;
use muster_tools::settings::{SearchProvider, SearchSettings};
use serde_json::{Value, json};

use super::support::{Extra, Names, Reply, Request, Site, Tools, context, page, restricted, settings};

const KEY: &str = "key-0123456789";

struct Searching {
    site: Site,
    tools: Tools,
    _key: tempfile::NamedTempFile,
}

async fn searching(
    provider: SearchProvider,
    reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Searching {
    let site = Site::start(reply).await;
    let mut key = tempfile::NamedTempFile::new().unwrap();
    writeln!(key, "{KEY}").unwrap();
    let search = SearchSettings {
        provider,
        endpoint: Some(format!("http://127.0.0.1:{}/", site.port)),
        key_file: Some(key.path().to_str().unwrap().to_owned()),
        total: Duration::from_secs(2),
        ..SearchSettings::default()
    };
    let extra = Extra { search, ..Extra::default() };
    Searching { site, tools: Tools::with(settings(&[443]), Names::default(), extra), _key: key }
}

impl Searching {
    async fn ask(&self, arguments: Value) -> Result<(String, Value), ToolFailure> {
        let output = self.tools.call(&context(), "web_search", arguments).await?;
        Ok((output.content, output.data.unwrap()))
    }

    fn asked(&self) -> Request {
        self.site.requests().remove(0)
    }
}

fn json_page(answer: &Value) -> Reply {
    page(200, &[("content-type", "application/json")], answer.to_string().as_bytes())
}

fn everything() -> Value {
    json!({ "query": "longest river", "most": 2, "site": "Example.org", "newest": "week" })
}

#[tokio::test]
async fn searxng_is_asked_and_understood() {
    let answer = json!({
        "query": "longest river", "number_of_results": 0, "answers": [], "suggestions": [],
        "results": [
            {"url": "https://a.example.org/1", "title": "First", "content": "The <b>Nile</b> &amp; more", "engine": "x",
             "publishedDate": "2026-01-02T00:00:00", "score": 1.0, "category": "general"},
            {"url": "javascript:alert(1)", "title": "Bad"},
            {"title": "No address"},
            {"url": "https://b.example.org/", "title": "Second", "content": null},
            {"url": "https://c.example.org/", "title": "Third"}
        ]
    });
    let searching = searching(SearchProvider::Searxng, move |_| json_page(&answer)).await;
    let (text, data) = searching.ask(everything()).await.unwrap();
    assert!(
        text.starts_with(
            "1. First\n   https://a.example.org/1\n   2026-01-02T00:00:00: The Nile & more\n2. Second"
        ),
        "{text}"
    );
    assert_eq!(data["results"].as_array().unwrap().len(), 2);
    let asked = searching.asked();
    assert_eq!(asked.path(), "/search?q=longest+river+site%3Aexample.org&format=json&time_range=week");
}

#[tokio::test]
async fn brave_is_asked_and_understood() {
    let answer = json!({
        "type": "search", "query": {"original": "longest river"},
        "web": {"type": "search", "results": [
            {"title": "First", "url": "https://a.org/", "description": "<strong>Nile</strong>", "page_age": "2026-01-02T00:00:00", "age": "x"}
        ]}
    });
    let searching = searching(SearchProvider::Brave, move |_| json_page(&answer)).await;
    let (text, _) = searching.ask(everything()).await.unwrap();
    assert_eq!(text, "1. First\n   https://a.org/\n   2026-01-02T00:00:00: Nile");
    let asked = searching.asked();
    assert_eq!(asked.path(), "/res/v1/web/search?q=longest+river+site%3Aexample.org&count=2&freshness=pw");
    assert_eq!(asked.header("x-subscription-token").as_deref(), Some(KEY));
}

#[tokio::test]
async fn tavily_is_asked_and_understood() {
    let answer = json!({
        "query": "longest river", "answer": null, "images": [], "response_time": 1.1,
        "results": [{"title": "First", "url": "https://a.org/", "content": "Nile", "score": 0.9, "raw_content": null}]
    });
    let searching = searching(SearchProvider::Tavily, move |_| json_page(&answer)).await;
    assert_eq!(searching.ask(everything()).await.unwrap().0, "1. First\n   https://a.org/\n   Nile");
    let asked = searching.asked();
    assert_eq!((asked.method(), asked.path()), ("POST", "/search"));
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}")));
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    let expected = json!({
        "query": "longest river", "max_results": 2, "include_domains": ["example.org"], "time_range": "week"
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn exa_is_asked_and_understood() {
    let answer = json!({
        "requestId": "x",
        "results": [
            {"title": null, "url": "https://a.org/", "publishedDate": "2026-01-02T00:00:00.000Z", "author": null,
             "highlights": ["The Nile", "is long"], "highlightScores": [0.4, 0.3], "id": "https://a.org/"}
        ]
    });
    let searching = searching(SearchProvider::Exa, move |_| json_page(&answer)).await;
    let (text, _) = searching.ask(everything()).await.unwrap();
    assert_eq!(text, "1. https://a.org/\n   https://a.org/\n   2026-01-02T00:00:00.000Z: The Nile … is long");
    let asked = searching.asked();
    assert_eq!(asked.header("x-api-key").as_deref(), Some(KEY));
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    assert_eq!((&body["numResults"], &body["includeDomains"]), (&json!(2), &json!(["example.org"])));
    assert_eq!(body["contents"], json!({ "highlights": true }));
    assert!(body["startPublishedDate"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn a_provider_that_fails_is_told_without_its_key() {
    let providers =
        [SearchProvider::Searxng, SearchProvider::Brave, SearchProvider::Tavily, SearchProvider::Exa];
    for provider in providers {
        for status in [400, 401, 403, 422, 429, 500, 503, 302] {
            let echo = format!("{{\"error\": \"bad key {KEY}\"}}");
            let headers = [("location", "http://127.0.0.1:1/")];
            let searching = searching(provider, move |_| page(status, &headers, echo.as_bytes())).await;
            let failure = searching.ask(json!({ "query": "x" })).await.unwrap_err();
            let is_passing = matches!(failure, ToolFailure::Unavailable(_));
            assert_eq!(is_passing, matches!(status, 429 | 500 | 503), "{provider:?} {status}: {failure}");
            assert!(
                failure.to_string().contains(&status.to_string()) && !failure.to_string().contains(KEY),
                "{failure}"
            );
            assert_eq!(searching.site.connections(), 1);
        }
        for nonsense in ["", "<html>nope</html>", "[]", "{\"results\": \"none\"}", "{\"web\": {}}"] {
            let searching = searching(provider, move |_| page(200, &[], nonsense.as_bytes())).await;
            let failure = searching.ask(json!({ "query": "x" })).await.unwrap_err();
            assert!(failure.to_string().contains("no list of results"), "{provider:?} {nonsense}: {failure}");
        }
    }
}

#[tokio::test]
async fn a_huge_or_missing_answer_of_a_provider_is_given_up() {
    let huge = searching(SearchProvider::Brave, |_| page(200, &[], &vec![b' '; 5 << 20])).await;
    assert!(
        huge.ask(json!({ "query": "x" })).await.unwrap_err().to_string().contains("larger than the limit")
    );
    let silent = searching(SearchProvider::Brave, |_| Reply::Silence).await;
    assert!(matches!(silent.ask(json!({ "query": "x" })).await, Err(ToolFailure::Unavailable(_))));
    let many: Vec<Value> =
        (0..5000).map(|n| json!({ "title": "t".repeat(500), "url": format!("https://a.org/{n}"), "content": "c".repeat(900) })).collect();
    let answer = json!({ "results": many });
    let many =
        searching(SearchProvider::Tavily, move |_| page(200, &[], answer.to_string().as_bytes())).await;
    let failure_or_text = many.ask(json!({ "query": "x", "most": 10 })).await;
    let said = failure_or_text.map_or_else(|failure| failure.to_string(), |(text, _)| text);
    assert!(said.len() < 10_000, "{}", said.len());
}

#[tokio::test]
async fn a_task_searches_only_where_it_has_a_right_to_ask() {
    let searching = searching(SearchProvider::Tavily, |_| json_page(&json!({ "results": [] }))).await;
    let refused = searching.tools.call(&restricted(&["a.org"]), "web_search", json!({ "query": "x" })).await;
    assert!(matches!(refused, Err(ToolFailure::NoRight(_))));
    assert_eq!(searching.site.connections(), 0);
    let ctx = restricted(&[&format!("127.0.0.1:{}", searching.site.port)]);
    let output = searching.tools.call(&ctx, "web_search", json!({ "query": "x" })).await.unwrap();
    assert!(output.content.starts_with("Nothing was found"), "{}", output.content);
}

#[tokio::test]
async fn settings_that_are_wrong_are_told() {
    let with = |provider, endpoint: Option<&str>, key_file: Option<&str>| {
        let (endpoint, key_file) = (endpoint.map(str::to_owned), key_file.map(str::to_owned));
        let search = SearchSettings { provider, endpoint, key_file, ..SearchSettings::default() };
        Tools::with(settings(&[443]), Names::default(), Extra { search, ..Extra::default() })
    };
    let table = [
        (with(SearchProvider::Searxng, None, None), "tool.search.endpoint"),
        (with(SearchProvider::Searxng, Some("ftp://a.org"), None), "tool.search.endpoint"),
        (with(SearchProvider::Brave, Some("http://127.0.0.1:1"), None), "tool.search.key_file"),
        (with(SearchProvider::Brave, Some("http://127.0.0.1:1"), Some("/not/there")), "/not/there"),
        (with(SearchProvider::File, None, None), "tool.search.endpoint"),
        (with(SearchProvider::File, Some("/not/there"), None), "/not/there"),
    ];
    for (tools, said) in table {
        let failure =
            tools.call(&context(), "web_search", json!({ "query": "x" })).await.unwrap_err().to_string();
        assert!(failure.contains(said), "{failure}");
    }
}

#[tokio::test]
async fn a_file_answers_without_a_network() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let results = json!({ "results": [
        {"title": "Lakes", "url": "https://a.org/lakes", "snippet": "Water that stands"},
        {"title": "Rivers", "url": "https://sub.b.org/rivers", "snippet": "Water that flows, long", "date": "2026-01-02"}
    ]});
    write!(file, "{results}").unwrap();
    let endpoint = Some(file.path().to_str().unwrap().to_owned());
    let search = SearchSettings { provider: SearchProvider::File, endpoint, ..SearchSettings::default() };
    let tools = Tools::with(settings(&[443]), Names::default(), Extra { search, ..Extra::default() });
    let ask = async |arguments| tools.call(&context(), "web_search", arguments).await.unwrap().content;
    let both = ask(json!({ "query": "long water" })).await;
    assert!(
        both.starts_with(
            "1. Rivers\n   https://sub.b.org/rivers\n   2026-01-02: Water that flows, long\n2. Lakes"
        ),
        "{both}"
    );
    assert!(!ask(json!({ "query": "water", "site": "b.org" })).await.contains("Lakes"));
    assert!(ask(json!({ "query": "mountains" })).await.starts_with("Nothing was found"));
}
