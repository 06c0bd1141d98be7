//! The tools `sql` and `sql.save`.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::Use;
use muster_tools::workspace::WorkspacePath;
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::names;
use super::queries::{Answer, Queries, Query, Schema};

/// How many times the rows of an answer a file may have.
const SAVED: u64 = 100;

/// Most tables whose schema is shown.
const MAX_TABLES: usize = 40;

/// The tools `sql` and `sql.save`.
pub(crate) fn sql_tools(queries: &Arc<Queries>) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Sql(Arc::clone(queries))), Arc::new(Save(Arc::clone(queries)))]
}

struct Sql(Arc<Queries>);
struct Save(Arc<Queries>);

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    query: String,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    schema: bool,
    limit: Option<u64>,
    #[serde(default)]
    path: String,
}

/// The arguments that both tools take.
fn properties() -> Value {
    json!({
        "query": {"type": "string", "maxLength": crate::MAX_QUERY, "description": "one SELECT"},
        "files": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 1000},
            "maxItems": 50,
            "description": "paths of the files to read; those that the query names when absent"
        }
    })
}

#[async_trait]
impl Tool for Sql {
    fn spec(&self) -> ToolSpec {
        let mut properties = properties();
        properties["schema"] =
            json!({"type": "boolean", "description": "show tables, columns, types and first rows instead"});
        properties["limit"] = json!({"type": "integer", "minimum": 1, "maximum": self.0.settings().max_rows, "description": "most rows shown"});
        ToolSpec::with_properties(
            "sql",
            "Queries tables in files of the workspace and in documents by SQL (SQLite), read only: CSV, TSV, JSON, JSONL, \
             workbooks, SQLite databases. A table is named after its file, `notes/sales-2024.csv` is sales_2024, and after \
             its sheet where a workbook has several: budget_costs. Begin with `schema`: true. To count, sum or compare \
             figures, use this rather than reading them.",
            properties,
            &[],
        )
        .with_timeout(self.0.timeout())
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let args: Arguments = crate::arguments(args)?;
        if args.schema {
            let schema = self.0.schema(ctx, &args.files).await?;
            return Ok(ToolOutput::text(schema_in_words(&schema)).with_data(schema_as_data(&schema)));
        }
        let most = args.limit.unwrap_or(50).min(self.0.settings().max_rows);
        let query = Query { sql: args.query, files: args.files, most: rows(most) };
        let answer = self.0.ask(ctx, query).await?;
        let mut data = answer.rows.to_json();
        data["sources"] = json!(answer.sources);
        data["remarks"] = json!(answer.remarks);
        Ok(ToolOutput::text(format!("{}{}", answer.rows.in_words(), beside(&answer))).with_data(data))
    }
}

#[async_trait]
impl Tool for Save {
    fn spec(&self) -> ToolSpec {
        let mut properties = properties();
        properties["path"] = json!({"type": "string", "minLength": 5, "maxLength": 200, "description": "such as results/totals.csv"});
        ToolSpec::with_properties(
            "sql.save",
            "Does what `sql` does and writes all rows as a CSV file of the workspace, which can be queried again, drawn by \
             `chart`, or delivered.",
            properties,
            &["query", "path"],
        )
        .needing(Permission::WriteWorkspace)
        // The file is replaced as a whole: writing it twice is as good as once.
        .with_repeatable_effects()
        .with_timeout(self.0.timeout())
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let args: Arguments = crate::arguments(args)?;
        let path = WorkspacePath::parse(&args.path)?;
        if !path.as_str().to_lowercase().ends_with(".csv") {
            return Err(ToolFailure::InvalidArguments(format!("`{path}` must end in .csv")));
        }
        ctx.rights.allows(&Use::WriteFile)?;
        let workspace = ctx.workspace()?;
        let most = rows(self.0.settings().max_rows.saturating_mul(SAVED));
        let query = Query { sql: args.query, files: args.files, most };
        let answer = self.0.ask(ctx, query).await?;
        if answer.rows.is_cut() {
            return Err(ToolFailure::InvalidArguments(format!(
                "nothing was written: there are more than {} rows, the most of a file; aggregate, or save a part with WHERE or LIMIT",
                answer.rows.rows.len()
            )));
        }
        let text = answer.rows.to_csv();
        workspace.write(&path, &text).await?;
        let (count, columns) = (answer.rows.rows.len(), answer.rows.columns.join(", "));
        let said =
            format!("Wrote {count} rows ({columns}; {} bytes) to {path}.{}", text.len(), beside(&answer));
        Ok(ToolOutput::text(said).with_data(
            json!({"path": path.as_str(), "rows": count, "bytes": text.len(), "sources": answer.sources}),
        ))
    }
}

fn rows(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Text below the rows: sources, remarks about the reading of numbers, and files left out.
fn beside(answer: &Answer) -> String {
    let mut said = String::new();
    if !answer.sources.is_empty() {
        let _ = write!(said, "\nFrom {}.", answer.sources.join(", "));
    }
    for remark in &answer.remarks {
        let _ = write!(said, "\n{remark}.");
    }
    if !answer.left_out.is_empty() {
        let _ = write!(said, "\nNot read: {}.", answer.left_out.join("; "));
    }
    said
}

fn schema_in_words(schema: &Schema) -> String {
    let mut said = String::new();
    for (table, first) in schema.tables.iter().zip(&schema.first).take(MAX_TABLES) {
        let count = table.rows.map(|rows| format!(", {rows} rows")).unwrap_or_default();
        let notes = table.note.iter().cloned().chain(table.remarks());
        let note: String = notes.map(|note| format!("; {note}")).collect();
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|column| format!("{} {}", names::quoted(&column.name), column.holds))
            .collect();
        let _ = writeln!(
            said,
            "{} (from {}{count}{note}): {}",
            names_in_sql(&table.name),
            table.place,
            columns.join(", ")
        );
        if !first.rows.is_empty() {
            let _ = writeln!(said, "{}\n", first.in_words());
        }
    }
    if schema.tables.len() > MAX_TABLES {
        let _ = writeln!(said, "and {} more tables; name the `files`", schema.tables.len() - MAX_TABLES);
    }
    if schema.tables.is_empty() {
        said.push_str("There are no tables. Files with tables end in .csv, .tsv, .json, .jsonl, .sqlite, .db, .xlsx, .xls or .ods.");
    }
    if !schema.left_out.is_empty() {
        let _ = write!(said, "Not read: {}.", schema.left_out.join("; "));
    }
    said.trim_end().to_owned()
}

/// Names of tables in files need no quotes unless they have letters of other languages; those in databases have them.
fn names_in_sql(name: &str) -> String {
    if name.contains(['.', '"']) { name.to_owned() } else { names::quoted(name) }
}

fn schema_as_data(schema: &Schema) -> Value {
    let tables = schema.tables.iter().take(MAX_TABLES).map(|table| {
        let columns: Vec<Value> =
            table.columns.iter().map(|column| json!({"name": column.name, "type": column.holds})).collect();
        json!({"name": table.name, "from": table.place, "rows": table.rows, "columns": columns})
    });
    tables.collect()
}
