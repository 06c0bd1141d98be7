//! Streams and buckets of NATS that are read while a task runs: `nats.NAME.describe` of both, `nats.NAME.read` of a stream,
//! `nats.NAME.keys` and `nats.NAME.get` of a bucket.
//!
//! Nothing is connected until a tool is called, and nothing afterwards. What is read is read by readers that the server keeps
//! in memory and that acknowledge nothing: whoever else reads the stream notices nothing of it, and nothing is left behind.

mod ask;
mod bucket;
mod place;
mod shown;
mod stream;
mod subject;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use muster_bus::sources::{SourceEntry, SourceReader, SourceState};
use muster_bus::{BusError, BusSettings};
use muster_shared::text::{beginning, one_line};
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use self::place::{Kind, Place};
use self::shown::{Table, fresh};
use crate::gate::Gate;
use crate::settings::{self, NatsSettings};
use crate::shown::Rows;

/// What a call may take beside connecting and reading.
const BESIDE: Duration = Duration::from_secs(2);
/// Most subjects that are described.
const MAX_SUBJECTS: usize = 50;
/// Most characters of what a server says that are shown.
const MAX_SAID: usize = 400;

/// The tools of all sources, by the names that settings give them. `own` is how this process reaches the fleet's own server.
///
/// # Errors
/// What is wrong with the settings of which source.
pub fn nats_tools(
    sources: &BTreeMap<String, NatsSettings>,
    own: Option<&BusSettings>,
) -> Result<Vec<Arc<dyn Tool>>, String> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for (name, settings) in sources {
        let wrong = |reason: String| format!("tool.nats.{name}: {reason}");
        settings::source_name(name).map_err(wrong)?;
        let place = Place::read(settings, own).map_err(wrong)?;
        let gate = Gate::new(settings.at_once, settings.per_minute);
        let source = Arc::new(Source { name: name.clone(), place, settings: settings.clone(), gate });
        tools.push(Arc::new(DescribeTool(Arc::clone(&source))));
        match source.place.kind {
            Kind::Stream => tools.push(Arc::new(stream::ReadTool(source))),
            Kind::Bucket => {
                tools.push(Arc::new(bucket::KeysTool(Arc::clone(&source))));
                tools.push(Arc::new(bucket::GetTool(source)));
            }
        }
    }
    Ok(tools)
}

/// One stream or bucket.
struct Source {
    name: String,
    place: Place,
    settings: NatsSettings,
    gate: Gate,
}

struct DescribeTool(Arc<Source>);

#[async_trait]
impl Tool for DescribeTool {
    fn spec(&self) -> ToolSpec {
        let what = self.0.words();
        self.0.spec(
            "describe",
            &format!("Shows what the NATS {what} holds: how many entries, of which {}, from when to when. Begin with it.", self.0.of_what()),
            &json!({"subject": self.0.filter_schema()}),
            &[],
        )
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let source = &self.0;
        let wanted = source.wanted(&args, "subject")?;
        let _place = source.gate.admit(ctx, &source.place.hosts).await?;
        source
            .within_time(async {
                let reader = source.open().await?;
                let state = source.state(&reader, Some(&wanted)).await?;
                let prefix = source.place.before_key.as_str();
                let own = |subject: &String| subject.strip_prefix(prefix).unwrap_or(subject).to_owned();
                let counts: Vec<(String, u64)> =
                    state.counts.iter().map(|(subject, count)| (own(subject), *count)).collect();
                let more = state.counted.saturating_sub(counts.len() as u64);
                let said = shown::described(&source.name, &state, &counts, more);
                let counts: Vec<Value> = counts
                    .into_iter()
                    .map(|(subject, count)| json!({"subject": subject, "entries": count}))
                    .collect();
                let data = json!({
                    "entries": state.messages, "bytes": state.bytes, "first": state.first, "last": state.last,
                    "subjects": counts, "more_subjects": more,
                });
                Ok(source.told(&said, data, &state))
            })
            .await
    }
}

impl Source {
    /// What it is, as a model is told.
    fn words(&self) -> String {
        let kind = match self.place.kind {
            Kind::Stream => "stream",
            Kind::Bucket => "bucket",
        };
        let about = one_line(&self.settings.about, 300);
        let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
        format!("{kind} {}{about}", self.name)
    }

