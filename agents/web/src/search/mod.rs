//! `web_search`.

mod file;
mod provider;

use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::cached::digest_of;
use muster_shared::flow::{TaskRights, ToolCache};
use muster_shared::text::one_line;
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::browse::Web;
use crate::failure::WebFailure;
use crate::fetch::text_of;
use crate::guard::{self, Destination, Guard};
use crate::secret;
use crate::transfer::{Answer, AnswerLimits, Beyond, Bodies, NoAnswer, Question, exchange};
use muster_tools::settings::{SearchProvider, SearchSettings};

/// Most results of one search. What lies further down is hardly ever of use.
const MAX_RESULTS: u32 = 10;

/// Results given when nothing else is asked for.
const USUAL: u32 = 6;

/// Largest answer of a provider, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Longest title and longest snippet, in characters.
const LONGEST_TITLE: usize = 200;
const LONGEST_SNIPPET: usize = 500;

/// How new results are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Newest {
    Day,
    Week,
    Month,
    Year,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) words: String,
    pub(crate) most: usize,
    /// Only results from this host and those below it.
    pub(crate) site: Option<String>,
    pub(crate) newest: Option<Newest>,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Found {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
}

/// Searches the web by the provider that settings name.
pub(crate) struct WebSearch {
    pub(crate) web: Arc<Web>,
    pub(crate) settings: SearchSettings,
}

#[async_trait]
impl Tool for WebSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "web_search",
            "Searches the web: titles, addresses and what is said there in short. Read a page with fetch before relying on it.",
            json!({
                    "query": {"type": "string", "minLength": 1, "maxLength": 400},
                    "most": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": USUAL.min(MAX_RESULTS)},
                    "site": {
                        "type": "string", "minLength": 3, "maxLength": 253, "pattern": "^[A-Za-z0-9.-]+$",
                        "description": "Only results from this host, such as example.org"
                    },
                    "newest": {"enum": ["day", "week", "month", "year"], "description": "Only results no older than this"}
                }), &["query"],
        )
        .needing(Permission::Network)
        .until_allowed()
        .with_timeout(self.settings.total + std::time::Duration::from_secs(5))
        .cached(self.cache())
    }

    async fn call(&self, ctx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let query = self.query(&arguments);
        let found = match self.settings.provider {
            SearchProvider::None => Err(ToolFailure::Failed(
                "Nobody is set up to search the web (tool.search.provider). Go on without.".to_owned(),
            )),
            SearchProvider::File => file::search(self.settings.endpoint.as_deref(), &query),
            SearchProvider::Searxng
            | SearchProvider::Brave
            | SearchProvider::Tavily
            | SearchProvider::Exa => self.ask(&ctx.rights, &query).await,
        }?;
        Ok(told(&query, &found))
    }
}

impl WebSearch {
    /// How long what was found serves others: what another provider finds is another answer. A file costs nothing to search.
    fn cache(&self) -> Option<ToolCache> {
        let SearchSettings { provider, endpoint, cache, .. } = &self.settings;
        let name = match provider {
            SearchProvider::None | SearchProvider::File => return None,
            SearchProvider::Searxng => "searxng",
            SearchProvider::Brave => "brave",
            SearchProvider::Tavily => "tavily",
            SearchProvider::Exa => "exa",
        };
        ToolCache::serving(*cache, digest_of(&[name, endpoint.as_deref().unwrap_or_default()]))
    }

    fn query(&self, arguments: &Value) -> Query {
        let most = arguments["most"].as_u64().and_then(|most| u32::try_from(most).ok());
        let most = most.unwrap_or(USUAL).min(MAX_RESULTS);
        let site = text_of(arguments, "site").trim_matches('.').to_ascii_lowercase();
        Query {
            words: one_line(text_of(arguments, "query"), 400),
            most: usize::try_from(most).unwrap_or(1),
            site: (!site.is_empty()).then_some(site),
            newest: serde_json::from_value(arguments["newest"].clone()).ok(),
        }
    }

