//! Choosing a model: from a spec such as `openai/gpt-4o-mini` and the conventional variables.
//!
//! Nothing here reads the environment or a file itself: look-ups are passed in, so that the same
//! rules serve settings, flags and tests.

use std::fmt;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

/// Who serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ModelProvider {
    /// The built-in rules; no key, no network.
    Offline,
    /// OpenAI, or any server that speaks its chat-completions protocol.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google Gemini.
    Gemini,
    /// Ollama.
    Ollama,
}

impl ModelProvider {
    /// The name used in specs and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Where the provider is reached unless a setting says otherwise.
    #[must_use]
    pub fn default_endpoint(self) -> &'static str {
        match self {
            Self::Offline => "",
            Self::OpenAi => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::Ollama => "http://localhost:11434/",
        }
    }

    /// Variables that may hold the key, most specific first.
    #[must_use]
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::Offline | Self::Ollama => &[],
        }
    }

    /// Variables that may hold the endpoint.
    #[must_use]
    pub fn endpoint_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
            Self::Anthropic => &["ANTHROPIC_BASE_URL"],
            Self::Gemini => &["GEMINI_BASE_URL"],
            Self::Ollama => &["OLLAMA_HOST"],
            Self::Offline => &[],
        }
    }

    /// The model used when only the provider is named.
    fn default_model(self) -> &'static str {
        match self {
            Self::Offline => "rules",
            Self::OpenAi => "gpt-4o-mini",
            Self::Anthropic => "claude-sonnet-4-5",
            Self::Gemini => "gemini-2.5-flash",
            Self::Ollama => "llama3.2",
        }
    }

    /// The provider called `name` in a spec.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "offline" => Some(Self::Offline),
            "openai" => Some(Self::OpenAi),
            "anthropic" | "claude" => Some(Self::Anthropic),
            "gemini" | "google" => Some(Self::Gemini),
            "ollama" => Some(Self::Ollama),
            _ => None,
        }
    }

    /// Guesses the provider of a bare model name.
    fn by_model(model: &str) -> Option<Self> {
        const PREFIXES: &[(&str, ModelProvider)] = &[
            ("gpt-", ModelProvider::OpenAi),
            ("chatgpt-", ModelProvider::OpenAi),
            ("o1", ModelProvider::OpenAi),
            ("o3", ModelProvider::OpenAi),
            ("o4", ModelProvider::OpenAi),
            ("claude-", ModelProvider::Anthropic),
            ("gemini-", ModelProvider::Gemini),
        ];
        let model = model.to_ascii_lowercase();
        PREFIXES.iter().find(|(prefix, _)| model.starts_with(prefix)).map(|(_, provider)| *provider)
    }
}

/// Which model to ask, where, and with which key.
#[derive(Clone)]
pub struct ModelTarget {
    /// Who serves it.
    pub provider: ModelProvider,
    /// The model, as the provider names it.
    pub model: String,
    /// Where to reach it, with a trailing slash; `None` for the provider's own address.
    pub endpoint: Option<Url>,
    /// The key; `None` for servers that need none.
    pub key: Option<SecretString>,
}

/// What settings say about a model, before variables are consulted. All optional.
#[derive(Debug, Clone, Default)]
pub struct TargetSettings {
    /// `offline`, `openai/gpt-4o-mini`, `ollama/llama3.2`, `gpt-4o`, `openai`, …
    pub spec: Option<String>,
    /// Where to reach the provider.
    pub endpoint: Option<String>,
    /// A file that holds the key.
    pub key_file: Option<String>,
}

/// Why a target could not be made out. The texts say what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// The spec names no known provider or model.
    #[error(
        "unknown model {spec:?}: write PROVIDER/MODEL with one of offline, openai, anthropic, gemini, ollama \
         (any OpenAI-compatible server: openai/MODEL with OPENAI_BASE_URL set)"
    )]
    UnknownModel {
        /// What was given.
        spec: String,
    },
    /// The endpoint is no http(s) address.
    #[error("{from} is {given:?}, which is no http or https address (for example http://localhost:8080/v1)")]
    BadEndpoint {
        /// The setting or variable.
        from: String,
        /// What was given, without credentials.
        given: String,
    },
    /// The provider needs a key and none was found.
    #[error(
        "{provider} needs a key: set {variable} (or {variable}_FILE to a file that holds it), or use --model offline"
    )]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The conventional variable.
        variable: &'static str,
    },
    /// The key file could not be read, or is empty.
    #[error("the key file {path} {why}")]
    KeyFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The key holds characters that cannot be sent.
    #[error("the key from {from} holds spaces, line breaks or non-ASCII characters: copy it again")]
    BadKey {
        /// Where the key came from.
        from: String,
    },
}

