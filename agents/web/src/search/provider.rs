//! How each provider is asked, and what it answers. Pure but for the day, by which some of them count.

use jiff::{Timestamp, ToSpan};
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use super::{Found, Newest, Query};
use crate::secret;
use crate::transfer::Question;
use muster_tools::settings::SearchProvider;

/// Where a provider is reached when no setting says so.
pub(super) const fn usual_endpoint(provider: SearchProvider) -> Option<&'static str> {
    match provider {
        SearchProvider::Brave => Some("https://api.search.brave.com"),
        SearchProvider::Tavily => Some("https://api.tavily.com"),
        SearchProvider::Exa => Some("https://api.exa.ai"),
        _ => None,
    }
}

/// What is asked there.
pub(super) const fn path(provider: SearchProvider) -> &'static str {
    match provider {
        SearchProvider::Brave => "/res/v1/web/search",
        _ => "/search",
    }
}

/// What to send to a provider.
///
/// # Errors
/// When its key is missing or cannot be sent.
pub(super) fn question(
    provider: SearchProvider,
    url: &Url,
    key: Option<&SecretString>,
    query: &Query,
) -> Result<Question, String> {
    let mut question = match provider {
        SearchProvider::None | SearchProvider::File => {
            return Err("nobody is asked by the network".to_owned());
        }
        SearchProvider::Searxng => searxng(url, query),
        SearchProvider::Brave => brave(url, query),
        SearchProvider::Tavily => tavily(url, query),
        SearchProvider::Exa => exa(url, query, Timestamp::now()),
    };
    question.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let (name, prefix) = match provider {
        SearchProvider::Brave => (HeaderName::from_static("x-subscription-token"), ""),
        SearchProvider::Exa => (HeaderName::from_static("x-api-key"), ""),
        _ => (AUTHORIZATION, "Bearer "),
    };
    match key {
        Some(key) => {
            question.headers.insert(name, secret::header("tool.search.key_file", prefix, key)?);
        }
        None if provider == SearchProvider::Searxng => {}
        None => {
            return Err(
                "The search provider needs a key (tool.search.key_file). Go on without a search.".to_owned()
            );
        }
    }
    Ok(question)
}

/// The words, with the site among them where a provider knows no other way.
fn words(query: &Query) -> String {
    match &query.site {
        Some(site) => format!("{} site:{site}", query.words),
        None => query.words.clone(),
    }
}

fn get(url: &Url, pairs: &[(&str, String)]) -> Question {
    let mut url = url.clone();
    url.query_pairs_mut().extend_pairs(pairs);
    Question::get(url)
}

fn post(url: &Url, body: &Value) -> Question {
    let mut question = Question { method: Method::POST, ..Question::get(url.clone()) };
    question.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    question.body = Some(body.to_string().into());
    question
}

fn searxng(url: &Url, query: &Query) -> Question {
    let mut pairs = vec![("q", words(query)), ("format", "json".to_owned())];
    if let Some(newest) = query.newest {
        pairs.push(("time_range", name(newest).to_owned()));
    }
    get(url, &pairs)
}

fn brave(url: &Url, query: &Query) -> Question {
    let mut pairs = vec![("q", words(query)), ("count", query.most.to_string())];
    if let Some(newest) = query.newest {
        let code = match newest {
            Newest::Day => "pd",
            Newest::Week => "pw",
            Newest::Month => "pm",
            Newest::Year => "py",
        };
        pairs.push(("freshness", code.to_owned()));
    }
    get(url, &pairs)
}

fn tavily(url: &Url, query: &Query) -> Question {
    let mut body = json!({ "query": query.words, "max_results": query.most });
    if let Some(site) = &query.site {
        body["include_domains"] = json!([site]);
    }
    if let Some(newest) = query.newest {
        body["time_range"] = json!(name(newest));
    }
    post(url, &body)
}

fn exa(url: &Url, query: &Query, now: Timestamp) -> Question {
    let mut body =
        json!({ "query": query.words, "numResults": query.most, "contents": { "highlights": true } });
    if let Some(site) = &query.site {
        body["includeDomains"] = json!([site]);
    }
    let hours = query.newest.map(|newest| match newest {
        Newest::Day => 24,
        Newest::Week => 7 * 24,
        Newest::Month => 31 * 24,
        Newest::Year => 366 * 24,
    });
    if let Some(since) = hours.and_then(|hours: i64| now.checked_sub(hours.hours()).ok()) {
        body["startPublishedDate"] = json!(since.to_string());
    }
    post(url, &body)
}

const fn name(newest: Newest) -> &'static str {
    match newest {
        Newest::Day => "day",
        Newest::Week => "week",
        Newest::Month => "month",
        Newest::Year => "year",
    }
}

/// The results in a provider's answer.
///
/// # Errors
/// When it is none of its answers.
pub(super) fn found(provider: SearchProvider, body: &[u8]) -> Result<Vec<Found>, String> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| "it is no JSON".to_owned())?;
    let results = match provider {
        // Brave leaves the part out when it knows of no page.
        SearchProvider::Brave if answer.get("type").is_some() && answer.get("web").is_none() => {
            return Ok(Vec::new());
        }
        SearchProvider::Brave => answer.pointer("/web/results"),
        _ => answer.get("results"),
    };
    let results = results.and_then(Value::as_array).ok_or_else(|| "it has no results".to_owned())?;
    Ok(results.iter().filter_map(|result| one(provider, result)).collect())
}

fn one(provider: SearchProvider, result: &Value) -> Option<Found> {
    let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
    let first = |names: &[&str]| names.iter().map(|name| text(name)).find(|text| !text.is_empty());
    let (snippet, date) = match provider {
        SearchProvider::Searxng => (text("content"), first(&["publishedDate"])),
        SearchProvider::Brave => (text("description"), first(&["page_age", "age"])),
        SearchProvider::Tavily => (text("content"), first(&["published_date"])),
        SearchProvider::Exa => (highlights(result), first(&["publishedDate"])),
        SearchProvider::File | SearchProvider::None => (text("snippet"), first(&["date"])),
    };
    let url = text("url");
    let title = first(&["title"]).unwrap_or_else(|| url.clone());
    (!url.is_empty()).then_some(Found { title, url, snippet, date })
}

fn highlights(result: &Value) -> String {
    let parts: Vec<&str> =
        result["highlights"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if parts.is_empty() {
        result["text"].as_str().unwrap_or_default().to_owned()
    } else {
        parts.join(" … ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exa_is_told_the_day_since_when_results_count() {
        let query = Query { words: "x".to_owned(), most: 3, site: None, newest: Some(Newest::Week) };
        let now = "2026-03-08T12:00:00Z".parse().unwrap();
        let question = exa(&Url::parse("http://a.org/search").unwrap(), &query, now);
        let body: Value = serde_json::from_slice(&question.body.unwrap()).unwrap();
        assert_eq!(body["startPublishedDate"], "2026-03-01T12:00:00Z");
    }

    #[test]
    fn an_answer_without_pages_is_none_and_another_is_wrong() {
        assert_eq!(found(SearchProvider::Brave, br#"{"type": "search"}"#), Ok(Vec::new()));
        for nonsense in ["", "[]", "{}", "{\"results\": 3}", "<html>"] {
            for provider in
                [SearchProvider::Searxng, SearchProvider::Brave, SearchProvider::Tavily, SearchProvider::Exa]
            {
                assert!(found(provider, nonsense.as_bytes()).is_err(), "{provider:?} {nonsense}");
            }
        }
    }
}
