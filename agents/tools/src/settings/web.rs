//! Settings of the web tools: `[tool.web]`, `[tool.search]`, `[tool.http]`.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_shared::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// What is reached on the web, and how. Unknown fields are refused.
    #[derive(PartialEq, Eq)]
    pub struct WebSettings {
        /// Hosts that may be at private addresses, such as 127.0.0.1:8080 or *.corp.example; nobody else's may. One with a
        /// port may be reached at that port.
        pub allow_hosts: Vec<String> = Vec::new() => list().at_most(MOST_HOSTS).example("[\"*.corp.example\"]"); Fleet Trust,
        /// Ports that may be reached at any host.
        pub ports: Vec<u16> = vec![80, 443, 8080, 8443] => internal(),
        /// Longest time without a byte of an answer.
        #[serde(with = "muster_shared::span")]
        pub idle: Duration = Duration::from_secs(15) => internal(),
        /// Longest time of one call, with redirects, retries and waits for its turn.
        #[serde(with = "muster_shared::span")]
        pub total: Duration = Duration::from_secs(60) => internal(),
        /// Largest body that is read, unpacked.
        pub max_bytes: u64 = 16 * MIB => bytes(KIB, 256 * MIB); Fleet Trust,
        /// Whether robots.txt is obeyed.
        pub robots: bool = true => internal(),
        /// Hosts whose robots.txt is not obeyed, because they are one's own.
        pub own_hosts: Vec<String> = Vec::new() => list().at_most(MOST_HOSTS).example("[\"docs.example.org\"]"); Fleet Trust,
        /// Who runs this fleet, told to sites with its name: an address of a page or of mail.
        pub contact: Option<String> = None => text().example("\"https://example.org/bot\""); Fleet Trust,
        /// Most requests of one process at the same time.
        pub at_once: u32 = 8 => internal(),
        /// Most requests of one process to one host at the same time.
        pub at_once_per_host: u32 = 2 => internal(),
        /// Shortest time from one request to a host to the next.
        #[serde(with = "muster_shared::span")]
        pub pause: Duration = Duration::from_millis(250) => internal(),
        /// Most that is kept of answers on this host, for all its agents; 0 for nothing.
        pub cache: u64 = 256 * MIB => internal(),
        /// How old a kept answer may be that is given when its site cannot be reached.
        #[serde(with = "muster_shared::span")]
        pub cache_stale: Duration = Duration::from_secs(7 * 24 * 3600) => internal(),
        /// A proxy that everything goes through, such as http://proxy.example:3128. Variables of the environment do not count.
        pub proxy: Option<String> = None => text().example("\"http://proxy.example:3128\""); Fleet Trust,
        /// A file with certificates (PEM) of authorities that are trusted beside those of the system.
        pub ca_file: Option<String> = None => text().example("\"/etc/ssl/house-ca.pem\""); Fleet Trust,
    }
}

/// Most hosts or ports that one setting lists.
pub const MOST_HOSTS: usize = 64;

/// Who answers `web_search`.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum SearchProvider {
    /// Nobody: agents have no `web_search`.
    #[default]
    None,
    /// A SearXNG of one's own, with `json` among its formats.
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
    /// Exa.
    Exa,
    /// A JSON file with answers, for tests and without a network.
    File,
}

settings! {
    /// Who is asked for what is on the web. Unknown fields are refused.
    #[derive(PartialEq, Eq)]
    pub struct SearchSettings {
        /// Who answers `web_search`.
        pub provider: SearchProvider = SearchProvider::default() => words::<SearchProvider>(); Fleet Trust,
        /// Where it is reached, or the path of the file; the provider's own address when absent.
        pub endpoint: Option<String> = None => text().example("\"http://localhost:8888\""); Fleet Trust,
        /// A file that holds the key of the provider.
        pub key_file: Option<String> = None => text().example("\"/run/secrets/search-key\""); Fleet Trust,
        /// Longest time of one search.
        #[serde(with = "muster_shared::span")]
        pub total: Duration = Duration::from_secs(20) => internal(),
        /// How long what was found serves agents of the same role that search for the very same (`tool.cache`); 0 to search each
        /// time.
        #[serde(with = "muster_shared::span")]
        pub cache: Duration = Duration::from_secs(15 * 60) => internal(),
    }
}

settings! {
    /// Services that agents may call with any method. Unknown fields are refused.
    #[derive(PartialEq, Eq)]
    pub struct HttpSettings {
        /// Hosts that `http_request` may call; without any there is no such tool.
        pub hosts: Vec<String> = Vec::new() => list().at_most(MOST_HOSTS).example("[\"api.example.org\"]"); Fleet Trust,
        /// What is added to requests to one host and shown to nobody.
        pub secrets: BTreeMap<String, SecretHeader> = BTreeMap::new() => named("house-api", &group(SecretHeader::SETTINGS)),
    }
}

settings! {
    /// A header that is added to requests to one host.
    #[derive(PartialEq, Eq)]
    pub struct SecretHeader {
        /// The only host that it is sent to, with its port where that is not the usual one.
        pub host: String = String::new() => text().example("\"api.example.org\""); Fleet Trust,
        /// The name of the header.
        pub header: String = "Authorization".to_owned() => text(); Fleet Trust,
        /// What stands before the secret in the header.
        pub prefix: String = String::new() => text().example("\"Bearer \""); Fleet Trust,
        /// The file that holds the secret.
        pub file: String = String::new() => text().example("\"/run/secrets/house-api\""); Fleet Trust,
    }
}
