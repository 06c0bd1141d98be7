//! `mcp.json`: which servers there are and how they are reached, as other tools write it. Pure.

mod expand;
mod strict;

use std::collections::BTreeMap;
use std::path::PathBuf;

use muster_shared::claim::{Danger, TrustClaim};
use muster_shared::text::quoted;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use self::expand::expand;
use self::strict::Strict;
use crate::names::namespaces;

/// Largest file that is read, in bytes.
pub(crate) const MAX_FILE: usize = 1024 * 1024;
/// Most arguments of a command, variables of its environment, and headers.
const MAX_ITEMS: usize = 256;
/// Longest argument or value, in bytes.
const MAX_VALUE: usize = 32 * 1024;
/// Longest name of a server, in characters.
const MAX_NAME: usize = 100;

/// Keys that hold the servers: of most tools, and of VS Code.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];

/// What stands in a file.
#[derive(Debug, Clone, Default)]
pub struct McpFile {
    /// The servers that can be used, by name.
    pub servers: Vec<ServerConfig>,
    /// Those that cannot, and why.
    pub left_out: Vec<LeftOut>,
    /// What was ignored, in words for people.
    pub warnings: Vec<String>,
}

/// A server of the file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub server: String,
    /// Why not, in words for people.
    pub reason: String,
}

/// A server and how it is reached.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name in the file.
    pub name: String,
    /// The first part of its tools' names.
    pub namespace: String,
    /// How it is reached.
    pub reached: Reached,
}