/// Reads a variable; empty ones count as unset.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;
/// Reads a small file.
pub type FileLookup<'a> = &'a dyn Fn(&str) -> Result<String, String>;

impl ModelTarget {
    /// The offline model.
    #[must_use]
    pub fn offline() -> Self {
        Self {
            provider: ModelProvider::Offline,
            model: ModelProvider::Offline.default_model().to_owned(),
            endpoint: None,
            key: None,
        }
    }

    /// Makes out the target from settings, then conventional variables.
    ///
    /// With nothing set at all the target is [`ModelTarget::offline`]. A key or an OpenAI endpoint in the
    /// environment is enough to choose that provider with its default model.
    ///
    /// # Errors
    /// A [`TargetError`] whose text says what to set.
    pub fn resolve(
        settings: &TargetSettings,
        variable: VariableLookup<'_>,
        file: FileLookup<'_>,
    ) -> Result<Self, TargetError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let spec = settings.spec.as_deref().map(str::trim).filter(|spec| !spec.is_empty());
        let (provider, model) = match spec {
            Some(spec) => parse_spec(spec, &variable)?,
            None => match guess_provider(&variable) {
                Some(provider) => (provider, provider.default_model().to_owned()),
                None => return Ok(Self::offline()),
            },
        };
        if provider == ModelProvider::Offline {
            return Ok(Self::offline());
        }
        let endpoint = find_endpoint(provider, settings.endpoint.as_deref(), &variable)?;
        let key = find_key(provider, settings.key_file.as_deref(), &variable, file)?;
        if key.is_none()
            && endpoint.is_none()
            && let Some(name) = provider.key_variables().first()
        {
            return Err(TargetError::NoKey { provider: provider.name(), variable: name });
        }
        Ok(Self { provider, model, endpoint, key })
    }

    /// `provider/model`, for people and records.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider.name(), self.model)
    }

    /// The address asked, with a trailing slash.
    #[must_use]
    pub fn endpoint_or_default(&self) -> String {
        self.endpoint.as_ref().map_or_else(|| self.provider.default_endpoint().to_owned(), Url::to_string)
    }

    /// Replaces the key, should `text` hold it.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(key) = &self.key {
            let key = key.expose_secret();
            if key.len() >= 4 {
                text = text.replace(key, "[key]");
            }
        }
        if let Some(password) = self.endpoint.as_ref().and_then(Url::password) {
            text = text.replace(password, "[password]");
        }
        text
    }
}

impl fmt::Debug for ModelTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelTarget")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("endpoint", &self.endpoint.as_ref().map(without_credentials))
            .field("key", &self.key.as_ref().map(|_| "[key]"))
            .finish()
    }
}

impl fmt::Display for ModelTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match &self.endpoint {
            Some(endpoint) => write!(f, " at {}", without_credentials(endpoint)),
            None => Ok(()),
        }
    }
}

