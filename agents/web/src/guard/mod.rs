//! What may be reached. Pure, but for [`resolver`].
//!
//! A URL is judged by its form, then the task's right to its host, then every address that its name resolves to, each anew
//! for every hop of a redirect. What a setting names may be at a private address; nothing else may.

pub mod resolver;

use std::net::IpAddr;

use muster_shared::flow::rights::HostPattern;
use muster_shared::flow::{Refusal, TaskRights, Use};
use muster_shared::text::quoted;
use muster_tools::address::is_public;
use url::{Host, Url};

use muster_tools::settings::WebSettings;

/// Longest URL, in bytes.
pub const MAX_URL: usize = 4096;

/// Names that mean something within a network only, with all below them.
const LOCAL_NAMES: [&str; 16] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "arpa",
    "test",
    "invalid",
    "example",
    "onion",
    "alt",
    "consul",
];

/// Which addresses a host may be at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Public ones.
    Public,
    /// Any, because a setting names the host.
    Named,
}

/// A URL that may be reached as far as its form tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Without a fragment, and without a dot at the end of its host.
    pub url: Url,
    /// The host with its port: `example.org:443`, `[::1]:80`.
    pub host: String,
    /// Which addresses it may be at.
    pub reach: Reach,
}

/// Why something is not reached. In words for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no URL.
    #[error("{url} is no URL that can be reached ({reason}); give one such as https://example.org/page")]
    NotAUrl {
        /// What was given, cut.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Its scheme is none of the web's.
    #[error("only http and https are reached, not {0}:")]
    Scheme(String),
    /// It has a user name or a password.
    #[error("a URL with a user name or a password in it is not reached; leave them out")]
    UserInfo,
    /// Its port is not among those that are reached.
    #[error("port {port} is not reached; those that are: {}", listed(.reached))]
    Port {
        /// The port.
        port: u16,
        /// Those that are reached.
        reached: Vec<u16>,
    },
    /// Its host is a name within some network.
    #[error("{0} is the name of a host in a private network, which is not reached")]
    LocalName(String),
    /// It is at an address that is not public.
    #[error("{host} is at {address}, which is no public address and is not reached")]
    PrivateAddress {
        /// The host.
        host: String,
        /// Its address.
        address: IpAddr,
    },
    /// A redirect leads from https to http.
    #[error("it redirects from https to http ({0}), which is not followed")]
    Downgrade(String),
    /// A redirect leads nowhere.
    #[error("it redirects without saying where to")]
    NoLocation,
    /// There are too many redirects.
    #[error("it redirects more than {0} times")]
    TooManyRedirects(u32),
    /// The task has no right to the host.
    #[error("{0}")]
    NoRight(Box<Refusal>),
}