impl ServerConfig {
    /// Claims of the server: each server needs the user's consent. A new key does not compile unless this function handles it.
    /// Values of variables and headers are shown: they name what is sent, and which programs are loaded.
    #[must_use]
    pub fn claims(&self) -> Vec<TrustClaim> {
        let Self { name, namespace: _, reached } = self;
        let secrets = |kind: &str, values: &BTreeMap<String, SecretString>| {
            let values = values.iter().map(|(key, value)| (key, value.expose_secret()));
            TrustClaim::of_values(Danger::Secret, format!("{name} {kind}"), values)
        };
        match reached {
            Reached::Child(ChildCommand { command, args, env, cwd }) => {
                let words: Vec<&str> = std::iter::once(command).chain(args).map(String::as_str).collect();
                let at = cwd.as_ref().map_or_else(String::new, |cwd| format!(" in {}", cwd.display()));
                let runs = TrustClaim::new(Danger::Program, name, format!("{}{at}", words.join(" ")));
                std::iter::once(runs).chain(secrets("env", env)).collect()
            }
            Reached::Http(HttpEndpoint { url, headers }) => {
                let reaches = TrustClaim::new(Danger::Host, name, url.as_str());
                std::iter::once(reaches).chain(secrets("headers", headers)).collect()
            }
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Reached {
    /// A program that is started, and spoken to by its standard input and output.
    Child(ChildCommand),
    /// Streamable HTTP.
    Http(HttpEndpoint),
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct ChildCommand {
    /// A path, or a name that is looked up on the path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment.
    pub env: BTreeMap<String, SecretString>,
    /// Where it starts; where we are when absent.
    pub cwd: Option<PathBuf>,
}

/// An address that speaks streamable HTTP.
#[derive(Debug, Clone)]
pub struct HttpEndpoint {
    /// The address, `http` or `https`.
    pub url: reqwest::Url,
    /// Headers of each request.
    pub headers: BTreeMap<String, SecretString>,
}

impl HttpEndpoint {
    /// The host with its port, as rights name it.
    #[must_use]
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }
}

/// Why a file cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is too large.
    #[error("the file has {0} bytes; at most {MAX_FILE} are read")]
    TooLarge(usize),
    /// It is no JSON.
    #[error("line {line}, column {column}: {reason}")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// It is JSON of another form.
    #[error("{0}")]
    BadForm(String),
    /// It has too many servers.
    #[error("it has {found} servers; at most {most} are allowed")]
    TooMany {
        /// How many it has.
        found: usize,
        /// How many it may have.
        most: usize,
    },
}

/// Returns the value of a variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a file is read with.
pub struct Reading<'a> {
    /// Most servers.
    pub max_servers: usize,
    /// The value of a variable of the environment. Only values of `env` and `headers` are filled with these; without it, they
    /// stay as they are written.
    pub environment: Option<Environment<'a>>,
}

/// Reads a file.
///
/// # Errors
/// When it is no JSON (comments and trailing commas are none), has another form, or is too large. What is wrong with one
/// server alone leaves that server out.
pub fn parse(text: &str, reading: &Reading<'_>) -> Result<McpFile, ConfigError> {
    if text.len() > MAX_FILE {
        return Err(ConfigError::TooLarge(text.len()));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Strict(whole) = serde_json::from_str(text).map_err(|error| not_json(text, &error))?;
    let mut file = McpFile::default();
    let entries = entries_of(whole, &mut file.warnings)?;
    if entries.len() > reading.max_servers {
        return Err(ConfigError::TooMany { found: entries.len(), most: reading.max_servers });
    }
    let names: Vec<&str> = entries.keys().map(String::as_str).collect();
    let namespaces = namespaces(&names);
    for (name, entry) in &entries {
        let mut read = Entry { name, reading, warnings: &mut file.warnings };
        match read.reached(entry) {
            Ok(reached) => file.servers.push(ServerConfig {
                name: name.clone(),
                namespace: namespaces.get(name.as_str()).cloned().unwrap_or_default(),
                reached,
            }),
            Err(reason) => file.left_out.push(LeftOut { server: quoted(name, MAX_NAME), reason }),
        }
    }
    Ok(file)
}

fn not_json(text: &str, error: &serde_json::Error) -> ConfigError {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let at: String = line.chars().skip(error.column().saturating_sub(1)).take(2).collect();
    let whole = error.to_string();
    let said = whole.split(" at line ").next().unwrap_or_default().to_owned();
    let reason = if at.starts_with('/') || at.starts_with('#') {
        format!("{said}; JSON has no comments: remove it")
    } else if said.contains("trailing comma") {
        "a comma before the end of a list or object; remove it".to_owned()
    } else {
        said
    };
    ConfigError::NotJson { line: error.line(), column: error.column(), reason }
}

fn entries_of(whole: Value, warnings: &mut Vec<String>) -> Result<BTreeMap<String, Value>, ConfigError> {
    let Value::Object(mut whole) = whole else {
        return Err(ConfigError::BadForm("the file must be an object with `mcpServers`".to_owned()));
    };
    let mut entries = BTreeMap::new();
    let mut found = false;
    for key in SERVERS {
        let Some(value) = whole.remove(key) else { continue };
        found = true;
        let Value::Object(servers) = value else {
            return Err(ConfigError::BadForm(format!("`{key}` must be an object of servers by name")));
        };
        for (name, entry) in servers {
            if entries.insert(name.clone(), entry).is_some() {
                let name = quoted(&name, MAX_NAME);
                return Err(ConfigError::BadForm(format!("the server `{name}` stands there twice")));
            }
        }
    }
    if !found {
        let form = "the file has no `mcpServers` (nor `servers`): put the servers there by name";
        return Err(ConfigError::BadForm(form.to_owned()));
    }
    warnings.extend(whole.keys().map(|key| format!("`{}` is not read", quoted(key, MAX_NAME))));
    Ok(entries)
}

/// One server of the file that is being read.
struct Entry<'a> {
    name: &'a str,
    reading: &'a Reading<'a>,
    warnings: &'a mut Vec<String>,
}

impl Entry<'_> {
    fn reached(&mut self, entry: &Value) -> Result<Reached, String> {
        if self.name.is_empty() || self.name.chars().count() > MAX_NAME {
            return Err(format!("a name has 1 to {MAX_NAME} characters"));
        }
        let Value::Object(fields) = entry else {
            return Err("it must be an object with `command` or `url`".to_owned());
        };
        if fields.get("disabled") == Some(&Value::Bool(true)) {
            return Err("it is disabled in the file".to_owned());
        }
        match (fields.get("command"), fields.get("url")) {
            (Some(_), Some(_)) => Err("it has both `command` and `url`; remove one".to_owned()),
            (None, None) => Err("it has neither `command` nor `url`".to_owned()),
            (Some(command), None) => self.child(command, fields).map(Reached::Child),
            (None, Some(url)) => self.http(url, fields).map(Reached::Http),
        }
    }

