//! Tool files, `NAME.tool.toml`: a tool of one's own without a server. Read here, and checked with line and column; pure, but
//! for [`tools_of`], which makes tools of what was read.
//!
//! A file says what the tool is (`description`, `[parameters]` or `schema`), what it does (`command`, or `[http]`), what it may
//! touch (`[touches]`), its limits, and which secrets it is given from which files. `docs/own-tools.md` has all of it.

pub mod http;
mod openapi;
mod program;
mod schema;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use muster_shared::claim::{Danger, TrustClaim};
use muster_shared::flow::ToolCache;
use muster_shared::flow::cached::digest_of;
use muster_tools::{ProgramLimits, ProgramRunner, Tool, ToolFailure, Uncertain};
use serde_json::Value;

use http::{Http, HttpCaller, HttpTool};
pub use muster_shared::text::Fault;
pub use openapi::OpenApi;
use program::ProgramTool;

/// How the names of tool files end.
pub const ENDING: &str = ".tool.toml";
/// The largest tool file, in bytes; the largest schema beside one is as large.
pub const MAX_BYTES: u64 = 64 * 1024;
/// As far as this a program is read to tell it from an earlier one, in bytes.
const MOST_PROGRAM: u64 = 16 * 1024 * 1024;
/// The largest secret, in bytes.
pub(crate) const MAX_SECRET: u64 = 64 * 1024;

/// What a tool file defines.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFile {
    /// The name of the tool, without that of its server.
    pub name: String,
    /// What it does and when to use it, in words for a model.
    pub description: String,
    /// JSON Schema of the arguments, or the file beside this one that holds it.
    pub parameters: Parameters,
    /// Whether a call changes nothing.
    pub pure: bool,
    /// What is done about a call that may have taken effect.
    pub uncertain: Uncertain,
    /// Whether a person approves each call before it is made.
    pub approve: bool,
    /// How long answers serve others that make the same call; they serve nobody where absent.
    pub cache: Option<FileCache>,
    /// Hosts that it may reach.
    pub hosts: Vec<String>,
    /// Files and folders that a program may read beside its own folder, relative to the file.
    pub files: Vec<PathBuf>,
    /// Files with secrets, by the name by which they are used, relative to the file.
    pub secrets: BTreeMap<String, PathBuf>,
    /// What a call may use.
    pub limits: ProgramLimits,
    /// What it does.
    pub does: Does,
}

/// How long answers of a tool of a file serve others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCache {
    /// How long.
    pub serves: Duration,
    /// Digest of the file.
    pub file: String,
}

/// Where the schema of the arguments stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameters {
    /// In the tool file.
    Here(Value),
    /// In this file, relative to the tool file.
    Beside(PathBuf),
}

/// What a tool of a file does.
#[derive(Debug, Clone, PartialEq)]
pub enum Does {
    /// It runs a program.
    Program {
        /// The command, the program first.
        command: Vec<String>,
        /// Further variables of its environment.
        environment: BTreeMap<String, String>,
        /// Whether it is kept in. One that is not does what it likes: that takes the user's word.
        sandboxed: bool,
    },
    /// It calls an HTTP endpoint.
    Http(Http),
    /// It calls the operations of a document of OpenAPI: each is a tool.
    OpenApi(OpenApi),
}

impl ToolFile {
    /// Reads a tool file; `stem` is its name, which is that of the tool where it says none.
    ///
    /// # Errors
    /// With what is wrong, and where.
    pub fn parse(text: &str, stem: &str) -> Result<Self, Fault> {
        written::read(text, stem)
    }

    /// The files beside it that it is made of: they are trusted as it is.
    #[must_use]
    pub fn beside(&self, folder: &Path) -> Vec<PathBuf> {
        let schema = match &self.parameters {
            Parameters::Here(_) => None,
            Parameters::Beside(path) => Some(path.clone()),
        };
        let program = match &self.does {
            Does::Program { command, .. } => {
                command.first().filter(|name| name.contains('/')).map(PathBuf::from)
            }
            Does::Http(_) => None,
            Does::OpenApi(openapi) => Some(openapi.document.clone()),
        };
        schema.into_iter().chain(program).map(|path| folder.join(path)).collect()
    }

    /// Claims of the file, which need the user's consent. Each key has a class in this function: a new key does not compile without one.
    #[must_use]
    pub fn claims(&self) -> Vec<TrustClaim> {
        let Self {
            // Harmless: text for models, and limits within the sandbox.
            name: _,
            description: _,
            parameters: _,
            pure: _,
            uncertain: _,
            cache: _,
            limits: _,
            // Narrowing.
            approve: _,
            // Paths, which need consent outside of the project: see `paths`.
            files: _,
            secrets: _,
            // These need consent.
            hosts,
            does,
        } = self;
        let mut claims = match does {
            Does::Program { command, environment, sandboxed: false } => {
                let values = environment.iter().map(|(name, value)| (name, value.as_str()));
                let runs =
                    TrustClaim::new(Danger::Program, "command, outside of the sandbox,", command.join(" "));
                std::iter::once(runs)
                    .chain(TrustClaim::of_values(Danger::Program, "environment", values))
                    .collect()
            }
            Does::Program { command: _, environment: _, sandboxed: true } => Vec::new(),
            Does::Http(http) => vec![TrustClaim::new(Danger::Host, "http", http.in_words())],
            Does::OpenApi(openapi) => vec![TrustClaim::new(Danger::Host, "openapi", openapi.in_words())],
        };
        if !hosts.is_empty() {
            claims.push(TrustClaim::new(Danger::Host, "touches.hosts", hosts.join(", ")));
        }
        claims
    }

