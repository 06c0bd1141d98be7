//! Drawing of a plot as SVG, with plotters. Pure.

use std::iter::once;
use std::ops::Range;

use jiff::SignedDuration;
use muster_shared::text::{is_control, one_line};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{BoldPoints, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::data::{Axis, EPOCH, Plot, Series};
use super::{Kind, Request};

/// Longest label, in characters.
pub(super) const MAX_LABEL: usize = 60;
/// Longest label of a category or a series, in characters.
const MAX_NAME: usize = 16;
/// Most values of a line that get a dot each.
const MAX_DOTS: usize = 60;
/// Most ticks of the y axis.
const MAX_TICKS: usize = 8;
const FONT: (&str, i32) = ("sans-serif", 12);

/// Colors that people with any color vision can distinguish: Okabe and Ito, then Tol.
const COLORS: [u32; 12] = [
    0x0072B2, 0xE69F00, 0x009E73, 0xCC79A7, 0xD55E00, 0x56B4E9, 0x999933, 0xAA4499, 0x44AA99, 0x882255,
    0x6699CC, 0x888888,
];

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Outcome = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn color(number: usize) -> RGBColor {
    let [_, red, green, blue] = COLORS[number % COLORS.len()].to_be_bytes();
    RGBColor(red, green, blue)
}

/// Draws a plot as an SVG document with a title and a description.
pub(super) fn draw(plot: &Plot, request: &Request, shows: &str) -> Result<String, String> {
    let mut svg = String::new();
    let size = (request.width.unwrap_or(800), request.height.unwrap_or(450));
    let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    on_canvas(canvas, plot, request).map_err(|error| error.to_string())?;
    let escaped = |text| label(text, 1_000).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (title, shows) = (escaped(&request.title), escaped(shows));
    Ok(svg.replacen('>', &format!(" role=\"img\">\n<title>{title}</title>\n<desc>{shows}</desc>"), 1))
}

fn on_canvas(mut canvas: Canvas<'_>, plot: &Plot, request: &Request) -> Outcome {
    canvas.fill(&WHITE)?;
    if !request.title.trim().is_empty() {
        canvas = canvas.titled(&label(&request.title, MAX_LABEL), ("sans-serif", 16))?;
    }
    if plot.series.len() > 1 {
        let width = canvas.dim_in_pixel().0.cast_signed();
        let (left, right) = canvas.split_horizontally(width - (width / 4).min(150));
        for ((number, (name, _)), y) in plot.series.iter().enumerate().zip((20..).step_by(18)) {
            right.draw(&Rectangle::new([(4, y), (14, y + 10)], color(number).filled()))?;
            right.draw(&Text::new(label(name, MAX_NAME), (20, y), FONT))?;
        }
        canvas = left;
    }
    on_axes(&canvas, plot, request)
}

/// The lowest and the highest value.
pub(super) fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.map(|at| (at, at)).reduce(|(low, high), (at, _)| (low.min(at), high.max(at)))
}

/// The ends of an axis, at least one apart.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = ends(values).unwrap_or_default();
    let size = low.abs().max(high.abs());
    let is_flat = high - low <= (size * 1e-9).max(1e-12);
    let pad = if is_flat { (size / 2.0).max(1.0) } else { 0.0 };
    low - pad..high + pad
}

