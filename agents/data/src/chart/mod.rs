//! `chart`: draws figures as an SVG file of the workspace, for the report and whoever looks.

mod boxes;
mod data;
mod draw;
mod heat;
mod round;
mod scale;
mod svg;

use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::Use;
use muster_tools::workspace::WorkspacePath;
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec, Uncertain};
use serde::Deserialize;
use serde_json::{Value, json};

use self::data::Plot;
use crate::cell::Cell;
use crate::shown::{Rows, Total};
use crate::sql::{Queries, Query, file_query};

/// Width of a chart where nothing is said. In pixels.
const WIDTH: u64 = 800;

/// Height of a chart where nothing is said. In pixels.
const HEIGHT: u64 = 450;

/// Most rows that are read for a chart.
const MAX_ROWS: usize = 100_000;

/// What kind of chart it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Line,
    Bar,
    Area,
    Scatter,
    Pie,
    Donut,
    Histogram,
    Heatmap,
    Box,
}

impl Kind {
    const fn words(self) -> &'static str {
        match self {
            Self::Line => "line chart",
            Self::Bar => "bar chart",
            Self::Area => "area chart",
            Self::Scatter => "scatter plot",
            Self::Pie => "pie chart",
            Self::Donut => "donut chart",
            Self::Histogram => "histogram",
            Self::Heatmap => "heat map",
            Self::Box => "box plot",
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Deserialize)]
struct Wish {
    kind: Kind,
    #[serde(default)]
    title: String,
    x: Option<String>,
    #[serde(default)]
    y: Vec<String>,
    series: Option<String>,
    #[serde(default)]
    stacked: bool,
    #[serde(default)]
    log: bool,
    bins: Option<u32>,
    x_label: Option<String>,
    y_label: Option<String>,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    #[serde(default)]
    path: String,
    data: Option<Inline>,
    file: Option<String>,
    query: Option<String>,
    #[serde(default)]
    files: Vec<String>,
}

/// Data that stands in the call.
#[derive(Debug, Clone, Deserialize)]
struct Inline {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// The tool `chart`.
pub(crate) fn chart_tool(queries: Arc<Queries>) -> Arc<dyn Tool> {
    Arc::new(Chart { queries })
}

struct Chart {
    queries: Arc<Queries>,
}

fn schema() -> Value {
    let name = json!({"type": "string", "minLength": 1, "maxLength": 200});
    let label = json!({"type": "string", "maxLength": 200});
    json!({
        "type": "object",
        "properties": {
            "kind": {"enum": ["line", "bar", "area", "scatter", "pie", "donut", "histogram", "heatmap", "box"]},
            "title": label,
            "data": {
                "type": "object",
                "properties": {
                    "columns": {"type": "array", "items": {"type": "string", "maxLength": 200}, "minItems": 1, "maxItems": 100},
                    "rows": {"type": "array", "items": {"type": "array", "maxItems": 100}, "maxItems": MAX_ROWS}
                },
                "required": ["columns", "rows"],
                "additionalProperties": false
            },
            "file": {"type": "string", "maxLength": 1000, "description": "instead of data: a CSV file or another with one table"},
            "query": {"type": "string", "description": "instead of data: a query as `sql` takes it"},
            "files": {"type": "array", "items": name, "maxItems": 50, "description": "with query: the files that it reads"},
            "x": {"type": "string", "description": "the column along the axis; the first when absent"},
            "y": {"type": "array", "items": name, "maxItems": 100, "description": "the columns of numbers; all others when absent"},
            "series": {"type": "string", "description": "a column whose values tell the series of one column in y apart"},
            "stacked": {"type": "boolean"},
            "log": {"type": "boolean", "description": "a logarithmic axis"},
            "bins": {"type": "integer", "minimum": 1, "maximum": 100},
            "x_label": label,
            "y_label": label,
            "width": {"type": "integer", "minimum": 200, "maximum": 4000},
            "height": {"type": "integer", "minimum": 150, "maximum": 4000},
            "path": {"type": "string", "maxLength": 200, "description": "charts/NAME.svg after the title when absent"}
        },
        "required": ["kind"],
        "additionalProperties": false
    })
}

#[async_trait]
impl Tool for Chart {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "chart",
            "Draws a chart from data, a file, or an SQL query, and writes it as an SVG file of the workspace. Gives the line \
             of Markdown that shows it in a report.",
            schema(),
        )
        .needing(Permission::WriteWorkspace)
        .with_side_effects()
        // The file is replaced as a whole: writing it twice is as good as once.
        .when_uncertain(Uncertain::Repeat)
        .with_timeout(self.queries.timeout())
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let wish: Wish =
            serde_json::from_value(args).map_err(|error| ToolFailure::InvalidArguments(error.to_string()))?;
        let wish = self.completed(wish);
        let path = path_of(&wish)?;
        ctx.rights.allows(&Use::WriteFile).map_err(|refusal| ToolFailure::NoRight(Box::new(refusal)))?;
        let workspace = ctx
            .workspace
            .as_ref()
            .ok_or_else(|| ToolFailure::Unavailable("this run has no workspace".to_owned()))?;
        let (rows, sources) = self.rows(ctx, &wish).await?;
        let drawn = tokio::task::spawn_blocking(move || drawn(&rows, &wish)).await;
        let drawn = drawn.map_err(|broken| ToolFailure::Failed(format!("the chart broke: {broken}")))?;
        let drawn =
            drawn.map_err(|reason| ToolFailure::InvalidArguments(format!("Nothing was drawn: {reason}.")))?;
        workspace.write(&path, &drawn.svg).await?;
        let from = if sources.is_empty() { String::new() } else { format!("\nFrom {}.", sources.join(", ")) };
        let markdown = format!("![{}]({path})", drawn.shows.replace(['[', ']', '\n'], " "));
        let said = format!(
            "Wrote {path} ({} bytes): {}{from}\nIn a report: {markdown}",
            drawn.svg.len(),
            drawn.shows
        );
        Ok(ToolOutput::text(said).with_data(json!({
            "path": path.as_str(), "bytes": drawn.svg.len(), "shows": drawn.shows, "markdown": markdown, "sources": sources
        })))
    }
}

