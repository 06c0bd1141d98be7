//! From rows to a plot: the roles of the columns, and faults in the data. Pure.

use std::collections::HashMap;

use jiff::civil::DateTime;
use muster_shared::text::{nearest_name, one_line};

use super::draw::{ends, number};
use super::{Kind, Request};
use crate::shown::Rows;

/// The day from which dates are counted.
pub(super) const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
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
    let (kind, is_stacked) = (request.kind, request.is_stacked());
    let plot = if kind == Kind::Histogram { histogram(rows, request)? } else { columns(rows, request)? };
    let values = plot.values().count();
    let bars = if kind == Kind::Bar { plot.names.len() } else { 0 };
    for (count, most, what, remedy) in [
        (values, MAX_VALUES, "values", "aggregate them, for instance by month"),
        (plot.series.len(), MAX_SERIES, "series", "leave some out, or join the small ones"),
        (bars, MAX_CATEGORIES, "categories", "draw the largest, or a line"),
    ] {
        if count > most {
            return Err(format!("there are {count} {what}, at most {most} are allowed; {remedy}"));
        }
    }
    let below = plot.values().filter(|value| *value <= 0.0).count();
    if values == 0 {
        Err("there are no numbers to draw".to_owned())
    } else if request.log && kind.starts_at_zero() {
        Err("bars and areas start at 0, which a logarithmic axis cannot show; draw a line or points, or leave `log` out"
            .to_owned())
    } else if request.log && below > 0 {
        Err(format!(
            "{below} values are 0 or less, which a logarithmic axis cannot show; leave them out, or `log`"
        ))
    } else if is_stacked && plot.values().any(|value| value < 0.0) {
        Err("stacked values cannot be negative; leave `stacked` out".to_owned())
    } else {
        Ok(plot)
    }
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

/// The number in a cell. `None`: the cell is empty.
fn value(rows: &Rows, row: usize, column: usize) -> Result<Option<f64>, String> {
    let cell = &rows.rows[row][column];
    let text = cell.words();
    if text.trim().is_empty() {
        return Ok(None);
    }
    let fault = match cell.number() {
        Some(number) if number.abs() <= LARGEST => return Ok(Some(number)),
        Some(number) => format!("{number}, which cannot be drawn; leave it out"),
        None => format!("`{}` and no number; name the columns of numbers in `y`", one_line(&text, 40)),
    };
    Err(format!("`{}` in row {} is {fault}", rows.columns[column], row + 1))
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
        let is_drawn = |y: &usize| *y != x && Some(*y) != split && is_numeric(rows, *y);
        y.extend((0..rows.columns.len()).filter(is_drawn));
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
        at.push(if is_shared { *known.entry(rows.rows[row][x].words()).or_insert(next) } else { next });
        if at[row] == next {
            first.push(row);
        }
    }
    let (mut series, mut numbers): (Vec<Series>, _) = (Vec::new(), HashMap::new());
    for column in y {
        for (row, value) in values(rows, column)?.into_iter().enumerate() {
            let name =
                split.map_or_else(|| rows.columns[column].clone(), |split| rows.rows[row][split].words());
            let number = *numbers.entry((column, name.clone())).or_insert(series.len());
            if number == series.len() {
                series.push((name, vec![None; first.len()]));
            }
            let (name, values) = &mut series[number];
            if values[at[row]].is_some() {
                let x = rows.rows[row][x].words();
                return Err(format!(
                    "there are several rows for `{x}` and `{name}`; sum or average them first"
                ));
            }
            values[at[row]] = value;
        }
    }
    let names: Vec<String> = first.iter().map(|row| rows.rows[*row][x].words()).collect();
    let numbers = first.iter().map(|row| value(rows, *row, x).ok().flatten()).collect::<Option<Vec<_>>>();
    let days = || names.iter().map(|name| days(name)).collect::<Option<Vec<_>>>();
    let measured = numbers.map(|at| (Axis::Numbers, at)).or_else(|| Some((Axis::Days, days()?)));
    let (axis, places) = measured
        .filter(|_| request.kind != Kind::Bar)
        .unwrap_or_else(|| (Axis::Names, (0_u32..).take(names.len()).map(f64::from).collect()));
    Ok(Plot { axis, names, places, series, x_name, y_name })
}

/// The days since 1970 of `2026-11-22` or `2026-11-22T12:00`. `None`: the text is not a date.
fn days(text: &str) -> Option<f64> {
    let at: DateTime = text.trim_end_matches('Z').parse().ok()?;
    Some(at.duration_since(EPOCH).as_secs_f64() / 86_400.0)
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
    let mut counts = vec![0.0; bins as usize];
    for value in values {
        let bin = ((value - low) / width) as usize;
        counts[bin.min(bins as usize - 1)] += 1.0;
    }
    Ok(Plot {
        axis: Axis::Names,
        names: (0..bins).map(|bin| format!("{} to {}", edge(bin), edge(bin + 1))).collect(),
        places: (0..bins).map(f64::from).collect(),
        series: vec![("count".to_owned(), counts.into_iter().map(Some).collect())],
        x_name: rows.columns[column].clone(),
        y_name: "count".to_owned(),
    })
}
