//! From rows to a plot: the roles of the columns, and faults in the data. Pure.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use muster_shared::text::nearest_name;

use super::draw::{ends, number};
use super::{Kind, Request};
use crate::cell::Cell;
use crate::shown::Rows;

/// The largest value that is drawn: sums and differences of such values stay finite.
const LARGEST: f64 = 1e150;
const MAX_VALUES: usize = 5_000;
/// Most series of one chart: readers cannot distinguish more.
const MAX_SERIES: usize = 12;
/// Most bars of one series.
const MAX_CATEGORIES: usize = 200;

/// Series over an axis.
pub(super) struct Plot {
    pub(super) axis: Axis,
    /// The cells of the x column, one for each position.
    pub(super) names: Vec<String>,
    /// The positions on the x axis.
    pub(super) places: Vec<f64>,
    pub(super) series: Vec<Series>,
    pub(super) x_name: String,
    pub(super) y_name: String,
}

/// A name, and one value for each position; absent values are gaps.
pub(super) type Series = (String, Vec<Option<f64>>);

/// The kind of an x axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Numbers,
    /// Days since 1970.
    Days,
    /// Names, at whole numbers from 0.
    Names,
}

impl Plot {
    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|(_, values)| values.iter().flatten().copied())
    }
}

/// Builds the plot of these rows.
///
/// # Errors
/// The fault in the data or the arguments, and the remedy.
pub(super) fn plot(rows: &Rows, request: &Request) -> Result<Plot, String> {
    if rows.rows.is_empty() {
        return Err("there are no rows to draw".to_owned());
    }
    let kind = request.kind;
    let plot = if kind == Kind::Histogram { histogram(rows, request)? } else { columns(rows, request)? };
    let (values, series, categories) = (plot.values().count(), plot.series.len(), plot.names.len());
    let below = plot.values().filter(|value| *value <= 0.0).count();
    for (count, most, what, remedy) in [
        (values, MAX_VALUES, "values", "aggregate them, for instance by month"),
        (series, MAX_SERIES, "series", "leave some out, or join the small ones"),
        (
            if kind == Kind::Bar { categories } else { 0 },
            MAX_CATEGORIES,
            "categories",
            "draw the largest, or a line",
        ),
    ] {
        if count > most {
            return Err(format!("there are {count} {what}, at most {most} are allowed; {remedy}"));
        }
    }
    let fault = match kind {
        _ if values == 0 => "there are no numbers to draw",
        Kind::Bar | Kind::Area | Kind::Histogram if request.log => {
            "bars and areas start at 0, which a logarithmic axis cannot show; draw a line or points, or leave `log` out"
        }
        Kind::Bar | Kind::Area if request.stacked && plot.values().any(|value| value < 0.0) => {
            "stacked values cannot be negative; leave `stacked` out"
        }
        Kind::Line | Kind::Scatter if request.log && below > 0 => {
            return Err(format!(
                "{below} values are 0 or less, which a logarithmic axis cannot show; leave them out, or `log`"
            ));
        }
        Kind::Line | Kind::Scatter | Kind::Bar | Kind::Area | Kind::Histogram => return Ok(plot),
    };
    Err(fault.to_owned())
}

/// The index of a column.
fn place(rows: &Rows, name: &str) -> Result<usize, String> {
    let same = |column: &String| column.trim().eq_ignore_ascii_case(name.trim());
    rows.columns.iter().position(same).ok_or_else(|| {
        let near = nearest_name(name, rows.columns.iter().map(String::as_str));
        let near = near.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
        format!("there is no column `{name}`.{near} There are {}", rows.columns.join(", "))
    })
}

fn words(rows: &Rows, row: usize, column: usize) -> String {
    rows.rows[row].get(column).map(Cell::words).unwrap_or_default()
}

/// The number in a cell. `None`: the cell is empty.
fn value(rows: &Rows, row: usize, column: usize) -> Result<Option<f64>, String> {
    let text = words(rows, row, column);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let at = || format!("`{}` in row {}", rows.columns[column], row + 1);
    match rows.rows[row][column].number() {
        Some(number) if number.abs() <= LARGEST => Ok(Some(number)),
        Some(number) => Err(format!("{} is {number}, which cannot be drawn; leave it out", at())),
        None => {
            let text: String = text.chars().take(40).collect();
            Err(format!("{} is `{text}` and no number; name the columns of numbers in `y`", at()))
        }
    }
}

fn values(rows: &Rows, column: usize) -> Result<Vec<Option<f64>>, String> {
    (0..rows.rows.len()).map(|row| value(rows, row, column)).collect()
}

fn is_numeric(rows: &Rows, column: usize) -> bool {
    values(rows, column).is_ok_and(|values| values.iter().any(Option::is_some))
}