/// A chart and what it shows.
struct Drawn {
    svg: String,
    shows: String,
}

fn drawn(rows: &Rows, wish: &Wish) -> Result<Drawn, String> {
    let plot = data::plot(rows, wish)?;
    let shows = shows(&plot, wish);
    Ok(Drawn { svg: draw::draw(&plot, wish, &shows), shows })
}

/// What a chart shows, in a sentence, for those who do not see it.
fn shows(plot: &Plot, wish: &Wish) -> String {
    let named = |names: Vec<&str>| {
        let shown: Vec<String> = names.iter().take(6).map(|name| svg::label(name)).collect();
        if names.len() > 6 {
            format!("{} and {} more", shown.join(", "), names.len() - 6)
        } else {
            shown.join(", ")
        }
    };
    let series = named(plot.series.iter().map(|series| series.name.as_str()).collect());
    let values = || plot.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let range = scale::Extent::of(values())
        .map(|extent| format!("{} to {}", scale::number(extent.low), scale::number(extent.high)));
    let title =
        if wish.title.trim().is_empty() { String::new() } else { format!("{}: ", svg::label(&wish.title)) };
    format!(
        "{title}{} of {series} by {}, {} values from {}",
        wish.kind.words(),
        svg::label(&plot.x_name),
        values().count(),
        range.unwrap_or_default()
    )
}

fn path_of(wish: &Wish) -> Result<WorkspacePath, ToolFailure> {
    if wish.path.trim().is_empty() {
        let title = if wish.title.trim().is_empty() { wish.kind.words() } else { &wish.title };
        let words: Vec<String> = title
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let name: String = words.join("-").chars().take(40).collect();
        let name = if name.is_empty() { "chart".to_owned() } else { name };
        return Ok(WorkspacePath::parse(&format!("charts/{name}.svg"))?);
    }
    let path = WorkspacePath::parse(wish.path.trim())?;
    if path.as_str().to_lowercase().ends_with(".svg") {
        return Ok(path);
    }
    Err(ToolFailure::InvalidArguments(format!("`{path}` must end in .svg")))
}

impl Chart {
    fn completed(&self, mut wish: Wish) -> Wish {
        let pixels =
            |wanted: u32, usual: u64| if wanted == 0 { u32::try_from(usual).unwrap_or(800) } else { wanted };
        wish.width = pixels(wish.width, WIDTH);
        wish.height = pixels(wish.height, HEIGHT);
        wish
    }

    /// The rows that are drawn, and where they are from.
    async fn rows(&self, ctx: &ToolContext, wish: &Wish) -> Result<(Rows, Vec<String>), ToolFailure> {
        let query = match (&wish.data, &wish.file, &wish.query) {
            (Some(inline), None, None) => return Ok((inline_rows(inline)?, Vec::new())),
            (None, Some(file), None) => {
                Query { sql: file_query(file), files: vec![file.clone()], most: MAX_ROWS }
            }
            (None, None, Some(query)) => {
                Query { sql: query.clone(), files: wish.files.clone(), most: MAX_ROWS }
            }
            (None, None, None) | (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (None, Some(_), Some(_)) => {
                return Err(ToolFailure::InvalidArguments(
                    "give one of `data`, `file` and `query`".to_owned(),
                ));
            }
        };
        let answer = self.queries.ask(ctx, query).await?;
        if answer.rows.is_cut() {
            return Err(ToolFailure::InvalidArguments(format!(
                "there are more than {MAX_ROWS} rows; aggregate them first"
            )));
        }
        Ok((answer.rows, answer.sources))
    }
}

fn inline_rows(inline: &Inline) -> Result<Rows, ToolFailure> {
    let width = inline.columns.len();
    if let Some((at, row)) = (1..).zip(&inline.rows).find(|(_, row): &(usize, _)| row.len() != width) {
        return Err(ToolFailure::InvalidArguments(format!(
            "row {at} has {} values, and there are {width} columns",
            row.len()
        )));
    }
    let rows = inline.rows.iter().map(|row| row.iter().map(Cell::of_json).collect()).collect();
    Ok(Rows { columns: inline.columns.clone(), rows, total: Total::Given })
}

#[cfg(test)]
mod tests;
