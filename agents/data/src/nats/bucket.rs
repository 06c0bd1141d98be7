//! `nats.NAME.keys` and `nats.NAME.get`: keys of a bucket, their values and what these were before.

use std::sync::Arc;

use async_trait::async_trait;
use muster_bus::sources::{SourceBegin, SourceWanted};
use muster_tools::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::{Source, subject};

/// Most values of one key that a bucket keeps (a limit of NATS).
const MAX_HISTORY: u64 = 64;

pub(super) struct KeysTool(pub(super) Arc<Source>);
pub(super) struct GetTool(pub(super) Arc<Source>);

#[async_trait]
impl Tool for KeysTool {
    fn spec(&self) -> ToolSpec {
        let source = &self.0;
        let description =
            format!("Lists the keys of the NATS {}, with when each was written.", source.words());
        let properties = json!({"keys": source.filter_schema(), "limit": source.limit_schema()});
        source.spec("keys", &description, &properties, &[])
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let source = &self.0;
        let filter = source.wanted(&args, "keys")?;
        let limit = args["limit"].as_u64().unwrap_or(50).min(source.settings.max_rows);
        let _place = source.gate.admit(ctx, &source.place.hosts).await?;
        source
            .within_time(async {
                let reader = source.open().await?;
                let state = source.state(&reader, None).await?;
                let wanted = SourceWanted {
                    headers_only: true,
                    ..wanted(source, filter, SourceBegin::LastPerSubject, limit)
                };
                let page = reader.read(&state.stream, &wanted).await;
                let mut page = page.map_err(|error| source.failed(&error))?;
                page.entries.retain(|entry| !entry.is_removal);
                let note = match (page.is_broken_off, page.more) {
                    (true, _) => {
                        "The server stopped before the end: some are missing. Name fewer keys.".to_owned()
                    }
                    (false, 0) => String::new(),
                    (false, more) => format!("{more} more; raise `limit`, or name fewer keys."),
                };
                let rows = source.table().heads(&page.entries);
                Ok(source.answer(&page.entries, &rows, &note, &state))
            })
            .await
    }
}

#[async_trait]
impl Tool for GetTool {
    fn spec(&self) -> ToolSpec {
        let source = &self.0;
        let description = format!(
            "Gets the value of a key of the NATS {}, and with `history` its values before. Gives citations (`{}:PLACE`) and how fresh it is.",
            source.words(),
            source.name
        );
        let properties = json!({
            "key": {"type": "string", "minLength": 1, "maxLength": 255, "description": "one key, as `keys` gives it"},
            "history": {
                "type": "integer", "minimum": 1, "maximum": MAX_HISTORY,
                "description": "the newest so many values, those that were removed among them; as far as the bucket keeps them"
            },
        });
        source.spec("get", &description, &properties, &["key"])
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let source = &self.0;
        let key = args["key"].as_str().unwrap_or_default().trim();
        if key.is_empty() || !subject::is_one(key) {
            return Err(ToolFailure::InvalidArguments(format!(
                "`{key}` is not one key; `nats.{}.keys` lists those there are",
                source.name
            )));
        }
        let filter = source.wanted(&args, "key")?;
        let history = args["history"].as_u64().unwrap_or(1).min(MAX_HISTORY);
        let _place = source.gate.admit(ctx, &source.place.hosts).await?;
        source
            .within_time(async {
                let reader = source.open().await?;
                let state = source.state(&reader, None).await?;
                let wanted = if history == 1 {
                    wanted(source, filter, SourceBegin::LastPerSubject, 1)
                } else {
                    let place = reader.place_of_last(&state, Some(filter.as_str()), history).await;
                    let place = place.map_err(|error| source.failed(&error))?;
                    wanted(source, filter, SourceBegin::At(place), history)
                };
                let page =
                    reader.read(&state.stream, &wanted).await.map_err(|error| source.failed(&error))?;
                if page.entries.is_empty()
                    || history == 1 && page.entries.iter().all(|entry| entry.is_removal)
                {
                    return Err(ToolFailure::NotFound(format!(
                        "there is no value under `{key}` now; `nats.{}.keys` lists the keys there are",
                        source.name
                    )));
                }
                let rows = source.table().rows(&page.entries);
                Ok(source.answer(&page.entries, &rows, "", &state))
            })
            .await
    }
}

fn wanted(source: &Source, filter: String, begin: SourceBegin, most: u64) -> SourceWanted {
    SourceWanted {
        filter: Some(filter),
        begin,
        until: None,
        most: usize::try_from(most).unwrap_or(usize::MAX),
        most_bytes: usize::try_from(source.settings.max_bytes).unwrap_or(usize::MAX),
        headers_only: false,
    }
}