    /// Files that it reads, each with its key. Files outside of the project need the user's consent.
    #[must_use]
    pub fn paths(&self) -> Vec<(String, PathBuf)> {
        let secrets = self.secrets.iter().map(|(name, path)| (format!("secrets.{name}"), path.clone()));
        let files = self.files.iter().map(|path| ("touches.files".to_owned(), path.clone()));
        let beside = self.beside(Path::new("")).into_iter().map(|path| ("file beside it,".to_owned(), path));
        let words = self.command().iter().filter(|word| program::is_beside(word));
        let words = words.map(|word| ("command".to_owned(), PathBuf::from(word)));
        secrets.chain(files).chain(beside).chain(words).collect()
    }

    /// Command of the tool; empty if it runs no program.
    #[must_use]
    pub fn command(&self) -> &[String] {
        match &self.does {
            Does::Program { command, .. } => command,
            Does::Http(_) | Does::OpenApi(_) => &[],
        }
    }

    /// How long a call may take.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.limits.time
    }
}

/// What carries out what tool files say.
#[derive(Clone)]
pub struct Hands {
    /// Runs programs and keeps them in.
    pub sandbox: Arc<dyn ProgramRunner>,
    /// Runs programs that are not kept in.
    pub plain: Arc<dyn ProgramRunner>,
    /// Calls over HTTP.
    pub http: Arc<dyn HttpCaller>,
}

/// The tools that a file in this folder defines, each with what it is alone; and what is wrong with those that it does not.
///
/// # Errors
/// When it defines none.
pub fn tools_of(file: ToolFile, folder: &Path, hands: &Hands) -> Result<Defined, String> {
    let (files, faults) = match &file.does {
        Does::OpenApi(openapi) => openapi.expand(&file, folder)?,
        _ => (vec![file], Vec::new()),
    };
    let mut defined = Defined { tools: Vec::with_capacity(files.len()), faults };
    for file in files {
        let tool = tool_of(file.clone(), folder, hands)?;
        defined.tools.push((file, tool));
    }
    Ok(defined)
}

/// What a tool file defines.
pub struct Defined {
    /// The tools, each with what it is.
    pub tools: Vec<(ToolFile, Arc<dyn Tool>)>,
    /// What is wrong with operations that are left out, one line each.
    pub faults: Vec<String>,
}

/// The tool that a file in this folder defines, which defines one.
///
/// # Errors
/// When the schema that lies beside it cannot be used.
fn tool_of(file: ToolFile, folder: &Path, hands: &Hands) -> Result<Arc<dyn Tool>, String> {
    let parameters = match &file.parameters {
        Parameters::Here(schema) => schema.clone(),
        Parameters::Beside(path) => {
            let path = folder.join(path);
            let read = muster_corpus::input::text(&path, MAX_BYTES).and_then(|text| schema::read(&text));
            read.map_err(|why| format!("the schema {} cannot be used: {why}", path.display()))?
        }
    };
    let cache = file.cache.as_ref().and_then(|cache| cache_of(cache, &file.does, folder));
    let own = Own { folder: folder.to_owned(), parameters, cache, file };
    Ok(match own.file.does.clone() {
        Does::Program { command, environment, sandboxed } => {
            let runner = Arc::clone(if sandboxed { &hands.sandbox } else { &hands.plain });
            Arc::new(ProgramTool { own, command, environment, runner })
        }
        Does::Http(http) => Arc::new(HttpTool { own, http, caller: Arc::clone(&hands.http) }),
        Does::OpenApi(_) => return Err("it defines several tools".to_owned()),
    })
}

/// How long answers of a tool serve others, and what tells it from one that is described alike: the file, what it does, and
/// the programs beside it.
fn cache_of(cache: &FileCache, does: &Does, folder: &Path) -> Option<ToolCache> {
    let mut parts = vec![cache.file.clone().into_bytes(), format!("{does:?}").into_bytes()];
    if let Does::Program { command, .. } = does {
        let beside = command.iter().filter(|word| program::is_beside(word));
        parts.extend(beside.map(|word| beginning_of(&folder.join(word))));
    }
    ToolCache::serving(cache.serves, digest_of(&parts))
}

/// A file as far as it is looked at; nothing of one that cannot be read.
fn beginning_of(path: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST_PROGRAM).read_to_end(&mut bytes));
    if read.is_ok() { bytes } else { Vec::new() }
}

/// What all tools of files have in common.
struct Own {
    folder: PathBuf,
    parameters: Value,
    cache: Option<ToolCache>,
    file: ToolFile,
}

impl Own {
    fn spec(&self) -> muster_tools::ToolSpec {
        let ToolFile { name, description, pure, uncertain, approve, .. } = &self.file;
        let spec = muster_tools::ToolSpec::new(name.clone(), description.clone(), self.parameters.clone());
        let spec = if *pure { spec } else { spec.with_side_effects().when_uncertain(*uncertain) };
        let spec = if *approve { spec.approved_by_person() } else { spec };
        spec.with_timeout(self.file.timeout()).cached(self.cache.clone())
    }

    /// The secrets as they are in their files now.
    fn secrets(&self) -> Result<BTreeMap<String, String>, ToolFailure> {
        let read = |(name, path): (&String, &PathBuf)| {
            // Which file it is concerns nobody who calls.
            let text = muster_corpus::input::text(&self.folder.join(path), MAX_SECRET).map_err(|why| {
                tracing::warn!(
                    tool = self.file.name,
                    secret = name,
                    why,
                    "a secret of a tool cannot be read"
                );
                ToolFailure::Failed(format!(
                    "the secret {name} of this tool cannot be read; a person has to look"
                ))
            })?;
            Ok((name.clone(), text.trim().to_owned()))
        };
        self.file.secrets.iter().map(read).collect()
    }
}

#[cfg(test)]
#[path = "carried_out_tests.rs"]
mod carried_out;
#[cfg(test)]
mod tests;
