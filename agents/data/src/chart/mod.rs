//! `chart`: draws numbers as an SVG file of the workspace, for the report.

mod data;
mod draw;

use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::Use;
use muster_tools::workspace::WorkspacePath;
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cell::Cell;
use crate::shown::{Rows, Total};
use crate::sql::{Queries, Query, file_query};

/// Most rows that are read for a chart.
const MAX_ROWS: usize = 100_000;

/// The kind of a chart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Line,
    Bar,
    Area,
    Scatter,
    Histogram,
}

impl Kind {
    fn words(self) -> String {
        format!("{self:?} chart").to_lowercase()
    }

    const fn starts_at_zero(self) -> bool {
        matches!(self, Self::Bar | Self::Area | Self::Histogram)
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Request {
    kind: Kind,
    title: String,
    x: Option<String>,
    y: Vec<String>,
    series: Option<String>,
    stacked: bool,
    log: bool,
    bins: Option<u32>,
    x_label: Option<String>,
    y_label: Option<String>,
    width: Option<u32>,
    height: Option<u32>,
    path: String,
    data: Option<Inline>,
    file: Option<String>,
    query: Option<String>,
    files: Vec<String>,
}

impl Request {
    const fn is_stacked(&self) -> bool {
        self.stacked && self.kind.starts_at_zero()
    }
}

/// Data in the call itself.
#[derive(Debug, Clone, Deserialize)]
struct Inline {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// The tool `chart`.
pub(crate) fn chart_tool(queries: Arc<Queries>) -> Arc<dyn Tool> {
    Arc::new(Chart(queries))
}

struct Chart(Arc<Queries>);

fn properties() -> Value {
    let label = json!({"type": "string", "maxLength": 200});
    let names =
        |description| json!({"type": "array", "items": label, "maxItems": 100, "description": description});
    json!({
        "kind": {"enum": ["line", "bar", "area", "scatter", "histogram"]},
        "title": label,
        "data": {
            "type": "object",
            "properties": {
                "columns": {"type": "array", "items": label, "minItems": 1, "maxItems": 100},
                "rows": {"type": "array", "items": {"type": "array", "maxItems": 100}, "maxItems": MAX_ROWS}
            },
            "required": ["columns", "rows"],
            "additionalProperties": false
        },
        "file": {"type": "string", "description": "instead of data: a CSV file or another with one table"},
        "query": {"type": "string", "description": "instead of data: a query as `sql` takes it"},
        "files": names("with query: the files that it reads"),
        "x": {"type": "string", "description": "the column along the axis; the first when absent"},
        "y": names("the columns of numbers; all others when absent"),
        "series": {"type": "string", "description": "a column whose values tell the series of one column in y apart"},
        "stacked": {"type": "boolean"},
        "log": {"type": "boolean", "description": "a logarithmic axis"},
        "bins": {"type": "integer", "minimum": 1, "maximum": 100},
        "x_label": label,
        "y_label": label,
        "width": {"type": "integer", "minimum": 200, "maximum": 4000},
        "height": {"type": "integer", "minimum": 150, "maximum": 4000},
        "path": {"type": "string", "maxLength": 200, "description": "charts/NAME.svg after the title when absent"}
    })
}

#[async_trait]
impl Tool for Chart {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "chart",
            "Draws a chart from data, a file, or an SQL query, and writes it as an SVG file of the workspace. Gives the line \
             of Markdown that shows it in a report.",
            properties(),
            &["kind"],
        )
        .needing(Permission::WriteWorkspace)
        // The file is replaced as a whole: writing it twice is as good as once.
        .with_repeatable_effects()
        .with_timeout(self.0.timeout())
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let request: Request = crate::arguments(args)?;
        let path = path_of(&request)?;
        ctx.rights.allows(&Use::WriteFile)?;
        let workspace = ctx.workspace()?;
        let (rows, sources) = self.rows(ctx, &request).await?;
        let drawn = tokio::task::spawn_blocking(move || drawn(&rows, &request)).await;
        let drawn = drawn.map_err(|broken| ToolFailure::Failed(format!("the chart broke: {broken}")))?;
        let (svg, shows) = drawn.map_err(|reason| invalid(format!("Nothing was drawn: {reason}.")))?;
        workspace.write(&path, &svg).await?;
        let from = if sources.is_empty() { String::new() } else { format!("\nFrom {}.", sources.join(", ")) };
        let (bytes, markdown) = (svg.len(), format!("![{}]({path})", shows.replace(['[', ']'], " ")));
        let text = format!("Wrote {path} ({bytes} bytes): {shows}{from}\nIn a report: {markdown}");
        Ok(ToolOutput::text(text).with_data(json!({
            "path": path.as_str(), "bytes": bytes, "shows": shows, "markdown": markdown, "sources": sources
        })))
    }
}

fn invalid(fault: String) -> ToolFailure {
    ToolFailure::InvalidArguments(fault)
}

/// The chart as SVG, and a sentence that describes it for readers who do not see it.
fn drawn(rows: &Rows, request: &Request) -> Result<(String, String), String> {
    let plot = data::plot(rows, request)?;
    let label = |text: &str| draw::label(text, draw::MAX_LABEL);
    let series = plot.series.iter().map(|(name, _)| label(name)).collect::<Vec<_>>().join(", ");
    let title =
        if request.title.trim().is_empty() { String::new() } else { format!("{}: ", label(&request.title)) };
    let (low, high) = draw::ends(plot.values()).unwrap_or_default();
    let (low, high) = (draw::number(low), draw::number(high));
    let (kind, by, count) = (request.kind.words(), label(&plot.x_name), plot.values().count());
    let shows = format!("{title}{kind} of {series} by {by}, {count} values from {low} to {high}");
    Ok((draw::draw(&plot, request, &shows)?, shows))
}

fn path_of(request: &Request) -> Result<WorkspacePath, ToolFailure> {
    if request.path.trim().is_empty() {
        let has_words = request.title.contains(char::is_alphanumeric);
        let title = if has_words { &request.title } else { &request.kind.words() };
        let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let name: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(40).collect();
        return Ok(WorkspacePath::parse(&format!("charts/{name}.svg"))?);
    }
    let path = WorkspacePath::parse(request.path.trim())?;
    let is_svg = path.as_str().to_lowercase().ends_with(".svg");
    if is_svg { Ok(path) } else { Err(invalid(format!("`{path}` must end in .svg"))) }
}

impl Chart {
    /// The rows that are drawn, and their sources.
    async fn rows(&self, ctx: &ToolContext, request: &Request) -> Result<(Rows, Vec<String>), ToolFailure> {
        let (sql, files) = match (&request.data, &request.file, &request.query) {
            (Some(inline), None, None) => return Ok((inline_rows(inline)?, Vec::new())),
            (None, Some(file), None) => (file_query(file), vec![file.clone()]),
            (None, None, Some(query)) => (query.clone(), request.files.clone()),
            _ => return Err(invalid("give one of `data`, `file` and `query`".to_owned())),
        };
        let answer = self.0.ask(ctx, Query { sql, files, most: MAX_ROWS }).await?;
        if answer.rows.is_cut() {
            return Err(invalid(format!("there are more than {MAX_ROWS} rows; aggregate them first")));
        }
        Ok((answer.rows, answer.sources))
    }
}

fn inline_rows(inline: &Inline) -> Result<Rows, ToolFailure> {
    let width = inline.columns.len();
    if let Some((at, row)) = (1..).zip(&inline.rows).find(|(_, row): &(usize, _)| row.len() != width) {
        let count = row.len();
        return Err(invalid(format!("row {at} has {count} values, and there are {width} columns")));
    }
    let rows = inline.rows.iter().map(|row| row.iter().map(Cell::of_json).collect()).collect();
    Ok(Rows { columns: inline.columns.clone(), rows, total: Total::Given })
}

#[cfg(test)]
mod tests;
