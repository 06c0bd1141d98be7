//! Databases of PostgreSQL that are asked while a task runs: `postgres.NAME.query` and `postgres.NAME.schema`.
//!
//! Nothing is connected until a tool is called, and nothing afterwards: each call has a connection of its own, with a
//! transaction that only reads. Four things keep a query in: the rights of the role, the bounds of the session, the rules
//! of `guard`, and the limits here. Each answer says which tables it is from and how fresh it is.

mod ask;
mod guard;
mod problem;
mod session;
mod tls;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use tokio::sync::SemaphorePermit;

use self::session::{Place, Session, Standing};
use crate::gate::Gate;
use crate::settings::{self, PostgresSettings};

/// Most tables that are shown.
const MAX_TABLES: i64 = 200;

/// Most tables that are cited: a table in parts has many.
const MAX_CITED: usize = 20;

/// What a call may take beside connecting and its statement.
const BESIDE: Duration = Duration::from_secs(5);

/// The tools of all databases, by the names that settings give them.
///
/// # Errors
/// What is wrong with the settings of which database.
pub fn postgres_tools(databases: &BTreeMap<String, PostgresSettings>) -> Result<Vec<Arc<dyn Tool>>, String> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for (name, database) in databases {
        settings::source_name(name).map_err(|reason| format!("tool.postgres.{name}: {reason}"))?;
        let place = Place::read(database).map_err(|reason| format!("tool.postgres.{name}: {reason}"))?;
        let database = Arc::new(Database {
            name: name.clone(),
            place,
            settings: database.clone(),
            gate: Gate::new(database.at_once, database.per_minute),
        });
        tools.push(Arc::new(QueryTool(Arc::clone(&database))));
        tools.push(Arc::new(SchemaTool(database)));
    }
    Ok(tools)
}

struct Database {
    name: String,
    place: Place,
    settings: PostgresSettings,
    gate: Gate,
}

struct QueryTool(Arc<Database>);
struct SchemaTool(Arc<Database>);

#[async_trait]
impl Tool for QueryTool {
    fn spec(&self) -> ToolSpec {
        let database = &self.0;
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": guard::MAX_QUERY, "description": "one SELECT"},
                "limit": {"type": "integer", "minimum": 1, "maximum": database.settings.max_rows, "description": "most rows given"}
            },
            "required": ["query"],
            "additionalProperties": false
        });
        let about = database.about();
        ToolSpec::new(
            format!("postgres.{}.query", database.name),
            format!("Queries the PostgreSQL database {}{about}, read only. Gives rows with the tables they are from, as citations, and how fresh they are.", database.name),
            parameters,
        )
        .needing(Permission::Network)
        .until_allowed()
        .with_timeout(database.longest())
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let database = &self.0;
        let query = guard::checked(args["query"].as_str().unwrap_or_default())
            .map_err(|reason| ToolFailure::Refused(format!("Not done: {reason}.")))?;
        let most = args["limit"].as_u64().unwrap_or(50).min(database.settings.max_rows);
        let most = usize::try_from(most).unwrap_or(50);
        let _place = database.admit(ctx).await?;
        let mut session = database.place.open().await?;
        let found = database.within_time(ask::ask(&session, query, most, &database.settings)).await?;
        session.is_busy = false;
        let citations: Vec<String> = found
            .tables
            .iter()
            .take(MAX_CITED)
            .map(|table| format!("{}:{}.{}", database.name, table.schema, table.table))
            .collect();
        let fresh = fresh(&session.standing);
        let mut said = found.rows.in_words();
        if !citations.is_empty() {
            let _ = write!(said, "\nFrom {}.", citations.join(", "));
        }
        let _ = write!(said, "\n{fresh}");
        let mut data = found.rows.to_json();
        data["citations"] = json!(citations);
        data["freshness"] = json!(fresh);
        Ok(ToolOutput::text(said).with_data(data))
    }
}

