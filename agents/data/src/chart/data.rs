//! From rows to what is drawn: which column is what, and what is wrong with it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::text::nearest_name;

use super::scale;
use super::{Kind, Wish};
use crate::cell::Cell;
use crate::shown::Rows;

/// Most values of one chart. More than there are pixels.
const MAX_POINTS: u64 = 5_000;

/// Most series of one chart: more cannot be told apart.
const MAX_SERIES: u64 = 12;

/// The largest value that is drawn: sums and differences of such stay numbers.
const LARGEST: f64 = 1e150;

/// Most categories of bars, slices, boxes or rows of a heat map.
const MAX_CATEGORIES: usize = 200;

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    /// The values along the axis: numbers, days or names.
    pub(super) x: Along,
    /// What stands above them.
    pub(super) series: Vec<Series>,
    /// What the axis along is called.
    pub(super) x_name: String,
    /// What the other is called.
    pub(super) y_name: String,
}

/// What stands along an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Along {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Days since 1970.
    Days(Vec<f64>),
    /// Names.
    Names(Vec<String>),
}

/// Values above those along the axis; where there is none, there is a gap.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<Option<f64>>,
}

impl Along {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers(values) | Self::Days(values) => values.len(),
            Self::Names(names) => names.len(),
        }
    }

    /// What stands at a place, in words.
    pub(super) fn words(&self, at: usize) -> String {
        match self {
            Self::Numbers(values) => values.get(at).map(|value| scale::number(*value)).unwrap_or_default(),
            Self::Days(values) => values.get(at).map(|value| scale::day(*value)).unwrap_or_default(),
            Self::Names(names) => names.get(at).cloned().unwrap_or_default(),
        }
    }
}

/// Finds out what is drawn.
///
/// # Errors
/// What is wrong with the data or the wish, and what to do.
pub(super) fn plot(rows: &Rows, wish: &Wish) -> Result<Plot, String> {
    if rows.rows.is_empty() {
        return Err("there are no rows to draw".to_owned());
    }
    let plot = match wish.kind {
        Kind::Histogram => histogram(rows, wish)?,
        Kind::Line
        | Kind::Bar
        | Kind::Area
        | Kind::Scatter
        | Kind::Pie
        | Kind::Donut
        | Kind::Heatmap
        | Kind::Box => columns(rows, wish)?,
    };
    let values = plot.series.iter().map(|series| series.values.iter().flatten().count()).sum::<usize>();
    check_size(&plot, values, wish.kind)?;
    check_signs(&plot, wish)?;
    Ok(plot)
}

fn check_size(plot: &Plot, values: usize, kind: Kind) -> Result<(), String> {
    let (most, most_series) = (MAX_POINTS, MAX_SERIES);
    if values == 0 {
        return Err("there are no numbers to draw".to_owned());
    }
    if values as u64 > most {
        return Err(format!(
            "there are {values} values, {most} is the most; aggregate them, for instance by month"
        ));
    }
    // A row of a heat map is told apart by its place.
    let by_place = matches!(kind, Kind::Heatmap);
    if !by_place && plot.series.len() as u64 > most_series || plot.series.len() > MAX_CATEGORIES {
        return Err(format!(
            "there are {} series, {most_series} is the most; leave some out, or join the small ones",
            plot.series.len()
        ));
    }
    if matches!(kind, Kind::Bar | Kind::Pie | Kind::Donut | Kind::Heatmap | Kind::Box)
        && plot.x.len() > MAX_CATEGORIES
    {
        return Err(format!(
            "there are {} categories, {MAX_CATEGORIES} is the most; draw the largest, or a line",
            plot.x.len()
        ));
    }
    Ok(())
}

fn check_signs(plot: &Plot, wish: &Wish) -> Result<(), String> {
    let values = || plot.series.iter().flat_map(|series| series.values.iter().flatten());
    let below = values().filter(|value| **value <= 0.0).count();
    if wish.log && below > 0 {
        return Err(format!(
            "{below} values are 0 or less, which a logarithmic axis cannot show; leave them out, or `log`"
        ));
    }
    let stacked = wish.log && (wish.stacked || matches!(wish.kind, Kind::Bar | Kind::Area | Kind::Histogram));
    if stacked {
        return Err("bars and areas begin at 0, which a logarithmic axis has not; draw a line or points, or leave `log` out".to_owned());
    }
    let negative = values().any(|value| *value < 0.0);
    match wish.kind {
        Kind::Pie | Kind::Donut if negative => Err("a share cannot be negative; draw bars".to_owned()),
        Kind::Pie | Kind::Donut if values().all(|value| *value == 0.0) => Err("all shares are 0".to_owned()),
        Kind::Bar | Kind::Area if wish.stacked && negative => {
            Err("what is stacked cannot be negative; leave `stacked` out".to_owned())
        }
        Kind::Line
        | Kind::Bar
        | Kind::Area
        | Kind::Scatter
        | Kind::Pie
        | Kind::Donut
        | Kind::Heatmap
        | Kind::Box
        | Kind::Histogram => Ok(()),
    }
}