    const fn of_what(&self) -> &'static str {
        match self.place.kind {
            Kind::Stream => "subjects",
            Kind::Bucket => "keys",
        }
    }

    fn filter_schema(&self) -> Value {
        let allowed = &self.settings.subject;
        let description = format!(
            "only these {}, within `{allowed}`; `*` is one word, `>` all that follow",
            self.of_what()
        );
        json!({"type": "string", "maxLength": 255, "description": description})
    }

    fn spec(&self, what: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
        let parameters = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        ToolSpec::new(format!("nats.{}.{what}", self.name), description, parameters)
            .needing(Permission::Network)
            .until_allowed()
            .with_timeout(self.settings.connect_time * 2 + self.settings.time + BESIDE)
    }

    fn limit_schema(&self) -> Value {
        json!({"type": "integer", "minimum": 1, "maximum": self.settings.max_rows, "description": "most entries given"})
    }

    /// The subjects or keys that are asked for, as the server knows them.
    fn wanted(&self, args: &Value, name: &str) -> Result<String, ToolFailure> {
        let wanted = subject::narrowed(args[name].as_str(), &self.settings.subject);
        wanted.map(|wanted| self.place.filter(&wanted)).map_err(ToolFailure::InvalidArguments)
    }

    async fn open(&self) -> Result<SourceReader, ToolFailure> {
        let Some(server) = &self.place.server else {
            return Err(ToolFailure::Failed(format!(
                "`{}` is on the fleet's own server, and there is none here. A person has to bring the fleet up, or to name the \
                 server (tool.nats.{}.server).",
                self.name, self.name
            )));
        };
        SourceReader::connect(server).await.map_err(|error| self.failed(&error))
    }

    /// Where the stream stands, if it is there and may be read.
    async fn state(&self, reader: &SourceReader, subjects: Option<&str>) -> Result<SourceState, ToolFailure> {
        let state = reader.state(&self.place.stream, subjects, MAX_SUBJECTS).await;
        let state = state.map_err(|error| self.failed(&error))?.ok_or_else(|| {
            ToolFailure::Failed(format!(
                "there is no {} on that server. A person has to look at tool.nats.{}.",
                self.words(),
                self.name
            ))
        })?;
        match state.of_muster().filter(|_| !self.settings.allow_own_of_muster) {
            Some(own) => Err(ToolFailure::Refused(format!(
                "Not done: {} is a copy of {own}, in which Muster keeps what runs know. Go on without it.",
                self.name
            ))),
            None => Ok(state),
        }
    }

    fn table(&self) -> Table<'_> {
        let max_cell = usize::try_from(self.settings.max_cell).unwrap_or(usize::MAX);
        Table { source: &self.name, before_key: &self.place.before_key, max_cell }
    }

    /// Rows with their citations. One entry is shown as it is.
    fn answer(&self, entries: &[SourceEntry], rows: &Rows, note: &str, state: &SourceState) -> ToolOutput {
        let table = self.table();
        let mut said = match entries {
            [] => "There are no such entries.".to_owned(),
            [one] if rows.columns.last().is_none_or(|last| last != "bytes") => table.whole(one),
            _ => rows.in_words(),
        };
        if !note.is_empty() {
            said.push('\n');
            said.push_str(note);
        }
        let citations: Vec<String> = entries.iter().map(|entry| table.citation(entry)).collect();
        let mut data = rows.to_json();
        data["citations"] = json!(citations);
        self.told(&said, data, state)
    }

    fn told(&self, said: &str, mut data: Value, state: &SourceState) -> ToolOutput {
        let fresh = fresh(&self.name, state);
        data["freshness"] = json!(fresh);
        data["newest"] = json!({
            "entry": state.last, "stored_ms": state.last_at, "asked_ms": state.asked_at, "behind": state.behind,
        });
        ToolOutput::text(format!("{said}\n{fresh}")).with_data(data)
    }

    async fn within_time<T>(
        &self,
        work: impl Future<Output = Result<T, ToolFailure>>,
    ) -> Result<T, ToolFailure> {
        let most = self.settings.connect_time * 2 + self.settings.time;
        tokio::time::timeout(most, work).await.unwrap_or_else(|_| {
            Err(ToolFailure::Unavailable(format!(
                "`{}` was given up after {} ms. Ask for fewer entries, or for other subjects.",
                self.name,
                most.as_millis()
            )))
        })
    }

    /// What a failure is told as.
    fn failed(&self, error: &BusError) -> ToolFailure {
        let said = beginning(&error.to_string(), MAX_SAID);
        match error {
            BusError::Denied { .. } | BusError::Unauthorized { .. } => ToolFailure::Failed(format!(
                "the server does not let `{}` be read: its credentials are not for it. A person has to name others \
                 (tool.nats.{}.credentials, docs/data.md). Go on without it.",
                self.name, self.name
            )),
            BusError::Settings { .. } | BusError::Tls { .. } | BusError::Stranger { .. } => {
                ToolFailure::Failed(format!("{said}. A person has to look at tool.nats.{}.", self.name))
            }
            BusError::Unreachable { .. }
            | BusError::TooOld { .. }
            | BusError::NoJetStream { .. }
            | BusError::Clock { .. }
            | BusError::TimedOut { .. }
            | BusError::NotProvisioned { .. }
            | BusError::TopologyNewer { .. }
            | BusError::Parted { .. }
            | BusError::TooLarge { .. }
            | BusError::Full { .. }
            | BusError::Unreadable { .. }
            | BusError::Conflict { .. }
            | BusError::BadName { .. }
            | BusError::Codec { .. }
            | BusError::Server(_)
            | BusError::Unsupported { .. }
            | BusError::Other { .. } => ToolFailure::Unavailable(format!(
                "`{}` cannot be read now: {said}. Try again later, or go on without it.",
                self.name
            )),
        }
    }
}

#[cfg(test)]
mod tests;
