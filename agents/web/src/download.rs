//! What a person asks to have fetched, such as documents for a goal: by the same guard, limits and cache as what agents fetch.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use muster_shared::flow::TaskRights;
use muster_tools::ToolFailure;

use crate::browse::{Origin, Web};
use crate::failure::WebFailure;
use crate::guard::resolver::{Resolver, judge};
use muster_tools::settings::WebSettings;

/// Something that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    /// Where it is, after redirects.
    pub url: String,
    /// As it came, unpacked.
    pub bytes: Bytes,
    /// The `Content-Type`, without parameters.
    pub media_type: Option<String>,
    /// When its site says that it was changed last, as it says it.
    pub modified: Option<String>,
    /// When it came from its site, or was confirmed, in milliseconds of the epoch.
    pub came_ms: u64,
    /// Whether it is what was kept of before, because its site did not answer.
    pub is_stand_in: bool,
}

/// A server that may be reached, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedHost {
    /// Its name, without a port.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Its addresses, each of which may be reached.
    pub addresses: Vec<IpAddr>,
}

/// Fetches for a person.
pub struct Downloader {
    web: Web,
    resolver: Arc<dyn Resolver>,
}

impl Downloader {
    /// By these settings; what is kept lies in the folder `web` of the cache of this host's agents.
    #[must_use]
    pub fn new(settings: WebSettings, cache_dir: &Path, resolver: Arc<dyn Resolver>) -> Self {
        Self { web: Web::new(settings, cache_dir.join("web"), Arc::clone(&resolver)), resolver }
    }

    /// Fetches a page or a document.
    ///
    /// # Errors
    /// Why it is not fetched, in words.
    pub async fn get(&self, url: &str) -> Result<Downloaded, String> {
        // A person is bound by the rights of no task.
        let page = self.web.get(&TaskRights::default(), url).await.map_err(in_words)?;
        page.succeeded().map_err(|failure| without_advice(&failure))?;
        let media_type = page.header("content-type").map(crate::content::essence);
        Ok(Downloaded {
            url: page.url.to_string(),
            modified: page.header("last-modified").map(|said| muster_shared::text::one_line(said, 60)),
            media_type: media_type.filter(|said| !said.is_empty()),
            came_ms: page.came_ms,
            is_stand_in: page.origin == Origin::StandIn,
            bytes: page.body,
        })
    }

    /// The host of a URL with its addresses, for programs that connect by themselves: to these addresses and no others.
    ///
    /// # Errors
    /// Why it may not be reached, in words.
    pub async fn judged(&self, url: &str) -> Result<JudgedHost, String> {
        let to = self.web.guard().map_err(in_words)?.destination(url).map_err(|why| why.to_string())?;
        let name = to.url.host_str().unwrap_or_default().to_owned();
        let port = to.url.port_or_known_default().unwrap_or_default();
        let addresses = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = self.resolver.addresses(&name).await;
                found.map_err(|error| format!("{name} has no address: {error}"))?
            }
        };
        if addresses.is_empty() {
            return Err(format!("{name} has no address"));
        }
        judge(&name, &addresses, to.reach).map_err(|why| why.to_string())?;
        let addresses = addresses.into_iter().map(|address| self.resolver.reached_at(address)).collect();
        Ok(JudgedHost { name, port, addresses })
    }
}

fn in_words(failure: WebFailure) -> String {
    without_advice(&ToolFailure::from(failure))
}

/// What a model would do about it is nothing to a person.
fn without_advice(failure: &ToolFailure) -> String {
    let words = failure.to_string();
    let plain = words.strip_suffix("Use another source.").unwrap_or(&words);
    plain.trim_end().trim_end_matches('.').to_owned()
}