fn columns(rows: &Rows, request: &Request) -> Result<Plot, String> {
    let x = request.x.as_ref().map_or(Ok(0), |name| place(rows, name))?;
    let split = request.series.as_ref().map(|name| place(rows, name)).transpose()?;
    let mut y = request.y.iter().map(|name| place(rows, name)).collect::<Result<Vec<_>, _>>()?;
    if y.is_empty() {
        y = (0..rows.columns.len())
            .filter(|y| *y != x && Some(*y) != split && is_numeric(rows, *y))
            .collect();
    }
    let x_name = rows.columns.get(x).cloned().unwrap_or_default();
    let y_name = match y.as_slice() {
        [] => return Err(format!("there is no column of numbers other than `{x_name}`; name it in `y`")),
        [one] => rows.columns[*one].clone(),
        _ if split.is_some() => return Err("with `series`, one column in `y` is drawn".to_owned()),
        _ => String::new(),
    };
    // Rows of several series share the positions of equal cells; other rows have a position each.
    let is_shared = split.is_some() && request.kind != Kind::Scatter;
    let (mut known, mut first, mut at) = (HashMap::new(), Vec::new(), Vec::new());
    for row in 0..rows.rows.len() {
        let next = first.len();
        at.push(if is_shared { *known.entry(words(rows, row, x)).or_insert(next) } else { next });
        if at[row] == next {
            first.push(row);
        }
    }
    let (mut series, mut numbers): (Vec<Series>, _) = (Vec::new(), HashMap::new());
    for column in y {
        for (row, value) in values(rows, column)?.into_iter().enumerate() {
            let name = split.map_or_else(|| rows.columns[column].clone(), |split| words(rows, row, split));
            let number = *numbers.entry((column, name.clone())).or_insert(series.len());
            if number == series.len() {
                series.push((name, vec![None; first.len()]));
            }
            let (name, values) = &mut series[number];
            if values[at[row]].is_some() {
                let x = words(rows, row, x);
                return Err(format!(
                    "there are several rows for `{x}` and `{name}`; sum or average them first"
                ));
            }
            values[at[row]] = value;
        }
    }
    let names: Vec<String> = first.iter().map(|row| words(rows, *row, x)).collect();
    let numbers = first.iter().map(|row| value(rows, *row, x).ok().flatten()).collect::<Option<Vec<_>>>();
    let days = names.iter().map(|name| days(name)).collect::<Option<Vec<_>>>();
    let (axis, places) = match (numbers, days) {
        (Some(numbers), _) if request.kind != Kind::Bar => (Axis::Numbers, numbers),
        (None, Some(days)) if request.kind != Kind::Bar => (Axis::Days, days),
        (Some(_) | None, _) => (Axis::Names, (0_u32..).take(names.len()).map(f64::from).collect()),
    };
    Ok(Plot { axis, names, places, series, x_name, y_name })
}

/// The days since 1970 of `2026-11-22` or `2026-11-22T12:00`. `None`: the text is not a date.
fn days(text: &str) -> Option<f64> {
    let utc = |at: Timestamp| TimeZone::UTC.to_datetime(at);
    let is_date = text.get(4..5)? == "-" && text.get(7..8)? == "-";
    let at = text.parse::<DateTime>().or_else(|_| text.parse().map(utc)).ok().filter(|_| is_date)?;
    Some(at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs_f64() / 86_400.0)
}

/// Counts values in ranges of equal width: by default as many as Sturges' rule gives.
fn histogram(rows: &Rows, request: &Request) -> Result<Plot, String> {
    let none = "there is no column of numbers";
    let column = match request.y.first().or(request.x.as_ref()) {
        Some(name) => place(rows, name)?,
        None => (0..rows.columns.len()).find(|column| is_numeric(rows, *column)).ok_or(none)?,
    };
    let values: Vec<f64> = values(rows, column)?.into_iter().flatten().collect();
    let (low, high) = ends(values.iter().copied()).ok_or("there are no numbers to draw")?;
    let bins = request.bins.unwrap_or(values.len().next_power_of_two().ilog2() + 1).clamp(1, 100);
    let width = (high - low) / f64::from(bins);
    let (bins, width) = if width > 1e-300 { (bins, width) } else { (1, 1.0) };
    // To three digits of the width.
    let unit = 10_f64.powf(width.log10().floor() - 2.0);
    let edge = |bin: u32| number(((low + f64::from(bin) * width) / unit).round() * unit);
    let bin = |value: &f64| ((value - low) / width).floor().min(f64::from(bins - 1));
    let count = |at: u32| {
        values.iter().filter(|value| (bin(value) - f64::from(at)).abs() < 0.5).fold(0.0, |n, _| n + 1.0)
    };
    Ok(Plot {
        axis: Axis::Names,
        names: (0..bins).map(|bin| format!("{} to {}", edge(bin), edge(bin + 1))).collect(),
        places: (0..bins).map(f64::from).collect(),
        series: vec![("count".to_owned(), (0..bins).map(|bin| Some(count(bin))).collect())],
        x_name: rows.columns[column].clone(),
        y_name: "count".to_owned(),
    })
}
