//! The web for agents: `fetch` and `fetch_file`, `web_search`, `http_request`.
//!
//! Everything goes through a [guard](guard): only http and https, only hosts that the task has a right to, only public
//! addresses unless a setting names the host, and each hop of a redirect anew. Nothing is made before the first call.

mod browse;
mod cache;
mod client;
mod content;
mod download;
mod endpoint;
mod failure;
mod fetch;
pub mod guard;
mod html;
mod http;
mod pace;
mod robots;
mod search;
mod secret;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;

use muster_tools::settings::{HttpSettings, SearchProvider, SearchSettings, WebSettings};
use muster_tools::{DocumentReader, Tool};

pub use self::download::{Downloaded, Downloader, JudgedHost};
pub use self::endpoint::{EndpointAnswer, EndpointCall, EndpointFailure, Endpoints};
pub use self::guard::resolver::{Resolver, SystemResolver};

use self::browse::Web;

/// Most bytes of a text in one result, about 3,000 tokens. Further calls return the rest.
pub(crate) const SHOWN_BYTES: u64 = 12 * 1024;

/// What the tools of the web need.
pub struct WebTools {
    /// `[tool.web]`.
    pub web: WebSettings,
    /// `[tool.search]`.
    pub search: SearchSettings,
    /// `[tool.http]`.
    pub http: HttpSettings,
    /// The agents' folder of what is kept on this host. Answers are put into its folder `web`.
    pub cache_dir: PathBuf,
    /// What makes text of documents that are none.
    pub reader: Option<Arc<dyn DocumentReader>>,
    /// What looks names up: [`SystemResolver`], but in tests.
    pub resolver: Arc<dyn Resolver>,
}

/// The tools that these settings give an agent: none that is not set up.
#[must_use]
pub fn tools(given: WebTools) -> Vec<Arc<dyn Tool>> {
    let WebTools { web, search, http, cache_dir, reader, resolver } = given;
    let web = Arc::new(Web::new(web, cache_dir.join("web"), resolver));
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(fetch::Fetch { web: Arc::clone(&web), reader }),
        Arc::new(fetch::FetchFile { web: Arc::clone(&web) }),
    ];
    if search.provider != SearchProvider::None {
        tools.push(Arc::new(search::WebSearch { web: Arc::clone(&web), settings: search }));
    }
    tools.extend(http::tool(&web, http));
    tools
}