    async fn ask(&self, rights: &TaskRights, query: &Query) -> Result<Vec<Found>, ToolFailure> {
        let name = self.settings.provider;
        let at = self.destination()?;
        guard::allowed(rights, &at).map_err(|why| WebFailure::Refused { url: at.url.to_string(), why })?;
        let key = self.key()?;
        let question = provider::question(name, &at.url, key.as_ref(), query).map_err(ToolFailure::Failed)?;
        let answer = tokio::time::timeout(self.settings.total, self.send(&at, question)).await;
        let answer = answer.unwrap_or(Err(NoAnswer::TimedOut));
        let answer =
            answer.map_err(|why| ToolFailure::from(WebFailure::NoAnswer { host: at.host.clone(), why }))?;
        succeeded(&answer, &at.host)?;
        let found = provider::found(name, &answer.body).map_err(|why| {
            ToolFailure::Failed(format!(
                "{} answers what is no list of results: {why}. Go on without a search.",
                at.host
            ))
        })?;
        Ok(found.into_iter().filter_map(tidy).take(query.most).collect())
    }

    fn destination(&self) -> Result<Destination, ToolFailure> {
        let base =
            self.settings.endpoint.as_deref().or_else(|| provider::usual_endpoint(self.settings.provider));
        let wrong = |why: String| ToolFailure::from(WebFailure::Setting(why));
        let base = base.ok_or_else(|| {
            wrong("tool.search.endpoint has to say where the provider is reached".to_owned())
        })?;
        let url = format!("{}{}", base.trim_end_matches('/'), provider::path(self.settings.provider));
        Guard::of_setting(&url).map_err(|why| wrong(format!("tool.search.endpoint: {why}")))
    }

    fn key(&self) -> Result<Option<SecretString>, ToolFailure> {
        let read = |file| secret::read("tool.search.key_file", file);
        let key = self.settings.key_file.as_deref().map(read).transpose();
        key.map_err(|why| WebFailure::Setting(why).into())
    }

    async fn send(&self, at: &Destination, question: Question) -> Result<Answer, NoAnswer> {
        let client = self.web.clients.of(at.reach).map_err(NoAnswer::Broken)?;
        let turn = self.web.pace.turn(&at.host).await;
        // A redirect is not followed: it would take the key elsewhere.
        let answer = exchange(
            client,
            question,
            AnswerLimits { max_bytes: LARGEST, bodies: Bodies::All, beyond: Beyond::Refused },
        )
        .await;
        drop(turn);
        answer
    }
}

fn succeeded(answer: &Answer, host: &str) -> Result<(), ToolFailure> {
    let said = format!("{host} answers with status {}", answer.status);
    match answer.status {
        200..=299 => Ok(()),
        401 | 403 => Err(ToolFailure::Failed(format!(
            "{said}: it does not take the key. Somebody has to mend tool.search.key_file; go on without a search."
        ))),
        429 | 432 | 433 => Err(ToolFailure::Unavailable(format!(
            "{said}: too much was asked. Try again later, or go on without a search."
        ))),
        408 | 500..=599 => {
            Err(ToolFailure::Unavailable(format!("{said}. Try again later, or go on without a search.")))
        }
        300..=399 => Err(ToolFailure::Failed(format!(
            "{said}, a redirect, which is not followed. Somebody has to mend tool.search.endpoint; go on without a search."
        ))),
        _ => Err(ToolFailure::Failed(format!("{said}. Ask in other words, or go on without a search."))),
    }
}

/// A result as it is shown: without markup, on one line. None when its address is none of the web.
fn tidy(found: Found) -> Option<Found> {
    let url =
        url::Url::parse(found.url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let plain = |text: &str, most| one_line(&crate::html::plain(text), most);
    Some(Found {
        title: plain(&found.title, LONGEST_TITLE),
        url: url.into(),
        snippet: plain(&found.snippet, LONGEST_SNIPPET),
        date: found.date.map(|date| one_line(&date, 40)).filter(|date| !date.is_empty()),
    })
}

fn told(query: &Query, found: &[Found]) -> ToolOutput {
    if found.is_empty() {
        let words = format!("Nothing was found for {:?}. Ask in other words, or for less.", query.words);
        return ToolOutput::text(words).with_data(json!({ "results": [] }));
    }
    let lines = found.iter().zip(1..).map(|(found, number)| {
        let date = found.date.as_ref().map_or_else(String::new, |date| format!("{date}: "));
        format!("{number}. {}\n   {}\n   {date}{}", found.title, found.url, found.snippet)
    });
    let words = lines.collect::<Vec<_>>().join("\n");
    ToolOutput::text(words).with_data(json!({ "results": found }))
}