    fn child(&mut self, command: &Value, fields: &Map<String, Value>) -> Result<ChildCommand, String> {
        self.told_of(fields, &["command", "args", "env", "cwd", "type", "disabled"]);
        if !matches!(kind_of(fields)?, None | Some("stdio")) {
            return Err("`type` must be \"stdio\" where there is a `command`".to_owned());
        }
        let command = text_of("command", command)?;
        if command.trim().is_empty() {
            return Err("`command` is empty".to_owned());
        }
        let args = match fields.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(args)) if args.len() <= MAX_ITEMS => {
                args.iter().map(|arg| text_of("args", arg)).collect::<Result<Vec<_>, _>>()?
            }
            Some(_) => return Err(format!("`args` must be a list of at most {MAX_ITEMS} texts")),
        };
        if args.iter().any(|arg| arg.contains("${")) {
            let name = quoted(self.name, MAX_NAME);
            self.warnings.push(format!("`{name}`: `${{…}}` in `args` is passed on as it stands"));
        }
        let cwd =
            fields.get("cwd").filter(|cwd| !cwd.is_null()).map(|cwd| text_of("cwd", cwd)).transpose()?;
        let env = self.filled("env", fields)?;
        if let Some(odd) = env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
            return Err(format!("`{}` is no name for a variable", quoted(odd, MAX_NAME)));
        }
        Ok(ChildCommand { command, args, env, cwd: cwd.map(PathBuf::from) })
    }

    fn http(&mut self, url: &Value, fields: &Map<String, Value>) -> Result<HttpEndpoint, String> {
        self.told_of(fields, &["url", "headers", "type", "disabled"]);
        match kind_of(fields)? {
            None | Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => {}
            Some("sse") => {
                return Err(
                    "`type` is \"sse\", a transport that ended with protocol 2024-11-05 and is not spoken \
                            here; give the server's streamable HTTP address"
                        .to_owned(),
                );
            }
            Some(other) => {
                return Err(format!("`type` \"{}\" is not known; use \"http\"", quoted(other, 20)));
            }
        }
        let text = text_of("url", url)?;
        let url: reqwest::Url = text.parse().map_err(|error| format!("`url` is no address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("`url` must begin with http:// or https:// and name a host".to_owned());
        }
        let headers = self.filled("headers", fields)?;
        Ok(HttpEndpoint { url, headers })
    }

    /// An object of texts, with variables of the environment filled in.
    fn filled(
        &self,
        field: &str,
        fields: &Map<String, Value>,
    ) -> Result<BTreeMap<String, SecretString>, String> {
        let values = match fields.get(field) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(values)) if values.len() <= MAX_ITEMS => values,
            Some(_) => return Err(format!("`{field}` must be an object of at most {MAX_ITEMS} texts")),
        };
        let fill = |(key, value): (&String, &Value)| {
            let place = format!("{field}.{}", quoted(key, MAX_NAME));
            let text = text_of(&place, value)?;
            let filled = match self.reading.environment {
                Some(environment) => {
                    expand(&text, environment).map_err(|reason| format!("`{place}`: {reason}"))?
                }
                None => text,
            };
            Ok((key.clone(), SecretString::from(filled)))
        };
        values.iter().map(fill).collect()
    }

    fn told_of(&mut self, fields: &Map<String, Value>, known: &[&str]) {
        let name = quoted(self.name, MAX_NAME);
        let unknown = fields.keys().filter(|key| !known.contains(&key.as_str()));
        self.warnings.extend(unknown.map(|key| format!("`{name}`: `{}` is not read", quoted(key, MAX_NAME))));
    }
}

fn kind_of(fields: &Map<String, Value>) -> Result<Option<&str>, String> {
    match fields.get("type") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(kind)) => Ok(Some(kind)),
        Some(_) => Err("`type` must be a text".to_owned()),
    }
}

fn text_of(place: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if text.len() > MAX_VALUE => {
            Err(format!("`{place}` has {} bytes; at most {MAX_VALUE} are allowed", text.len()))
        }
        Value::String(text) if text.contains('\0') => Err(format!("`{place}` has a zero byte in it")),
        Value::String(text) => Ok(text.clone()),
        _ => Err(format!("`{place}` must be a text")),
    }
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