/// The place of a column.
fn place(rows: &Rows, name: &str) -> Result<usize, String> {
    let same = |column: &String| column.trim().eq_ignore_ascii_case(name.trim());
    rows.columns.iter().position(same).ok_or_else(|| {
        let near = nearest_name(name, rows.columns.iter().map(String::as_str));
        let near = near.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
        format!("there is no column `{name}`.{near} There are {}", rows.columns.join(", "))
    })
}

/// The number in a cell; nothing where it is empty.
fn value(rows: &Rows, row: usize, column: usize) -> Result<Option<f64>, String> {
    let Some(cell) = rows.rows.get(row).and_then(|row| row.get(column)) else { return Ok(None) };
    let is_empty = match cell {
        Cell::Null => true,
        Cell::Text(text) => text.trim().is_empty(),
        Cell::Integer(_) | Cell::Real(_) | Cell::Blob(_) => false,
    };
    if is_empty {
        return Ok(None);
    }
    let name = rows.columns.get(column).map_or("?", String::as_str);
    match cell.number() {
        Some(number) if number.is_finite() && number.abs() <= LARGEST => Ok(Some(number)),
        Some(number) => {
            Err(format!("`{name}` in row {} is {number}, which cannot be drawn; leave it out", row + 1))
        }
        None => {
            let words: String = cell.words().chars().take(40).collect();
            Err(format!(
                "`{name}` in row {} is `{words}` and no number; name the columns of numbers in `y`",
                row + 1
            ))
        }
    }
}

/// Whether all values of a column are numbers, and there are some.
fn is_numeric(rows: &Rows, column: usize) -> bool {
    let values: Vec<_> = (0..rows.rows.len()).map(|row| value(rows, row, column)).collect();
    values.iter().all(Result::is_ok) && values.iter().flatten().any(Option::is_some)
}

fn columns(rows: &Rows, wish: &Wish) -> Result<Plot, String> {
    let x = match &wish.x {
        Some(name) => place(rows, name)?,
        None => 0,
    };
    let split = wish.series.as_ref().map(|name| place(rows, name)).transpose()?;
    let y = if wish.y.is_empty() {
        others(rows, x, split)?
    } else {
        wish.y.iter().map(|name| place(rows, name)).collect::<Result<Vec<_>, _>>()?
    };
    let x_name = rows.columns.get(x).cloned().unwrap_or_default();
    let y_name = match y.as_slice() {
        [one] => rows.columns.get(*one).cloned().unwrap_or_default(),
        _ => String::new(),
    };
    let repeats = matches!(wish.kind, Kind::Scatter | Kind::Box);
    match split {
        Some(split) if !repeats => {
            let [y] = y.as_slice() else {
                return Err("with `series`, one column in `y` is drawn".to_owned());
            };
            pivoted(rows, &Pivot { x, y: *y, split, by_name: by_name(wish.kind) }, x_name, y_name)
        }
        Some(split) => {
            let [y] = y.as_slice() else {
                return Err("with `series`, one column in `y` is drawn".to_owned());
            };
            let along = along(rows, x, &(0..rows.rows.len()).collect::<Vec<_>>(), by_name(wish.kind))?;
            Ok(Plot { series: split_rows(rows, *y, split)?, x: along, x_name, y_name })
        }
        None => {
            let along = along(rows, x, &(0..rows.rows.len()).collect::<Vec<_>>(), by_name(wish.kind))?;
            let series = y.iter().map(|column| {
                let values =
                    (0..rows.rows.len()).map(|row| value(rows, row, *column)).collect::<Result<_, _>>()?;
                Ok(Series { name: rows.columns.get(*column).cloned().unwrap_or_default(), values })
            });
            Ok(Plot { series: series.collect::<Result<_, String>>()?, x: along, x_name, y_name })
        }
    }
}

/// Whether what stands along the axis has a place of its own each, whatever it is.
fn by_name(kind: Kind) -> bool {
    match kind {
        Kind::Bar | Kind::Pie | Kind::Donut | Kind::Heatmap | Kind::Box => true,
        Kind::Line | Kind::Area | Kind::Scatter | Kind::Histogram => false,
    }
}

/// The columns of numbers beside these.
fn others(rows: &Rows, x: usize, split: Option<usize>) -> Result<Vec<usize>, String> {
    let others = (0..rows.columns.len()).filter(|column| *column != x && Some(*column) != split);
    let numeric: Vec<usize> = others.filter(|column| is_numeric(rows, *column)).collect();
    if numeric.is_empty() {
        return Err(format!(
            "there is no column of numbers beside `{}`; name it in `y`",
            rows.columns.get(x).map_or("", String::as_str)
        ));
    }
    Ok(numeric)
}