/// Splits `provider/model`; a model may itself hold slashes (`openai/meta-llama/Llama-3`).
fn parse_spec(
    spec: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(ModelProvider, String), TargetError> {
    if let Some(end) = spec.find(['/', ':'])
        && let Some(provider) = ModelProvider::by_name(&spec[..end])
    {
        // `openai::model` too. A name may itself begin with a slash: servers name models by the paths of their files.
        let model = spec[end..].strip_prefix("::").unwrap_or(&spec[end + 1..]).trim();
        if !model.trim_matches([':', '/']).is_empty() {
            return Ok((provider, model.to_owned()));
        }
        return Ok((provider, provider.default_model().to_owned()));
    }
    if let Some(provider) = ModelProvider::by_name(spec) {
        return Ok((provider, provider.default_model().to_owned()));
    }
    if let Some(provider) = ModelProvider::by_model(spec) {
        return Ok((provider, spec.to_owned()));
    }
    // A server of one's own may name its models as it likes.
    if has_any(ModelProvider::OpenAi.endpoint_variables(), variable) {
        return Ok((ModelProvider::OpenAi, spec.to_owned()));
    }
    Err(TargetError::UnknownModel { spec: spec.chars().take(80).collect() })
}

/// The provider that the environment has been set up for.
fn guess_provider(variable: &dyn Fn(&str) -> Option<String>) -> Option<ModelProvider> {
    const ORDER: [ModelProvider; 3] =
        [ModelProvider::OpenAi, ModelProvider::Anthropic, ModelProvider::Gemini];
    ORDER
        .into_iter()
        .find(|provider| {
            provider
                .key_variables()
                .iter()
                .any(|name| variable(name).is_some() || variable(&format!("{name}_FILE")).is_some())
        })
        .or_else(|| {
            [ModelProvider::OpenAi, ModelProvider::Ollama]
                .into_iter()
                .find(|provider| has_any(provider.endpoint_variables(), variable))
        })
}

fn has_any(names: &[&str], variable: &dyn Fn(&str) -> Option<String>) -> bool {
    names.iter().any(|name| variable(name).is_some())
}

fn find_endpoint(
    provider: ModelProvider,
    setting: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Url>, TargetError> {
    let given = setting.map(|value| ("the endpoint setting".to_owned(), value.to_owned())).or_else(|| {
        provider
            .endpoint_variables()
            .iter()
            .find_map(|name| variable(name).map(|value| ((*name).to_owned(), value)))
    });
    let Some((from, value)) = given else {
        return Ok(None);
    };
    parse_endpoint(provider, &value).map(Some).ok_or_else(|| TargetError::BadEndpoint {
        from,
        given: value.rsplit('@').next().unwrap_or_default().chars().take(120).collect(),
    })
}

/// Reads an address and puts it into the shape the provider's client wants.
fn parse_endpoint(provider: ModelProvider, value: &str) -> Option<Url> {
    let value = value.trim();
    // OLLAMA_HOST is commonly `host:port`, and 0.0.0.0 is where the server listens, not where to call.
    let text = if provider == ModelProvider::Ollama && !value.contains("://") {
        format!("http://{value}").replace("//0.0.0.0", "//127.0.0.1")
    } else {
        value.to_owned()
    };
    let mut url = Url::parse(&text).ok()?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return None;
    }
    if provider == ModelProvider::Ollama && !value.contains("://") && !has_port(&text) {
        url.set_port(Some(11434)).ok()?;
    }
    // ANTHROPIC_BASE_URL is conventionally without the version, the client wants it.
    if provider == ModelProvider::Anthropic && url.path() == "/" {
        url.set_path("/v1/");
    }
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Some(url)
}

fn has_port(text: &str) -> bool {
    text.trim_end_matches('/').rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

fn find_key(
    provider: ModelProvider,
    key_file: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
    file: FileLookup<'_>,
) -> Result<Option<SecretString>, TargetError> {
    if let Some(path) = key_file {
        return read_key(path, file).map(Some);
    }
    for name in provider.key_variables() {
        if let Some(key) = variable(name) {
            return check_key(&key, name).map(Some);
        }
        if let Some(path) = variable(&format!("{name}_FILE")) {
            return read_key(&path, file).map(Some);
        }
    }
    Ok(None)
}

fn read_key(path: &str, file: FileLookup<'_>) -> Result<SecretString, TargetError> {
    let text = file(path).map_err(|why| TargetError::KeyFile {
        path: path.to_owned(),
        why: format!("cannot be read: {why}"),
    })?;
    if text.trim().is_empty() {
        return Err(TargetError::KeyFile { path: path.to_owned(), why: "is empty".to_owned() });
    }
    check_key(&text, path)
}

fn check_key(key: &str, from: &str) -> Result<SecretString, TargetError> {
    let key = key.trim();
    if key.chars().all(|c| c.is_ascii_graphic()) {
        Ok(SecretString::from(key))
    } else {
        Err(TargetError::BadKey { from: from.to_owned() })
    }
}

fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    // Both only fail for addresses without a host, which `parse_endpoint` refuses.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