fn on_axes(canvas: &Canvas<'_>, plot: &Plot, request: &Request) -> Outcome {
    let (starts_at_zero, is_stacked) = (request.kind.starts_at_zero(), request.is_stacked());
    // The position, start and end of each value.
    let mut floors = vec![0.0; plot.places.len()];
    let mut mark = |((x, value), floor): ((&f64, &Option<f64>), &mut f64)| {
        let (from, value) = (*floor, value.or(is_stacked.then_some(0.0))?);
        *floor += if is_stacked { value } else { 0.0 };
        Some((*x, from, if request.log { value.log10() } else { from + value }))
    };
    let marks = |(_, values): &Series| {
        plot.places.iter().zip(values).zip(&mut floors).map(&mut mark).collect::<Vec<_>>()
    };
    let marks: Vec<Vec<Option<(f64, f64, f64)>>> = plot.series.iter().map(marks).collect();
    let tops = marks.iter().flatten().flatten().map(|(_, _, top)| *top).chain(starts_at_zero.then_some(0.0));
    let (y, y_most) = if request.log {
        // From one power of ten to another. No ticks between them: the labels are powers of ten.
        let y = range(tops.flat_map(|top| [top.floor(), top.floor() + 1.0]));
        (y.clone(), MAX_TICKS.min((y.end - y.start) as usize + 1))
    } else {
        (range(tops), MAX_TICKS)
    };
    let (is_named, widest) = (plot.axis == Axis::Names, plot.names.iter().map(String::len).max());
    let margin = if is_named { 0.5 } else { 0.0 };
    let x = range(plot.places.iter().flat_map(|at| [at - margin, at + margin]));
    let mut x_most = canvas.dim_in_pixel().0 as usize / (widest.unwrap_or(0).clamp(4, MAX_NAME) * 9);
    if is_named {
        x_most = x_most.min(plot.names.len());
    }
    let x_label = |at: &f64| match plot.axis {
        Axis::Numbers => number(*at),
        Axis::Days => day(*at),
        Axis::Names => {
            plot.names.get(at.round() as usize).map_or(String::new(), |name| label(name, MAX_NAME))
        }
    };
    let y_label = |at: &f64| number(if request.log { 10_f64.powf(at.round()) } else { *at });
    let y_ticks = RangedCoordf64::from(y.clone()).key_points(BoldPoints(y_most));
    let widest = y_ticks.iter().map(|tick| y_label(tick).len()).max().unwrap_or(0);
    let mut chart = ChartBuilder::on(canvas)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(7 * widest as u32 + 30)
        .build_cartesian_2d(x, y)?;
    let described =
        |requested: &Option<String>, usual: &String| label(requested.as_ref().unwrap_or(usual), MAX_LABEL);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .x_labels(x_most)
        .y_labels(y_most)
        .bold_line_style(BLACK.mix(0.15))
        .label_style(FONT)
        .x_label_formatter(&x_label)
        .y_label_formatter(&y_label)
        .x_desc(described(&request.x_label, &plot.x_name))
        .y_desc(described(&request.y_label, &plot.y_name))
        .draw()?;
    let width = if request.kind == Kind::Histogram { 1.0 } else { 0.8 };
    let each = if is_stacked { width } else { width / marks.len() as f64 };
    let mut left = -width / 2.0;
    for (number, marks) in marks.iter().enumerate() {
        let color = color(number);
        for run in marks.split(Option::is_none).filter(|run| !run.is_empty()) {
            let run: Vec<(f64, f64, f64)> = run.iter().flatten().copied().collect();
            let line: Vec<(f64, f64)> = run.iter().map(|(x, _, top)| (*x, *top)).collect();
            if starts_at_zero && request.kind != Kind::Area {
                let bar = |(x, from, top): &(f64, f64, f64)| [(x + left, *from), (x + left + each, *top)];
                chart.draw_series(run.iter().map(|mark| Rectangle::new(bar(mark), color.filled())))?;
                continue;
            }
            if request.kind == Kind::Area {
                let floor = run.iter().rev().map(|(x, from, _)| (*x, *from));
                let outline: Vec<(f64, f64)> = line.iter().copied().chain(floor).collect();
                chart.draw_series(once(Polygon::new(outline, color.mix(0.5))))?;
            }
            // A value between gaps has no line that shows it.
            if request.kind == Kind::Scatter || marks.len() <= MAX_DOTS || line.len() == 1 {
                chart.draw_series(line.iter().map(|at| Circle::new(*at, 3, color.mix(0.75).filled())))?;
            }
            if request.kind != Kind::Scatter {
                chart.draw_series(once(PathElement::new(line, color.stroke_width(2))))?;
            }
        }
        left += if is_stacked { 0.0 } else { each };
    }
    Ok(())
}

/// The date of days since 1970, with its time unless that is midnight.
fn day(days: f64) -> String {
    let at = EPOCH.saturating_add(SignedDuration::from_secs((days * 86_400.0).round() as i64));
    at.to_string().trim_end_matches("T00:00:00").to_owned()
}

/// A number as a label: `12,500`, `0.25`, `1.5e12`.
pub(super) fn number(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e10).contains(&value.abs()) {
        return format!("{value:e}");
    }
    // There is no negative zero on an axis.
    let text = format!("{:.6}", value + 0.0);
    let mut text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
    let mut at = text.find('.').unwrap_or(text.len());
    while at > 3 + usize::from(value < 0.0) {
        at -= 3;
        text.insert(at, ',');
    }
    text
}

/// A text on one line, without characters that XML cannot hold; with an ellipsis after `most` characters if it is longer.
pub(super) fn label(text: &str, most: usize) -> String {
    let is_text = |c: &char| c.is_whitespace() || !is_control(*c) && !matches!(*c, '\u{fffe}' | '\u{ffff}');
    one_line(&text.chars().filter(is_text).collect::<String>(), most)
}
