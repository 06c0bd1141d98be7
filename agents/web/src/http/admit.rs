//! Which services may be called, and with which headers.

use muster_shared::flow::TaskRights;
use muster_shared::flow::rights::HostPattern;
use muster_shared::text::quoted;
use muster_tools::ToolFailure;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::named;
use crate::failure::WebFailure;
use crate::guard::{self, Destination, Guard, Reach};
use crate::secret::{self, Named};
use muster_tools::settings::{HttpSettings, SecretHeader};

/// Headers that are ours to set: where the request goes, how long it is, how it travels, and its name.
const OURS: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// The services that settings name.
pub(super) struct Services {
    hosts: Vec<HostPattern>,
    secrets: Vec<Secret>,
}

/// A secret header, as a setting has it.
struct Secret {
    name: String,
    host: HostPattern,
    /// Whether the host stands there with its port.
    names_port: bool,
    header: HeaderName,
    setting: SecretHeader,
}

/// A service that may be called.
pub(super) struct Admitted<'a> {
    pub(super) at: Destination,
    headers: Vec<(&'a HeaderName, HeaderValue)>,
    pub(super) secrets: Vec<Named>,
}

impl Services {
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, String> {
        let secrets = settings
            .secrets
            .iter()
            .map(|(name, setting)| Secret::new(name, setting))
            .collect::<Result<_, _>>()?;
        Ok(Self { hosts: guard::patterns("tool.http.hosts", &settings.hosts)?, secrets })
    }

    /// The service at this URL, if it may be called.
    pub(super) fn admit(
        &self,
        guard: &Guard,
        rights: &TaskRights,
        url: &str,
    ) -> Result<Admitted<'_>, ToolFailure> {
        let refused = |why| WebFailure::Refused { url: url.to_owned(), why };
        let at = guard.destination(url).map_err(refused)?;
        if !self.hosts.iter().any(|host| guard::means(host, &at.host)) {
            let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
            return Err(ToolFailure::Refused(format!(
                "{} is not among the hosts that may be called: {}. To read a page, use fetch.",
                at.host,
                hosts.join(", ")
            )));
        }
        guard::allowed(rights, &at).map_err(refused)?;
        let (mut headers, mut secrets) = (Vec::new(), Vec::new());
        for of_host in self.secrets.iter().filter(|secret| secret.is_for(&at)) {
            if at.url.scheme() != "https" && at.reach == Reach::Public {
                return Err(ToolFailure::Refused(format!(
                    "{} needs a secret, which is sent by https only.",
                    at.host
                )));
            }
            let setting = format!("tool.http.secrets.{}.file", of_host.name);
            let wrong = |why| ToolFailure::from(WebFailure::Setting(why));
            let secret = secret::read(&setting, &of_host.setting.file).map_err(wrong)?;
            headers.push((
                &of_host.header,
                secret::header(&setting, &of_host.setting.prefix, &secret).map_err(wrong)?,
            ));
            secrets.push(named(&of_host.name, secret));
        }
        Ok(Admitted { at, headers, secrets })
    }
}

impl Secret {
    fn new(name: &str, setting: &SecretHeader) -> Result<Self, String> {
        let wrong =
            |field: &str, why: &str| format!("tool.http.secrets.{name}.{field} cannot be used: {why}");
        let host = HostPattern::read(&setting.host).map_err(|why| wrong("host", &why))?;
        if !host.is_one() {
            return Err(wrong("host", "it must be one host"));
        }
        let names_port = !guard::means(&host, &format!("{}:1", bare(&setting.host)));
        let header = HeaderName::from_bytes(setting.header.as_bytes())
            .map_err(|_| wrong("header", "no header is called so"))?;
        Ok(Self { name: name.to_owned(), host, names_port, header, setting: setting.clone() })
    }

    /// Whether it is sent there: to its host at its port, which is the usual one where none is named.
    fn is_for(&self, at: &Destination) -> bool {
        guard::means(&self.host, &at.host) && (self.names_port || at.url.port().is_none())
    }
}

/// A host without its port.
fn bare(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => name,
        _ => host,
    }
}

impl Admitted<'_> {
    /// The headers of a request: those asked for, with what is added to them.
    pub(super) fn headers(&self, asked: &Value) -> Result<HeaderMap, ToolFailure> {
        let mut headers = HeaderMap::new();
        for (name, value) in asked.as_object().into_iter().flatten() {
            let wrong =
                |why: &str| ToolFailure::InvalidArguments(format!("The header {} {why}.", quoted(name, 60)));
            let parsed =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("has no name of a header"))?;
            let is_added = self.headers.iter().any(|(added, _)| **added == parsed);
            if is_added || OURS.contains(&parsed.as_str()) || parsed.as_str().starts_with("proxy-") {
                return Err(wrong("is set by itself; leave it out"));
            }
            let value = HeaderValue::from_str(value.as_str().unwrap_or_default());
            headers.append(parsed, value.map_err(|_| wrong("has a value that no header can have"))?);
        }
        for (name, value) in &self.headers {
            headers.insert((*name).clone(), value.clone());
        }
        Ok(headers)
    }
}
