//! Reading a tool file: what may stand in it, and what is wrong with it, where.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use muster_shared::flow::cached::digest_of;
use muster_shared::span;
use muster_shared::wire::tool_server::{LONGEST_CALL_MS, MOST_DESCRIPTION};
use muster_tools::patterns::is_name;
use muster_tools::{ProgramLimits, Uncertain};
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use super::http::{Http, Method};
use super::{Does, Fault, FileCache, OpenApi, Parameters, ToolFile, schema};

/// Most words of a command, variables, secrets, hosts or files.
const MOST_LISTED: usize = 64;
/// Longest time that an answer may serve: those who keep answers keep none for longer.
const LONGEST_CACHE: Duration = Duration::from_secs(30 * 24 * 3600);
/// One MiB, in bytes.
const MIB: u64 = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<Spanned<String>>,
    description: Spanned<String>,
    parameters: Option<Spanned<Value>>,
    schema: Option<Spanned<String>>,
    command: Option<Spanned<Vec<String>>>,
    sandbox: Option<Spanned<bool>>,
    http: Option<Spanned<WrittenHttp>>,
    openapi: Option<Spanned<WrittenOpenApi>>,
    #[serde(default)]
    pure: bool,
    cache: Option<Spanned<String>>,
    #[serde(default)]
    approve: bool,
    uncertain: Option<Uncertain>,
    #[serde(default)]
    touches: Touches,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    secrets: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    limits: Limits,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Touches {
    hosts: Vec<String>,
    files: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    time: Option<Spanned<String>>,
    cpu: Option<Spanned<String>>,
    memory_mib: Option<Spanned<u64>>,
    disk_mib: Option<Spanned<u64>>,
    output_kib: Option<Spanned<u64>>,
    processes: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHttp {
    url: Spanned<String>,
    method: Option<Method>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    query: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenOpenApi {
    document: Spanned<String>,
    base: Spanned<String>,
    operations: Spanned<Vec<String>>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Says where something is wrong.
struct Places<'a>(&'a str);

impl Places<'_> {
    fn fault<T>(&self, of: &Spanned<T>, what: impl Into<String>, advice: &str) -> Fault {
        Fault::at(self.0, of.span().start, what, advice)
    }

    fn top(&self, what: impl Into<String>, advice: &str) -> Fault {
        Fault::at(self.0, 0, what, advice)
    }
}

/// Reads a tool file.
pub(super) fn read(text: &str, stem: &str) -> Result<ToolFile, Fault> {
    let written: Written = toml::from_str(text).map_err(|error| {
        Fault::at(
            text,
            error.span().map_or(0, |span| span.start),
            error.message(),
            "docs/own-tools.md says what may stand in it",
        )
    })?;
    let places = Places(text);
    let name = match &written.name {
        Some(name) if is_name(name.get_ref()) => name.get_ref().clone(),
        Some(name) => {
            return Err(places.fault(name, format!("{:?} is no name for a tool", name.get_ref()), NAME_RULE));
        }
        None if is_name(stem) => stem.to_owned(),
        None => {
            return Err(places
                .top(format!("{stem:?} is no name for a tool"), "say `name`, or call the file otherwise"));
        }
    };
    let description = written.description.get_ref().trim().to_owned();
    if description.is_empty() || description.len() > MOST_DESCRIPTION {
        let what = format!("description must have 1 to {MOST_DESCRIPTION} bytes");
        return Err(places.fault(
            &written.description,
            what,
            "say what it does and when to use it: models choose by it",
        ));
    }
    let files = written.touches.files.iter().map(|path| beside(&places, path)).collect::<Result<_, _>>()?;
    let secrets = secrets(&places, &written.secrets)?;
    let counts =
        [written.touches.hosts.len(), written.touches.files.len(), written.environment.len(), secrets.len()];
    if counts.into_iter().any(|count| count > MOST_LISTED) {
        return Err(
            places.top(format!("hosts, files, variables and secrets are {MOST_LISTED} each at most"), "")
        );
    }
    let mut hosts = written.touches.hosts.clone();
    let does = does(&places, &written)?;
    match &does {
        Does::Http(http) => hosts = vec![http.host()],
        Does::OpenApi(openapi) => hosts = vec![openapi.host()],
        Does::Program { .. } => {}
    }
    Ok(ToolFile {
        name,
        description,
        parameters: parameters(&places, &written)?,
        pure: written.pure,
        uncertain: written.uncertain.unwrap_or_default(),
        approve: written.approve,
        cache: cache(&places, &written)?,
        hosts,
        files,
        secrets,
        limits: limits(&places, &written.limits)?,
        does,
    })
}

const NAME_RULE: &str = "letters, digits, _ and -, 48 at most";

/// A path that stays within the folder of the file.
fn beside(places: &Places<'_>, written: &Spanned<String>) -> Result<PathBuf, Fault> {
    let path = Path::new(written.get_ref());
    let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if stays && !written.get_ref().is_empty() {
        return Ok(path.to_owned());
    }
    let what = format!("{:?} leads out of the folder of the tool file", written.get_ref());
    Err(places.fault(written, what, "name a file beside it, or below it"))
}

fn secrets(
    places: &Places<'_>,
    written: &BTreeMap<String, Spanned<String>>,
) -> Result<BTreeMap<String, PathBuf>, Fault> {
    let one = |(name, path): (&String, &Spanned<String>)| {
        // Unlike other files a secret may lie anywhere: it is often mounted.
        let is_absolute = Path::new(path.get_ref()).is_absolute();
        let file = if is_absolute { PathBuf::from(path.get_ref()) } else { beside(places, path)? };
        Ok((name.clone(), file))
    };
    written.iter().map(one).collect()
}

fn parameters(places: &Places<'_>, written: &Written) -> Result<Parameters, Fault> {
    match (&written.parameters, &written.schema) {
        (Some(_), Some(schema)) => {
            Err(places.fault(schema, "there are both `parameters` and `schema`", "leave one of them out"))
        }
        (Some(here), None) => schema::check(here.get_ref().clone()).map(Parameters::Here).map_err(|why| {
            places.fault(
                here,
                format!("parameters is no JSON Schema that can be used: {why}"),
                "see https://json-schema.org",
            )
        }),
        (None, Some(path)) => beside(places, path).map(Parameters::Beside),
        (None, None) => Ok(Parameters::Here(json!({ "type": "object", "additionalProperties": false }))),
    }
}

fn does(places: &Places<'_>, written: &Written) -> Result<Does, Fault> {
    match (&written.command, &written.http, &written.openapi) {
        (Some(command), None, None) => {
            let words = command.get_ref();
            let is_sound = (1..=MOST_LISTED).contains(&words.len()) && !words[0].is_empty();
            if !is_sound {
                let what = format!("command has 1 to {MOST_LISTED} words, the program first");
                return Err(places.fault(command, what, "such as [\"python3\", \"./count.py\"]"));
            }
            let environment = written.environment.clone();
            let sandboxed = written.sandbox.as_ref().is_none_or(|sandbox| *sandbox.get_ref());
            Ok(Does::Program { command: words.clone(), environment, sandboxed })
        }
        (None, Some(http), None) => {
            let WrittenHttp { url, method, headers, query } = http.get_ref();
            let method = method.unwrap_or(Method::Get);
            Http::new(url.get_ref(), method, headers.clone(), query.clone())
                .and_then(|http| http.touching(&written.touches.hosts))
                .map(Does::Http)
                .map_err(|why| places.fault(url, why, "such as \"https://example.org/items/{id}\""))
        }
        (None, None, Some(openapi)) => openapi_of(places, written, openapi.get_ref()),
        (Some(_), Some(http), _) => {
            Err(places.fault(http, "there are both `command` and `http`", "leave one of them out"))
        }
        (Some(_), None, Some(openapi)) | (None, Some(_), Some(openapi)) => {
            let what = "there is `openapi` beside `command` or `http`";
            Err(places.fault(openapi, what, "leave one of them out"))
        }
        (None, None, None) => {
            Err(places.top("nothing says what the tool does", "say `command`, `[http]` or `[openapi]`"))
        }
    }
}

fn openapi_of(places: &Places<'_>, written: &Written, openapi: &WrittenOpenApi) -> Result<Does, Fault> {
    let WrittenOpenApi { document, base, operations, headers } = openapi;
    let follows = "the document says what the arguments are";
    if let Some(here) = &written.parameters {
        return Err(places.fault(here, "there are both `openapi` and `parameters`", follows));
    }
    if let Some(schema) = &written.schema {
        return Err(places.fault(schema, "there are both `openapi` and `schema`", follows));
    }
    if written.pure {
        return Err(places.top("`pure` follows from the method of each operation", "leave it out"));
    }
    let named = operations.get_ref();
    if !(1..=MOST_LISTED).contains(&named.len()) || named.iter().any(String::is_empty) {
        let what = format!("operations has 1 to {MOST_LISTED} names");
        return Err(places.fault(operations, what, "such as [\"getIssue\", \"list*\"]"));
    }
    OpenApi::new(beside(places, document)?, base.get_ref(), named.clone(), headers.clone())
        .map(Does::OpenApi)
        .map_err(|why| places.fault(base, why, "such as \"https://api.example.org/v1\""))
}

/// How long answers serve others. Those of a tool that changes something serve nobody: its calls are not alike.
fn cache(places: &Places<'_>, written: &Written) -> Result<Option<FileCache>, Fault> {
    let Some(said) = &written.cache else { return Ok(None) };
    // Of a document the method of each operation says whether it changes something.
    if !written.pure && written.openapi.is_none() {
        let what = "`cache` is for tools that change nothing";
        return Err(places.fault(
            said,
            what,
            "say `pure = true` if a call changes nothing, or leave `cache` out",
        ));
    }
    if written.approve {
        let what = "each call is approved by a person, so no answer serves another";
        return Err(places.fault(said, what, "leave `cache` or `approve` out"));
    }
    let serves = span::parse(said.get_ref()).filter(|span| !span.is_zero() && *span <= LONGEST_CACHE);
    match serves {
        Some(serves) => Ok(Some(FileCache { serves, file: digest_of(&[places.0]) })),
        None => {
            let what = format!("{:?} is no time of at most 30 days", said.get_ref());
            Err(places.fault(said, what, "such as \"15m\" or \"1h\""))
        }
    }
}

fn limits(places: &Places<'_>, written: &Limits) -> Result<ProgramLimits, Fault> {
    let usual = ProgramLimits::default();
    let longest = Duration::from_millis(LONGEST_CALL_MS);
    let span = |of: &Option<Spanned<String>>, usual: Duration| match of {
        None => Ok(usual),
        Some(text) => {
            span::parse(text.get_ref()).filter(|span| !span.is_zero() && *span <= longest).ok_or_else(|| {
                places.fault(
                    text,
                    format!("{:?} is no time of at most {} s", text.get_ref(), longest.as_secs()),
                    "such as \"20s\"",
                )
            })
        }
    };
    let number = |of: &Option<Spanned<u64>>, usual: u64, most: u64| match of {
        None => Ok(usual),
        Some(number) if (1..=most).contains(number.get_ref()) => Ok(*number.get_ref()),
        Some(number) => Err(places.fault(number, format!("it must be 1 to {most}"), "")),
    };
    let time = span(&written.time, usual.time)?;
    let output = number(&written.output_kib, (usual.output / 1024) as u64, 16 * 1024)?.saturating_mul(1024);
    let processes = number(&written.processes, u64::from(usual.processes), 4096)?;
    Ok(ProgramLimits {
        time,
        cpu: span(&written.cpu, time)?,
        memory: number(&written.memory_mib, usual.memory / MIB, 1024 * 1024)?.saturating_mul(MIB),
        disk: number(&written.disk_mib, usual.disk / MIB, 1024 * 1024)?.saturating_mul(MIB),
        output: usize::try_from(output).unwrap_or(usual.output),
        processes: u32::try_from(processes).unwrap_or(usual.processes),
    })
}