fn listed(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

/// Judges URLs by settings.
#[derive(Debug, Clone)]
pub struct Guard {
    named: Vec<HostPattern>,
    ports: Vec<u16>,
}

impl Guard {
    /// A guard by these settings.
    ///
    /// # Errors
    /// When a setting names no host.
    pub fn new(settings: &WebSettings) -> Result<Self, String> {
        Ok(Self {
            named: patterns("tool.web.allow_hosts", &settings.allow_hosts)?,
            ports: settings.ports.clone(),
        })
    }

    /// A URL as it came, judged by its form.
    ///
    /// # Errors
    /// When it is not reached.
    pub fn destination(&self, text: &str) -> Result<Destination, Refused> {
        let wrong = |reason: &str| Refused::NotAUrl { url: quoted(text, 200), reason: reason.to_owned() };
        if text.len() > MAX_URL {
            return Err(wrong("it is longer than 4096 bytes"));
        }
        let url = Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
        self.judge(url)
    }

    /// Where a redirect leads.
    ///
    /// # Errors
    /// When it is not followed.
    pub fn redirected(&self, from: &Url, location: Option<&str>) -> Result<Destination, Refused> {
        let location = location.map(str::trim).filter(|location| !location.is_empty());
        let location = location.ok_or(Refused::NoLocation)?;
        let wrong = |reason: &str| Refused::NotAUrl { url: quoted(location, 200), reason: reason.to_owned() };
        if location.len() > MAX_URL {
            return Err(wrong("it is longer than 4096 bytes"));
        }
        let to = from.join(location).map_err(|error| wrong(&error.to_string()))?;
        let destination = self.judge(to)?;
        if from.scheme() == "https" && destination.url.scheme() == "http" {
            return Err(Refused::Downgrade(quoted(destination.url.as_str(), 200)));
        }
        Ok(destination)
    }

    /// The same for a URL that stands in a setting: whoever wrote it means that host.
    ///
    /// # Errors
    /// When it is no URL of the web.
    pub fn of_setting(text: &str) -> Result<Destination, Refused> {
        let wrong =
            |error: url::ParseError| Refused::NotAUrl { url: quoted(text, 200), reason: error.to_string() };
        let url = Url::parse(text.trim()).map_err(wrong)?;
        let (url, host) = well_formed(url)?;
        Ok(Destination { host: with_port(&url, &host), url, reach: Reach::Named })
    }

    /// The same for a URL whose host stands in a file of the user's: at whatever port that names, and at a private address only
    /// where the file lists the host as one that may be there, or `tool.web.allow_hosts` does.
    ///
    /// # Errors
    /// When it is not reached.
    pub fn of_file(&self, text: &str, private: &[HostPattern]) -> Result<Destination, Refused> {
        let destination = Self::of_setting(text)?;
        if private.iter().any(|pattern| means(pattern, &destination.host)) {
            return Ok(destination);
        }
        match self.judge(destination.url.clone()) {
            Err(Refused::Port { .. }) => {
                let Destination { url, host, .. } = destination;
                let name = url.host_str().unwrap_or_default().to_owned();
                judged_by_name(url, name, host)
            }
            judged => judged,
        }
    }

    fn judge(&self, url: Url) -> Result<Destination, Refused> {
        let (url, name) = well_formed(url)?;
        let port = url.port_or_known_default().unwrap_or_default();
        let host = with_port(&url, &name);
        let is_usual = self.ports.contains(&port);
        // A pattern that names no port means the usual ones.
        let is_meant = |pattern: &HostPattern| {
            if is_usual { means(pattern, &host) } else { names_port(pattern, &name, port) }
        };
        if self.named.iter().any(is_meant) {
            return Ok(Destination { url, host, reach: Reach::Named });
        }
        if !is_usual {
            return Err(Refused::Port { port, reached: self.ports.clone() });
        }
        judged_by_name(url, name, host)
    }
}

/// A host that nothing names as private, with its name and with its port: by its address, if it is one, or by its name.
fn judged_by_name(url: Url, name: String, host: String) -> Result<Destination, Refused> {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) | None => None,
    };
    match address {
        Some(address) if !is_public(address) => Err(Refused::PrivateAddress { host: name, address }),
        None if is_local_name(&name) => Err(Refused::LocalName(name)),
        _ => Ok(Destination { url, host, reach: Reach::Public }),
    }
}

/// The URL without what is not sent, and the name of its host.
fn well_formed(mut url: Url) -> Result<(Url, String), Refused> {
    let wrong = |url: &Url, reason: &str| Refused::NotAUrl {
        url: quoted(url.as_str(), 200),
        reason: reason.to_owned(),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused::Scheme(quoted(url.scheme(), 40)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::UserInfo);
    }
    if url.as_str().len() > MAX_URL {
        return Err(wrong(&url, "it is longer than 4096 bytes"));
    }
    if url.port() == Some(0) {
        return Err(wrong(&url, "there is no port 0"));
    }
    url.set_fragment(None);
    let Some(host) = url.host_str().map(str::to_owned) else {
        return Err(wrong(&url, "it names no host"));
    };
    let name = host.strip_suffix('.').unwrap_or(&host).to_owned();
    if name != host {
        url.set_host(Some(&name)).map_err(|error| wrong(&url, &error.to_string()))?;
    }
    if HostPattern::read(&name).is_ok_and(|pattern| pattern.is_one()) {
        Ok((url, name))
    } else {
        Err(wrong(&url, "no host can have such a name"))
    }
}

/// Whether the task may fetch from there.
///
/// # Errors
/// When it may not.
pub fn allowed(rights: &TaskRights, destination: &Destination) -> Result<(), Refused> {
    rights.allows(&Use::Host(&destination.host)).map_err(|refusal| Refused::NoRight(Box::new(refusal)))
}

/// The hosts that a setting names.
///
/// # Errors
/// When one of them is none.
pub fn patterns(setting: &str, hosts: &[String]) -> Result<Vec<HostPattern>, String> {
    hosts
        .iter()
        .map(|host| {
            HostPattern::read(host).map_err(|why| format!("{setting} names {}: {why}", quoted(host, 100)))
        })
        .collect()
}

/// Whether a pattern means a host with its port.
#[must_use]
pub fn means(pattern: &HostPattern, host: &str) -> bool {
    HostPattern::read(host).is_ok_and(|host| pattern.holds(&host))
}

/// Whether it means the host at that port and at no other.
fn names_port(pattern: &HostPattern, name: &str, port: u16) -> bool {
    let other = if port == 1 { 2 } else { 1 };
    means(pattern, &format!("{name}:{port}")) && !means(pattern, &format!("{name}:{other}"))
}

fn with_port(url: &Url, name: &str) -> String {
    format!("{name}:{}", url.port_or_known_default().unwrap_or_default())
}

/// Whether a name means something within a network only: those without a dot are completed by it.
fn is_local_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    !name.contains('.') || LOCAL_NAMES.contains(&last)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