#[async_trait]
impl Tool for SchemaTool {
    fn spec(&self) -> ToolSpec {
        let database = &self.0;
        ToolSpec::new(
            format!("postgres.{}.schema", database.name),
            format!("Shows the tables and columns of the PostgreSQL database {}{}. Begin with it.", database.name, database.about()),
            json!({
                "type": "object",
                "properties": {"table": {"type": "string", "maxLength": 100, "description": "only tables whose name has this in it"}},
                "additionalProperties": false
            }),
        )
        .needing(Permission::Network)
        .until_allowed()
        .with_timeout(database.longest())
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let database = &self.0;
        let part = args["table"].as_str().unwrap_or_default().trim().to_lowercase();
        let _place = database.admit(ctx).await?;
        let mut session = database.place.open().await?;
        let tables = database.within_time(database.tables(&session, &part)).await?;
        session.is_busy = false;
        let mut said: Vec<String> = tables.iter().map(TableShown::in_words).collect();
        if tables.is_empty() {
            said.push("There are no such tables that may be read.".to_owned());
        }
        said.push(fresh(&session.standing));
        let data = tables
            .iter()
            .map(|table| json!({"table": table.name, "columns": table.columns, "rows": table.rows}));
        Ok(ToolOutput::text(said.join("\n")).with_data(data.collect()))
    }
}

/// A table as it is shown.
struct TableShown {
    name: String,
    columns: String,
    rows: f64,
    about: Option<String>,
}

impl TableShown {
    fn in_words(&self) -> String {
        let about = self.about.as_ref().map(|about| format!(", {about}")).unwrap_or_default();
        let rows = if self.rows >= 0.0 {
            format!(" (about {} rows{about})", self.rows)
        } else {
            format!(" ({})", about.trim_start_matches(", "))
        };
        let rows = if rows == " ()" { String::new() } else { rows };
        format!("{}{rows}: {}", self.name, self.columns)
    }
}

/// Tables and views that the role may read, with their columns; how many rows there are is what the server last counted.
const TABLES: &str = "SELECT format('%I.%I', n.nspname, c.relname), \
    (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum) \
     FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), \
    c.reltuples::float8, left(obj_description(c.oid, 'pg_class'), 200) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname::text = ANY($1) AND c.relkind IN ('r', 'v', 'm', 'f', 'p') \
    AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT') \
    AND position($2 IN lower(c.relname::text)) > 0 ORDER BY 1 LIMIT $3";

impl Database {
    fn about(&self) -> String {
        let about = muster_shared::text::one_line(&self.settings.about, 300);
        if about.is_empty() { String::new() } else { format!(" ({about})") }
    }

    fn longest(&self) -> Duration {
        self.settings.connect_time + self.settings.statement_time + BESIDE
    }

    /// Whether it may be asked now, by this task; waits for a place.
    async fn admit(&self, ctx: &ToolContext) -> Result<SemaphorePermit<'_>, ToolFailure> {
        self.gate.admit(ctx, &self.place.hosts).await
    }

    /// The server is to keep the time; where it does not, the call is given up.
    async fn within_time<T>(
        &self,
        work: impl Future<Output = Result<T, ToolFailure>>,
    ) -> Result<T, ToolFailure> {
        let most = self.settings.statement_time + BESIDE / 2;
        tokio::time::timeout(most, work).await.unwrap_or_else(|_| {
            Err(ToolFailure::Failed(format!(
                "The query was stopped after {} ms. Filter or aggregate earlier.",
                most.as_millis()
            )))
        })
    }

    async fn tables(&self, session: &Session, part: &str) -> Result<Vec<TableShown>, ToolFailure> {
        let told = |error: tokio_postgres::Error| problem::told(&error, &self.settings);
        let rows = session
            .client
            .query(TABLES, &[&self.settings.schemas, &part, &MAX_TABLES])
            .await
            .map_err(told)?;
        let shown = |row: &tokio_postgres::Row| {
            let columns: Option<String> = row.try_get(1)?;
            let columns = columns.unwrap_or_default().chars().take(4_000).collect();
            Ok(TableShown { name: row.try_get(0)?, columns, rows: row.try_get(2)?, about: row.try_get(3)? })
        };
        rows.iter().map(shown).collect::<Result<_, tokio_postgres::Error>>().map_err(told)
    }
}

/// How fresh an answer is, in a line.
fn fresh(standing: &Standing) -> String {
    let asked = format!("Asked at {} by the server's clock", standing.asked_at);
    match (standing.is_standby, standing.behind) {
        (false, _) => format!("{asked}."),
        (true, Some(behind)) => format!("{asked}, of a standby that is {behind:.1} s behind at most."),
        (true, None) => format!("{asked}, of a standby that has not said how far it is behind."),
    }
}

#[cfg(test)]
mod tests;