/// What stands along the axis, of these rows.
fn along(rows: &Rows, column: usize, of: &[usize], by_name: bool) -> Result<Along, String> {
    let words = |row: &usize| {
        rows.rows.get(*row).and_then(|row| row.get(column)).map(Cell::words).unwrap_or_default()
    };
    if !by_name && is_numeric(rows, column) {
        let numbers = of.iter().map(|row| {
            value(rows, *row, column)?
                .ok_or_else(|| format!("`{}` is empty in row {}", rows.columns[column], row + 1))
        });
        return numbers.collect::<Result<_, _>>().map(Along::Numbers);
    }
    let names: Vec<String> = of.iter().map(words).collect();
    let days: Option<Vec<f64>> = names.iter().map(|name| scale::days(name)).collect();
    Ok(match days {
        Some(days) if !by_name && !days.is_empty() => Along::Days(days),
        Some(_) | None => Along::Names(names),
    })
}

struct Pivot {
    x: usize,
    y: usize,
    split: usize,
    by_name: bool,
}

/// One series for each value of a column, over the values along the axis in the order in which they first stand.
fn pivoted(rows: &Rows, pivot: &Pivot, x_name: String, y_name: String) -> Result<Plot, String> {
    let words = |row: usize, column: usize| {
        rows.rows.get(row).and_then(|row| row.get(column)).map(Cell::words).unwrap_or_default()
    };
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut first_rows = Vec::new();
    for row in 0..rows.rows.len() {
        places.entry(words(row, pivot.x)).or_insert_with(|| {
            first_rows.push(row);
            first_rows.len() - 1
        });
    }
    let mut series: Vec<Series> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for row in 0..rows.rows.len() {
        let (name, x) = (words(row, pivot.split), words(row, pivot.x));
        let at = *known.entry(name.clone()).or_insert(series.len());
        if at == series.len() {
            if at >= MAX_CATEGORIES {
                return Err(format!(
                    "there are more than {MAX_CATEGORIES} series; choose another column for `series`"
                ));
            }
            series.push(Series { name: name.clone(), values: vec![None; first_rows.len()] });
        }
        let place = places.get(&x).copied().unwrap_or(0);
        if !seen.insert((at, place)) {
            return Err(format!("there are several rows for `{x}` and `{name}`; sum or average them first"));
        }
        series[at].values[place] = value(rows, row, pivot.y)?;
    }
    Ok(Plot { x: along(rows, pivot.x, &first_rows, pivot.by_name)?, series, x_name, y_name })
}

/// The values of each series at their rows, nothing at those of others.
fn split_rows(rows: &Rows, y: usize, split: usize) -> Result<Vec<Series>, String> {
    let mut series: Vec<Series> = Vec::new();
    for row in 0..rows.rows.len() {
        let name = rows.rows[row].get(split).map(Cell::words).unwrap_or_default();
        let at = series.iter().position(|one| one.name == name).unwrap_or(series.len());
        if at == series.len() {
            if at >= MAX_CATEGORIES {
                return Err(format!(
                    "there are more than {MAX_CATEGORIES} series; choose another column for `series`"
                ));
            }
            series.push(Series { name, values: vec![None; rows.rows.len()] });
        }
        series[at].values[row] = value(rows, row, y)?;
    }
    Ok(series)
}

/// Counts values in ranges of equal width, as many as Sturges' rule says unless a number is wished.
fn histogram(rows: &Rows, wish: &Wish) -> Result<Plot, String> {
    let column = match wish.y.first().or(wish.x.as_ref()) {
        Some(name) => place(rows, name)?,
        None => (0..rows.columns.len())
            .find(|column| is_numeric(rows, *column))
            .ok_or("there is no column of numbers")?,
    };
    let values: Vec<f64> = (0..rows.rows.len())
        .map(|row| value(rows, row, column))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    let extent = scale::Extent::of(values.iter().copied()).ok_or("there are no numbers to draw")?;
    #[expect(clippy::cast_precision_loss, reason = "counts of rows")]
    let sturges = (values.len() as f64).log2().ceil() + 1.0;
    let bins = wish.bins.map_or(sturges, f64::from).clamp(1.0, 100.0);
    let bins = if extent.low < extent.high { bins } else { 1.0 };
    let width = if extent.low < extent.high { (extent.high - extent.low) / bins } else { 1.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
    let place = |value: f64| ((value - extent.low) / width).floor().clamp(0.0, bins - 1.0) as usize;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 100")]
    let mut counts = vec![0_u32; bins as usize];
    for value in values {
        if let Some(count) = counts.get_mut(place(value)) {
            *count += 1;
        }
    }
    let low = |bin: u32| extent.low + f64::from(bin) * width;
    let names = (0..).zip(&counts).map(|(bin, _)| {
        format!("{} to {}", scale::number(round(low(bin), width)), scale::number(round(low(bin + 1), width)))
    });
    let values = counts.iter().map(|count| Some(f64::from(*count))).collect();
    let x_name = rows.columns.get(column).cloned().unwrap_or_default();
    let names = names.collect();
    Ok(Plot {
        x: Along::Names(names),
        series: vec![Series { name: "count".to_owned(), values }],
        x_name,
        y_name: "count".to_owned(),
    })
}

/// To three digits of the width of a range.
fn round(value: f64, width: f64) -> f64 {
    let unit = 10_f64.powf(width.abs().log10().floor() - 2.0);
    let rounded = (value / unit).round() * unit;
    if rounded.is_finite() { rounded } else { value }
}
