//! `nats.NAME.read`: entries of a stream.

use std::sync::Arc;

use async_trait::async_trait;
use muster_bus::sources::{SourceBegin, SourceEntry, SourcePage, SourceReader, SourceState, SourceWanted};
use muster_tools::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::ask::{self, Which};
use super::{Source, subject};

/// Most subjects of which the last few entries are looked for, each by itself.
const MAX_APART: usize = 20;

pub(super) struct ReadTool(pub(super) Arc<Source>);

#[async_trait]
impl Tool for ReadTool {
    fn spec(&self) -> ToolSpec {
        let source = &self.0;
        let count = |description: &str| json!({"type": "integer", "minimum": 1, "maximum": source.settings.max_rows, "description": description});
        let place = |description: &str| json!({"type": "integer", "minimum": 0, "description": description});
        let properties = json!({
            "subject": source.filter_schema(),
            "last": count("the newest so many"),
            "last_per_subject": count("the newest so many of each subject"),
            "from": place("from this place on"),
            "to": place("up to this place"),
            "since": {"type": "string", "maxLength": 40, "description": "from this time on, or so long ago: `10m`"},
            "limit": source.limit_schema(),
        });
        let description = format!(
            "Reads entries of the NATS {}: the newest ones, or by place, time or subject. Gives rows with citations (`{}:PLACE`) and how \
             fresh they are.",
            source.words(),
            source.name
        );
        source.spec("read", &description, &properties, &[])
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let source = &self.0;
        let filter = source.wanted(&args, "subject")?;
        let (which, limit) =
            ask::which(&args, source.settings.max_rows).map_err(ToolFailure::InvalidArguments)?;
        let _place = source.gate.admit(ctx, &source.place.hosts).await?;
        source
            .within_time(async {
                let reader = source.open().await?;
                let subjects = matches!(which, Which::LastPerSubject(2..)).then_some(filter.as_str());
                let state = source.state(&reader, subjects).await?;
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let reading = Reading { source, reader: &reader, state: &state, filter, limit };
                let page = reading.page(which).await?;
                let note = note(&page, which);
                let rows = source.table().rows(&page.entries);
                Ok(source.answer(&page.entries, &rows, &note, &state))
            })
            .await
    }
}

/// What was left out of an answer, and how to go on.
fn note(page: &SourcePage, which: Which) -> String {
    if page.is_broken_off {
        return "The server stopped before the end: some are missing. Name fewer subjects.".to_owned();
    }
    let Some(last) = page.entries.last().filter(|_| page.more > 0) else { return String::new() };
    match which {
        Which::Places { to: Some(to), .. } if last.seq >= to => String::new(),
        Which::Places { .. } | Which::Since(_) => {
            format!("{} more follow; go on with {{\"from\": {}}}.", page.more, last.seq + 1)
        }
        // The last ones: what follows came in the meantime.
        Which::Last(_) => String::new(),
        Which::LastPerSubject(_) => {
            format!("{} more subjects or entries; raise `limit`, or name fewer subjects.", page.more)
        }
    }
}

struct Reading<'a> {
    source: &'a Source,
    reader: &'a SourceReader,
    state: &'a SourceState,
    filter: String,
    limit: usize,
}

impl Reading<'_> {
    async fn page(&self, which: Which) -> Result<SourcePage, ToolFailure> {
        match which {
            Which::Places { from, to } => {
                let wanted = SourceWanted { until: to, ..self.wanted(SourceBegin::At(from)) };
                self.read(&wanted).await
            }
            Which::Last(count) => self.last(&self.filter, count).await,
            Which::LastPerSubject(1) => self.read(&self.wanted(SourceBegin::LastPerSubject)).await,
            Which::LastPerSubject(count) => self.last_of_each(count).await,
            Which::Since(since) => {
                self.read(&self.wanted(SourceBegin::Since(since.at(self.state.asked_at)))).await
            }
        }
    }

    fn wanted(&self, begin: SourceBegin) -> SourceWanted {
        SourceWanted {
            filter: Some(self.filter.clone()),
            begin,
            until: None,
            most: self.limit,
            most_bytes: usize::try_from(self.source.settings.max_bytes).unwrap_or(usize::MAX),
            headers_only: false,
        }
    }

    async fn read(&self, wanted: &SourceWanted) -> Result<SourcePage, ToolFailure> {
        let page = self.reader.read(&self.state.stream, wanted).await;
        page.map_err(|error| self.source.failed(&error))
    }

    async fn last(&self, filter: &str, count: u64) -> Result<SourcePage, ToolFailure> {
        let place = self.reader.place_of_last(self.state, Some(filter), count).await;
        let place = place.map_err(|error| self.source.failed(&error))?;
        let most = usize::try_from(count).unwrap_or(usize::MAX).min(self.limit);
        let wanted = SourceWanted {
            filter: Some(filter.to_owned()),
            most,
            // What comes in while this is read is for the next call.
            until: Some(self.state.last),
            ..self.wanted(SourceBegin::At(place))
        };
        self.read(&wanted).await
    }

    /// The last few of each subject, each looked for by itself.
    async fn last_of_each(&self, count: u64) -> Result<SourcePage, ToolFailure> {
        let subjects: Vec<&String> = if subject::is_one(&self.filter) {
            vec![&self.filter]
        } else {
            self.state.counts.keys().collect()
        };
        if self.state.counted > MAX_APART as u64 {
            return Err(ToolFailure::InvalidArguments(format!(
                "{} subjects are meant; of at most {MAX_APART} the last {count} entries are looked for. Name fewer, or ask for \
                 `\"last_per_subject\": 1`.",
                self.state.counted
            )));
        }
        let mut all = SourcePage::default();
        for subject in subjects {
            if all.entries.len() >= self.limit {
                all.more += 1;
                continue;
            }
            let page = self.last(subject, count).await?;
            all.entries.extend(page.entries);
        }
        all.entries.sort_by_key(|entry: &SourceEntry| entry.seq);
        all.more += all.entries.len().saturating_sub(self.limit) as u64;
        all.entries.truncate(self.limit);
        Ok(all)
    }
}
